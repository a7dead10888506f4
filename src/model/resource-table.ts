// The definition of a resource, and the table of the 49 built-in resources (docs/reference/attributes.md 8). Custom
// resources, which are made with qmgr, have the same form.
//
// I1. Flags are written in the order h q n f i r m. A resource cannot have both n and f; each of the two needs h. Resources
//     of type boolean, string and string_array cannot have n, f or q.
// I2. Built-in resources cannot be changed or deleted.

import type { ReadLevel, SetLevel } from "./attribute.ts";
import { PBSE, Reject, reject } from "./pbse.ts";

/** The types of resources. Only built-in resources have the type duration, which qmgr shows as long. */
export type ResourceType = "long" | "float" | "size" | "string" | "string_array" | "boolean" | "duration";
/**
 * A flag. h: allowed in select. n, f: consumable at vnodes (f: only at the first vnode of a job). q: consumable at queue and
 * server. i: users cannot see it. r: users cannot set it. m: sent to the mom
 */
export type ResourceFlag = "h" | "q" | "n" | "f" | "i" | "r" | "m";

export type ResourceDef = {
  readonly name: string;
  readonly type: ResourceType;
  /** letters of ResourceFlag in the canonical order */
  readonly flags: string;
  readonly read: ReadLevel;
  readonly set: SetLevel;
  /** may be changed while the job runs */
  readonly runAlterable?: boolean;
  readonly builtin?: boolean;
  readonly help?: string;
};

/** All resources by name: the built-in ones and the custom ones. */
export type Resources = ReadonlyMap<string, ResourceDef>;

export const RESOURCE_TYPES = ["long", "float", "size", "string", "string_array", "boolean"] as const;
const FLAG_ORDER = "hqnfirm";

type Row = readonly [name: string, type: ResourceType, flags: string, set: SetLevel, help: string, runAlterable?: true];

// biome-ignore format: one row per resource
const ROWS: readonly Row[] = [
  ["cput",              "duration",     "m",    "user", "CPU time all processes of the job may use together", true],
  ["mem",               "size",         "hqnm", "user", "physical memory, over all chunks of the job"],
  ["walltime",          "duration",     "m",    "user", "time the job may run; at its end the job is killed", true],
  ["soft_walltime",     "duration",     "",     "mgr",  "expected run time for the scheduler; nothing happens when it passes", true],
  ["min_walltime",      "duration",     "",     "user", "shortest run time a shrink-to-fit job accepts", true],
  ["max_walltime",      "duration",     "",     "user", "longest run time a shrink-to-fit job can use", true],
  ["ncpus",             "long",         "hqnm", "user", "processors"],
  ["naccelerators",     "long",         "hqnm", "user", "accelerators"],
  ["select",            "string",       "",     "user", "chunks the job asks for: [N:]res=value[:res=value...][+...]"],
  ["place",             "string",       "m",    "user", "how chunks are put on vnodes: free, pack, scatter, vscatter; excl, shared, exclhost; group=res"],
  ["nodes",             "string",       "",     "user", "old node specification, turned into select and place"],
  ["nodect",            "long",         "q",    "mgr",  "number of chunks"],
  ["arch",              "string",       "hm",   "user", "architecture of the vnode"],
  ["nchunk",            "long",         "h",    "op",   "how many chunks a chunk without count means"],
  ["vntype",            "string_array", "h",    "user", "kind of vnode, named by the site"],
  ["mpiprocs",          "long",         "hq",   "user", "MPI processes of a chunk: its lines in PBS_NODEFILE"],
  ["ompthreads",        "long",         "h",    "user", "threads of each process of a chunk: OMP_NUM_THREADS"],
  ["cpupercent",        "long",         "",     "op",   "processor use of a job in percent, measured"],
  ["energy",            "float",        "",     "op",   "energy a job has used, measured"],
  ["file",              "size",         "m",    "user", "largest file a process may write"],
  ["pmem",              "size",         "m",    "user", "physical memory of each process"],
  ["vmem",              "size",         "hqnm", "user", "virtual memory, over all chunks of the job"],
  ["pvmem",             "size",         "m",    "user", "virtual memory of each process"],
  ["nice",              "long",         "m",    "user", "nice value of the job's processes"],
  ["pcput",             "duration",     "m",    "user", "CPU time of each process"],
  ["nodemask",          "string",       "m",    "op",   "obsolete"],
  ["hpm",               "long",         "qm",   "user", "obsolete"],
  ["ssinodes",          "long",         "m",    "user", "obsolete"],
  ["host",              "string",       "h",    "user", "the host a chunk must be on"],
  ["vnode",             "string",       "h",    "user", "the vnode a chunk must be on"],
  ["resc",              "string_array", "",     "user", "obsolete"],
  ["software",          "string",       "",     "user", "software the job needs, named by the site"],
  ["site",              "string",       "m",    "user", "free for the site"],
  ["exec_vnode",        "string",       "",     "op",   "vnodes of an estimated start"],
  ["start_time",        "long",         "",     "op",   "time of an estimated start"],
  ["pe_mask",           "string",       "m",    "op",   "obsolete"],
  ["partition",         "string",       "m",    "op",   "obsolete; not the partition of queues and nodes"],
  ["aoe",               "string_array", "h",    "user", "operating environment a vnode is provisioned with"],
  ["eoe",               "string_array", "h",    "user", "energy profile a vnode runs with"],
  ["preempt_targets",   "string_array", "",     "user", "what this job may preempt: queue=Q, Resource_List.R=V or none"],
  ["accelerator",       "boolean",      "hm",   "user", "the chunk needs a vnode with an accelerator"],
  ["accelerator_model", "string",       "hm",   "user", "model of accelerator"],
  ["accelerator_memory","size",         "hqnm", "user", "memory of accelerators"],
  ["accelerator_group", "string_array", "h",    "user", "accelerators that belong together"],
  ["pstate",            "string",       "m",    "user", "processor power state"],
  ["hbmem",             "size",         "hqnm", "user", "high-bandwidth memory"],
  ["pgov",              "string",       "m",    "user", "processor frequency governor"],
  ["pcap_node",         "long",         "m",    "user", "power cap of a node"],
  ["pcap_accelerator",  "long",         "m",    "user", "power cap of an accelerator"],
];

/** The built-in resources in the order of docs/reference/attributes.md 8. */
export const BUILTIN_RESOURCES: readonly ResourceDef[] = ROWS.map(([name, type, flags, set, help, runAlterable]) => ({
  name,
  type,
  flags,
  read: "all",
  set,
  help,
  builtin: true,
  ...(runAlterable === true ? { runAlterable } : {}),
}));

/** A new map with the built-in resources, to which the caller can add custom resources. */
export function builtinResources(): Map<string, ResourceDef> {
  return new Map(BUILTIN_RESOURCES.map((def) => [def.name, def]));
}

/** Makes a custom resource from a parsed type and flags. */
export function customResource(name: string, type: ResourceType = "string", flags = ""): ResourceDef {
  return { name, type, flags, read: flags.includes("i") ? "op" : "all", set: flags.includes("i") || flags.includes("r") ? "op" : "user" };
}

export function hasFlag(def: ResourceDef, flag: ResourceFlag): boolean {
  return def.flags.includes(flag);
}

/** Whether jobs consume amounts of the resource: at vnodes (flags n, f), or at queue and server (flag q). */
export function isConsumable(def: ResourceDef): boolean {
  return hasFlag(def, "n") || hasFlag(def, "f") || hasFlag(def, "q");
}

/** Whether values of the type can be added and compared as amounts. */
export function isNumeric(type: ResourceType): boolean {
  return type === "long" || type === "float" || type === "size" || type === "duration";
}

/** The name of a type in qmgr. */
export function resourceTypeText(type: ResourceType): string {
  return type === "duration" ? "long" : type;
}

/** Parses the type of `create resource`. Other words are refused with 15014. */
export function parseResourceType(text: string): ResourceType {
  const found = RESOURCE_TYPES.find((type) => type === text);
  if (found === undefined) throw reject(PBSE.BADATVAL);
  return found;
}

/**
 * Parses the letters of `flag=` and puts them into their order; a letter may be repeated. Refuses unknown letters with
 * 15014. Combinations are checked by checkResourceFlags.
 */
export function parseResourceFlags(text: string): string {
  for (const letter of text) if (!FLAG_ORDER.includes(letter)) throw reject(PBSE.BADATVAL);
  return [...FLAG_ORDER].filter((letter) => text.includes(letter)).join("");
}

/** Refuses invalid combinations of type and flags with 15014 and a sentence that names resource and flag. */
export function checkResourceFlags(name: string, type: ResourceType, flags: string): void {
  const erroneous = (what: string, why = ""): Reject => new Reject(PBSE.BADATVAL, `Erroneous to have ${what} on resource "${name}"${why}.`);
  const has = (letter: string): boolean => flags.includes(letter);
  if (has("i") && has("r")) throw erroneous("flag 'i' and 'r'");
  for (const letter of ["n", "f"]) if (has(letter) && !has("h")) throw erroneous(`flag '${letter}' without 'h'`);
  if (has("n") && has("f")) throw erroneous("flag 'n' and 'f'");
  if (isNumeric(type) || !["n", "f", "q"].some(has)) return;
  throw erroneous("flag 'n', 'f', or 'q'", " which is type string, string_array, or boolean");
}

// Dependencies between jobs in the form of the attribute depend (docs/reference/commands.md 1.3): items
// `afterok:1.svr@svr:2.svr@svr`, `on:2`, `beforeany:3.svr@svr`.
//
// D1. A job waits for the jobs in its `after...` items and for its `on` count. Its `before...` items name the
//     jobs that wait for it. A `before...` item of a new job reduces the `on` count of the job it names.
// D2. A list has one item for each type, in the order in which the types were added. An item contains an id
//     only once.

import { parseJobId } from "./job-id.ts";
import { PBSE, Reject, reject } from "./pbse.ts";
import { splitOutsideBrackets } from "./split-ids.ts";

export const AFTER_TYPES = ["after", "afterok", "afternotok", "afterany"] as const;
export type AfterType = (typeof AFTER_TYPES)[number];
export type BeforeType = "before" | "beforeok" | "beforenotok" | "beforeany";
export type DependType = AfterType | BeforeType | "runone";

/** ids have the form `1.svr@svr`. count belongs to `on`. */
export type Dependency = { readonly type: DependType; readonly ids: readonly string[] } | { readonly type: "on"; readonly count: number };
export type Dependencies = readonly Dependency[];

const TYPES: ReadonlySet<string> = new Set([...AFTER_TYPES, "before", "beforeok", "beforenotok", "beforeany", "runone"]);
const ON_MAX = 1_000_000;

/**
 * The type of the matching item in the other job: `afterok` of one job is `beforeok` of the other. runone is
 * its own reverse.
 */
export function reverseType(type: DependType): DependType {
  if (type === "runone") return type;
  return (type.startsWith("after") ? type.replace("after", "before") : type.replace("before", "after")) as DependType;
}

export const isAfter = (type: Dependency["type"]): type is AfterType => type.startsWith("after");
export const isBefore = (type: Dependency["type"]): type is BeforeType => type.startsWith("before");

/**
 * Parses the items of an attribute value. server: appended to ids that name no server. ids_max: upper bound
 * on all ids and counts together. A malformed item is refused with 15014; another server, a subjob and too
 * many ids with 15054. The work is linear in the text, because items collect their ids in sets.
 */
export function parseDependencies(items: readonly string[], server: string, ids_max = Number.POSITIVE_INFINITY): Dependencies {
  const known = PARSED.get(items);
  if (known?.server === server && known.named <= ids_max) return known.dependencies;
  const found = new Map<Dependency["type"], Set<string> | number>();
  let named = 0;
  for (const item of items) {
    const [type = "", ...args] = splitOutsideBrackets(item.trim());
    if (args.length === 0) throw malformed();
    named += args.length;
    if (named > ids_max) throw tooMany(ids_max);
    if (type === "on") found.set(type, countOf(args));
    else if (TYPES.has(type)) {
      const ids = (found.get(type as DependType) as Set<string> | undefined) ?? new Set();
      found.set(type as DependType, ids);
      for (const arg of args) ids.add(idOf(arg, server));
    } else throw malformed();
  }
  const dependencies = [...found].map(
    ([type, value]): Dependency =>
      typeof value === "number" ? { type: "on", count: value } : { type: type as DependType, ids: [...value] },
  );
  PARSED.set(items, { server, named, dependencies });
  return dependencies;
}

/**
 * Cache of parsed items. The list that a job keeps never changes, and the server reads it at every start and
 * end of a job that it names.
 */
const PARSED = new WeakMap<readonly string[], { readonly server: string; readonly named: number; readonly dependencies: Dependencies }>();

/** The refusal of a dependency list that is longer than the server's max_depend_jobs. */
const tooMany = (ids_max: number): Reject =>
  new Reject(PBSE.BADDEPEND, `Invalid Job Dependency: more than ${ids_max} jobs (max_depend_jobs)`);

const malformed = (): Reject => reject(PBSE.BADATVAL, "depend");

function countOf(args: readonly string[]): number {
  const [text = ""] = args;
  if (args.length !== 1 || !/^[0-9]{1,9}$/.test(text) || Number(text) < 1 || Number(text) > ON_MAX) throw malformed();
  return Number(text);
}

function idOf(text: string, server: string): string {
  const id = parseJobId(text);
  if (id === null) throw malformed();
  if (id.kind === "subjob" || id.kind === "range" || (id.at !== "" && id.at !== server)) throw reject(PBSE.BADDEPEND);
  return `${id.seq}${id.kind === "array" ? "[]" : ""}.${id.server === "" ? server : id.server}@${server}`;
}

/** The job's id in an entry: `1.svr@svr` -> `1.svr`. */
export const jobOfEntry = (entry: string): string => entry.slice(0, entry.lastIndexOf("@"));

export function dependencyItems(dependencies: Dependencies): string[] {
  return dependencies.map((item) => (item.type === "on" ? `on:${item.count}` : `${item.type}:${item.ids.join(":")}`));
}

/** The items as a job of this server keeps them. Their parsed form enters the cache. */
export function keptItems(dependencies: Dependencies, server: string): string[] {
  const items = dependencyItems(dependencies);
  const named = dependencies.reduce((sum, item) => sum + (item.type === "on" ? 1 : item.ids.length), 0);
  PARSED.set(items, { server, named, dependencies });
  return items;
}

/** Adds an id to the item of a type. */
export const withDependency = (dependencies: Dependencies, type: DependType, id: string): Dependencies =>
  withEntries(dependencies, type, [id]);

/** Adds ids to the item of a type. Ids that the item already contains are skipped. */
export function withEntries(dependencies: Dependencies, type: DependType, added: readonly string[]): Dependencies {
  const at = dependencies.findIndex((item) => item.type === type);
  if (at < 0) return added.length === 0 ? dependencies : [...dependencies, { type, ids: [...new Set(added)] }];
  const fresh = [...new Set(added)].filter((id) => !hasEntry(dependencies, type, id));
  if (fresh.length === 0) return dependencies;
  return dependencies.map((item, place) => (place === at && item.type !== "on" ? { type, ids: [...item.ids, ...fresh] } : item));
}

/** Removes an id. An item without ids is removed. */
export function withoutDependency(dependencies: Dependencies, type: DependType, id: string): Dependencies {
  return dependencies.flatMap((item) => {
    if (item.type === "on" || item.type !== type) return [item];
    const ids = item.ids.filter((other) => other !== id);
    return ids.length === 0 ? [] : [{ type, ids }];
  });
}

/** Sets the remaining count of `on`. A count of 0 removes the item. */
export function withCount(dependencies: Dependencies, count: number): Dependencies {
  const others = dependencies.filter((item) => item.type !== "on");
  if (count === 0) return others;
  if (others.length === dependencies.length) return [...dependencies, { type: "on", count }];
  return dependencies.map((item) => (item.type === "on" ? { type: "on", count } : item));
}

export const countLeft = (dependencies: Dependencies): number =>
  dependencies.reduce((sum, item) => (item.type === "on" ? item.count : sum), 0);

/** The entries of the item of a type. */
export function entriesOf(dependencies: Dependencies, type: DependType): readonly string[] {
  return dependencies.flatMap((item) => (item.type !== "on" && item.type === type ? item.ids : []));
}

const SETS = new WeakMap<readonly string[], ReadonlySet<string>>();
/** A list with fewer ids is searched without a set. */
const SET_FROM = 256;

/** Whether an item of the type contains the entry. A long item is turned into a set once. */
export function hasEntry(dependencies: Dependencies, type: DependType, entry: string): boolean {
  for (const item of dependencies) {
    if (item.type === "on" || item.type !== type) continue;
    if (item.ids.length < SET_FROM) return item.ids.includes(entry);
    let set = SETS.get(item.ids);
    if (set === undefined) SETS.set(item.ids, (set = new Set(item.ids)));
    return set.has(entry);
  }
  return false;
}

/** Ids of the jobs that a job waits for. items: the stored `depend` of the job. */
export function idsAhead(items: unknown, server: string): string[] {
  if (!isDependent(items)) return [];
  const dependencies = parseDependencies(items as readonly string[], server);
  return AFTER_TYPES.flatMap((type) => entriesOf(dependencies, type).map(jobOfEntry));
}

/** Whether stored items contain anything that a job waits for. */
export function isDependent(items: unknown): boolean {
  return Array.isArray(items) && items.some((item) => /^(after|on:)/.test(String(item)));
}

export type End = { readonly ran: boolean; readonly exit_status: number | undefined };

/** Whether a finished job has met a dependency on it. */
export function isMet(type: AfterType, { ran, exit_status }: End): boolean {
  switch (type) {
    case "after":
      return ran;
    case "afterok":
      return exit_status === 0;
    case "afternotok":
      return exit_status !== undefined && exit_status !== 0;
    case "afterany":
      return true;
    default: {
      const unreachable: never = type;
      return unreachable;
    }
  }
}

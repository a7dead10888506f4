// Dependencies between jobs as the attribute depend holds them (pbs/commands.md 1.3): items `afterok:1.svr@svr:2.svr@svr`, `on:2`, `beforeany:3.svr@svr`.
//
// D1. A job waits for its after... and on items; its before... items name who waits for it. `before...` of a new job uses up an `on` of the other.
// D2. An item stands once for each type, in the order in which types came; an id stands once in an item.

import { parseJobId } from "./job-id.ts";
import { PBSE, type Reject, reject } from "./pbse.ts";

export const AFTER_TYPES = ["after", "afterok", "afternotok", "afterany"] as const;
export type AfterType = (typeof AFTER_TYPES)[number];
export type BeforeType = "before" | "beforeok" | "beforenotok" | "beforeany";
export type DependType = AfterType | BeforeType | "runone";

/** ids: `1.svr@svr`. count: of `on`. */
export type Dependency = { readonly type: DependType; readonly ids: readonly string[] } | { readonly type: "on"; readonly count: number };
export type Dependencies = readonly Dependency[];

const TYPES: ReadonlySet<string> = new Set([...AFTER_TYPES, "before", "beforeok", "beforenotok", "beforeany", "runone"]);
const ON_MAX = 1_000_000;

/** What the other job has: `afterok` of one is `beforeok` of the other; runone is mutual. */
export function reverseType(type: DependType): DependType {
  if (type === "runone") return type;
  return (type.startsWith("after") ? type.replace("after", "before") : type.replace("before", "after")) as DependType;
}

export const isAfter = (type: Dependency["type"]): type is AfterType => type.startsWith("after");
export const isBefore = (type: Dependency["type"]): type is BeforeType => type.startsWith("before");

/** The items of an attribute value. Refuses a malformed one with 15014, another server and a subjob with 15054. server: added where an id has none. */
export function parseDependencies(items: readonly string[], server: string): Dependencies {
  let dependencies: Dependencies = [];
  for (const item of items) {
    const [type = "", ...args] = item.trim().split(/:(?![^[]*\])/);
    if (args.length === 0) throw malformed();
    if (type === "on") dependencies = withCount(dependencies, countOf(args));
    else if (TYPES.has(type)) for (const arg of args) dependencies = withDependency(dependencies, type as DependType, idOf(arg, server));
    else throw malformed();
  }
  return dependencies;
}

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

/** Adds an id to the item of a type. */
export function withDependency(dependencies: Dependencies, type: DependType, id: string): Dependencies {
  if (!dependencies.some((item) => item.type === type)) return [...dependencies, { type, ids: [id] }];
  return dependencies.map((item) =>
    item.type !== "on" && item.type === type && !item.ids.includes(id) ? { type, ids: [...item.ids, id] } : item,
  );
}

/** Takes an id out; an item without ids goes. */
export function withoutDependency(dependencies: Dependencies, type: DependType, id: string): Dependencies {
  return dependencies.flatMap((item) => {
    if (item.type === "on" || item.type !== type) return [item];
    const ids = item.ids.filter((other) => other !== id);
    return ids.length === 0 ? [] : [{ type, ids }];
  });
}

/** Sets what is left of `on`; 0: the item goes. */
export function withCount(dependencies: Dependencies, count: number): Dependencies {
  const others = dependencies.filter((item) => item.type !== "on");
  if (count === 0) return others;
  if (others.length === dependencies.length) return [...dependencies, { type: "on", count }];
  return dependencies.map((item) => (item.type === "on" ? { type: "on", count } : item));
}

export const countLeft = (dependencies: Dependencies): number =>
  dependencies.reduce((sum, item) => (item.type === "on" ? item.count : sum), 0);

/** Entries of a type. */
export function entriesOf(dependencies: Dependencies, type: DependType): readonly string[] {
  return dependencies.flatMap((item) => (item.type !== "on" && item.type === type ? item.ids : []));
}

/** Ids of the jobs that items (as kept) wait for. */
export function idsAhead(items: unknown, server: string): string[] {
  if (!isDependent(items)) return [];
  const dependencies = parseDependencies(items as readonly string[], server);
  return AFTER_TYPES.flatMap((type) => entriesOf(dependencies, type).map(jobOfEntry));
}

/** Whether items (as kept) name anything that a job waits for. */
export function isDependent(items: unknown): boolean {
  return Array.isArray(items) && items.some((item) => /^(after|on:)/.test(String(item)));
}

export type End = { readonly ran: boolean; readonly exit_status: number | undefined };

/** Whether a job that is over has met a dependency on it. */
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

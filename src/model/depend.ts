// Dependencies between jobs in the form of the attribute depend (docs/reference/commands.md 1.3): items
// `afterok:1.svr@svr:2.svr@svr`, `on:2`, `beforeany:3.svr@svr`.
//
// D1. A job waits for the jobs in its `after...` items and for its `on` count. Its `before...` items name the
//     jobs that wait for it. A `before...` item of a new job reduces the `on` count of the job it names.
// D2. A list has one item for each type, in the order in which the types were added. An item contains an id at most once.

import { parseJobId } from "./job-id.ts";
import { PBSE, Reject, reject } from "./pbse.ts";
import { splitOutsideBrackets } from "./split-ids.ts";

export const AFTER_TYPES = ["after", "afterok", "afternotok", "afterany"] as const;
export type AfterType = (typeof AFTER_TYPES)[number];
export type BeforeType = "before" | "beforeok" | "beforenotok" | "beforeany";
export type DependType = AfterType | BeforeType | "runone";

/** One item. ids: each has the form `1.svr@svr`. count: the number in an `on` item. */
export type Dependency = { readonly type: DependType; readonly ids: readonly string[] } | { readonly type: "on"; readonly count: number };
export type Dependencies = readonly Dependency[];

const TYPES: ReadonlySet<string> = new Set([...AFTER_TYPES, "before", "beforeok", "beforenotok", "beforeany", "runone"]);
const ON_MAX = 1_000_000;

/** The type of the item that the other job has for the same dependency: beforeok for afterok, afterok for beforeok, and so on; for runone it is runone. */
export function reverseType(type: DependType): DependType {
  if (type === "runone") return type;
  return (type.startsWith("after") ? type.replace("after", "before") : type.replace("before", "after")) as DependType;
}

export const isAfter = (type: Dependency["type"]): type is AfterType => type.startsWith("after");
export const isBefore = (type: Dependency["type"]): type is BeforeType => type.startsWith("before");

/**
 * Parses the items of an attribute value. server: added to ids without a server. ids_max: the largest number of
 * ids and counts together. Refuses a malformed item with 15014; another server, a subjob and too many ids with 15054. The time
 * grows only linearly with the length of the text, because the ids of an item are collected in a set.
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
 * Cache of parsed items, by list. A stored list never changes, and the server reads it whenever one of the jobs that it
 * names starts or ends.
 */
const PARSED = new WeakMap<readonly string[], { readonly server: string; readonly named: number; readonly dependencies: Dependencies }>();

/** The refusal of a list with more ids than the server's max_depend_jobs. */
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

/** The id of the job in an entry: `1.svr@svr` -> `1.svr`. */
export const jobOfEntry = (entry: string): string => entry.slice(0, entry.lastIndexOf("@"));

export function dependencyItems(dependencies: Dependencies): string[] {
  return dependencies.map((item) => (item.type === "on" ? `on:${item.count}` : `${item.type}:${item.ids.join(":")}`));
}

/** The items to store for a job of this server. Also puts their parsed form into the cache. */
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

/** Removes an id from the item of a type. If the item then has no id, the item itself is removed. */
export function withoutDependency(dependencies: Dependencies, type: DependType, id: string): Dependencies {
  return dependencies.flatMap((item) => {
    if (item.type === "on" || item.type !== type) return [item];
    const ids = item.ids.filter((other) => other !== id);
    return ids.length === 0 ? [] : [{ type, ids }];
  });
}

/** Sets the remaining count of the `on` item. If the count is 0, the item is removed. */
export function withCount(dependencies: Dependencies, count: number): Dependencies {
  const others = dependencies.filter((item) => item.type !== "on");
  if (count === 0) return others;
  if (others.length === dependencies.length) return [...dependencies, { type: "on", count }];
  return dependencies.map((item) => (item.type === "on" ? { type: "on", count } : item));
}

export const countLeft = (dependencies: Dependencies): number =>
  dependencies.reduce((sum, item) => (item.type === "on" ? item.count : sum), 0);

/** The ids in the item of a type. */
export function entriesOf(dependencies: Dependencies, type: DependType): readonly string[] {
  return dependencies.flatMap((item) => (item.type !== "on" && item.type === type ? item.ids : []));
}

const SETS = new WeakMap<readonly string[], ReadonlySet<string>>();
/** A list with at least this number of ids is searched with a set. */
const SET_FROM = 256;

/** Whether the item of a type contains an id. For a long item a set is made once. */
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

/** Whether stored items contain a dependency for which the job waits. */
export function isDependent(items: unknown): boolean {
  return Array.isArray(items) && items.some((item) => /^(after|on:)/.test(String(item)));
}

export type End = { readonly ran: boolean; readonly exit_status: number | undefined };

/** Whether a dependency of this type is met, now that the job on which it depends has ended. */
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

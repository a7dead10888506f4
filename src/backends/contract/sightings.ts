// Functions for lists of sightings, which every backend needs. Pure.

import type { RunnerOrder, RunnerSighting } from "./backend.ts";
import { BackendError, cleanText } from "./fault.ts";
import { isTagOf } from "./tag.ts";

/** Which runners a list is read for. prefix: the text before the tag in the name of each. */
export type Of = { readonly complex: string; readonly backend: string; readonly prefix: string };

/**
 * Called for an entry of a list that cannot be read. Throws if the entry has the name of a runner, because the list without the entry would report a living runner as ended (B2).
 * Entries of others are no concern.
 */
export function unreadable(what: string, name: unknown, of: Of): readonly [] {
  if (typeof name !== "string" || !name.startsWith(of.prefix) || !isTagOf(name.slice(of.prefix.length), of)) return [];
  throw new BackendError({
    kind: "transient",
    text: cleanText(`${what} with the name ${name} is listed in a form that is not understood`),
  });
}

/**
 * Keeps one sighting of each runner. A runner has several if the cluster manager accepted a submission so late that it was sent again: the first submission (by
 * `order`) that lives is kept, or the first one if none lives. The other submissions that live are surplus.
 */
export function withoutSurplus(
  sightings: readonly RunnerSighting[],
  order: (a: RunnerSighting, b: RunnerSighting) => number,
): { readonly kept: readonly RunnerSighting[]; readonly surplus: readonly RunnerSighting[] } {
  const first = new Map<string, RunnerSighting>();
  const surplus: RunnerSighting[] = [];
  for (const each of [...sightings].sort(order)) {
    const key = `${each.tag}/${each.index}/${each.user ?? ""}`;
    const before = first.get(key);
    // A living submission takes the place of one that has ended, because its runner may have a job.
    if (before === undefined || (before.state === "ended" && each.state !== "ended")) first.set(key, each);
    else if (each.state !== "ended") surplus.push(each);
  }
  return { kept: [...first.values()], surplus };
}

/** Divides a list into lists of at most `size` items. */
export function batchesOf<T>(list: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, at) => list.slice(at * size, (at + 1) * size));
}

/** Returns the runners of an order among all that a backend shows. A job of another user is no runner, even if the tag is its name. */
export function runnersOf({ tag, owner }: RunnerOrder, all: readonly RunnerSighting[]): readonly RunnerSighting[] {
  return all.filter((each) => each.tag === tag && (owner === null || each.user === owner.name));
}

/** Returns the runners of an order that was just submitted. user: the user of the complex (user mode). idOf: the backend's name of each runner. */
export function newRunners(order: RunnerOrder, user: string | null, idOf: (index: number) => string): readonly RunnerSighting[] {
  const common = {
    tag: order.tag,
    state: "queued",
    reason: "submitted",
    user: order.owner?.name ?? user,
    host: null,
    ending: null,
    fault: null,
  } as const;
  return Array.from({ length: order.count }, (_, index) => ({ ...common, index, id: idOf(index) }));
}

/** Compares the numbers at the beginning of two ids: the job that was submitted first comes first. */
export const byJobNumber = (a: RunnerSighting, b: RunnerSighting): number => Number.parseInt(a.id, 10) - Number.parseInt(b.id, 10);

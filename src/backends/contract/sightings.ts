// Works on lists of sightings that every backend needs. Pure.

import type { RunnerSighting } from "./backend.ts";

/**
 * Separates sightings of the same runner, which appear if a cluster manager accepted a submission so late that it was sent again: of each runner the first
 * submission (by `order`) is kept, and what lives of the others is surplus.
 */
export function withoutSurplus(
  sightings: readonly RunnerSighting[],
  order: (a: RunnerSighting, b: RunnerSighting) => number,
): { readonly kept: readonly RunnerSighting[]; readonly surplus: readonly RunnerSighting[] } {
  const first = new Map<string, RunnerSighting>();
  const surplus: RunnerSighting[] = [];
  for (const each of [...sightings].sort(order)) {
    const key = `${each.tag}/${each.index}/${each.user ?? ""}`;
    if (!first.has(key)) first.set(key, each);
    else if (each.state !== "ended") surplus.push(each);
  }
  return { kept: [...first.values()], surplus };
}

/** Divides a list into lists of at most `size` items. */
export function batchesOf<T>(list: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, at) => list.slice(at * size, (at + 1) * size));
}

// The request of a job for vnodes: schedselect and place, parsed once for each distinct text. The server sends normalised
// texts. A job whose texts cannot be parsed never runs; its comment gives the reason.

import { FREE, type Place, readPlace } from "#model/request/place.ts";
import { readSelect, type SelectChunk, selectText } from "#model/request/select.ts";
import type { ResourceSpace } from "./resource-space.ts";
import { amountOf, matchedOf } from "./resource-space.ts";

export type Amount = { readonly index: number; readonly amount: number };
export type Match = { readonly resource: string; readonly value: string | boolean };
/** A resource of a vnode that is compared with the request but not used up. */
export type Level = { readonly resource: string; readonly amount: number };

/** A chunk of a select specification, requested `count` times. */
export type Chunk = {
  readonly count: number;
  /** amounts of resources that the chunk uses up, in the order of the request */
  readonly amounts: readonly Amount[];
  readonly matches: readonly Match[];
  readonly levels: readonly Level[];
  readonly host: string | undefined;
  readonly vnode: string | undefined;
};

export type Request = {
  readonly id: number;
  readonly chunks: readonly Chunk[];
  readonly chunk_count: number;
  readonly place: Place;
  /** sums over all chunks, in the order of the request */
  readonly totals: readonly Amount[];
  /** the reason why the texts could not be parsed; undefined: they could */
  readonly fault: string | undefined;
  /** true: the job is suspended. It can resume only on the vnodes where it was, so placement sets do not apply; they may have changed since the job started */
  readonly resumes?: true;
  /** true: a suspended job that kept its cpus; it may use a vnode without free cpus, because these may be its own */
  readonly keeps_cpus?: true;
};

/** Parses `2:ncpus=1:mem=1gb+ncpus=4` with `pack:excl`. id: the caller's number for this pair of texts. */
export function parseRequest(space: ResourceSpace, select: string, place: string, id: number): Request {
  const parsed = readPlace(place);
  const asked = readSelect(select);
  const chunks: Chunk[] = [];
  let fault = parsed === null ? `place ${place}` : undefined;
  if (asked === null) fault ??= `select ${select}`;
  for (const each of asked?.chunks ?? []) {
    const chunk = chunkOf(space, each);
    if (chunk === null) fault ??= `select ${selectText({ chunks: [each] })}`;
    else chunks.push(chunk);
  }
  const totals = new Map<number, number>();
  for (const chunk of chunks)
    for (const { index, amount } of chunk.amounts) totals.set(index, (totals.get(index) ?? 0) + amount * chunk.count);
  return {
    id,
    chunks,
    chunk_count: chunks.reduce((sum, chunk) => sum + chunk.count, 0),
    place: parsed ?? FREE,
    totals: [...totals].map(([index, amount]) => ({ index, amount })),
    fault,
  };
}

/**
 * Returns the request reduced to the `resources` of sched_config: a resource that is not named there is neither checked nor assigned
 * (docs/reference/scheduler.md 12). Booleans, host and vnode stay.
 */
export function checkedPart(request: Request, checks: ChunkChecks): Request {
  const isLookedAt = ({ index }: Amount): boolean => checks.checked[index] === true;
  const chunks = request.chunks.map((chunk) => ({
    ...chunk,
    amounts: chunk.amounts.filter(isLookedAt),
    matches: chunk.matches.filter(({ resource, value }) => typeof value === "boolean" || checks.policy.resources.has(resource)),
    levels: chunk.levels.filter(({ resource }) => checks.policy.resources.has(resource)),
  }));
  return { ...request, chunks, totals: request.totals.filter(isLookedAt) };
}

/** Says which resources are checked: by index (`checked`) and by name (`policy.resources`). */
export type ChunkChecks = { readonly checked: readonly boolean[]; readonly policy: { readonly resources: ReadonlySet<string> } };

/** Converts one chunk; null: an amount is not a legal value of its resource. */
function chunkOf(space: ResourceSpace, { count, pairs }: SelectChunk): Chunk | null {
  const amounts: Amount[] = [];
  const matches: Match[] = [];
  const levels: Level[] = [];
  let host: string | undefined;
  let vnode: string | undefined;
  for (const { name, text } of pairs) {
    const resource = space.all.get(name);
    if (name === "host") host = text;
    else if (name === "vnode") vnode = text;
    else {
      const amount = amountOf(resource, text);
      if (resource !== undefined && resource.index >= 0) {
        if (amount === null) return null;
        amounts.push({ index: resource.index, amount });
      } else if (amount !== null) levels.push({ resource: name, amount });
      else matches.push({ resource: name, value: matchedOf(resource, text) });
    }
  }
  return { count: count ?? 1, amounts, matches, levels, host, vnode };
}

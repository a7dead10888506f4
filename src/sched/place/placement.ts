// Placement of a job: its chunks are put on vnodes (docs/reference/scheduler.md 5). First fit: vnodes are walked in the order of node_sort_key, then of
// definition, and each chunk goes to the first host that can take it. The walk goes over buckets of equal hosts, never over all hosts.
//
// P1. A host is taken out of its bucket while a job is being placed; on success it returns in its new state, on failure in its old one.
// P2. The order of the walk does not change while one job is placed: touched hosts keep their rank.
// P3. A chunk stays on one host; it is split over the host's vnodes only if no single vnode can take it whole.
// P4. If chunks differ and first fit in the order of the request fails, the chunks with the fewest choices choose first. exec_vnode keeps the order of the
//     request.
// P5. Only the resources named by `resources` of sched_config, booleans, host and vnode are checked and assigned. A request has no other resources
//     (shapes/request.ts).
// P6. A grouped job stays in the smallest placement set that has room for it. A job that would not fit in any set even if the set were empty may use all
//     vnodes, unless do_not_span_psets is set. A job that would fit in some set if that set were empty waits for such a set.

import type { Pair } from "#model/request/chunk-text.ts";
import { type ExecVnode, execVnodeText, type VnodePart } from "#model/request/exec-vnode.ts";
import { pairOf } from "#model/request/select.ts";
import type { SchedJob, Why } from "#protocol/sched-link.ts";
import type { Piece, Placed, PlacedChunks } from "../shapes/placed.ts";
import type { Amount, Request } from "../shapes/request.ts";
import { execAmountText } from "../shapes/resource-space.ts";
import type { Universe } from "../shapes/universe.ts";
import type { Grouping, NodeSet } from "../shapes/vnode.ts";
import type { PlaceContext } from "./place-context.ts";
import { Search } from "./placement-search.ts";
import { groupingFor, setsInOrder } from "./placement-sets.ts";
import { checkTotals } from "./set-totals.ts";

export type { PlaceContext } from "./place-context.ts";

export type PlaceResult = { readonly placed: Placed } | { readonly why: Why };

/** Places a job on a node set, or returns the reason. The set is changed only on success. */
export function placeJob(context: PlaceContext, set: NodeSet | undefined, request: Request, job: SchedJob): PlaceResult {
  const found = search(context, set, request, job);
  return "why" in found ? found : { placed: found.search.commit() };
}

/** Places a job where an earlier search found room. Returns null if some of the vnodes no longer have that room. The set is changed only on success. */
export function placeAt(context: PlaceContext, set: NodeSet, { request, job }: Asking, chunks: PlacedChunks): Placed | null {
  const search = new Search(context, set, request, job);
  if (search.putAt(chunks)) return search.commit();
  search.giveBack();
  return null;
}

/** Returns whether a job could be put on these vnodes. Nothing is moved. */
export function couldPlaceAt(context: PlaceContext, set: NodeSet, { request, job }: Asking, chunks: PlacedChunks): boolean {
  const search = new Search(context, set, request, job);
  const could = search.putAt(chunks);
  search.giveBack();
  return could;
}

/** Returns whether placed chunks are within one of the present placement sets (P6). */
export function keepsToSets(universe: Universe, { set, request, job }: Asking & { readonly set: NodeSet }, chunks: PlacedChunks): boolean {
  const grouping = groupingFor(universe, set, universe.queues.get(job.queue), request);
  if (grouping === null) return true;
  const sets = setsInOrder(universe, grouping);
  if (sets.some((one) => chunks.every((pieces) => pieces.every(({ vnode }) => one.vnodes.has(vnode.name))))) return true;
  const spans = universe.sched.attrs["do_not_span_psets"] !== true;
  return spans && sets.every((one) => checkTotals(universe.checks, one, request)?.never === true);
}

/** Finds vnodes for a job, or the reason why there are none. Nothing is moved. */
export function findPlace(
  context: PlaceContext,
  set: NodeSet | undefined,
  request: Request,
  job: SchedJob,
): { readonly chunks: PlacedChunks } | { readonly why: Why } {
  const found = search(context, set, request, job);
  return "why" in found ? found : { chunks: found.search.leave() };
}

type Found = { readonly search: Search } | { readonly why: Why };

function search(context: PlaceContext, set: NodeSet | undefined, request: Request, job: SchedJob): Found {
  if (set === undefined) return { why: { code: "NO_FREE_NODES", module: "placement" } };
  const { universe } = context;
  const grouping = groupingFor(universe, set, universe.queues.get(job.queue), request);
  return grouping === null ? searchOn(context, set, request, job) : searchInSets(context, set, grouping, { request, job });
}

type Asking = { readonly request: Request; readonly job: SchedJob };

function searchInSets(context: PlaceContext, all: NodeSet, grouping: Grouping, { request, job }: Asking): Found {
  const { universe } = context;
  const { checks } = universe;
  let first: Why | null = null;
  let could = false;
  for (const set of setsInOrder(universe, grouping)) {
    const name = set.group?.name ?? "";
    context.log?.(`Evaluating placement set: ${name}`);
    const short = checkTotals(checks, set, request);
    const found = short === null ? searchOn(context, set, request, job) : null;
    if (found !== null && "search" in found) return found;
    could ||= short?.never !== true;
    first ??= found?.why ?? { code: "SET_TOO_SMALL", module: "placement", resource: "Placement", where: name };
  }
  if (could && first !== null) return { why: first };
  if (universe.sched.attrs["do_not_span_psets"] === true) return { why: { code: "CANT_SPAN_PSET", module: "placement", never: true } };
  context.log?.("Request won't fit into any placement sets, will use all nodes");
  return searchOn(context, all, request, job);
}

function searchOn(context: PlaceContext, set: NodeSet, request: Request, job: SchedJob): Found {
  const search = new Search(context, set, request, job);
  const why = request.place.arrangement === "pack" && request.chunk_count > 1 ? search.packAll() : search.spread();
  if (why === null || (request.place.arrangement !== "pack" && search.spreadHardestFirst())) return { search };
  search.giveBack();
  // PBS places exclusive jobs without further requests by whole buckets of nodes, so the reason names no single node (docs/reference/scheduler.md 5).
  return { why: usesNodeBuckets(set, request) ? { code: "NO_NODE_RESOURCES", module: "placement" } : why };
}

/** Returns whether PBS considers whole buckets of nodes for a request. The log of PBS then names the chunks. */
export function usesNodeBuckets(set: NodeSet, { place, chunks }: Request): boolean {
  const exclusive = place.sharing === "excl" || place.sharing === "exclhost";
  return (
    exclusive &&
    place.arrangement !== "pack" &&
    set.multi_vnode_hosts === 0 &&
    chunks.every(({ host, vnode }) => host === undefined && vnode === undefined)
  );
}

/** Returns placed chunks as a text: `(a:ncpus=4+b:ncpus=2)+(c:ncpus=1:mem=1024kb)`. */
export const placedText = (universe: Universe, chunks: PlacedChunks): string => execVnodeText(execOf(universe, chunks));

/** Returns placed chunks as an exec_vnode. */
export function execOf(universe: Universe, chunks: PlacedChunks): ExecVnode {
  const partOf = ({ vnode, amounts }: Piece): VnodePart => ({ vnode: vnode.name, pairs: pairsFor(universe, amounts) });
  return chunks.map((pieces) => pieces.map(partOf));
}

/**
 * Returns amounts as pairs of name and text. The pairs are cached: jobs with the same request share one list of amounts, and a cycle may start thousands of
 * such jobs.
 */
function pairsFor({ space: { consumed } }: Universe, amounts: readonly Amount[]): readonly Pair[] {
  let pairs = pairs_for.get(amounts);
  if (pairs === undefined) {
    pairs = amounts.flatMap(({ index, amount }) => {
      const resource = consumed[index];
      return resource === undefined ? [] : [pairOf(resource.name, execAmountText(resource, amount))];
    });
    pairs_for.set(amounts, pairs);
  }
  return pairs;
}
const pairs_for = new WeakMap<readonly Amount[], readonly Pair[]>();

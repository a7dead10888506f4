// Finds the reason why a chunk cannot be placed (docs/reference/scheduler.md 5). The first host in the order of the walk that the job may use gives the reason:
// what this host lacks. If the job may use no host at all, the reason is why it may not use the first host. Reads the state of a search and changes nothing.

import type { Why } from "#protocol/sched-link.ts";
import { present } from "#support/assert.ts";
import type { Chunk, Request } from "../shapes/request.ts";
import { amountAt } from "../shapes/resource-space.ts";
import type { Host, HostBucket, NodeSet } from "../shapes/vnode.ts";
import type { Checks } from "../shapes/vnode-fit.ts";
import { isChecked, lackOf, shortage } from "../shapes/vnode-fit.ts";
import { firstHost } from "./node-sets.ts";
import { frontOf } from "./set-front.ts";
import type { UsableVnodes } from "./usable-vnodes.ts";
import { precedes } from "./walk.ts";

/** What a reason needs to know about a search. */
export type SearchView = {
  readonly set: NodeSet;
  readonly request: Request;
  readonly checks: Checks;
  readonly usable: UsableVnodes;
  /** the hosts that have chunks of the job, with the amounts taken of their vnodes */
  readonly touched: ReadonlyMap<Host, { readonly bucket: HostBucket; readonly used: readonly (readonly number[])[] }>;
  namedHost(chunk: Chunk): Host | null | undefined;
};

/** A host that may give the reason. used: undefined for a host in the state of its bucket. */
type Candidate = {
  readonly host: Host;
  readonly bucket: HostBucket;
  readonly usable: boolean;
  readonly used: readonly (readonly number[])[] | undefined;
};

const NOTHING: Why = { code: "NO_NODE_RESOURCES", module: "placement" };

/** Returns why no host can take another copy of a chunk. */
export function whyNot(view: SearchView, chunk: Chunk): Why {
  const named = view.namedHost(chunk);
  if (named !== undefined) return whyNotNamed(view, named, chunk);
  const best = firstCandidate(view);
  return (best === null ? null : whyNotHere(view, best, chunk)) ?? NOTHING;
}

/** Returns why a host cannot take a copy of a chunk; null: no reason is known. */
export function whyNotOn(view: SearchView, host: Host, bucket: HostBucket, chunk: Chunk): Why | null {
  return whyNotHere(view, { host, bucket, usable: view.usable.of(bucket, host) !== null, used: undefined }, chunk);
}

/** Returns why a host cannot take all chunks together, although it may take each alone. */
export function whyNotPacked(view: SearchView, host: Host, bucket: HostBucket): Why {
  const here: Candidate = { host, bucket, usable: view.usable.of(bucket, host) !== null, used: undefined };
  for (const chunk of view.request.chunks) {
    const why = whyNotHere(view, here, chunk);
    if (why !== null) return why;
  }
  return { code: "NODE_PLACE_PACK", module: "placement" };
}

/** Returns the first host of the open buckets and, if chunks may share hosts, of the touched ones. Hosts that the job may use come before others. */
function firstCandidate(view: SearchView): Candidate | null {
  let best: Candidate | null = null;
  if (view.touched.size === 0) {
    const { first } = frontOf(view.set);
    if (first !== null && view.usable.of(first.bucket) !== null) return { ...first, usable: true, used: undefined };
  }
  const offer = (host: Host, bucket: HostBucket, usable: boolean, used?: Candidate["used"]): void => {
    const better = best === null || (usable === best.usable ? precedes(bucket.rank, host, best.bucket.rank, best.host) : usable);
    if (better) best = { host, bucket, usable, used };
  };
  for (const bucket of view.set.open) {
    const host = firstHost(bucket);
    if (host !== undefined) offer(host, bucket, view.usable.of(bucket) !== null);
  }
  const { arrangement } = view.request.place;
  if (arrangement === "scatter" || arrangement === "vscatter") return best;
  for (const [host, { bucket, used }] of view.touched) offer(host, bucket, true, used);
  return best;
}

function whyNotHere(view: SearchView, { host, bucket, usable, used: taken }: Candidate, chunk: Chunk): Why | null {
  const states = view.usable.statesOf(bucket);
  const used = taken ?? states.map((state) => state.used);
  const flags = view.usable.of(bucket, host);
  if (!usable || flags === null) {
    const at = bucket.walk.find((index) => bucket.states[index]?.closed === undefined) ?? present(bucket.walk[0], "vnode");
    return view.usable.whyNot(present(states[at], "state"), states, host.vnodes[at]);
  }
  if (flags.length > 1 && view.request.place.arrangement !== "vscatter") {
    const why = hostShortage(view.checks, bucket, used, flags, chunk);
    if (why !== null) return why;
  }
  const at = bucket.walk.find((index) => flags[index] === true) ?? present(bucket.walk[0], "vnode");
  return lackOf(view.checks, { spec: present(bucket.states[at], "state").spec, used: present(used[at], "amounts") }, chunk);
}

/** Returns a reason for the first resource of which all usable vnodes of a host together have too little. */
function hostShortage(
  checks: Checks,
  bucket: HostBucket,
  used: readonly (readonly number[])[],
  flags: readonly boolean[],
  chunk: Chunk,
): Why | null {
  for (const { index, amount } of chunk.amounts) {
    if (!isChecked(checks, index)) continue;
    let [have, total] = [0, 0];
    for (const at of bucket.walk) {
      const { spec } = present(bucket.states[at], "state");
      total += amountAt(spec.avail, index);
      if (flags[at] === true) have += Math.max(0, amountAt(spec.avail, index) - present(used[at]?.[index], "amount"));
    }
    if (amount > have) return shortage(checks.space, checks.space.consumed[index]?.name ?? "", { want: amount, have, total });
  }
  return null;
}

/** Returns why a chunk cannot be on the vnode or host that it names. If the job may not use it at all, the reason has no amounts. */
function whyNotNamed(view: SearchView, host: Host | null, chunk: Chunk): Why {
  const nothing: Why = { code: "INSUFFICIENT_RESOURCE", module: "placement", resource: chunk.vnode === undefined ? "host" : "vnode" };
  const bucket = host === null ? null : (view.touched.get(host)?.bucket ?? host.bucket);
  if (host === null || bucket === null) return nothing;
  const flags = view.usable.of(bucket, host);
  const at = chunk.vnode === undefined ? (flags?.indexOf(true) ?? -1) : host.vnodes.findIndex((vnode) => vnode.name === chunk.vnode);
  if (flags?.[at] !== true) return nothing;
  const state = present(view.usable.statesOf(bucket)[at], "state");
  return lackOf(view.checks, { spec: state.spec, used: view.touched.get(host)?.used[at] ?? state.used }, chunk) ?? NOTHING;
}

// Buckets of equal hosts (shapes/universe.ts U2): how they are distinguished, and values that are computed once for all hosts of a bucket. A host with many
// vnodes mostly changes one vnode at a time, so most values of its new bucket are taken from its old one.

import { present } from "#support/assert.ts";
import type { Policy } from "../shapes/policy.ts";
import { amountAt } from "../shapes/resource-space.ts";
import type { Universe } from "../shapes/universe.ts";
import type { HostBucket, VnodeState } from "../shapes/vnode.ts";

/** What distinguishes the buckets of a set. */
export type BucketParts = Pick<HostBucket, "states" | "outlook" | "members">;

/** Returns what distinguishes the vnodes of a bucket, in the order of definition. like: a bucket that is mostly the same; null: none. */
export function vnodeKeys({ states }: BucketParts, like: HostBucket | null): readonly string[] {
  return like === null || like.states.length !== states.length
    ? states.map(stateKey)
    : states.map((state, at) => (state === like.states[at] ? present(like.keys[at], "key") : stateKey(state)));
}

export function bucketKey({ outlook, members }: BucketParts, keys: readonly string[]): string {
  let key = keys.length === 1 ? present(keys[0], "key") : keys.join("|");
  if (members !== null) key += `/${members.map(Number).join("")}`;
  if (outlook !== null) key += `@${outlook.id}`;
  return key;
}

/** The key of each state, computed once. The state itself does not carry its key: a changed copy of the state would then carry a wrong key. */
const STATE_KEYS = new WeakMap<VnodeState, string>();

function stateKey(state: VnodeState): string {
  let key = STATE_KEYS.get(state);
  if (key === undefined) STATE_KEYS.set(state, (key = `${state.spec.id}:${state.used.join()}:${state.closed ?? ""}:${state.jobs}`));
  return key;
}

type Making = { readonly key: string; readonly keys: readonly string[]; readonly like: HostBucket | null };

/** Makes a bucket without hosts. like: a bucket that was made under the same policy. */
export function makeBucket(universe: Universe, policy: Policy, parts: BucketParts, { key, keys, like }: Making): HostBucket {
  const { states, outlook, members } = parts;
  const width = universe.space.consumed.length;
  const same = like !== null && like.states.length === states.length ? like : null;
  const ranks = states.map((state, at) => (state === same?.states[at] ? present(same.ranks[at], "rank") : rankOf(universe, policy, state)));
  const walk =
    same?.members === members && ranks.every((rank, at) => compareRanks(rank, present(same.ranks[at], "rank")) === 0)
      ? same.walk
      : walkOf(ranks, members);
  const sums = (walk === same?.walk ? sumsFrom(same, states) : null) ?? sumsOf(states, walk, width);
  const first = walk.find((at) => states[at]?.closed === undefined) ?? present(walk[0], "vnode");
  return {
    key,
    keys,
    states,
    outlook,
    members,
    during: new Map(),
    walk,
    ranks,
    rank: present(ranks[first], "rank"),
    used: states.map(({ used }) => used),
    ...sums,
    open: openTo(states, members),
    count: 0,
    heap: [],
    left: null,
  };
}

type Sums = Pick<HostBucket, "total" | "free" | "free_count">;

function sumsOf(states: readonly VnodeState[], walk: readonly number[], width: number): Sums {
  const sums = { total: new Array<number>(width).fill(0), free: new Array<number>(width).fill(0), free_count: 0 };
  for (const at of walk) addState(sums, present(states[at], "state"), 1);
  return sums;
}

/**
 * Computes the sums from the sums of a bucket with the same vnodes, some of which are in other states. Returns null if there are fractions, because sums of
 * fractions depend on the order of addition.
 */
function sumsFrom(same: HostBucket, states: readonly VnodeState[]): Sums | null {
  const sums = { total: [...same.total], free: [...same.free], free_count: same.free_count };
  for (let at = 0; at < states.length; at++) {
    const [old, state] = [present(same.states[at], "state"), present(states[at], "state")];
    if (old === state || same.members?.[at] === false) continue;
    if (!isWhole(old) || !isWhole(state)) return null;
    addState(sums, old, -1);
    addState(sums, state, 1);
  }
  return sums.total.every(Number.isSafeInteger) && sums.free.every(Number.isSafeInteger) ? sums : null;
}

const isWhole = ({ spec, used }: VnodeState): boolean =>
  used.every(Number.isSafeInteger) && spec.avail.every((avail) => avail === Number.POSITIVE_INFINITY || Number.isSafeInteger(avail));

function addState(sums: { readonly total: number[]; readonly free: number[]; free_count: number }, state: VnodeState, sign: 1 | -1): void {
  const { spec, used, closed } = state;
  if (closed === undefined) sums.free_count += sign;
  for (let at = 0; at < sums.total.length; at++) {
    const avail = amountAt(spec.avail, at);
    if (avail === Number.POSITIVE_INFINITY) continue;
    sums.total[at] = amountAt(sums.total, at) + sign * avail;
    // If an amount was set lower than what is in use, the vnode has nothing left. That does not reduce what other vnodes
    // have left.
    if (closed === undefined) sums.free[at] = amountAt(sums.free, at) + sign * Math.max(0, avail - amountAt(used, at));
  }
}

/** Returns the vnodes that belong to the set, in the order of node_sort_key. */
function walkOf(ranks: readonly (readonly number[])[], members: HostBucket["members"]): readonly number[] {
  const walk = ranks.map((_, at) => at).filter((at) => members?.[at] !== false);
  return walk.sort((a, b) => compareRanks(present(ranks[a], "rank"), present(ranks[b], "rank")) || a - b);
}

/** Returns which vnodes are open to any job that does not request exclusive use; null: there are none, or it depends on the job. */
function openTo(states: readonly VnodeState[], members: HostBucket["members"]): HostBucket["open"] {
  if (!states.every(isPlain)) return null;
  const open = states.map(({ closed }, at) => closed === undefined && members?.[at] !== false);
  return open.includes(true) ? open : null;
}

function isPlain({ spec }: VnodeState): boolean {
  const limited =
    spec.max_running !== undefined ||
    spec.max_user_run !== undefined ||
    spec.max_group_run !== undefined ||
    spec.no_multinode_jobs ||
    !spec.resv_enable ||
    spec.bucket !== undefined ||
    spec.crowded;
  return !limited && (spec.sharing === "default_shared" || spec.sharing === "ignore_excl");
}

const UNRANKED: readonly number[] = [];

/** Returns the values of node_sort_key for a vnode, smaller first. */
function rankOf(universe: Universe, policy: Policy, state: VnodeState): readonly number[] {
  if (policy.node_sort_key.length === 0) return UNRANKED;
  return policy.node_sort_key.map(({ key, high, amount }) => {
    const value = key === "sort_priority" ? state.spec.priority : resourceRank(universe, state, key, amount);
    return high ? -value : value;
  });
}

function resourceRank(universe: Universe, state: VnodeState, key: string, amount: "total" | "assigned" | "unused"): number {
  const at = universe.space.all.get(key)?.index ?? -1;
  if (at < 0) return state.spec.levels.get(key) ?? 0;
  const [avail, used] = [amountAt(state.spec.avail, at), amountAt(state.used, at)];
  return amount === "total" ? avail : amount === "assigned" ? used : avail - used;
}

export function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (let at = 0; at < a.length; at++) {
    const [left, right] = [present(a[at], "value"), present(b[at], "value")];
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}

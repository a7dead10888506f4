// Checks together the chunks that name the same vnode or host, or that place=pack puts on one host: each of them may fit
// there alone, although they never fit there together. A job that can never run must not count as waiting, because under strict_ordering
// without backfilling such a job would hold back every job behind it.

import type { Why } from "#protocol/sched-link.ts";
import { present } from "#support/assert.ts";
import type { Amount, Chunk, Request } from "../shapes/request.ts";
import { amountAt } from "../shapes/resource-space.ts";
import type { Host, NodeSet, Vnode } from "../shapes/vnode.ts";
import type { Checks } from "../shapes/vnode-fit.ts";
import { isChecked, shortage } from "../shapes/vnode-fit.ts";

/** Chunks that must share some vnodes, with the sums of their amounts. */
type Group = { readonly vnodes: readonly Vnode[]; readonly amounts: Map<number, number>; chunk_count: number };

/**
 * Returns why the chunks that name vnodes or hosts can never be placed on them together; null: no such reason is found. The named vnodes and hosts must belong
 * to the set.
 */
export function namedTogether(checks: Checks, set: NodeSet, { chunks, chunk_count, place, totals }: Request): Why | null {
  if (!chunks.some(isNamed)) return null;
  const { vnodes, hosts } = groupsOf(set, chunks);
  const { arrangement } = place;
  if (arrangement === "pack" && chunk_count > 1) {
    const [first, ...others] = hosts.keys();
    return others.length > 0 ? NEVER : tooMuch(checks, present(first, "named host").vnodes, totals);
  }
  const each = [...vnodes.values(), ...hosts.values()];
  if (arrangement === "scatter" && each.some((group) => group.chunk_count > 1)) return NEVER;
  if (arrangement === "vscatter" && each.some((group) => group.chunk_count > group.vnodes.length)) return NEVER;
  for (const group of each) {
    const amounts = [...group.amounts].map(([index, amount]) => ({ index, amount }));
    const why = tooMuch(checks, group.vnodes, amounts);
    if (why !== null) return why;
  }
  return null;
}

const NEVER: Why = { code: "NO_TOTAL_NODES", module: "placement", never: true };

const isNamed = ({ vnode, host }: Chunk): boolean => vnode !== undefined || host !== undefined;

/** Groups the chunks by the vnode that they name, and by the host on which they must be. */
function groupsOf(set: NodeSet, chunks: readonly Chunk[]): { vnodes: Map<Vnode, Group>; hosts: Map<Host, Group> } {
  const vnodes = new Map<Vnode, Group>();
  const hosts = new Map<Host, Group>();
  for (const chunk of chunks) {
    const vnode = chunk.vnode === undefined ? undefined : set.vnodes.get(chunk.vnode);
    const host = vnode?.host ?? (chunk.host === undefined ? undefined : set.hosts.get(chunk.host));
    if (vnode !== undefined) add(groupAt(vnodes, vnode, [vnode]), chunk);
    if (host !== undefined) add(groupAt(hosts, host, membersOf(host)), chunk);
  }
  return { vnodes, hosts };
}

const membersOf = ({ vnodes, members }: Host): readonly Vnode[] => vnodes.filter((_, at) => members?.[at] !== false);

function groupAt<K>(groups: Map<K, Group>, key: K, vnodes: readonly Vnode[]): Group {
  const group = groups.get(key) ?? { vnodes, amounts: new Map(), chunk_count: 0 };
  groups.set(key, group);
  return group;
}

function add(group: Group, { count, amounts }: Chunk): void {
  group.chunk_count += count;
  for (const { index, amount } of amounts) group.amounts.set(index, (group.amounts.get(index) ?? 0) + amount * count);
}

/** Returns a reason for the first resource of which the vnodes, even if they were empty, have less than the amount; null: there is none. */
function tooMuch(checks: Checks, vnodes: readonly Vnode[], amounts: readonly Amount[]): Why | null {
  for (const { index, amount } of amounts) {
    if (!isChecked(checks, index)) continue;
    const have = vnodes.reduce((sum, { state }) => sum + amountAt(state.spec.avail, index), 0);
    const { name } = present(checks.space.consumed[index], "resource");
    if (amount > have) return { ...shortage(checks.space, name, { want: amount, have, total: have }), never: true };
  }
  return null;
}

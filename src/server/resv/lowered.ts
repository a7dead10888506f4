// Vnodes that have less than was promised of them, because an administrator, or a report of the mom, has lowered
// resources_available. Promises are kept in a fixed order as long as the vnode has enough. The other reservations are
// degraded (health.ts) until they have another place or the vnode has enough again.
//
// I1. `short` of a reservation names its vnodes that are too small for it. It is computed again whenever resources_available
//     of one of them changes, and removed with a new place. If the vnode is too small for one occurrence of a reservation,
//     it counts as too small for all of them.
// I2. For maintenance reservations no vnode is ever too small, because they need no resources. A place that a manager forced
//     (pbs_ralter -W force) is treated in the same way.

import { parseResvId } from "#model/job-id.ts";
import type { Transaction } from "../engine/transaction.ts";
import { type Amounts, addAmounts } from "../state/amounts.ts";
import { availableAmount } from "../state/occupancy.ts";
import { isBegun } from "../state/resv-holding.ts";
import type { Resv, ServerState } from "../state/state.ts";
import { type Claim, claimsOn } from "./promises.ts";

/** Notes in every reservation that was promised this vnode whether the vnode is too small for it now (I1). */
export function noteShort(tx: Transaction, name: string): void {
  const { state } = tx;
  const ids = [...(state.vnodes.get(name)?.resvs.keys() ?? [])];
  if (ids.length === 0) return;
  const short = shortOn(state, name);
  for (const id of ids) {
    const resv = state.resvs.get(id);
    const before = resv?.attrs.short ?? [];
    if (resv === undefined || before.includes(name) === short.has(id)) continue;
    const names = short.has(id) ? [...before, name] : before.filter((other) => other !== name);
    const [set, unset] = names.length > 0 ? [{ short: names }, []] : [{}, ["short"]];
    tx.apply({ kind: "changed", object: "resv", name: id, set, unset });
  }
}

/** Ids of the reservations for which a vnode is too small. */
function shortOn(state: ServerState, name: string): ReadonlySet<string> {
  const by_resv = Map.groupBy(claimsOn(state, new Set([name])).get(name) ?? [], ({ id }) => id);
  const short = new Set<string>();
  const kept: Claim[] = [];
  for (const resv of inTurn(state, by_resv.keys())) {
    const claims = by_resv.get(resv.id) ?? [];
    if (mayBeShort(resv) && claims.some((claim) => !fits(state, name, claim, kept))) short.add(resv.id);
    else kept.push(...claims);
  }
  return short;
}

const mayBeShort = ({ id, attrs }: Resv): boolean => parseResvId(id)?.letter !== "M" && attrs["forced"] !== true;

/** The reservations in the order in which promises are kept: running ones first; otherwise the older one first. */
export function inTurn(state: ServerState, ids: Iterable<string>): readonly Resv[] {
  const resvs = [...ids].flatMap((id) => state.resvs.get(id) ?? []);
  const sequence = ({ id }: Resv): number => parseResvId(id)?.seq ?? 0;
  return resvs.sort((a, b) => Number(isBegun(b)) - Number(isBegun(a)) || a.attrs.ctime - b.attrs.ctime || sequence(a) - sequence(b));
}

/**
 * Whether a vnode has enough for a promise (claim) in addition to the promises that are kept already. It suffices to check
 * the start of each promise, because sums grow only there.
 */
function fits(state: ServerState, name: string, claim: Claim, kept: readonly Claim[]): boolean {
  const vnode = state.vnodes.get(name);
  if (vnode === undefined) return true;
  const beside = kept.filter((other) => other.start_s < claim.end_s && claim.start_s < other.end_s);
  return [claim.start_s, ...beside.map(({ start_s }) => Math.max(start_s, claim.start_s))].every((moment_s) => {
    const taken: Amounts = new Map(claim.amounts);
    for (const other of beside) if (other.start_s <= moment_s && moment_s < other.end_s) addAmounts(taken, other.amounts, 1);
    return [...claim.amounts.keys()].every((resource) => {
      const available = availableAmount(state, vnode, resource);
      return available === null || (taken.get(resource) ?? 0) <= available + 1e-9;
    });
  });
}

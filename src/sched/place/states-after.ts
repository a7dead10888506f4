// Computes the states of a host's vnodes after a job was placed on them.

import { present } from "#support/assert.ts";
import type { Request } from "../shapes/request.ts";
import type { ResourceSpace } from "../shapes/resource-space.ts";
import { amountAt } from "../shapes/resource-space.ts";
import type { HostBucket, PlacedHost, VnodeState } from "../shapes/vnode.ts";
import { sharingOn } from "../shapes/vnode-fit.ts";
import { isTaken } from "../shapes/vnode-state.ts";

/**
 * Does the same as statesAfter, for a host of a bucket. If the last host that was taken from this bucket got the same amounts for the same request, returns the
 * states that were made for that host. The two hosts are equal then, and the keys of these states are already known (host-bucket.ts).
 */
export function statesLeft(space: ResourceSpace, request: Request, bucket: HostBucket, host: PlacedHost): readonly VnodeState[] {
  const { left } = bucket;
  if (left !== null && left.space === space && left.request === request && isSame(left.of, host)) return left.states;
  const states = statesAfter(space, request, host);
  bucket.left = { space, request, of: host, states };
  return states;
}

/** Returns whether the same amounts are taken of the same states. */
function isSame(a: PlacedHost, b: PlacedHost): boolean {
  if (a.states !== b.states || a.shown !== b.shown) return false;
  for (let at = 0; at < a.states.length; at++) {
    if (a.taken[at] !== b.taken[at]) return false;
    const [left, right] = [present(a.used[at], "amounts"), present(b.used[at], "amounts")];
    for (let index = 0; index < left.length; index++) if (left[index] !== right[index]) return false;
  }
  return true;
}

function statesAfter(space: ResourceSpace, { place }: Request, host: PlacedHost): VnodeState[] {
  const { states, taken } = host;
  const used = usedNow(host);
  const wholeHost = states.some((state, at) => taken[at] === true && sharingOn(place, state.spec) === "exclhost");

  /**
   * Returns the state word of a vnode that the job uses: job-exclusive, or job-busy when no cpu is left. If the vnode already has a word that the end of jobs
   * does not remove, such as down, this word stays.
   */
  const closedAfter = (state: VnodeState, here: readonly number[]): string | undefined => {
    if (state.closed !== undefined && !isTaken(state.closed)) return state.closed;
    if (sharingOn(place, state.spec) !== "shared" || (wholeHost && state.spec.sharing !== "ignore_excl")) return "job-exclusive";
    const avail = amountAt(state.spec.avail, space.ncpus);
    return avail > 0 && amountAt(here, space.ncpus) >= avail ? "job-busy" : state.closed;
  };

  return states.map((state, at) => {
    const isTaken = taken[at] === true;
    if (!isTaken && !(wholeHost && state.spec.sharing !== "ignore_excl")) return state;
    const { spec } = state;
    const here = present(used[at], "amounts");
    const jobs = !isTaken ? state.jobs : spec.max_running === undefined ? 1 : state.jobs + 1;
    return { spec, used: here, jobs, closed: closedAfter(state, here) };
  });
}

/**
 * Returns the amounts in use now with the new job. The search counted from the worst moment of the window, so what it added
 * there is added to the present amounts.
 */
function usedNow({ states, shown, used }: PlacedHost): readonly (readonly number[])[] {
  if (shown === states) return used;
  return states.map((state, at) =>
    state.used.map((amount, index) => amount + (present(used[at]?.[index], "amount") - present(shown[at]?.used[index], "amount"))),
  );
}

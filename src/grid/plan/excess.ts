// Which waiting jobs are taken back from their cluster, so that a campaign does not stand in the way of the cluster's own
// users: those beyond the allowance, newest first, and those that have waited too long. Their tasks return to the bag. Pure.

import type { LiveJob } from "../shapes/universe.ts";

/** A job that waits longer on its cluster is taken back. */
const WAITING_MAX_S = 900;

export type TakenBack = { readonly job: LiveJob; readonly why: "excess" | "too old" };

/** Returns the jobs that are taken back. waiting: the waiting jobs of a campaign on a cluster, in the order of submission. allowed: how many of them may stay. */
export function takenBack(waiting: readonly LiveJob[], allowed: number, now_s: number, waiting_max_s = WAITING_MAX_S): TakenBack[] {
  const old = waiting.filter(({ submitted_s }) => now_s - submitted_s > waiting_max_s);
  const rest = waiting.filter(({ submitted_s }) => now_s - submitted_s <= waiting_max_s);
  const excess = rest.slice(Math.max(0, Math.min(rest.length, allowed)));
  return [...excess.reverse().map((job) => ({ job, why: "excess" }) as const), ...old.map((job) => ({ job, why: "too old" }) as const)];
}

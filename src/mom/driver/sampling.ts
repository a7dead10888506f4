// When the processes of jobs are sampled. Jobs shorter than the period are never sampled.

import { needsWatching } from "../job/limits.ts";
import { hasInterval } from "../run/checkpoint.ts";
import type { MomState } from "../run/state.ts";

/** How often jobs with a limit on cput, vmem or (enforced) mem are sampled. */
const WATCH_PERIOD_MS = 2000;
const POLL_STEPS = 19;

/**
 * Seconds until the next sample. They grow from the least to the most in the given number of steps, and return to the
 * least when a run has begun since the last sample.
 */
export function nextPoll_s(
  state: MomState,
  last_ms: number,
  poll_s: number,
  { min_s, max_s }: { readonly min_s: number; readonly max_s: number },
): number {
  for (const { phase } of state.runs.values()) if (phase.name === "running" && phase.started_ms > last_ms) return min_s;
  return Math.min(max_s, Math.max(min_s, poll_s) + Math.max(1, Math.floor((max_s - min_s) / POLL_STEPS)));
}

/**
 * Pids of the top processes, tasks and adopted sessions to sample now. owners: sessions in which only the processes
 * of one user count. all: whether the processes without limits are included; all of these are sampled together
 * (last_ms: the last time).
 */
export type Due = { readonly leaders: ReadonlySet<number>; readonly owners: ReadonlyMap<number, number>; readonly all: boolean };

export function dueLeaders(state: MomState, last_ms: number, now_ms: number, period_ms: number): Due {
  const leaders = new Set<number>();
  const owners = new Map<number, number>();
  let all = false;
  for (const run of state.runs.values()) {
    if (run.phase.name !== "running") continue;
    const watched = needsWatching(run.job.attrs, state.config.enforce) || hasInterval(run.job.attrs);
    const period = watched ? Math.min(WATCH_PERIOD_MS, period_ms) : period_ms;
    const looked_ms = watched ? run.sample.at_ms : Math.max(last_ms, run.sample.at_ms);
    if (now_ms - run.phase.started_ms < period || now_ms - looked_ms < period) continue;
    all ||= !watched;
    leaders.add(run.phase.pid);
    for (const { pid } of run.tasks.values()) if (pid > 0) leaders.add(pid);
    for (const [session, { owner }] of run.adopted) {
      leaders.add(session);
      owners.set(session, owner);
    }
  }
  return { leaders, owners, all };
}

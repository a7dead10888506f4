// Decides when the processes of jobs are sampled. A job that is shorter than the period is never sampled.

import { needsWatching } from "../job/limits.ts";
import { hasInterval } from "../run/checkpoint.ts";
import type { MomState } from "../run/state.ts";

/** How often jobs are sampled that have a limit on cput, on vmem or (if enforced) on mem. */
const WATCH_PERIOD_MS = 2000;
const POLL_STEPS = 19;

/**
 * Returns the seconds until the next sample. Each period is one step longer than the one before, from min_s up to max_s. If a run has started since the last
 * sample, the period is min_s again.
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
 * What to sample now: the pids of top processes, tasks and adopted sessions. owners: sessions in which only the processes of
 * this user count. all: whether jobs without watched limits are included. last_ms: the time at which jobs without watched
 * limits were sampled last.
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

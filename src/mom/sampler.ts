// When to look at the processes of jobs, and one look at all of them. Jobs shorter than the period are never looked at.

import { libc } from "#support/libc.ts";
import { hasInterval } from "./checkpoint.ts";
import { needsWatching } from "./limits.ts";
import { processesOf, readProcesses } from "./proc-table.ts";
import type { MomState } from "./state.ts";
import { type Seen, seenOf } from "./usage.ts";

/** Linux counts cpu time for user space in hundredths of a second, whatever the kernel's own clock. */
const TICKS_PER_S = 100;
/** How often jobs with a limit on cput, vmem or (enforced) mem are looked at. */
const WATCH_PERIOD_MS = 2000;
const KB = 1024;

let page_kb = 0;

/** Pids of the top processes to look at now; empty: nothing is due. */
export function dueLeaders(state: MomState, last_ms: number, now_ms: number, period_ms: number): Set<number> {
  const due = new Set<number>();
  for (const run of state.runs.values()) {
    if (run.phase.name !== "running") continue;
    const period = needsWatching(run.job.attrs, state.config.enforce) || hasInterval(run.job.attrs) ? WATCH_PERIOD_MS : period_ms;
    if (now_ms - run.phase.started_ms >= period && now_ms - Math.max(last_ms, run.sample.at_ms) >= period) {
      due.add(run.phase.pid);
      for (const { pid } of run.tasks.values()) if (pid > 0) due.add(pid);
    }
  }
  return due;
}

/** One pass over /proc. */
export function look(leaders: ReadonlySet<number>): Map<number, Seen> {
  if (page_kb === 0) page_kb = Number(libc().libc.func("int getpagesize()")()) / KB;
  const seen = new Map<number, Seen>();
  for (const [leader, processes] of processesOf(readProcesses(), leaders)) seen.set(leader, seenOf(processes, TICKS_PER_S, page_kb));
  return seen;
}

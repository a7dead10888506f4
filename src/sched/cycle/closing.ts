// The end of a cycle. It comes after the last job, earlier (max_job_check, sched_cycle_length), or because the caller takes no further
// decisions.

import { LOG_EVENT } from "#support/log-event.ts";
import type { InParts } from "./parts.ts";
import type { Run } from "./run.ts";
import { tellProbe, tellVictims } from "./tell.ts";

/** Returns whether the cycle must end although jobs are left. null: the cycle goes on. complete: the cycle has tried as many jobs as it should. */
export function endsEarly(run: Run): { readonly complete: boolean } | null {
  const { max_job_check: most } = run.policy;
  if (most !== null && run.considered >= most) {
    const text = `Bailed out of main job loop after checking to see if ${most} jobs could run.`;
    run.log({ event: LOG_EVENT.SCHED, class: "Sched", object: "", text });
    return { complete: true };
  }
  if (run.keepsOn()) return null;
  const text = `Cycle duration of ${Math.floor(run.elapsed_s())} seconds has exceeded sched_cycle_length of ${run.length_s} seconds`;
  run.log({ event: LOG_EVENT.SCHED, class: "Svr", object: "toolong", text: `Leaving the scheduling cycle: ${text}` });
  return { complete: false };
}

/** Does the work of a cycle. If the caller gives the cycle up before its end, tells the modules that the cycle has ended. */
export function* unlessGivenUp<T>(run: Run, work: InParts<T>): InParts<T> {
  let given_up = true;
  try {
    const result = yield* work;
    given_up = false;
    return result;
  } catch (error) {
    given_up = false;
    throw error;
  } finally {
    if (given_up) for (const module of run.modules) module.end?.(run);
  }
}

export function logEnd(run: Run): void {
  run.log({ event: LOG_EVENT.DEBUG, class: "Req", object: "", text: "Leaving Scheduling Cycle" });
}

/** Ends a cycle after its last job. */
export function close(run: Run): void {
  run.settle();
  if (!run.qrun) tellVictims(run);
  // The turn of the job that is to be explained did not come: its queue is stopped, or the cycle has ended before.
  if (run.probe !== null) tellProbe(run, run.universe.entries.get(run.probe.job), null);
  for (const module of run.modules) module.end?.(run);
}

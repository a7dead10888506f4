// Recent activity of a scheduler: its last cycles and their results. It is limited in size, and lost when the process ends.

import { renderDuration } from "#model/values/duration.ts";
import type { CycleLine, EventLine } from "#protocol/sched-view.ts";
import { ctimeText, type LocalTime } from "../shapes/local-time.ts";
import type { CycleReport } from "../shapes/module.ts";
import { logText } from "../shapes/reasons.ts";

export type Activity = {
  cycles_done: number;
  jobs_started: number;
  readonly cycles: CycleLine[];
  readonly events: EventLine[];
};

const CYCLES_MAX = 120;
const EVENTS_MAX = 200;
/** Largest number of events of one cycle that are kept. Of its further events only the number is kept. */
const EVENTS_OF_CYCLE_MAX = 20;

export function createActivity(): Activity {
  return { cycles_done: 0, jobs_started: 0, cycles: [], events: [] };
}

/** Adds a finished cycle. */
export function noteCycle(activity: Activity, report: CycleReport, local: LocalTime): void {
  const { now_s: at_s, command, cycle_ms, jobs_considered, jobs_started } = report;
  activity.cycles_done++;
  activity.jobs_started += jobs_started;
  activity.cycles.push({ at_s, command, cycle_ms, jobs_considered, jobs_started });
  const events = eventsOf(report, local);
  for (const event of events.slice(0, EVENTS_OF_CYCLE_MAX)) activity.events.push(event);
  if (events.length > EVENTS_OF_CYCLE_MAX)
    activity.events.push({ at_s, job: null, text: `and ${events.length - EVENTS_OF_CYCLE_MAX} more in this cycle` });
  activity.cycles.splice(0, activity.cycles.length - CYCLES_MAX);
  activity.events.splice(0, activity.events.length - EVENTS_MAX);
}

/** Adds an event that is not about a single job, for example a problem. */
export function noteEvent(activity: Activity, at_s: number, text: string): void {
  activity.events.push({ at_s, job: null, text });
  activity.events.splice(0, activity.events.length - EVENTS_MAX);
}

function eventsOf({ now_s: at_s, decisions, verdicts }: CycleReport, local: LocalTime): EventLine[] {
  return decisions.flatMap((decision, at): EventLine[] => {
    const verdict = verdicts[at];
    if (verdict === undefined) return [];
    const refused = verdict.ok ? "" : `: refused, ${verdict.text}`;
    switch (decision.kind) {
      case "run":
        return [{ at_s, job: decision.job, text: verdict.ok ? `runs on ${decision.exec_vnode}` : `start refused: ${verdict.text}` }];
      case "estimate":
        if (decision.start_s === null || !decision.topjob) return [{ at_s, job: decision.job, text: `no longer a top job${refused}` }];
        return [{ at_s, job: decision.job, text: `planned for ${ctimeText(local.civil(decision.start_s))}${refused}` }];
      case "extend":
        return [{ at_s, job: decision.job, text: `takes longer than its soft_walltime: ${renderDuration(decision.soft_walltime_s)}` }];
      case "preempt":
        return [{ at_s, job: decision.job, text: `preempted${refused}` }];
      case "confirm-resv":
        return [{ at_s, job: null, text: `reservation ${decision.resv} confirmed${refused}` }];
      case "deny-resv":
        return [{ at_s, job: null, text: `reservation ${decision.resv} denied: ${logText(decision.why).trimEnd()}` }];
      default:
        return [];
    }
  });
}

// The server's own explanation of a job that no scheduler looks at in its cycles (`partita explain`). If a scheduler can be
// asked nevertheless, its answer is combined with that of the server.

import type { ExplainedWhy, Explanation } from "#protocol/explanation.ts";
import type { Unserved } from "../../engine/transaction.ts";
import { isForSched, isIn, isWithMom } from "../../state/job-phase.ts";
import type { Job } from "../../state/state.ts";
import { isTerminal } from "./explained-facts.ts";

/** The whole explanation, made without a scheduler. id: the id of the job, or of a waiting subjob if `job` is an array. */
export function ownExplanation(id: string, job: Job, unserved: Unserved, now_s: number): Explanation {
  const { attrs } = job;
  const { place, walltime } = attrs.Resource_List;
  const runs = isWithMom(job) && !isForSched(job);
  const waits = !runs && isIn(job, "queued", "suspended", "resumable", "begun");
  const why = waits ? unservedWhy(unserved) : null;
  return {
    job: id,
    sched: unserved.sched,
    at_s: now_s,
    state: id === job.id ? attrs.job_state : "Q",
    queue: attrs.queue,
    select: attrs.schedselect,
    place: typeof place === "string" ? place : "free",
    walltime_s: typeof walltime === "number" ? walltime : null,
    verdict: runs ? "runs" : waits ? "waits" : "held",
    why,
    remedy: unserved.remedy,
    comment: attrs.comment ?? null,
    reasons: why === null ? [] : [why],
    obstacles: [],
    preempts: [],
    preempted_s: null,
    jobs_before: null,
    top_job: attrs["topjob"] === true,
    chunks: [],
    nodes: [],
    nodes_left_out: 0,
    earliest: null,
    estimates: [],
    running: runs ? runningOf(job) : null,
  };
}

function runningOf({ attrs }: Job): NonNullable<Explanation["running"]> {
  const { stime, exec_vnode = "", Resource_List } = attrs;
  const { walltime } = Resource_List;
  const end_s = stime !== undefined && typeof walltime === "number" ? stime + walltime : null;
  return { since_s: stime ?? null, end_s, exec_vnode };
}

/** Adds to a scheduler's explanation why the scheduler will not look at the job. This reason comes first in the result, which names no expected start. */
export function withUnserved(told: Explanation, unserved: Unserved): Explanation {
  if (isTerminal(told.verdict)) return told;
  const why = unservedWhy(unserved);
  // Reasons that concern the scheduler itself are left out: they would repeat the server's reason.
  const others = told.reasons.filter(({ stage }) => stage !== "scheduler");
  return { ...told, verdict: "waits", why, reasons: [why, ...others], remedy: unserved.remedy, preempts: [], earliest: null };
}

function unservedWhy({ code, text, sched }: Unserved): ExplainedWhy {
  return { stage: "scheduler", why: { code, where: sched }, text: `Not Running: ${text}` };
}

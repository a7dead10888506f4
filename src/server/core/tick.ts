// Runs the timers that are due. Each timer has a name; these are the names and what happens at their time:
//   jobs           wait:JOB Execution_Time has come; route:JOB routing is tried again; rerun:JOB qrerun has waited long enough;
//                  starting:JOB a scheduler no longer waits for a job that it started; preempt:JOB a preemption has taken too long
//   schedulers     accumulate:SCHED job_accumulation_time is over; iteration:SCHED scheduler_iteration is over; refill:SCHED it
//                  renews its lists for runners; sched-start:SCHED the scheduler is started again; sched-heartbeat all get a ping; sched-silent:SCHED a scheduler still does not
//                  answer; asked:TOKEN a scheduler has not answered a client's question
//   moms           heartbeat moms of this host get a ping; reports moms whose reports are missing get a ping;
//                  still-silent:HOST the vnodes of a silent mom become down; silent:HOST node_fail_requeue is over;
//                  join:JOB the sisters of the job have not joined in time; away:JOB HOST a sister was disconnected too long;
//                  question:N a mom has not answered
//   reservations   resv:ID its next event is due, for example its start; resv-wait:ID a client no longer waits for the answer;
//                  resv-idle:ID it was unused too long; resv-health: the moms have had time to say hello
//   runners        runners a pass is due; runners-start pbs_runners is started again; runners-heartbeat it gets a ping;
//                  runner-lost:NAME a runner has not come back
//   others         hook:NAME a periodic hook is due; purge-history old finished jobs are removed from the history

import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";
import { armPeriodic, periodicDue, watchVnodes } from "../hooks/afterwards.ts";
import { armJob, isRoute, settleJob } from "../jobs/life.ts";
import { preemptionLate } from "../jobs/preemption.ts";
import { startLate } from "../jobs/start-wait.ts";
import { rerunLate } from "../jobs/waiters.ts";
import { stillSilent } from "../moms/heartbeat.ts";
import { beat, hostSilentTooLong, missReports } from "../moms/host.ts";
import { questionUnanswered } from "../moms/questions.ts";
import { joinLate, sisterSilent } from "../moms/sisters.ts";
import { vnodesDue } from "../resv/health.ts";
import { armResv, idleTooLong, resvDue, waitOver } from "../resv/timing.ts";
import { runnerAway, runnerLost } from "../runners/arrival.ts";
import { startProcess } from "../runners/controller.ts";
import { runnersHeartbeat } from "../runners/heartbeat.ts";
import { pass } from "../runners/pass.ts";
import { trigger } from "../scheds/cycles.ts";
import { refill } from "../scheds/freed.ts";
import { schedHeartbeat } from "../scheds/heartbeat.ts";
import { questionOver } from "../scheds/questions.ts";
import { schedStillSilent, startDue } from "../scheds/session.ts";
import { routeSoon } from "../submit/routing.ts";

const PURGE_INTERVAL_MS = 3_600_000;
const HISTORY_DURATION_S_DEFAULT = 336 * 3600;

/** Sets the timers of all objects at the start of the server. */
export function armAll(kernel: Kernel): void {
  const { state, timers, now_ms } = kernel;
  for (const job of state.jobs.values()) {
    armJob(kernel, null, job);
    const queue = state.queues.get(job.attrs.queue);
    if (queue !== undefined && isRoute(queue)) timers.set(`route:${job.id}`, now_ms);
  }
  for (const resv of state.resvs.values()) armResv(kernel, resv);
  for (const name of state.hooks.keys()) armPeriodic(kernel, name);
  watchVnodes(kernel);
  timers.set("purge-history", now_ms);
}

export function tick(kernel: Kernel): void {
  for (const timer of kernel.timers.due(kernel.now_ms)) {
    const colon = timer.indexOf(":");
    due(kernel, colon < 0 ? timer : timer.slice(0, colon), colon < 0 ? "" : timer.slice(colon + 1));
  }
}

function due(kernel: Kernel, kind: string, name: string): void {
  const { state } = kernel;
  const job = state.jobs.get(name);
  switch (kind) {
    case "wait":
      if (job !== undefined) settleJob(ownTransaction(kernel), job);
      break;
    case "route": {
      const queue = job === undefined ? undefined : state.queues.get(job.attrs.queue);
      if (job !== undefined && queue !== undefined) routeSoon(kernel, ownTransaction(kernel), job, queue);
      break;
    }
    case "rerun":
      rerunLate(kernel, name);
      break;
    case "accumulate":
      trigger(kernel, name, SCHED_COMMAND.NEW);
      break;
    case "iteration":
      trigger(kernel, name, SCHED_COMMAND.TIME);
      break;
    case "refill":
      refill(kernel, name);
      break;
    case "sched-start":
      startDue(kernel, name);
      break;
    case "heartbeat":
      for (const host of beat(kernel)) runnerAway(kernel, host);
      break;
    case "reports":
      for (const host of missReports(kernel)) runnerAway(kernel, host);
      break;
    case "sched-heartbeat":
      schedHeartbeat(kernel);
      break;
    case "sched-silent":
      schedStillSilent(kernel, name);
      break;
    case "still-silent":
      stillSilent(kernel, name);
      break;
    case "silent":
      hostSilentTooLong(kernel, name);
      break;
    case "join":
      if (job !== undefined) joinLate(kernel, ownTransaction(kernel), job);
      break;
    case "away":
      sisterSilent(kernel, ownTransaction(kernel), name);
      break;
    case "question":
      questionUnanswered(kernel, Number(name));
      break;
    case "preempt":
      preemptionLate(kernel, name);
      break;
    case "starting":
      startLate(kernel, name);
      break;
    case "asked":
      questionOver(kernel, Number(name));
      break;
    case "resv":
      resvDue(kernel, name);
      break;
    case "resv-wait":
      waitOver(kernel, name);
      break;
    case "resv-idle":
      idleTooLong(kernel, name);
      break;
    case "resv-health":
      vnodesDue(kernel);
      break;
    case "runners":
      pass(kernel);
      break;
    case "runners-start":
      startProcess(kernel);
      break;
    case "runners-heartbeat":
      runnersHeartbeat(kernel);
      break;
    case "runner-lost":
      runnerLost(kernel, name);
      break;
    case "hook":
      periodicDue(kernel, name);
      break;
    case "purge-history":
      purgeHistory(kernel);
      break;
  }
}

/** Removes finished jobs from the history job_history_duration after their end; if the history is switched off, all of them. */
function purgeHistory(kernel: Kernel): void {
  kernel.timers.set("purge-history", kernel.now_ms + PURGE_INTERVAL_MS);
  if (kernel.state.history_count === 0) return;
  const { job_history_enable, job_history_duration: duration } = kernel.state.server;
  const now_s = Math.floor(kernel.now_ms / 1000);
  // If the history is switched off, nothing is kept, not even jobs that ended in this second.
  const before_s = job_history_enable !== true ? now_s + 1 : now_s - (typeof duration === "number" ? duration : HISTORY_DURATION_S_DEFAULT);
  kernel.out.actions.push({ kind: "purge-history", before_s });
}

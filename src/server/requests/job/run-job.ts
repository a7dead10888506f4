// qrun (docs/reference/commands.md 3). Without vnodes, the job's scheduler runs a cycle for that job alone, and the
// scheduler's text is the reply. With vnodes (-H) the server starts the job there; `-H -` resumes a suspended job where it
// was. Single subjobs and ranges can be run, whole arrays cannot (15004). The client gets the reply when the mom has
// accepted the job (jobs/start-wait.ts W3), with -a at once.

import { subjobId } from "#model/job-id.ts";
import { PBSE, reject } from "#model/pbse.ts";
import type { RunJobRequest } from "#protocol/messages.ts";
import { mustGet } from "#support/assert.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { answerError } from "../../attributes/answers.ts";
import { daemonName } from "../../attributes/manager-log.ts";
import { checkOperator } from "../../attributes/permission.ts";
import { unreachableText } from "../../engine/sched-runtime.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { afterRunjobHooks, afterSubjobStart, askRunjobHooks } from "../../hooks/running.ts";
import { isExecution } from "../../jobs/life.ts";
import { checkRun, resumeNow, runJob } from "../../jobs/run.ts";
import { queuedSubjob } from "../../jobs/subjob-start.ts";
import { isSuspended } from "../../state/job-phase.ts";
import { schedOfQueue } from "../../state/partitions.ts";
import type { Job } from "../../state/state.ts";
import { checkState, forEach, type Target, targetOf } from "./job-access.ts";
import { namedVnodes } from "./named-vnodes.ts";

export function runJobRequest(tx: Transaction, request: RunJobRequest): Answer {
  const target = targetOf(tx, request.job);
  checkOperator(tx.who);
  if (target.kind === "array") throw reject(PBSE.IVALREQ);
  const jobs = jobsToRun(tx, target);
  const { exec_vnode } = request;
  if (exec_vnode !== undefined) askRunjobHooks(tx, jobs, (job) => vnodesFor(tx, job, exec_vnode));
  return forEach(tx, jobs, (part, job) => runOne(part, request, job));
}

/** The jobs of the target that can be run. A subjob that has never started is represented by the job that it would become. */
function jobsToRun(tx: Transaction, target: Exclude<Target, { kind: "array" }>): Job[] {
  switch (target.kind) {
    case "job":
      return [target.job];
    case "waiting":
      return [queuedSubjob(tx.state, target.id) as Job];
    case "over":
      return [];
    case "range":
      return target.indices.flatMap((index) => {
        const id = subjobId(target.array.id, index);
        const job = tx.state.jobs.get(id) ?? queuedSubjob(tx.state, id);
        return job !== undefined && "QS".includes(job.attrs.job_state) ? [job] : [];
      });
    default: {
      const unreachable: never = target;
      return unreachable;
    }
  }
}

/** The exec_vnode for the vnodes that an operator has named, with the resources of the job. A suspended job resumes where it is. */
function vnodesFor(tx: Transaction, job: Job, text: string): string {
  return text === "-" || isSuspended(job) ? text : namedVnodes(tx.state, job.attrs, text);
}

function runOne(tx: Transaction, request: RunJobRequest, job: Job): Answer {
  checkState(job, "QHS");
  const waits = request.async !== true;
  const queue = mustGet(tx.state.queues, job.attrs.queue);
  if (!isExecution(queue)) throw reject(PBSE.IVALREQ);
  if (request.exec_vnode === "-" || (request.exec_vnode !== undefined && isSuspended(job))) {
    checkState(job, "S");
    resumeNow(tx, job);
    return {};
  }
  if (request.exec_vnode !== undefined) {
    const exec_vnode = vnodesFor(tx, job, request.exec_vnode);
    const options = { by_hand: true, specified: true };
    checkRun(tx, job.id, exec_vnode, options);
    const refused = afterRunjobHooks(tx, job, exec_vnode);
    if (refused !== null) return answerError(tx, refused.code, refused.text);
    const subjob = !tx.state.jobs.has(job.id);
    runJob(tx, job.id, exec_vnode, options);
    if (subjob) afterSubjobStart(tx, job, exec_vnode);
    if (!waits) return {};
    tx.act({ kind: "await-start", job: job.id, token: tx.token });
    return "deferred";
  }
  const sched = schedOfQueue(tx.state, queue);
  if (sched === undefined) {
    tx.log({ event: LOG_EVENT.ERROR, class: "Svr", object: daemonName(tx), text: unreachableText(job.id) });
    throw reject(PBSE.NOSCHEDULER);
  }
  tx.act({ kind: "run-by-sched", sched: sched.name, job: job.id, token: waits ? tx.token : null });
  return waits ? "deferred" : {};
}

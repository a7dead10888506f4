// qrerun: kills a running job and queues it again (docs/reference/commands.md 3). The reply waits for the obit, but at most
// for job_requeue_timeout; with force it does not wait. For an array, its running subjobs are queued again.

import { JOB_EXEC } from "#model/exit-status.ts";
import { PBSE, reject } from "#model/pbse.ts";
import type { RerunJobRequest } from "#protocol/messages.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { checkOperator } from "../../attributes/permission.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { beginRerun, requeue } from "../../jobs/end.ts";
import { logJob, requestor } from "../../jobs/life.ts";
import { isRunning } from "../../state/job-phase.ts";
import type { Job } from "../../state/state.ts";
import { checkState, forEach, startedJobs, targetOf } from "./job-access.ts";

export function rerunJob(tx: Transaction, request: RerunJobRequest): Answer {
  const target = targetOf(tx, request.job);
  checkOperator(tx.who);
  if (target.kind === "job") return rerunOne(tx, request, target.job);
  // For an array or a range, the request applies to the subjobs that run.
  return forEach(
    tx,
    startedJobs(tx, target).filter((job) => isRunning(job)),
    (part, job) => rerunOne(part, request, job),
  );
}

function rerunOne(tx: Transaction, request: RerunJobRequest, job: Job): Answer {
  checkState(job, "R");
  if (job.own.termination !== undefined) throw reject(PBSE.BADSTATE);
  if (!job.attrs.Rerunable) throw reject(PBSE.NORERUN);
  logJob(tx, LOG_EVENT.JOB, job.id, `Job Rerun at request of ${requestor(tx)}`);
  if (request.force === true) {
    tx.act({ kind: "terminate-job", job: job.id, why: "rerun", force: true, over: true });
    tx.apply({ kind: "job-changed", id: job.id, set: { Exit_status: JOB_EXEC.RERUN }, unset: [] });
    requeue(tx, job);
    return {};
  }
  beginRerun(tx, job);
  tx.act({ kind: "terminate-job", job: job.id, why: "rerun" });
  tx.act({ kind: "await-rerun", job: job.id, token: tx.token });
  return "deferred";
}

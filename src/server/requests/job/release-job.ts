// qrls: removes holds. A job without any hold becomes eligible, or waits for its Execution_Time (docs/reference/commands.md 3).
//
// I1. The hold of a buried job (jobs/retries.ts T4) goes with any user or system hold that its owner or an operator releases. The job then has all its retries again.

import { addHolds, removeHolds } from "#model/values/hold.ts";
import type { ReleaseJobRequest } from "#protocol/messages.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { logJob, requestor, settleJob } from "../../jobs/life.ts";
import { isBuried, releaseBuried } from "../../jobs/retries.ts";
import { checkHolds } from "./hold-job.ts";
import { checkOwner, checkState, wholeJob } from "./job-access.ts";

export function releaseJob(tx: Transaction, request: ReleaseJobRequest): Answer {
  const job = wholeJob(tx, request.job);
  checkOwner(tx, job);
  const buried = isBuried(job) && /[us]/.test(request.holds);
  const letters = buried ? addHolds(checkHolds(tx, removeHolds(request.holds, "s")), "s") : checkHolds(tx, request.holds);
  checkState(job, "QHWRSUB");
  const Hold_Types = removeHolds(job.attrs.Hold_Types, letters);
  if (Hold_Types === job.attrs.Hold_Types) return {};
  logJob(tx, LOG_EVENT.JOB, job.id, `Holds ${letters} released at request of ${requestor(tx)}`);
  if (buried) releaseBuried(tx, job, Hold_Types);
  else settleJob(tx, job, { Hold_Types }, job.attrs.comment?.startsWith("Job held by ") ? ["comment"] : []);
  return {};
}

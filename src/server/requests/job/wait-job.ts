// The request of qsub -W block=true: it is answered when the job has ended (docs/reference/commands.md 1.3). The value of
// the reply is {exit_status}, or {message} if the job never ran.

import { PBSE, Reject, reject } from "#model/pbse.ts";
import type { WaitJobRequest } from "#protocol/messages.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { statusOfRun } from "../../jobs/end.ts";
import type { Job } from "../../state/state.ts";
import { finishedJob, fullJobId } from "../../status/job.ts";
import { checkOwner, ownedJob, type Target, targetOf } from "./job-access.ts";

export function waitJob(tx: Transaction, request: WaitJobRequest): Answer {
  const target = liveTarget(tx, request.job);
  if (target !== null) checkOwner(tx, ownedJob(target));
  if (target?.kind === "range") throw reject(PBSE.IVALREQ);
  const id = fullJobId(tx.state, request.job) as string;
  if (target?.kind === "job" || target?.kind === "array" || target?.kind === "waiting") {
    if (target.kind === "job" || target.kind === "array") markWaited(tx, target.job);
    tx.act({ kind: "await-end", job: id, token: tx.token });
    return "deferred";
  }
  const job = finishedJob(tx, id);
  if (target === null && job !== undefined) checkOwner(tx, job);
  const status = job === undefined ? undefined : statusOfRun(job.attrs);
  return { value: status === undefined ? { message: "Job deleted" } : { exit_status: status } };
}

/**
 * Sets the attribute block, which shows that a qsub -W block=true waits for the job. It is not set for the qsub of an
 * interactive job, which waits only to learn whether the job still exists.
 */
function markWaited(tx: Transaction, job: Job): void {
  if (job.attrs["interactive"] === undefined && job.attrs["block"] !== 1)
    tx.apply({ kind: "job-changed", id: job.id, set: { block: 1 }, unset: [] });
}

/** What the id names, if it is live; null: the job has finished. */
function liveTarget(tx: Transaction, id: string): Target | null {
  try {
    return targetOf(tx, id);
  } catch (error) {
    if (error instanceof Reject && error.code === PBSE.HISTJOBID) return null;
    throw error;
  }
}

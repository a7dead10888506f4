// qmsg: adds a line to the output or error file of a running job (docs/reference/commands.md 3). The mom writes the line,
// and its answer becomes the reply.

import { PBSE, reject } from "#model/pbse.ts";
import type { MessageJobRequest } from "#protocol/messages.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { logJob, requestor } from "../../jobs/life.ts";
import { checkOwner, checkState, ownedJob, targetOf } from "./job-access.ts";

export function messageJob(tx: Transaction, request: MessageJobRequest): Answer {
  const target = targetOf(tx, request.job);
  if (target.kind === "array" || target.kind === "range") throw reject(PBSE.NOSUP);
  checkOwner(tx, ownedJob(target));
  if (target.kind !== "job") throw reject(PBSE.BADSTATE);
  const { job } = target;
  checkState(job, "RS");
  logJob(tx, LOG_EVENT.JOB, job.id, `Message request received from ${requestor(tx)}`);
  tx.act({
    kind: "message-job",
    job: job.id,
    files: request.files === "" ? "e" : request.files,
    message: request.message,
    token: tx.token,
  });
  return "deferred";
}

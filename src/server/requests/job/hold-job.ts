// qhold: sets holds (docs/reference/commands.md 3). u: the owner and operators may set it; o: operators; s: managers.

import { PBSE, reject } from "#model/pbse.ts";
import { addHolds, parseHolds } from "#model/values/hold.ts";
import type { HoldJobRequest } from "#protocol/messages.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { checkManager, checkOperator } from "../../attributes/permission.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { logJob, requestor, settleJob } from "../../jobs/life.ts";
import { isIn, isWaiting } from "../../state/job-phase.ts";
import { checkOwner, checkState, wholeJob } from "./job-access.ts";

export function holdJob(tx: Transaction, request: HoldJobRequest): Answer {
  const job = wholeJob(tx, request.job);
  checkOwner(tx, job);
  const letters = checkHolds(tx, request.holds);
  checkState(job, "QHWRSUB");
  if (letters === "n") return {};
  const set: { [name: string]: unknown } = { Hold_Types: addHolds(job.attrs.Hold_Types, letters) };
  if (isWaiting(job) || isIn(job, "begun")) set["comment"] = `Job held by ${tx.who.user} on ${tx.config.ctime(tx.now_s)}`;
  logJob(tx, LOG_EVENT.JOB, job.id, `Holds ${letters} set at request of ${requestor(tx)}`);
  settleJob(tx, job, set);
  // A manager's system hold is not released by the owner, also if the job was buried before.
  if (letters.includes("s") && job.own.buried === true)
    tx.apply({ kind: "job-changed", id: job.id, set: {}, unset: [], own: { buried: null } });
  // If the mom has a checkpoint script, a running job ends, is held, and later restarts from the checkpoint; otherwise it continues with its hold
  // (docs/reference/execution.md 5).
  if (isIn(job, "running") && job.attrs["Checkpoint"] !== "n") tx.act({ kind: "signal-job", job: job.id, signal: "checkpoint", token: 0 });
  return {};
}

/** The hold letters of a text in canonical order. Refuses an unknown letter with 15014, and a letter that the caller may not set with 15007. */
export function checkHolds(tx: Transaction, text: string): string {
  const letters = parseHolds(text);
  if (letters === null) throw reject(PBSE.BADATVAL, "Hold_Types");
  if (letters.includes("o")) checkOperator(tx.who);
  if (letters.includes("s") || letters.includes("p")) checkManager(tx.who);
  return letters;
}

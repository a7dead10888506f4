// qalter (docs/reference/commands.md 3).
//
// Order of checks: 1. the job is live, and the caller may change it  2. its state  3. the requested values (submit/alteration.ts)  4. hooks; their changes are
// checked like alterations of the caller.

import { PBSE, reject } from "#model/pbse.ts";
import type { AttrOp, ModifyJobRequest } from "#protocol/messages.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { modifyjobAsk, opsOf, raised } from "../../hooks/alteration.ts";
import { byHook } from "../../hooks/submission.ts";
import { logJob, requestor } from "../../jobs/life.ts";
import { isIn } from "../../state/job-phase.ts";
import type { Attrs, Job } from "../../state/state.ts";
import { type Alteration, accountAlteration, alterationOf, alterJob } from "../../submit/alteration.ts";
import { checkOwner, wholeJob } from "./job-access.ts";

export function modifyJob(tx: Transaction, request: ModifyJobRequest): Answer {
  const job = wholeJob(tx, request.job);
  checkOwner(tx, job);
  checkRootsJob(tx, job);
  if (isIn(job, "exiting")) throw reject(PBSE.BADSTATE);
  const { ops, ...made } = afterHooks(tx, job, request.attrs, alterationOf(tx, job, request.attrs));
  logJob(tx, LOG_EVENT.JOB, job.id, `Job Modified at request of ${requestor(tx)}`);
  if (ops.length === 0) return {};
  alterJob(tx, job, made);
  accountAlteration(tx, job.id, ops);
  return {};
}

/** Refuses with 15007 a manager who is not root and wants to change a job that runs as root. */
function checkRootsJob({ who, config }: Transaction, job: Job): void {
  if (config.own_user === null && job.attrs.euser === "root" && !who.root) throw reject(PBSE.PERM);
}

/** The alteration after the changes by modifyjob hooks. */
function afterHooks(
  tx: Transaction,
  job: Job,
  ops: readonly AttrOp[],
  asked: Alteration,
): Alteration & { readonly ops: readonly AttrOp[] } {
  const [verdict] = tx.hooks([modifyjobAsk(tx, job, afterChanges(job, asked))]);
  if (verdict === null || verdict === undefined) return { ...asked, ops };
  if (verdict.kind === "reject") throw verdict.reject;
  const own = opsOf(verdict.changes.job ?? {});
  if (own.length === 0) return { ...asked, ops };
  return { ...byHook(tx, verdict.by, () => alterationOf(raised(tx), job, [...ops, ...own])), ops: [...ops, ...own] };
}

function afterChanges(job: Job, { set, unset }: Alteration): Attrs {
  const after: Attrs = { ...job.attrs, ...set };
  for (const name of unset) delete after[name];
  return after;
}

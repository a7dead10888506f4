// The end of a run: the obit and the meaning of its exit code (docs/reference/execution.md 6), requeueing, and the move into the history.
//
// I1. The obit of a run counts once: only while the job is with its mom and has the run_count that the obit names.
// I2. A job that no longer runs occupies no vnode. Its exec_vnode remains only in the history.

import { JOB_EXEC } from "#model/exit-status.ts";
import { SUBSTATE } from "#model/job-state.ts";
import { PBSE, pbseText } from "#model/pbse.ts";
import { addHolds } from "#model/values/hold.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { FILE_TROUBLE } from "../engine/mail.ts";
import type { Transaction } from "../engine/transaction.ts";
import { arrayOf } from "../state/apply.ts";
import { hostOfJob } from "../state/job-hosts.ts";
import { type OwnChange, without } from "../state/job-own.ts";
import { type HowOver, isIn, isSuspended, isWaiting, OVER, RUN_PHASE } from "../state/job-phase.ts";
import type { Attrs, Job, JobAttrs, ResourceRecord } from "../state/state.ts";
import { accountAborted, accountEnded, usageItems } from "./accounting-record.ts";
import { discardCheckpoint, discardOutput } from "./checkpointed.ts";
import { grownRequest, learnFrom } from "./learning.ts";
import { isExecution, logJob, settleJob, waitingState } from "./life.ts";
import { afterFailure, failReason } from "./retries.ts";
import { jobStarted } from "./run.ts";
import { askedAtStart } from "./start-attrs.ts";
import { leaveMaintenance, preemptingSince } from "./suspension.ts";

/** The largest number of starts after which a job is queued again. A job that was started more often is held. */
const RUN_COUNT_MAX = 20;

export type Obit = {
  readonly exit_status: number;
  readonly used: { readonly [resource: string]: string | number };
  readonly stageout_status?: 0 | 1;
  readonly stagein_failed?: true;
  /** the host keeps output of the job for the next run */
  readonly kept?: true;
  readonly message?: string;
};

/** What the server does after an obit. rerun: requeues the job if it is rerunnable, else aborts it; retry: requeues the job in any case. */
type Reaction =
  | { readonly kind: "end"; readonly how: HowOver; readonly suffix: string; readonly mail?: string; readonly log?: string }
  | { readonly kind: "rerun"; readonly otherwise: string }
  /** the job is requeued, and its next run restarts from a checkpoint */
  | { readonly kind: "checkpointed" }
  | { readonly kind: "retry"; readonly hold?: "s" | "p"; readonly comment?: string; readonly mail?: string }
  | { readonly kind: "abort"; readonly mail: string };

const LIMITS: { readonly [code: number]: string } = {
  [JOB_EXEC.KILL_NCPUS_BURST]: "ncpus (burst)",
  [JOB_EXEC.KILL_NCPUS_SUM]: "ncpus (sum)",
  [JOB_EXEC.KILL_VMEM]: "vmem",
  [JOB_EXEC.KILL_MEM]: "mem",
  [JOB_EXEC.KILL_CPUT]: "cput",
  [JOB_EXEC.KILL_WALLTIME]: "walltime",
};

/** The reaction to an Exit_status, for a job that was not deleted (docs/reference/execution.md 6). */
function reactionTo(exit_status: number, message = ""): Reaction {
  if (exit_status === 0) return { kind: "end", how: "finished", suffix: " and finished" };
  if (exit_status > 0) return { kind: "end", how: "failed", suffix: " and failed" };
  const limit = LIMITS[exit_status];
  if (limit !== undefined) {
    const mail = `Job exceeded resource ${limit}\nSee job standard error file`;
    return { kind: "end", how: "failed", suffix: ` and exceeded resource ${limit}`, mail };
  }
  switch (exit_status) {
    case JOB_EXEC.FAIL2:
      return { kind: "abort", mail: "Job cannot be executed\nSee job standard error file" };
    case JOB_EXEC.FAILHOOK_DELETE:
    case JOB_EXEC.HOOK_DELETE: {
      const mail =
        exit_status === JOB_EXEC.HOOK_DELETE ? "a hook requested for job to be deleted" : `${pbseText(PBSE.HOOK_REJECT_DELETEJOB)}`;
      return { kind: "end", how: "failed", suffix: " and failed", mail, log: mail };
    }
    case JOB_EXEC.INITABT:
      return { kind: "rerun", otherwise: "Job aborted on PBS Server initialization" };
    case JOB_EXEC.RERUN:
    case JOB_EXEC.RERUN_SIS_FAIL:
    case JOB_EXEC.RERUN_MS_FAIL:
    case JOB_EXEC.BADRESRT:
      return { kind: "rerun", otherwise: NOT_RERUNABLE };
    case JOB_EXEC.INITRST:
    case JOB_EXEC.INITRMG:
    case JOB_EXEC.CHKP:
    case JOB_EXEC.QUERST:
      return { kind: "checkpointed" };
    case JOB_EXEC.FAILUID:
      return { kind: "retry", mail: "Bad UID for job execution" };
    case JOB_EXEC.FAIL_PASSWORD:
      return { kind: "retry", hold: "p", comment: `${message}:job has bad password` };
    case JOB_EXEC.FAIL_SECURITY:
      return { kind: "retry", hold: "s", comment: "job held due to possible security breach of job tmpdir, failed to start" };
    case JOB_EXEC.RETRY:
    case JOB_EXEC.FAILHOOK_RERUN:
    case JOB_EXEC.HOOK_RERUN:
    case JOB_EXEC.HOOKERROR:
    case JOB_EXEC.JOINJOB:
      return { kind: "retry" };
    default:
      return { kind: "abort", mail: "Job cannot be executed\nSee Administrator for help" };
  }
}

/** Called when the mom reports the end of the present run of a job: the job ends or is queued again. The caller has checked the run_count (I1). */
export function jobObit(tx: Transaction, job: Job, obit: Obit): void {
  const { attrs } = job;
  const runs = attrs.run_count ?? 0;
  logJob(tx, LOG_EVENT.DEBUG, job.id, `Obit received momhop:${runs} serverhop:${runs} state:${attrs.job_state} substate:${attrs.substate}`);
  const reaction = reactionTo(obit.exit_status, obit.message);
  // The mom has ended the job without an order of the server (moms/grace.ts).
  if (obit.exit_status === JOB_EXEC.RERUN_MS_FAIL && obit.message !== undefined) logJob(tx, LOG_EVENT.JOB, job.id, obit.message);
  const ran = obit.exit_status >= 0 || reaction.kind === "end" || reaction.kind === "rerun" || reaction.kind === "checkpointed";
  // A short job may end (or be lost) before its start was reported; the S record is still written first. The server still
  // remembers which hosts keep files of an earlier run: a sister may have ended this run before the mother superior
  // received the start.
  if (isIn(job, "starting") && ran) jobStarted(tx, job, undefined, undefined, { confirmed: false });
  const fail_reason = failReason(attrs, obit.exit_status);
  tx.apply({ kind: "job-changed", id: job.id, set: { ...endAttrs(obit), ...(fail_reason === null ? {} : { fail_reason }) }, unset: [] });
  if (obit.stageout_status === 0) {
    const text = `Post job file processing error; job ${job.id} on host ${hostOfJob(job)}\n${obit.message ?? ""}`;
    tx.act({ kind: "mail", job: job.id, point: FILE_TROUBLE, text });
  }
  if (obit.kept === true) keptElsewhere(tx, job);
  const trouble = obit.stageout_status === 0 ? `; ${fileTrouble(obit.message)}` : "";
  const { termination } = job.own;
  // The end of a job that was preempted by deletion is reported like any other; the job never runs again.
  if (termination !== undefined && !(termination.preempted === true && reaction.kind === "end")) {
    finish(tx, job, "deleted", ` and terminated by ${termination.by}${trouble}`, termination.history);
    // The mom expected another run of the job. The mom has therefore kept the output, and perhaps a checkpoint; both are no longer needed.
    if (reaction.kind !== "end" && reaction.kind !== "abort") tx.act({ kind: "discard-on-host", job: job.id, host: hostOfJob(job) });
    return;
  }
  if (obit.stagein_failed === true) {
    waitForFiles(tx, job, obit.message ?? "");
    return;
  }
  switch (reaction.kind) {
    case "end":
      if (termination === undefined && reaction.how === "failed" && retry(tx, job, obit.exit_status)) break;
      if (reaction.log !== undefined) logJob(tx, LOG_EVENT.JOB, job.id, reaction.log);
      if (reaction.mail !== undefined) tx.act({ kind: "mail", job: job.id, point: "a", text: reaction.mail });
      finish(tx, job, reaction.how, `${reaction.suffix}${trouble}`);
      break;
    case "abort":
      abort(tx, job, reaction.mail);
      break;
    case "rerun":
      requeueOrAbort(tx, job, reaction.otherwise);
      break;
    case "checkpointed":
      requeue(tx, job, { checkpointed: hostOfJob(job) });
      break;
    case "retry":
      if (reaction.mail !== undefined) tx.act({ kind: "mail", job: job.id, point: "a", text: reaction.mail });
      logRetry(tx, job, obit.exit_status);
      requeue(tx, job, {
        ...(reaction.hold === undefined ? {} : { hold: reaction.hold }),
        ...(reaction.comment === undefined ? {} : { comment: reaction.comment }),
      });
      break;
    default: {
      const unreachable: never = reaction;
      return unreachable;
    }
  }
}

/** Notes that the host of this run keeps the output, and deletes output that another host has kept of an earlier run. */
function keptElsewhere(tx: Transaction, job: Job): void {
  const host = hostOfJob(job);
  if (job.own.output_on === host) return;
  discardOutput(tx, job);
  tx.apply({ kind: "job-changed", id: job.id, set: {}, unset: [], own: { output_on: host } });
}

/** The first line of the mom's message that is about files; if there is none, the first line. */
const fileTrouble = (message = ""): string => {
  const lines = message.split("\n");
  return lines.find((line) => line.startsWith("Unable to ")) ?? lines[0] ?? "";
};

/** Time after which a job is tried again if its files could not be copied to the host (docs/reference/execution.md 2). */
const STAGE_AGAIN_S = 1800;
function waitForFiles(tx: Transaction, job: Job, message: string): void {
  logJob(tx, LOG_EVENT.JOB, job.id, `${pbseText(PBSE.STAGEIN)}: ${message}`);
  tx.act({
    kind: "mail",
    job: job.id,
    point: FILE_TROUBLE,
    text: `Stage in of files failed; the job is tried again in 30 minutes\n${message}`,
  });
  const Execution_Time = tx.now_s + STAGE_AGAIN_S;
  requeue(tx, job, {
    Execution_Time,
    stage_failed: true,
    comment: `${pbseText(PBSE.STAGEIN)}; tried again at ${tx.config.ctime(Execution_Time)}`,
  });
}

function endAttrs(obit: Obit): Attrs {
  const set: Attrs = { Exit_status: obit.exit_status };
  if (Object.keys(obit.used).length > 0) set["resources_used"] = obit.used as ResourceRecord;
  if (obit.stageout_status !== undefined) set["Stageout_status"] = obit.stageout_status;
  return set;
}

/**
 * If a job has failed by itself and has retries, queues it again, or buries it when the retries are used up (retries.ts). exit_status null: its runner is gone.
 * Returns false if neither follows.
 */
export function retry(tx: Transaction, job: Job, exit_status: number | null): boolean {
  const next = afterFailure(tx.state, job, exit_status, tx.now_s);
  if (next === null) return false;
  const { failures } = next;
  const what = exit_status === null ? "Runner is gone" : `Failed with exit status ${exit_status}`;
  if (next.kind === "buried") {
    bury(tx, job, `${what}, run ${failures} of ${failures}`, failures);
    return true;
  }
  const Execution_Time = next.until_s;
  const grown = exit_status === null ? null : grownRequest(tx.state, job, exit_status);
  const again = `tried again at ${tx.config.ctime(Execution_Time)}`;
  const comment = `${what}, run ${failures} of ${next.retries + 1}; ${grown === null ? again : `${grown.what}; ${again}`}`;
  logJob(tx, LOG_EVENT.JOB, job.id, comment);
  requeue(tx, job, { Execution_Time, comment, failures });
  if (grown !== null) {
    const { Resource_List, schedselect } = grown;
    tx.apply({ kind: "job-changed", id: job.id, set: { Resource_List, schedselect }, unset: [] });
  }
  return true;
}

/** Holds a job after a run, with the reason, until its owner or an operator releases it. failures: failed runs so far. */
export function bury(tx: Transaction, job: Job, why: string, failures = job.own.failures ?? 0): void {
  const comment = `Job held: ${why}. qrls lets it run again`;
  logJob(tx, LOG_EVENT.JOB, job.id, comment);
  requeue(tx, job, { hold: "s", comment, failures, buried: true });
}

function logRetry(tx: Transaction, job: Job, exit_status: number): void {
  if (exit_status === JOB_EXEC.FAILHOOK_RERUN || exit_status === JOB_EXEC.HOOKERROR) {
    logJob(tx, LOG_EVENT.JOB, job.id, "hook rejected request, requiring job to be rerun");
  }
  if (exit_status === JOB_EXEC.JOINJOB) logJob(tx, LOG_EVENT.JOB, job.id, "Mom rejected job due to join job error");
}

/** Ends a job that ran: writes the log line and record E, and moves the job into the history. */
export function finish(tx: Transaction, job: Job, how: HowOver, suffix: string, keep = true): void {
  const { attrs } = job;
  touchVnodes(tx, job);
  const items = [`Exit_status=${attrs.Exit_status ?? 0}`, ...usageItems(tx.state.resources, attrs)];
  logJob(tx, LOG_EVENT.JOB_USAGE, job.id, items.join(" "));
  accountEnded(tx, "E", job, tx.now_s);
  tx.act({ kind: "mail", job: job.id, point: "e", text: ["Execution terminated", ...items].join("\n") });
  if (how === "finished") learnFrom(tx, job);
  leave(tx, job, how, { obittime: tx.now_s, ...(attrs.comment === undefined ? {} : { comment: `${attrs.comment}${suffix}` }) }, keep);
}

/** Aborts a job that was with a mom. */
export function abort(tx: Transaction, job: Job, mail: string): void {
  touchVnodes(tx, job);
  const why = (mail.split("\n")[0] ?? "").trim();
  logJob(tx, LOG_EVENT.JOB, job.id, why);
  accountAborted(tx, job.id, why);
  tx.act({ kind: "mail", job: job.id, point: "a", text: mail });
  if (!isIn(job, "starting")) accountEnded(tx, "E", job, tx.now_s);
  const { comment } = job.attrs;
  leave(tx, job, "failed", { obittime: tx.now_s, ...(comment === undefined ? {} : { comment: `${comment} and failed` }) }, true);
}

/**
 * Exit_status of a job that ends before it has run: the same as that of a job ended by SIGTERM. OpenPBS sets no Exit_status
 * here, but client programs take a finished job without Exit_status for a success.
 */
export const NEVER_RAN = 271;

/** Ends a waiting job that is deleted. There is no record E (docs/reference/commands.md 3, qdel). */
export function endWaiting(tx: Transaction, job: Job, keep: boolean, set: Attrs = {}): void {
  leave(tx, job, "deleted", set, keep);
}

/** The Exit_status of a run; undefined: the job never ran, or its end is unknown. */
export const statusOfRun = ({ stime, Exit_status }: JobAttrs): number | undefined => (stime === undefined ? undefined : Exit_status);

/** Removes a live job, and puts it into the history if the server keeps one. */
export function leave(tx: Transaction, job: Job, how: HowOver, set: Attrs, keep: boolean): void {
  const history = keep && tx.state.server["job_history_enable"] === true;
  if (!history)
    logJob(tx, LOG_EVENT.DEBUG2, job.id, `dequeuing from ${job.attrs.queue}, state ${isWaiting(job) ? job.attrs.job_state : "E"}`);
  discardCheckpoint(tx, job);
  discardOutput(tx, job);
  const over = { ...(job.attrs.stime === undefined ? { Exit_status: NEVER_RAN } : {}), ...set };
  tx.apply({
    kind: "job-changed",
    id: job.id,
    set: { ...over, ...OVER[how], history_timestamp: tx.now_s },
    unset: [],
    own: NOT_OF_HISTORY,
  });
  tx.apply({ kind: "job-ended", id: job.id, history });
}

const OF_A_RUN_OWN = without(
  "paused",
  "paused_since",
  "termination",
  "placed_by_hand",
  "sent_to",
  "suspended_by_admin",
  "preempting",
  "resuming",
  "idled",
  "releasing",
  "checkpointed",
);
/** The fields of the server's own data about a job (job.own) that are removed when the job ends. */
const NOT_OF_HISTORY: OwnChange = { ...OF_A_RUN_OWN, output_on: null, terminal: null, failures: null, buried: null };

/**
 * Called when the server ends a run in order to queue the job again: sets substate 60 until the obit. A run that the mom has not confirmed
 * counts as begun, so that an S record precedes the R record. A suspended job stays suspended until its mom has ended it,
 * because other jobs may use its vnodes.
 */
export function beginRerun(tx: Transaction, job: Job): void {
  if (isSuspended(job)) return;
  if (isIn(job, "starting")) jobStarted(tx, job, undefined, undefined, { confirmed: false });
  tx.apply({ kind: "job-changed", id: job.id, set: { ...RUN_PHASE.rerunning }, unset: [] });
}

const NOT_RERUNABLE = "Non-rerunable job deleted on requeue";

/** Requeues the job if it is rerunnable; else aborts it. otherwise: the message for a job that is not rerunnable. */
export function requeueOrAbort(tx: Transaction, job: Job, otherwise = NOT_RERUNABLE): void {
  if (job.attrs.Rerunable) requeue(tx, job);
  else abort(tx, job, otherwise);
}

/**
 * What is set at a requeue. hold: a hold for the job. Execution_Time: the earliest time of the next run, if files could not be staged in or the job failed. failures: runs that
 * have failed so far, if this one did. buried: the owner may release the hold.
 */
export type Requeue = {
  readonly hold?: "s" | "p";
  readonly comment?: string;
  readonly Execution_Time?: number;
  /** host with a checkpoint of the job */
  readonly checkpointed?: string;
  readonly failures?: number;
  readonly buried?: true;
  /** files could not be staged in */
  readonly stage_failed?: true;
};

/** Queues the job again after a run. */
export function requeue(tx: Transaction, job: Job, more: Requeue = {}): void {
  touchVnodes(tx, job);
  if (more.checkpointed !== undefined) tx.account({ type: "C", id: job.id, text: "" });
  else if (!isIn(job, "starting")) accountEnded(tx, "R", job, tx.now_s);
  let { hold, comment } = more;
  const preempted_s = preemptingSince(job);
  // A run that was preempted, or that will be restarted from a checkpoint, did not fail. Retries are counted apart (retries.ts).
  if (
    (job.attrs.run_count ?? 0) - (more.failures ?? job.own.failures ?? 0) > RUN_COUNT_MAX &&
    preempted_s === undefined &&
    more.checkpointed === undefined
  ) {
    hold = "s";
    comment = TOO_OFTEN;
    logJob(tx, LOG_EVENT.JOB, job.id, comment);
  }
  if (hold !== undefined && holdArray(tx, job, hold, comment, more.buried)) [hold, comment] = [undefined, undefined];
  const Hold_Types = hold === undefined ? job.attrs.Hold_Types : addHolds(job.attrs.Hold_Types, hold);
  const later = more.Execution_Time === undefined ? {} : { Execution_Time: more.Execution_Time };
  const waiting = waitingState({ ...job.attrs, ...later, Hold_Types }, tx.now_s);
  const queue = tx.state.queues.get(job.attrs.queue);
  const eligible = waiting.job_state === "Q" && queue !== undefined && isExecution(queue);
  const substate = waiting.job_state === "W" && more.stage_failed === true ? SUBSTATE.STAGE_FAIL : waiting.substate;
  const set: Attrs = {
    ...waiting,
    substate,
    ...later,
    Hold_Types,
    ...(preempted_s === undefined ? {} : { ptime: preempted_s }),
    ...(eligible && job.attrs.etime === undefined ? { etime: tx.now_s } : {}),
  };
  // If the mom had confirmed the run, its host keeps the output for the next run, unless a checkpoint or the output of an earlier run is kept.
  const keeps = more.checkpointed === undefined && !isIn(job, "starting") && job.own.output_on === undefined;
  const own: OwnChange = {
    ...OF_A_RUN_OWN,
    checkpointed: more.checkpointed ?? null,
    ...(keeps ? { output_on: hostOfJob(job) } : {}),
    ...(more.failures === undefined ? {} : { failures: more.failures }),
    ...(more.buried === true && hold !== undefined ? { buried: true } : {}),
  };
  if (comment !== undefined) set["comment"] = comment;
  const again = askedAtStart(job.attrs);
  Object.assign(set, again.set);
  const unset = [
    ...again.unset,
    ...OF_A_RUN.filter((name) => job.attrs[name] !== undefined && set[name] === undefined),
    ...(eligible || job.attrs.etime === undefined ? [] : ["etime"]),
  ];
  tx.apply({ kind: "job-changed", id: job.id, set, unset, own });
}

/** If the job is a subjob, holds its array in place of the subjob and returns true. */
function holdArray(tx: Transaction, subjob: Job, hold: "s" | "p", why: string | undefined, buried: true | undefined): boolean {
  const array = arrayOf(tx.state, subjob);
  if (array === undefined) return false;
  const comment = why === TOO_OFTEN ? `Job Array Held, too many failed attempts to run subjob ${subjob.id}` : why;
  logJob(tx, LOG_EVENT.JOB, array.id, comment ?? `held with subjob ${subjob.id}`);
  settleJob(tx, array, { Hold_Types: addHolds(array.attrs.Hold_Types, hold), ...(comment === undefined ? {} : { comment }) });
  if (buried === true) tx.apply({ kind: "job-changed", id: array.id, set: {}, unset: [], own: { buried } });
  return true;
}

const TOO_OFTEN = "job held, too many failed attempts to run";

/** Attributes that belong to one run and are removed with it. */
const OF_A_RUN = [
  "exec_vnode",
  "exec_host",
  "session_id",
  "jobdir",
  "stime",
  "obittime",
  "Exit_status",
  "Stageout_status",
  "resources_used",
  "comment",
  "resources_released",
  "resource_released_list",
  "alt_id",
  "lost_since",
] as const;

/** Called when a run ends: sets last_used_time of the job's vnodes. A job suspended by an administrator no longer keeps them in maintenance. */
function touchVnodes(tx: Transaction, job: Job): void {
  leaveMaintenance(tx, job);
  for (const name of tx.state.placements.get(job.id)?.vnodes.keys() ?? []) {
    if (tx.state.vnodes.has(name)) tx.apply({ kind: "changed", object: "node", name, set: { last_used_time: tx.now_s }, unset: [] });
  }
}

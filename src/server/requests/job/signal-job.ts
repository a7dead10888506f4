// qsig (docs/reference/commands.md 3): sends a signal to a running job. The mom delivers it, and the mom's answer becomes
// the reply. suspend, resume, admin-suspend and admin-resume change the job's state (jobs/suspension.ts); only operators may
// use them. For an array, the subjobs in a suitable state get the signal.

import { PBSE, reject } from "#model/pbse.ts";
import type { SignalJobRequest } from "#protocol/messages.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { checkOperator } from "../../attributes/permission.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { logJob, requestor } from "../../jobs/life.ts";
import { isSuspendedByAdmin, markForResume } from "../../jobs/suspension.ts";
import { isIn } from "../../state/job-phase.ts";
import type { Job } from "../../state/state.ts";
import { checkOwner, checkState, forEach, ownedJob, startedJobs, targetOf } from "./job-access.ts";

// biome-ignore format: a list
const SIGNALS: ReadonlySet<string> = new Set([
  "NULL", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "IOT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CLD",
  "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "POLL", "PWR", "SYS",
]);
const NUMBER_MAX = 64;

export function signalJob(tx: Transaction, request: SignalJobRequest): Answer {
  const target = targetOf(tx, request.job);
  checkOwner(tx, ownedJob(target));
  if (target.kind === "job") return signalOne(tx, request, target.job);
  const wanted = /resume$/.test(request.signal) ? "S" : /suspend$/.test(request.signal) ? "R" : "RS";
  return forEach(
    tx,
    startedJobs(tx, target).filter((job) => wanted.includes(job.attrs.job_state)),
    (part, job) => signalOne(part, request, job),
  );
}

function signalOne(tx: Transaction, request: SignalJobRequest, job: Job): Answer {
  switch (request.signal) {
    case "suspend":
    case "admin-suspend":
      return suspend(tx, job, request.signal);
    case "resume":
    case "admin-resume":
      return resume(tx, job, request.signal);
    default: {
      const signal = signalName(request.signal);
      checkState(job, "RS");
      send(tx, job, signal, request.signal);
      return "deferred";
    }
  }
}

/** The name of a signal without SIG, or its number as text. Refuses an unknown signal with 15013. */
function signalName(text: string): string {
  if (/^[0-9]{1,3}$/.test(text) && Number(text) <= NUMBER_MAX) return text;
  const name = text.replace(/^SIG/, "");
  if (!SIGNALS.has(name)) throw reject(PBSE.UNKSIG);
  return name;
}

function send(tx: Transaction, job: Job, signal: string, typed: string): void {
  logJob(tx, LOG_EVENT.JOB, job.id, `job signaled with ${typed} by ${requestor(tx)}`);
  tx.act({ kind: "signal-job", job: job.id, signal, token: tx.token });
}

function suspend(tx: Transaction, job: Job, signal: "suspend" | "admin-suspend"): Answer {
  checkOperator(tx.who);
  if (!isIn(job, "running")) throw reject(PBSE.BADSTATE);
  send(tx, job, signal, signal);
  return "deferred";
}

/** Handles resume, which only marks the job: its scheduler, or qrun, resumes it when its resources are free. admin-resume resumes the job at once. */
function resume(tx: Transaction, job: Job, signal: "resume" | "admin-resume"): Answer {
  checkOperator(tx.who);
  checkState(job, "S");
  if (isSuspendedByAdmin(job) !== (signal === "admin-resume")) throw reject(PBSE.WRONG_RESUME);
  if (signal === "admin-resume") {
    send(tx, job, signal, signal);
    return "deferred";
  }
  logJob(tx, LOG_EVENT.JOB, job.id, `job signaled with ${signal} by ${requestor(tx)}`);
  markForResume(tx, job);
  return {};
}

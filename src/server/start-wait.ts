// How long a scheduler waits for a job that it starts: its job_run_wait, of which throughput_mode is the old form (pbs/objects.md 3).
//
//   none           for nothing: the verdict comes before the runjob hooks have been asked; what they refuse is told to the job alone
//   runjob_hook    for the runjob hooks
//   execjob_hook   for the mom as well: until the job has been started there, its execjob hooks included, or came back
//
// W1. A scheduler that does not wait begins no cycle while runjob hooks are under way for jobs it started: its mirror does not show them running yet.
// W2. No verdict waits for a mom that is lost, nor longer than the scheduler's sched_cycle_length: such a job counts as started.
// W3. Who started a job by hand (qrun without -a) waits for its runjob hooks and its mom in any case, for the latter not longer than HAND_PATIENCE_S.

import { SUBSTATE } from "#model/job-state.ts";
import { PBSE, pbseText, Reject } from "#model/pbse.ts";
import type { Verdict } from "#protocol/sched-link.ts";
import { isWaiting } from "./job-life.ts";
import { type Kernel, refuse } from "./kernel.ts";
import type { Sched } from "./state.ts";

export type RunWait = "none" | "runjob_hook" | "execjob_hook";

export function runWaitOf(sched: Sched | undefined): RunWait {
  const value = sched?.attrs["job_run_wait"];
  return value === "none" || value === "execjob_hook" ? value : "runjob_hook";
}

/** A start that a scheduler waits for, or (token) whoever asked for it by hand. */
export type StartWait = {
  readonly sched: string | null;
  readonly token?: number;
  exit_status: number | null;
  readonly then: (verdict: Verdict) => void;
};

/** Long enough for a mom that is well and its prologue; execjob hooks may take longer. */
export const HAND_PATIENCE_S = 10;

/** sched_cycle_length where the scheduler has none */
const CYCLE_LENGTH_S = 1200;

/** Waits for a job that was just sent to its mom. false: there is nothing to wait for. */
export function awaitStart(kernel: Kernel, sched: string, id: string, then: (verdict: Verdict) => void): boolean {
  if (!isStarting(kernel, id)) return false;
  const length_s = Number(kernel.state.scheds.get(sched)?.attrs["sched_cycle_length"] ?? CYCLE_LENGTH_S);
  kernel.starting.set(id, { sched, exit_status: null, then });
  if (length_s > 0) kernel.timers.set(`starting:${id}`, kernel.now_ms + length_s * 1000);
  return true;
}

/** The request is answered when the mom has taken the job or sent it back; at once when there is nothing to wait for (a job that was resumed). */
export function answerAtStart(kernel: Kernel, id: string, token: number): void {
  const then = (verdict: Verdict): void => {
    if (verdict.ok) kernel.out.clients.push({ kind: "ok", token });
    else refuse(kernel, token, new Reject(verdict.code, verdict.text));
  };
  if (!isStarting(kernel, id) || kernel.starting.has(id)) return then({ ok: true });
  kernel.starting.set(id, { sched: null, token, exit_status: null, then });
  kernel.timers.set(`starting:${id}`, kernel.now_ms + HAND_PATIENCE_S * 1000);
}

/** Clients that are gone wait for nothing. */
export function forgetHands(kernel: Kernel, gone: ReadonlySet<number>): void {
  for (const [id, { token }] of kernel.starting) if (token !== undefined && gone.has(token)) drop(kernel, id);
}

/** What a scheduler waits for may have come: called whenever a job has changed or is gone. */
export function startMet(kernel: Kernel, id: string): void {
  const wait = kernel.starting.get(id);
  if (wait === undefined) return;
  const job = kernel.state.jobs.get(id);
  // Why it came back goes with the run: it is known just before.
  if (isStarting(kernel, id)) wait.exit_status = job?.attrs.Exit_status ?? null;
  else settle(kernel, id, job !== undefined && isWaiting(job) ? cameBack(wait) : { ok: true });
}

/** The timer starting, or the job's mom is lost (W2). */
export function startUnknown(kernel: Kernel, id: string): void {
  if (kernel.starting.has(id)) settle(kernel, id, { ok: true });
}

/** The scheduler is lost: nobody waits any more. */
export function forgetStarts(kernel: Kernel, sched: string): void {
  for (const [id, wait] of kernel.starting) if (wait.sched === sched) drop(kernel, id);
}

function isStarting({ state }: Kernel, id: string): boolean {
  const attrs = state.jobs.get(id)?.attrs;
  return attrs?.job_state === "R" && attrs.substate === SUBSTATE.PRE_RUN;
}

function settle(kernel: Kernel, id: string, verdict: Verdict): void {
  const wait = kernel.starting.get(id);
  drop(kernel, id);
  wait?.then(verdict);
}

function drop(kernel: Kernel, id: string): void {
  kernel.starting.delete(id);
  kernel.timers.clear(`starting:${id}`);
}

/** Exit_status of a run that an execjob hook did not let begin (pbs/mom.md 6). */
const BY_HOOK: ReadonlySet<number | null> = new Set([-16, -18, -22]);

function cameBack({ exit_status }: StartWait): Verdict {
  const code = BY_HOOK.has(exit_status) ? PBSE.HOOKERROR : PBSE.MOMREJECT;
  return { ok: false, code, text: pbseText(code) ?? "" };
}

// How long a scheduler waits for a job that it starts. The scheduler's attribute job_run_wait decides it; throughput_mode is
// the old form of that attribute (docs/reference/attributes.md 3).
//
//   none           no wait: the verdict comes before the runjob hooks have run; only the job's comment reports their refusal
//   runjob_hook    waits for the runjob hooks
//   execjob_hook   waits for the mom as well: until its execjob hooks have run and the job has started there, or has come back
//
// W1. A scheduler that does not wait begins no cycle while runjob hooks run for jobs that it started, because its mirror
//     does not show those jobs as running yet.
// W2. No verdict waits for a lost mom, or longer than the scheduler's sched_cycle_length. In both cases the job counts as
//     started.
// W3. A start by hand (qrun without -a) waits for its runjob hooks and its mom in any case. It waits for the mom at most HAND_PATIENCE_S.

import { PBSE, pbseText, Reject } from "#model/pbse.ts";
import type { Verdict } from "#protocol/sched-link.ts";
import type { StartWait } from "../engine/job-runtime.ts";
import { type Kernel, refuse } from "../engine/kernel.ts";
import { type Deciding, giveLater } from "../engine/sched-runtime.ts";
import { isIn, isWaiting } from "../state/job-phase.ts";
import type { Sched } from "../state/state.ts";

export type RunWait = "none" | "runjob_hook" | "execjob_hook";

export function runWaitOf(sched: Sched | undefined): RunWait {
  const value = sched?.attrs["job_run_wait"];
  return value === "none" || value === "execjob_hook" ? value : "runjob_hook";
}

/** Time that a qrun waits for the mom (W3). It suffices for a healthy mom and its prologue; execjob hooks may take longer. */
export const HAND_PATIENCE_S = 10;

/** Used for a scheduler without sched_cycle_length. */
const CYCLE_LENGTH_S = 1200;

/** Makes the verdict of a decision wait for a job that was just sent to its mom. Returns false if no wait is needed. */
export function awaitStart(kernel: Kernel, sched: string, id: string, frame: Deciding, at: number): boolean {
  if (!isStarting(kernel, id)) return false;
  const length_s = Number(kernel.state.scheds.get(sched)?.attrs["sched_cycle_length"] ?? CYCLE_LENGTH_S);
  add(kernel, id, { kind: "decision", sched, frame, at, until_ms: length_s > 0 ? kernel.now_ms + length_s * 1000 : null });
  return true;
}

/** Answers the request when the mom has accepted the job or sent it back, or at once if no wait is needed (a resumed job). */
export function answerAtStart(kernel: Kernel, id: string, token: number): void {
  const wait: StartWait = { kind: "request", token, until_ms: kernel.now_ms + HAND_PATIENCE_S * 1000 };
  if (isStarting(kernel, id)) add(kernel, id, wait);
  else goOn(kernel, wait, { ok: true });
}

/** Answers the decision or request that has waited for a start. */
function goOn(kernel: Kernel, wait: StartWait, verdict: Verdict): void {
  if (wait.kind === "decision") giveLater(kernel, wait.sched, wait.frame, wait.at, verdict);
  else if (verdict.ok) kernel.out.clients.push({ kind: "ok", token: wait.token });
  else refuse(kernel, wait.token, new Reject(verdict.code, verdict.text));
}

/** Removes the waits of requests whose clients have disconnected. */
export function forgetHands(kernel: Kernel, gone: ReadonlySet<number>): void {
  forget(kernel, (wait) => wait.kind === "request" && gone.has(wait.token));
}

/** Called whenever a job has changed or is gone: ends the waits for its start if the job has started or has come back. */
export function startMet(kernel: Kernel, id: string): void {
  const start = kernel.jobs.starting.get(id);
  if (start === undefined) return;
  const job = kernel.state.jobs.get(id);
  // The Exit_status is kept here, because the job loses it when it is queued again. It then says why the job has come back.
  if (isStarting(kernel, id)) start.exit_status = job?.attrs.Exit_status ?? null;
  else settle(kernel, id, start.waits, job !== undefined && isWaiting(job) ? cameBack(start.exit_status) : { ok: true });
}

/** Called when the job's mom is lost: the job counts as started (W2). */
export function startUnknown(kernel: Kernel, id: string): void {
  settle(kernel, id, kernel.jobs.starting.get(id)?.waits ?? [], { ok: true });
}

/** Called by the timer `starting`: ends the waits that have lasted long enough. */
export function startLate(kernel: Kernel, id: string): void {
  const waits = kernel.jobs.starting.get(id)?.waits ?? [];
  settle(
    kernel,
    id,
    waits.filter(({ until_ms }) => until_ms !== null && until_ms <= kernel.now_ms),
    { ok: true },
  );
}

/** Called when a scheduler is lost: removes its waits. */
export function forgetStarts(kernel: Kernel, sched: string): void {
  forget(kernel, (wait) => wait.kind === "decision" && wait.sched === sched);
}

function isStarting({ state }: Kernel, id: string): boolean {
  const attrs = state.jobs.get(id)?.attrs;
  return attrs !== undefined && isIn({ attrs }, "starting");
}

function add(kernel: Kernel, id: string, wait: StartWait): void {
  const start = kernel.jobs.starting.get(id);
  keep(kernel, id, start?.exit_status ?? null, [...(start?.waits ?? []), wait]);
}

function settle(kernel: Kernel, id: string, met: readonly StartWait[], verdict: Verdict): void {
  const start = kernel.jobs.starting.get(id);
  if (start === undefined) return;
  keep(
    kernel,
    id,
    start.exit_status,
    start.waits.filter((wait) => !met.includes(wait)),
  );
  for (const wait of met) goOn(kernel, wait, verdict);
}

function forget(kernel: Kernel, isGone: (wait: StartWait) => boolean): void {
  for (const [id, { waits, exit_status }] of kernel.jobs.starting) {
    const left = waits.filter((wait) => !isGone(wait));
    if (left.length < waits.length) keep(kernel, id, exit_status, left);
  }
}

/** Replaces the waits for the start of a job, and sets the timer for the wait that ends first. */
function keep(kernel: Kernel, id: string, exit_status: number | null, waits: readonly StartWait[]): void {
  if (waits.length === 0) kernel.jobs.starting.delete(id);
  else kernel.jobs.starting.set(id, { waits, exit_status });
  const times = waits.flatMap(({ until_ms }) => until_ms ?? []);
  if (times.length === 0) kernel.timers.clear(`starting:${id}`);
  else kernel.timers.set(`starting:${id}`, Math.min(...times));
}

/** The values of Exit_status of a run that an execjob hook refused (docs/reference/execution.md 6). */
const BY_HOOK: ReadonlySet<number | null> = new Set([-16, -18, -22]);

function cameBack(exit_status: number | null): Verdict {
  const code = BY_HOOK.has(exit_status) ? PBSE.HOOKERROR : PBSE.MOMREJECT;
  return { ok: false, code, text: pbseText(code) ?? "" };
}

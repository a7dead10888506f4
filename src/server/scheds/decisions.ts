// Decisions of the schedulers and their verdicts.
//
// I4. Decisions are examined in their order and answered frame by frame. Decisions after a preemption wait until the
//     preemption has succeeded or failed (jobs/preemption.ts).

import { PBSE, Reject, refusalOf } from "#model/pbse.ts";
import { type Decision, SCHED_COMMAND, type Verdict } from "#protocol/sched-link.ts";
import { unreachable } from "#support/assert.ts";
import { schedulerIdentity } from "../engine/identity.ts";
import { type Kernel, ownTransaction, transaction } from "../engine/kernel.ts";
import { type Deciding, giveVerdict, type SchedRuntime } from "../engine/sched-runtime.ts";
import type { Transaction } from "../engine/transaction.ts";
import { askBeforeRun, mustAsk } from "../hooks/running.ts";
import { beginPreemption } from "../jobs/preemption.ts";
import { checkRun, commentJob, estimateJob, extendJob, type RunOptions, runJob } from "../jobs/run.ts";
import { awaitStart, runWaitOf } from "../jobs/start-wait.ts";
import { confirmResv, denyResv, refuseFor } from "../resv/answers.ts";
import { answerQrun, isOccupied, nextCycle, trigger } from "./cycles.ts";

/** Examines further decisions of the schedulers whose preemptions have succeeded or failed. */
export function decideOnSettled(kernel: Kernel): void {
  for (const name of kernel.scheds.settled) {
    kernel.scheds.settled.delete(name);
    const runtime = kernel.scheds.by_name.get(name);
    if (runtime !== undefined) decideOn(kernel, runtime);
  }
}

/** Examines the decisions of a scheduler, up to a preemption that is still under way. Then sends the verdicts of the frames that are complete. */
export function decideOn(kernel: Kernel, runtime: SchedRuntime): void {
  const tx = schedTransaction(kernel);
  for (const frame of runtime.deciding) if (!decideFrame(kernel, tx, runtime, frame)) break;
  for (let first = runtime.deciding[0]; first?.left === 0; first = runtime.deciding[0]) {
    const { cycle, verdicts } = first;
    if (runtime.link !== null) kernel.out.scheds.push({ link: runtime.link, type: "sched-verdicts", data: { cycle, verdicts } });
    runtime.deciding.shift();
  }
}

/** Examines the decisions of a frame. Returns false if the next one must wait for preemptions. */
function decideFrame(kernel: Kernel, tx: Transaction, runtime: SchedRuntime, frame: Deciding): boolean {
  for (; ; frame.at++) {
    const decision = frame.decisions[frame.at];
    if (decision?.kind === "preempt") {
      frame.preempting.push([frame.at, beginPreemption(kernel, runtime.name, decision)]);
      continue;
    }
    for (let first = frame.preempting[0]; first !== undefined; first = frame.preempting[0]) {
      const [at, { verdict }] = first;
      if (verdict === null) return false;
      giveVerdict(frame, at, verdict);
      frame.preempting.shift();
    }
    if (decision === undefined) return true;
    decideOne(kernel, tx, runtime, frame, decision);
  }
}

/**
 * Examines one decision. The verdict on a start may have to wait for hooks or for the mom; later decisions do not wait for
 * it. If the link breaks while the hooks are asked, the job is not started.
 */
function decideOne(
  kernel: Kernel,
  tx: Transaction,
  runtime: SchedRuntime,
  frame: Deciding,
  decision: Exclude<Decision, { kind: "preempt" }>,
): void {
  const { at } = frame;
  if (decision.kind !== "run") return giveVerdict(frame, at, decide(kernel, tx, runtime, decision));
  const wait = runtime.running === decision.job ? "runjob_hook" : runWaitOf(kernel.state.scheds.get(runtime.name));
  const begin = (now: Transaction): void => {
    const verdict = decide(kernel, now, runtime, decision);
    if (wait !== "execjob_hook" || !verdict.ok || !awaitStart(kernel, runtime.name, decision.job, frame, at))
      giveVerdict(frame, at, verdict);
  };
  if (!mustAsk(kernel, decision.job)) return begin(tx);
  const { job, exec_vnode } = decision;
  const refusal = refusalOf(() => checkRun(tx, job, exec_vnode, runOptions(runtime, decision)));
  if (refusal !== null) {
    giveVerdict(frame, at, refusedRun(runtime, job, refusal));
    return;
  }
  if (wait === "none") {
    giveVerdict(frame, at, { ok: true });
    askLater(kernel, runtime, decision);
    return;
  }
  askBeforeRun(kernel, tx, job, exec_vnode, (refused) => {
    if (!runtime.deciding.includes(frame)) return;
    if (refused === null) begin(schedTransaction(kernel));
    else giveVerdict(frame, at, refusedRun(runtime, job, refused));
    kernel.scheds.settled.add(runtime.name);
  });
}

/**
 * Asks the runjob hooks about a start whose scheduler does not wait for them. If the job may not run, its comment says so,
 * and the next cycle finds the job waiting (jobs/start-wait.ts W1).
 */
function askLater(kernel: Kernel, runtime: SchedRuntime, decision: Extract<Decision, { kind: "run" }>): void {
  const { job, exec_vnode } = decision;
  runtime.asking.add(job);
  askBeforeRun(kernel, schedTransaction(kernel), job, exec_vnode, (refused) => {
    runtime.asking.delete(job);
    const verdict = refused === null ? decide(kernel, schedTransaction(kernel), runtime, decision) : refusedRun(runtime, job, refused);
    if (!verdict.ok) {
      const comment = `Not Running: PBS Error: ${verdict.text}`;
      refusalOf(() => commentJob(schedTransaction(kernel), job, comment));
    }
    const sched = kernel.state.scheds.get(runtime.name);
    if (sched !== undefined && !isOccupied(runtime)) nextCycle(kernel, sched, runtime);
  });
}

/** The verdict on a start that is refused. If the job is to be started by qrun, the refusal is kept for the client. */
function refusedRun(runtime: SchedRuntime, job: string, error: Reject): Verdict {
  if (runtime.running === job) runtime.refusal = error;
  return { ok: false, code: error.code, text: error.text ?? "" };
}

const runOptions = (runtime: SchedRuntime, decision: Extract<Decision, { kind: "run" }>): RunOptions => ({
  sched: runtime.name,
  by_hand: runtime.running === decision.job,
  ...(decision.walltime_s === undefined ? {} : { walltime_s: decision.walltime_s }),
});

/** The transaction in which a scheduler's decisions are carried out. */
const schedTransaction = (kernel: Kernel): Transaction => transaction(kernel, schedulerIdentity(kernel.config.host), 0);

function decide(kernel: Kernel, tx: Transaction, runtime: SchedRuntime, decision: Exclude<Decision, { kind: "preempt" }>): Verdict {
  try {
    switch (decision.kind) {
      case "run":
        runJob(tx, decision.job, decision.exec_vnode, runOptions(runtime, decision));
        answerQrun(kernel, decision.job, null);
        break;
      case "comment": {
        const quiet = !kernel.changes.jobs.has(decision.job) && runtime.untold?.jobs.has(decision.job) !== true;
        commentJob(tx, decision.job, decision.comment);
        if (quiet) runtime.own_comments.add(decision.job);
        break;
      }
      case "qrun-refused":
        answerQrun(kernel, decision.job, new Reject(PBSE.RESCUNAV, decision.text));
        break;
      case "estimate":
        estimateJob(tx, decision.job, decision);
        break;
      case "extend":
        extendJob(tx, decision.job, decision.soft_walltime_s);
        break;
      case "confirm-resv":
        confirmResv(kernel, tx, runtime.name, decision);
        // A cycle that confirms a reservation looks at no job (docs/reference/scheduler.md 3), so another cycle is needed.
        kernel.resvs.vain_confirms.delete(decision.resv);
        trigger(kernel, runtime.name, SCHED_COMMAND.NEW);
        break;
      case "deny-resv":
        denyResv(kernel, tx, runtime.name, decision);
        break;
      default:
        unreachable(decision);
    }
    return { ok: true };
  } catch (error) {
    if (!(error instanceof Reject)) throw error;
    if (decision.kind === "run") return refusedRun(runtime, decision.job, error);
    if (decision.kind === "confirm-resv") tryAgain(kernel, runtime.name, decision.resv);
    return { ok: false, code: error.code, text: error.text ?? "" };
  }
}

/** Number of consecutive times that a scheduler may try again after the server could not accept its confirmation (docs/reference/scheduler.md 3). */
const VAIN_CONFIRMS_MAX = 5;

/**
 * Lets a scheduler try again after its confirmation of a reservation was refused. Usually the scheduler sees the obstacle in its
 * next cycle. It may also never see the obstacle (an exclusive host with vnodes of other partitions). Cycles that confirm a
 * reservation look at no job; after some attempts the scheduler therefore counts as having refused the reservation.
 */
function tryAgain(kernel: Kernel, sched: string, id: string): void {
  const resv = kernel.state.resvs.get(id);
  if (resv === undefined) return;
  const times = (kernel.resvs.vain_confirms.get(id) ?? 0) + 1;
  kernel.resvs.vain_confirms.set(id, times);
  if (times > VAIN_CONFIRMS_MAX) {
    kernel.resvs.vain_confirms.delete(id);
    refuseFor(kernel, ownTransaction(kernel), sched, resv);
  }
  trigger(kernel, sched, SCHED_COMMAND.NEW);
}

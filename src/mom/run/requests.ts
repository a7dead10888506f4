// Requests of the server about a run on this host: a signal, its end, a message. Pure.

import { PBSE, pbseText } from "#model/pbse.ts";
import type { ServerToMom } from "#protocol/mom-link.ts";
import { signalNumber } from "../job/signals.ts";
import { leaveByCheckpoint } from "./checkpoint.ts";
import { askHooks, isAsking } from "./hook-steps.ts";
import { exitWithheld } from "./life.ts";
import { type Context, keyOf, withRun } from "./record.ts";
import type { Run } from "./state.ts";
import { beginEnding, resume, suspend } from "./watch.ts";

export type Refusal = { readonly code: number; readonly text: string | null };
export const refusal = (code: number): Refusal => ({ code, text: pbseText(code) });

export function answer(cx: Context, token: number, problem: Refusal | null): void {
  const data =
    problem === null
      ? { token, ok: true }
      : { token, ok: false, code: problem.code, ...(problem.text === null ? {} : { text: problem.text }) };
  cx.actions.push({ kind: "send", type: "mom-result", data });
}

export function signal(cx: Context, data: ServerToMom["mom-signal"]): void {
  const run = cx.state.runs.get(data.job);
  if (data.signal.endsWith("resume") && run?.phase.name === "running" && run.phase.suspended_ms !== null) {
    const step = { kind: "preresume", run: keyOf(run), token: data.token } as const;
    if (askHooks(cx, "execjob_preresume", run, step, { session_id: run.phase.pid })) return;
  }
  answer(cx, data.token, signalProblem(cx, data));
}

/** Sends the signal. If that is not possible, returns the refusal. */
function signalProblem(cx: Context, data: ServerToMom["mom-signal"]): Refusal | null {
  const run = cx.state.runs.get(data.job);
  if (run === undefined) return refusal(PBSE.UNKJOBID);
  if (run.phase.name !== "running") return refusal(PBSE.BADSTATE);
  const suspended = run.phase.suspended_ms !== null;
  switch (data.signal) {
    case "suspend":
    case "admin-suspend":
      // If the server has suspended the run already, this is a repeated request: the answer to the first one was lost.
      if (!suspended || run.idled) suspend(cx, run);
      return null;
    case "resume":
    case "admin-resume":
      if (suspended) resume(cx, run);
      return null;
  }
  if (data.signal === "checkpoint") {
    const problem = leaveByCheckpoint(cx, run);
    return problem === null ? null : refusal(problem);
  }
  const number = signalNumber(data.signal);
  if (number === null) return refusal(PBSE.UNKSIG);
  cx.actions.push({ kind: "signal", run: keyOf(run), signal: number });
  return null;
}

export function terminate(cx: Context, data: ServerToMom["mom-terminate"]): void {
  const here = cx.state.runs.get(data.job);
  // This run waits for an earlier run of the job to end. It will not be started: when its turn comes, only its obit is sent.
  if (here?.next?.job.run_count === data.run_count)
    here.next = { ...here.next, doomed: here.next.doomed === "delete" ? "delete" : data.why };
  withRun(cx, data.job, data.run_count, (run) => {
    // The execjob_preterm hooks are asked only for a delete with a delay, not for a forced delete or a rerun.
    if (data.why === "delete" && data.kill_delay_s > 0 && run.phase.name === "running" && run.ending === null) {
      const step = { kind: "preterm", run: keyOf(run), kill_delay_s: data.kill_delay_s } as const;
      if (isAsking(cx.state, run, "preterm")) return;
      if (askHooks(cx, "execjob_preterm", run, step, { session_id: run.phase.pid })) return;
    }
    endUnlessOver(cx, run, data.why, data.kill_delay_s);
  });
}

export function endUnlessOver(cx: Context, run: Run, why: "delete" | "rerun", kill_delay_s: number): void {
  if (OVER.has(run.phase.name)) return;
  beginEnding(cx, run, why, kill_delay_s);
  exitWithheld(cx, run);
}

/** The phases in which no process of the run is left. */
export const OVER: ReadonlySet<Run["phase"]["name"]> = new Set(["epilogue", "finishing", "ended", "leaving"]);

/** Writes the text of a qmsg at the end of the job's stdout, stderr or both. */
export function message(cx: Context, data: ServerToMom["mom-message"]): void {
  const run = cx.state.runs.get(data.job);
  if (run?.phase.name !== "running") {
    answer(cx, data.token, refusal(run === undefined ? PBSE.UNKJOBID : PBSE.BADSTATE));
    return;
  }
  const { files } = run.phase;
  const letters = data.files === "" ? "e" : data.files.toLowerCase();
  const paths = new Set([...(letters.includes("o") ? [files.stdout] : []), ...(letters.includes("e") ? [files.stderr] : [])]);
  for (const path of paths) cx.actions.push({ kind: "append", owner: run.plan.owner, path, text: `${data.message}\n` });
  answer(cx, data.token, null);
}

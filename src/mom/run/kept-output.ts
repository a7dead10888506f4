// Output of a run that waits in spool for the job's next one (docs/reference/execution.md 5). Pure.
//
// O1. What is kept is noted in mom_priv/jobs before the server hears of the run's end, until a later run here has delivered it or the file agent has removed
//     it: a mom that ends before that tells of it once more. The note is not synced: a host that goes down may forget one. Only what is noted is told at a
//     hello: what else lies in spool, like output that could not be delivered, is nobody's to remove.
// O2. What becomes of a run's output is decided once, when the file agent is asked: what is heard until he answers changes nothing of what he does.

import { JOB_EXEC } from "#model/exit-status.ts";
import type { MomHello } from "#protocol/mom-link.ts";

import type { FinishRequest } from "../job/agent-link.ts";
import { isSister } from "../job/sister.ts";
import type { Context } from "./record.ts";

import type { MomState, Run } from "./state.ts";

/** It goes back to its queue: a run that never came about leaves nothing of its own. */
const SENT_BACK: ReadonlySet<number> = new Set([JOB_EXEC.RETRY, JOB_EXEC.FAILHOOK_RERUN, JOB_EXEC.HOOK_RERUN, JOB_EXEC.HOOKERROR]);
const WILL_RUN_AGAIN: ReadonlySet<number> = new Set([JOB_EXEC.RERUN, JOB_EXEC.INITABT, JOB_EXEC.BADRESRT]);
/** Whether it may be rerun or not: it goes on from its checkpoint. */
const WILL_GO_ON: ReadonlySet<number> = new Set([JOB_EXEC.CHKP, JOB_EXEC.INITRST]);

/** What becomes of a run's output. ran: it did. */
export function outputFate({ state }: Context, run: Run, exit_status: number, ran: boolean): FinishRequest["output"] {
  if (run.ending?.why === "discard") return "drop";
  // What it has here is for its tasks; the output of an earlier run, which was not a sister's, is for the job.
  if (isSister(run.job, state.config.host)) return !ran && state.kept.has(run.job.id) ? "keep" : "drop";
  // Whatever hooks ask for: there is no run to come.
  if (run.ending?.why === "delete" && ran) return "deliver";
  if (SENT_BACK.has(exit_status) && !ran) return state.kept.has(run.job.id) ? "keep" : "drop";
  if (SENT_BACK.has(exit_status) || WILL_GO_ON.has(exit_status)) return "keep";
  return WILL_RUN_AGAIN.has(exit_status) && run.job.attrs["Rerunable"] !== false ? "keep" : "deliver";
}

export function keepOutput({ state, actions }: Context, job: string): void {
  if (state.kept.has(job)) return;
  state.kept.add(job);
  actions.push({ kind: "note-kept", job, kept: true });
}

/** It was delivered, or removed with the run. */
export function outputGone({ state, actions }: Context, job: string): void {
  if (state.kept.delete(job)) actions.push({ kind: "note-kept", job, kept: false });
}

/** Nobody waits for it (O1). */
export function dropOutput({ state, actions }: Context, job: string): void {
  if (!state.kept.delete(job)) return;
  const { home } = state.config.facts;
  actions.push({ kind: "purge", job, paths: [`${home}/spool/${job}.OU`, `${home}/spool/${job}.ER`] });
}

/** The file agent has removed it. */
export function purged({ state, actions }: Context, job: string): void {
  // A later run may have kept its own meanwhile.
  if (!state.kept.has(job)) actions.push({ kind: "note-kept", job, kept: false });
}

/** A run that will do no more about its output. */
export const isOver = (run: Run): boolean => run.phase.name === "ended" || run.phase.name === "leaving";

/** For the hello (O1): a run that is under way looks after its output itself. */
export function helloOutputs({ kept, runs }: MomState): Pick<MomHello, "outputs"> {
  const outputs = [...kept].filter((job) => {
    const run = runs.get(job);
    return run === undefined || isOver(run);
  });
  return outputs.length === 0 ? {} : { outputs };
}

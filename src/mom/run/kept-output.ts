// Output of a run that waits in spool for the job's next one (docs/reference/execution.md 5). Pure.
//
// O1. Kept output is noted in mom_priv/jobs before the run's end is reported to the server, until a later run here has
//     delivered it or the file agent has removed it, so that a mom that ends meanwhile reports it again. The note is not
//     synced: a host that goes down may lose one. Only noted output is reported at a hello; other files in spool, such as
//     undeliverable output, must not be removed.
// O2. The handling of a run's output is decided once, when the file agent is asked; later events do not change it until the agent has answered.

import { JOB_EXEC } from "#model/exit-status.ts";
import type { MomHello } from "#protocol/mom-link.ts";

import type { FinishRequest } from "../job/agent-link.ts";
import { isSister } from "../job/sister.ts";
import type { Context } from "./record.ts";

import type { MomState, Run } from "./state.ts";

/** The job is requeued, and a run that never started leaves no output of its own. */
const SENT_BACK: ReadonlySet<number> = new Set([JOB_EXEC.RETRY, JOB_EXEC.FAILHOOK_RERUN, JOB_EXEC.HOOK_RERUN, JOB_EXEC.HOOKERROR]);
const WILL_RUN_AGAIN: ReadonlySet<number> = new Set([JOB_EXEC.RERUN, JOB_EXEC.INITABT, JOB_EXEC.BADRESRT]);
/** Runs with these statuses continue even if the job is not rerunnable, because it restarts from its checkpoint. */
const WILL_GO_ON: ReadonlySet<number> = new Set([JOB_EXEC.CHKP, JOB_EXEC.INITRST]);

/** The handling of a run's output. ran: the run has started. */
export function outputFate({ state }: Context, run: Run, exit_status: number, ran: boolean): FinishRequest["output"] {
  if (run.ending?.why === "discard") return "drop";
  // Output here is only of its tasks; output of an earlier run here, as first host, belongs to the job.
  if (isSister(run.job, state.config.host)) return !ran && state.kept.has(run.job.id) ? "keep" : "drop";
  // The job will not run again, whatever hooks request.
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

/** The kept output was delivered, or removed with the run. */
export function outputGone({ state, actions }: Context, job: string): void {
  if (state.kept.delete(job)) actions.push({ kind: "note-kept", job, kept: false });
}

/** Drops output that is no longer needed (O1). */
export function dropOutput({ state, actions }: Context, job: string): void {
  if (!state.kept.delete(job)) return;
  const { home } = state.config.facts;
  actions.push({ kind: "purge", job, paths: [`${home}/spool/${job}.OU`, `${home}/spool/${job}.ER`] });
}

/** The file agent has removed the output. */
export function purged({ state, actions }: Context, job: string): void {
  // A later run may have kept its own output meanwhile.
  if (!state.kept.has(job)) actions.push({ kind: "note-kept", job, kept: false });
}

/** Whether a run will not touch its output any more. */
export const isOver = (run: Run): boolean => run.phase.name === "ended" || run.phase.name === "leaving";

/** The kept output to report in the hello (O1). A run that is under way takes care of its output itself. */
export function helloOutputs({ kept, runs }: MomState): Pick<MomHello, "outputs"> {
  const outputs = [...kept].filter((job) => {
    const run = runs.get(job);
    return run === undefined || isOver(run);
  });
  return outputs.length === 0 ? {} : { outputs };
}

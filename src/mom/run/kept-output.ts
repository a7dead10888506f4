// Output of a finished run that stays in spool until the job's next run (docs/reference/execution.md 5). Pure.
//
// O1. A note in mom_priv/jobs names kept output, so that a mom that is restarted reports it again. The note is made before the run's end is reported to the
//     server. It stays until a later run here has delivered the output, or the file agent has removed it. The note is not synced: if the host goes down, it may
//     be lost. Only noted output is reported at a hello, because other files in spool, such as undeliverable output, must not be removed.
// O2. What happens to a run's output is decided once, when the file agent is asked to finish the run. Events before the agent's answer do not change it.

import { JOB_EXEC } from "#model/exit-status.ts";
import { outputName } from "#model/job-id.ts";
import type { MomHello } from "#protocol/mom-link.ts";

import type { FinishRequest } from "../job/agent-link.ts";
import { isSister } from "../job/sister.ts";
import type { Context } from "./record.ts";

import type { MomState, Run } from "./state.ts";

/** Exit statuses after which the job is requeued. If such a run never started, it has no output of its own. */
const SENT_BACK: ReadonlySet<number> = new Set([JOB_EXEC.RETRY, JOB_EXEC.FAILHOOK_RERUN, JOB_EXEC.HOOK_RERUN, JOB_EXEC.HOOKERROR]);
const WILL_RUN_AGAIN: ReadonlySet<number> = new Set([JOB_EXEC.RERUN, JOB_EXEC.RERUN_MS_FAIL, JOB_EXEC.INITABT, JOB_EXEC.BADRESRT]);
/** Exit statuses after which the job restarts from its checkpoint, even if the job is not rerunnable. */
const WILL_GO_ON: ReadonlySet<number> = new Set([JOB_EXEC.CHKP, JOB_EXEC.INITRST]);

/** Decides what happens to a run's output. ran: the run has started. */
export function outputFate({ state }: Context, run: Run, exit_status: number, ran: boolean): FinishRequest["output"] {
  if (run.ending?.why === "discard") return "drop";
  // The only output of a run on a sister is the output of its tasks. But output that was kept here comes from an earlier run, for which this host was the first: it
  // belongs to the job.
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

/** Removes the note about kept output that was delivered, or removed with the run. */
export function outputGone({ state, actions }: Context, job: string): void {
  if (state.kept.delete(job)) actions.push({ kind: "note-kept", job, kept: false });
}

/** Drops output that is no longer needed (O1). */
export function dropOutput({ state, actions }: Context, job: string): void {
  if (!state.kept.delete(job)) return;
  const { home } = state.config.facts;
  actions.push({ kind: "purge", job, paths: [`${home}/spool/${outputName(job, "o")}`, `${home}/spool/${outputName(job, "e")}`] });
}

/** Removes the note after the file agent has removed the output. */
export function purged({ state, actions }: Context, job: string): void {
  // A later run may have kept its own output meanwhile.
  if (!state.kept.has(job)) actions.push({ kind: "note-kept", job, kept: false });
}

/** Whether the run does nothing more with its output. */
export const isOver = (run: Run): boolean => run.phase.name === "ended" || run.phase.name === "leaving";

/** Returns the jobs whose kept output is reported in the hello (O1). Jobs with a run under way are left out: the run itself takes care of the output. */
export function helloOutputs({ kept, runs }: MomState): Pick<MomHello, "outputs"> {
  const outputs = [...kept].filter((job) => {
    const run = runs.get(job);
    return run === undefined || isOver(run);
  });
  return outputs.length === 0 ? {} : { outputs };
}

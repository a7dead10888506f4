// The server's end (qterm): what becomes of running jobs, and when the shell may go.
//
// I1. While it ends the server starts no job and takes no request but status (15060).

import { SUBSTATE } from "#model/job-state.ts";
import { beginRerun, terminationOf } from "./job-end.ts";
import { isWithMom } from "./job-life.ts";
import { type Kernel, ownTransaction } from "./kernel.ts";
import { terminateJob } from "./mom-orders.ts";
import { setServerState } from "./sched-session.ts";

export function beginShutdown(
  kernel: Kernel,
  how: { readonly manner: "quick" | "delay" | "immediate"; readonly scheds: boolean; readonly moms: boolean },
): void {
  if (kernel.shutdown !== null && kernel.stopping === how.manner) return;
  kernel.stopping = how.manner;
  kernel.shutdown = how;
  setServerState(kernel);
  if (how.manner !== "quick")
    for (const job of [...kernel.state.jobs.values()]) if (isWithMom(job)) endRun(kernel, job.id, how.manner === "immediate");
  endWhenReady(kernel);
}

/** Jobs that can be rerun go back to the queue; the others run on, or are killed. */
function endRun(kernel: Kernel, id: string, all: boolean): void {
  const job = kernel.state.jobs.get(id);
  if (job === undefined || terminationOf(job) !== undefined || job.attrs.substate === SUBSTATE.RERUN) return;
  const tx = ownTransaction(kernel);
  if (job.attrs.Rerunable && job.attrs.job_state === "R") {
    beginRerun(tx, job);
    terminateJob(kernel, id, "rerun", false);
  } else if (all) {
    tx.apply({ kind: "job-changed", id, set: { termination: { by: `${tx.who.user}@${tx.who.host}`, history: true } }, unset: [] });
    terminateJob(kernel, id, "delete", false);
  }
}

/** Asked with every batch: the shell is told once, when nothing runs any more (quick: at once). */
export function endWhenReady(kernel: Kernel): void {
  if (kernel.shutdown === null || kernel.shutdown_told) return;
  const running = ["R", "S", "U", "E"].some((state) => kernel.state.counts.has(state));
  if (kernel.shutdown.manner !== "quick" && running) return;
  kernel.shutdown_told = true;
  if (kernel.shutdown.moms) for (const mom of kernel.moms.values()) kernel.out.moms.push({ link: mom.link, type: "mom-quit", data: {} });
  if (kernel.shutdown.scheds) {
    for (const runtime of kernel.scheds.values())
      if (runtime.link !== null) kernel.out.scheds.push({ link: runtime.link, type: "sched-quit", data: {} });
  }
  kernel.out.actions.push({ kind: "shutdown", ...kernel.shutdown });
}

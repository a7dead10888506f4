// The end of the server (qterm): what happens to running jobs, and when the shell may end.
//
//   A running job is checkpointed by its mom, if the site has a checkpoint script. Otherwise it is requeued, if it is rerunnable.
//   Otherwise it is killed (immediate), or the server waits for its end (delay).
//
// I1. While the server ends, it starts no job and accepts only status requests (it refuses all other requests with 15060).
// I2. A second qterm -t immediate ends the server at once. Jobs that could not be ended because their mom is not connected
//     are handled after the next start.

import type { Kernel } from "../engine/kernel.ts";
import { endRun } from "../jobs/last-runs.ts";
import { setServerState } from "../scheds/state.ts";
import { isWithMom } from "../state/job-phase.ts";

export function beginShutdown(
  kernel: Kernel,
  how: {
    readonly manner: "quick" | "delay" | "immediate";
    readonly scheds: boolean;
    readonly moms: boolean;
    readonly other?: "stop" | "idle";
  },
): void {
  if (kernel.ending.how !== null && kernel.ending.stopping === how.manner) {
    if (how.manner === "immediate") kernel.ending.how = { ...how, manner: "quick" };
    return endWhenReady(kernel);
  }
  kernel.ending.stopping = how.manner;
  kernel.ending.how = how;
  setServerState(kernel);
  if (how.manner !== "quick") for (const job of [...kernel.state.jobs.values()]) if (isWithMom(job)) endRun(kernel, job);
  endWhenReady(kernel);
}

/** Tells the daemon to end, once, when no job is running any more (with quick: at once). Called before each batch of rows and messages is sent. */
export function endWhenReady(kernel: Kernel): void {
  if (kernel.ending.how === null || kernel.ending.told) return;
  const running = ["R", "S", "U", "E"].some((state) => kernel.state.counts.has(state));
  if (kernel.ending.how.manner !== "quick" && running) return;
  kernel.ending.told = true;
  const data = {};
  if (kernel.ending.how.moms) for (const { link } of kernel.moms.by_host.values()) kernel.out.moms.push({ link, type: "mom-quit", data });
  if (kernel.ending.how.scheds) {
    for (const runtime of kernel.scheds.by_name.values())
      if (runtime.link !== null) kernel.out.scheds.push({ link: runtime.link, type: "sched-quit", data: {} });
  }
  kernel.out.actions.push({ kind: "shutdown", ...kernel.ending.how });
}

// The end of the server (qterm): what happens to running jobs, and when the shell may end.
//
//   A running job is checkpointed by its mom, if the site has a checkpoint script. Otherwise it is requeued, if it is rerunnable.
//   Otherwise it is killed (immediate), or the server waits for its end (delay).
//
// I1. While the server ends, it starts no job and accepts only status requests (it refuses all other requests with 15060).
// I2. A second qterm -t immediate ends the server at once. Jobs that could not be ended because their mom is not connected
//     are handled after the next start.
// I3. If the other server of the complex must end or stay idle too (qterm -f, -i), the other server gets its order first, because it
//     takes over as soon as this one has ended. If the order cannot be given, the request is refused, and this server goes on.

import type { Kernel } from "../engine/kernel.ts";
import type { ShutdownManner } from "../engine/transaction.ts";
import { endRun } from "../jobs/last-runs.ts";
import { setServerState } from "../scheds/state.ts";
import { isWithMom } from "../state/job-phase.ts";

/** Begins the end that waited for the order to the other server, and answers its request. */
export function otherOrdered(kernel: Kernel, token: number, how: ShutdownManner): void {
  beginShutdown(kernel, how);
  kernel.out.clients.push({ kind: "ok", token });
}

export function beginShutdown(kernel: Kernel, { manner, scheds, moms }: ShutdownManner): void {
  const how = { manner, scheds, moms };
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

// Runners whose jobs have ended in this batch: each gets its next job before the batch leaves (runners/hand-out.ts). If the server has none for it, its scheduler gets a cycle, as
// after the end of any other job. If it has one, the cycle waits: nothing has become free.
//
// F1. A list is renewed by a cycle at the latest REFILL_MS after a job of the list was started, and at once when little is left of the list.

import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import type { Kernel } from "../engine/kernel.ts";
import { handOut } from "../runners/hand-out.ts";
import { trigger } from "./cycles.ts";

const REFILL_MS = 1000;
/** A list is short when this part of it is left. */
const SHORT = 0.25;

/** Called before a batch leaves. */
export function giveJobs(kernel: Kernel): void {
  const { runners, timers, now_ms } = kernel;
  for (let freed = runners.freed.shift(); freed !== undefined; freed = runners.freed.shift()) {
    const { sched, ended } = freed;
    const given = handOut(kernel, ended);
    if (given === null || given.left < given.length * SHORT) trigger(kernel, sched, SCHED_COMMAND.TERM);
    else if (timers.at(`refill:${sched}`) === undefined) timers.set(`refill:${sched}`, now_ms + REFILL_MS);
  }
}

/** Called by the timer `refill`. */
export const refill = (kernel: Kernel, sched: string): void => trigger(kernel, sched, SCHED_COMMAND.TERM);

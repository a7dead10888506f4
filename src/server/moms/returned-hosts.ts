// Triggers a cycle for hosts whose mom connects again, or connects for the first time after the schedulers' first cycle.
// (When the server starts, moms and schedulers connect at the same time.) Without this cycle, jobs for which the last cycle
// found no free vnodes would wait up to scheduler_iteration (10 minutes), although the vnodes of such a host are free. In
// OpenPBS they wait.

import type { Kernel } from "../engine/kernel.ts";
import { partitionOf, schedOfPartition } from "../state/partitions.ts";
import type { Vnode } from "../state/state.ts";

/** Delay of the cycle. After a failure of a network switch many moms come back one after the other; one cycle serves all that come in this time. */
const GATHER_MS = 1000;

/** Called when vnodes can be used again: triggers their schedulers. A scheduler that is not connected yet sees them in its first cycle. */
export function vnodesBack(kernel: Kernel, vnodes: readonly Vnode[]): void {
  for (const vnode of vnodes) {
    const name = schedOfPartition(kernel.state, partitionOf(vnode))?.name ?? "";
    const timer = `accumulate:${name}`;
    if ((kernel.scheds.by_name.get(name)?.link ?? null) === null || kernel.timers.at(timer) !== undefined) continue;
    kernel.timers.set(timer, kernel.now_ms + GATHER_MS);
  }
}

// Hosts whose mom says a word again, or her first one after the schedulers' first cycle (at a start of the server both come back at the same time): what the
// last cycle found no room for would wait for scheduler_iteration, 10 minutes, beside free vnodes. PBS leaves it waiting; we trigger a cycle.

import type { Kernel } from "../engine/kernel.ts";
import { partitionOf, schedOfPartition } from "../state/partitions.ts";
import type { Vnode } from "../state/state.ts";

/** Moms come in one after the other, after a switch has failed all at once: one cycle for all of so long. */
const GATHER_MS = 1000;

/** Vnodes that can be used again; a scheduler that is not there yet sees them in its first cycle. */
export function vnodesBack(kernel: Kernel, vnodes: readonly Vnode[]): void {
  for (const vnode of vnodes) {
    const name = schedOfPartition(kernel.state, partitionOf(vnode))?.name ?? "";
    const timer = `accumulate:${name}`;
    if ((kernel.scheds.get(name)?.link ?? null) === null || kernel.timers.at(timer) !== undefined) continue;
    kernel.timers.set(timer, kernel.now_ms + GATHER_MS);
  }
}

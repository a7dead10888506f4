// The tap: a rate for clusters that do not tell how many of their resources are free. A tap lets a number of jobs pass, and
// closes while any of them waits. The number grows by half with each batch that is about as large as the number, and shrinks by
// a third in each cycle in which the tap has been closed for at least TAP_GRACE_S. Pure.

import type { Tap } from "../shapes/universe.ts";

const TAP_FIRST = 3;
export const TAP_MAX = 100;
const FACTOR = 1.5;
/** A tap that has been closed for less than this time keeps its rate. */
const TAP_GRACE_S = 60;

export const newTap = (): Tap => ({ rate: TAP_FIRST, closed_s: null, submitted: 0 });

/** Returns the tap after a look at the cluster. waiting: whether any job of the campaign waits there, or the cluster did not answer. */
export function tapAfterLook(tap: Tap, waiting: boolean, now_s: number): Tap {
  if (!waiting) return { ...tap, closed_s: null };
  if (tap.closed_s === null) return { ...tap, closed_s: now_s };
  if (now_s - tap.closed_s < TAP_GRACE_S) return tap;
  return { ...tap, rate: Math.max(TAP_FIRST, Math.floor(tap.rate / FACTOR)) };
}

/** Returns the number of jobs that the tap lets pass. */
export const tapFlow = ({ rate, closed_s }: Tap): number => (closed_s === null ? rate : 0);

/** Returns the tap after a batch of jobs was submitted. A batch much smaller than the rate does not raise it. */
export function tapAfterBatch(tap: Tap, submitted: number): Tap {
  const isTried = tap.rate < submitted * FACTOR + 1;
  return { ...tap, submitted, rate: isTried ? Math.min(TAP_MAX, Math.floor(tap.rate * FACTOR)) : tap.rate };
}

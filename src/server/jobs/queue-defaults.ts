// Values of a queue's attributes while they are unset.

import type { Queue } from "../state/state.ts";

const KILL_DELAY_S_DEFAULT = 10;

/** kill_delay: seconds between SIGTERM and SIGKILL of a job in the queue. */
export function killDelayOf(queue: Pick<Queue, "attrs"> | undefined): number {
  const delay_s = queue?.attrs["kill_delay"];
  return typeof delay_s === "number" ? delay_s : KILL_DELAY_S_DEFAULT;
}

// When a backend that failed is asked again. Pure.
//
// K1. The pause never ends the attempts: a backend is asked again for ever.
// K2. Faults that a person must remove are asked again after the longest pause at once, so that jobs continue without a command after the cause is gone.

import type { FaultKind } from "./fault.ts";

export const BACKOFF_FIRST_MS = 1000;
export const BACKOFF_MAX_MS = 60_000;

/**
 * Returns the pause (ms) before a backend is asked again. failures: how often it has failed in succession, at least 1. share: a random number from 0 to 1, so that many
 * complexes do not ask at the same moment.
 */
export function pauseAfter(kind: FaultKind, failures: number, share: number): number {
  const hopeful = kind === "transient" || kind === "limit";
  const full = hopeful ? Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** Math.min(failures - 1, 10)) : BACKOFF_MAX_MS;
  return Math.round(full * (0.75 + 0.25 * share));
}

// What the server knows about reservations beside their attributes: the requests that wait for an answer, and the schedulers
// that have refused a reservation. It is lost when the server ends.

export type ResvRuntime = {
  /** reservation id -> tokens of requests that wait for its outcome */
  readonly waiters: Map<string, number[]>;
  /** reservation id -> schedulers that have refused the present question about it (to confirm or alter it, or to find other vnodes) */
  readonly refusals: Map<string, Set<string>>;
  /** reservation id -> how often the server has refused a scheduler's confirmation */
  readonly vain_confirms: Map<string, number>;
};

export const noResvs = (): ResvRuntime => ({ waiters: new Map(), refusals: new Map(), vain_confirms: new Map() });

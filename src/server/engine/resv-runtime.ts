// The server's knowledge about reservations beside their attributes: the requests that wait for an answer, and the
// schedulers that have refused. It is lost when the server ends.

export type ResvRuntime = {
  /** reservation id -> tokens of requests that wait for its outcome */
  readonly waiters: Map<string, number[]>;
  /** reservation id -> schedulers that have refused the present question about it */
  readonly refusals: Map<string, Set<string>>;
  /** reservation id -> how often a scheduler's confirmation was refused */
  readonly vain_confirms: Map<string, number>;
};

export const noResvs = (): ResvRuntime => ({ waiters: new Map(), refusals: new Map(), vain_confirms: new Map() });

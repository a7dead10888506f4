// Decisions of a cycle are sent in parts while the cycle runs, so that the server carries them out meanwhile and the first jobs need not wait for
// the last.
//
// P1. Every decision is handed out exactly once, in one of the parts or after the last part, and the order is kept.

import type { Decision } from "#protocol/sched-link.ts";

/** A generator that hands out decisions while it works, and returns a result at its end. */
export type InParts<T> = Generator<readonly Decision[], T, undefined>;

export type CycleParts = {
  /** Returns whether there are enough decisions for a part, or enough time has passed since the last part. */
  isDue(): boolean;
  take(): readonly Decision[];
};

/** Number of decisions in a part, and the seconds after which a part is sent with fewer decisions. */
const PART_DECISIONS = 500;
const PART_S = 0.25;

/** Creates the parts of a cycle. decisions: a list that grows while the cycle runs. elapsed_s: returns the seconds since the beginning of the cycle. */
export function cycleParts(decisions: readonly Decision[], elapsed_s: () => number): CycleParts {
  let given = 0;
  let given_s = 0;
  return {
    isDue: () => decisions.length - given >= PART_DECISIONS || (decisions.length > given && elapsed_s() - given_s >= PART_S),
    take() {
      const part = decisions.slice(given);
      given = decisions.length;
      given_s = elapsed_s();
      return part;
    },
  };
}

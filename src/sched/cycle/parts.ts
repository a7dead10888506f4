// Decisions of a cycle are sent in parts while the cycle runs, so that they are carried out meanwhile and the first jobs do not wait for the last.
//
// P1. Every decision is in one part, or follows the last part; their order is kept.

import type { Decision } from "#protocol/sched-link.ts";

/** Work that hands out decisions before it is done. */
export type InParts<T> = Generator<readonly Decision[], T, undefined>;

export type CycleParts = {
  /** whether there are enough decisions, or enough time has passed since the last part */
  isDue(): boolean;
  take(): readonly Decision[];
};

/** Decisions of a part; fewer if the last part was sent long ago. */
const PART_DECISIONS = 500;
const PART_S = 0.25;

/** decisions: grows while the cycle runs. elapsed_s: since the beginning of the cycle. */
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

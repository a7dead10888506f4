// Decisions of a cycle under way, given away part by part, so that they are carried out while it goes on: whoever is started first does not wait for the last.
//
// P1. Every decision is in one part, or behind the last one; they are in order.

import type { Decision } from "#protocol/sched-link.ts";

/** Work that gives decisions away before it is done. */
export type InParts<T> = Generator<readonly Decision[], T, undefined>;

export type CycleParts = {
  /** enough decisions, or it has been long since the last part */
  isDue(): boolean;
  take(): readonly Decision[];
};

/** Decisions of a part; fewer when the last part is so long ago. */
const PART_DECISIONS = 500;
const PART_S = 0.25;

/** decisions: grows while the cycle goes on. elapsed_s: since its beginning. */
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

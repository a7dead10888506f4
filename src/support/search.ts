// Binary search in a sorted array. Pure.

import { present } from "./assert.ts";

/**
 * The position of the first element for which a condition holds. The condition must hold for all later elements too. Returns
 * the length of the array if it holds for none.
 */
export function firstPlace<T>(sorted: readonly T[], holds: (element: T) => boolean): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(present(sorted[middle], "element"))) high = middle;
    else low = middle + 1;
  }
  return low;
}

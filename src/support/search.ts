// Binary search in a sorted array. Pure.

import { present } from "./assert.ts";

/**
 * Returns the position of the first element for which a condition holds. The condition must also hold for all later
 * elements. If it holds for none, returns the length of the array.
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

// Binary search in an array that is in order. Pure.

/** The place of the first element for which a condition holds, which then holds for all after it; the length where it holds for none. */
export function firstPlace<T>(sorted: readonly T[], holds: (element: T) => boolean): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(sorted[middle] as T)) high = middle;
    else low = middle + 1;
  }
  return low;
}

// A binary heap in an array. Its first element is the smallest.

import { present } from "./assert.ts";

export function heapPush<T>(heap: T[], item: T, less: (a: T, b: T) => boolean): void {
  let at = heap.length;
  heap.push(item);
  while (at > 0) {
    const parent = (at - 1) >> 1;
    const above = present(heap[parent], "parent");
    if (!less(item, above)) break;
    heap[at] = above;
    at = parent;
  }
  heap[at] = item;
}

/** Removes and returns the smallest element, or undefined if the heap is empty. */
export function heapPop<T>(heap: T[], less: (a: T, b: T) => boolean): T | undefined {
  const top = heap[0];
  const last = heap.pop();
  if (heap.length > 0 && last !== undefined) siftDown(heap, last, less);
  return top;
}

/** Replaces the smallest element by `item`. */
export function heapReplace<T>(heap: T[], item: T, less: (a: T, b: T) => boolean): void {
  siftDown(heap, item, less);
}

function siftDown<T>(heap: T[], item: T, less: (a: T, b: T) => boolean): void {
  const size = heap.length;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= size) break;
    let below = present(heap[child], "child");
    if (child + 1 < size) {
      const other = present(heap[child + 1], "child");
      if (less(other, below)) {
        below = other;
        child++;
      }
    }
    if (!less(below, item)) break;
    heap[at] = below;
    at = child;
  }
  heap[at] = item;
}

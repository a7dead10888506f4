// A binary heap in an array: the smallest element first.

export function heapPush<T>(heap: T[], item: T, less: (a: T, b: T) => boolean): void {
  let at = heap.length;
  heap.push(item);
  while (at > 0) {
    const parent = (at - 1) >> 1;
    const above = heap[parent] as T;
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
  if (heap.length > 0) siftDown(heap, last as T, less);
  return top;
}

/** Replaces the smallest element by another one. */
export function heapReplace<T>(heap: T[], item: T, less: (a: T, b: T) => boolean): void {
  siftDown(heap, item, less);
}

function siftDown<T>(heap: T[], item: T, less: (a: T, b: T) => boolean): void {
  const size = heap.length;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= size) break;
    if (child + 1 < size && less(heap[child + 1] as T, heap[child] as T)) child++;
    const below = heap[child] as T;
    if (!less(below, item)) break;
    heap[at] = below;
    at = child;
  }
  heap[at] = item;
}

// How the C library keeps memory that native code has freed. Node's threads, SQLite and the bindings of SQLite allocate with malloc, and V8 has no part in it.
//
// glibc raises its threshold for mmap(2) to the largest block that was ever freed (up to 32 MiB). Blocks below the threshold come from arenas, one per
// thread, and a free block in the middle of an arena stays resident. A few requests with megabytes of text therefore leave hundreds of megabytes behind.
// A threshold that a program sets itself stays fixed: larger blocks are mappings of their own, which free(3) gives back to the kernel at once.

import { libc } from "./libc.ts";

const M_TRIM_THRESHOLD = -1;
const M_MMAP_THRESHOLD = -3;

/** Socket buffers (64 KiB) and SQLite's pages (8 KiB) are smaller, so they stay in the arenas. */
const MMAP_BYTES_MIN = 256 * 1024;
/**
 * Free memory kept at the end of an arena. A fixed mmap threshold would leave this value at 128 KiB, and programs would grow
 * and trim in turn.
 */
const KEPT_BYTES_MAX = 2 * 1024 * 1024;

/**
 * Makes free(3) return large blocks to the kernel from now on. Returns false if the C library has no such setting (mallopt(3)
 * is specific to glibc).
 */
export function returnLargeBlocks(): boolean {
  try {
    const mallopt = libc().libc.func("int mallopt(int parameter, int value)") as (parameter: number, value: number) => number;
    return mallopt(M_MMAP_THRESHOLD, MMAP_BYTES_MIN) === 1 && mallopt(M_TRIM_THRESHOLD, KEPT_BYTES_MAX) === 1;
  } catch {
    return false;
  }
}

// Limits the memory that the C library keeps after native code has freed it. Threads of Node.js, SQLite and its bindings allocate with malloc; V8 does not.
//
// glibc raises its threshold for mmap(2) to the largest block that was ever freed (up to 32 MiB). Blocks below the threshold come from arenas, one per thread,
// and a free block in the middle of an arena stays in memory. A few requests with megabytes of text therefore leave hundreds of megabytes behind. A threshold
// that a program sets itself stays fixed: a larger block is a mapping of its own, which free(3) gives back to the kernel at once.

import { libc } from "./libc.ts";

const M_TRIM_THRESHOLD = -1;
const M_MMAP_THRESHOLD = -3;

/** Blocks from this size on are mappings of their own. Socket buffers (64 KiB) and SQLite's pages (8 KiB) are smaller and stay in the arenas. */
const MMAP_BYTES_MIN = 256 * 1024;
/**
 * Free memory that is kept at the end of an arena. Once the mmap threshold is set, the default of this value would stay at 128 KiB, so that arenas would grow
 * and shrink all the time.
 */
const KEPT_BYTES_MAX = 2 * 1024 * 1024;

/** Makes free(3) return large blocks to the kernel from now on. Returns false if the C library has no such setting: mallopt(3) exists only in glibc. */
export function returnLargeBlocks(): boolean {
  try {
    const mallopt = libc().libc.func("int mallopt(int parameter, int value)") as (parameter: number, value: number) => number;
    return mallopt(M_MMAP_THRESHOLD, MMAP_BYTES_MIN) === 1 && mallopt(M_TRIM_THRESHOLD, KEPT_BYTES_MAX) === 1;
  } catch {
    return false;
  }
}

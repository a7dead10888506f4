import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

const BLOCKS = 60;
const BLOCK_BYTES = 1024 * 1024;
const BEHIND_BYTES = 64 * 1024;
const LARGE_KB = (BLOCKS * BLOCK_BYTES) / 1024;
const SMALL_KB = (BLOCKS * BEHIND_BYTES) / 1024;

/** Allocates large blocks with a small one behind each, frees the large ones, and prints what remains resident, in KiB. */
const program = (fixed: boolean): string => `
  import { readFileSync } from "node:fs";
  import { libc } from "#support/libc/libc.ts";
  import { returnLargeBlocks } from "#support/libc/large-blocks.ts";
  const c = libc().libc;
  const malloc = c.func("void *malloc(size_t bytes)");
  const fill = c.func("void *memset(void *block, int byte, size_t bytes)");
  const free = c.func("void free(void *block)");
  const filled = (bytes) => fill(malloc(bytes), 1, bytes);
  const resident = () => Number(/^VmRSS:\\s*(\\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))[1]);
  const done = ${fixed} ? returnLargeBlocks() : true;
  // A freed block of that size raises the threshold of a C library that is left to itself.
  free(filled(${2 * BLOCK_BYTES}));
  const before = resident();
  const blocks = Array.from({ length: ${BLOCKS} }, () => [filled(${BLOCK_BYTES}), filled(${BEHIND_BYTES})]);
  for (const [large] of blocks) free(large);
  console.log(JSON.stringify({ done, kB: resident() - before }));
`;

const run = (fixed: boolean): { readonly done: boolean; readonly kB: number } => {
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module-typescript", "--eval", program(fixed)], {
    encoding: "utf8",
  });
  assert.notEqual(stdout, "", stderr);
  return JSON.parse(stdout);
};

test("large blocks that native code frees go back to the kernel, though small ones behind them stay", () => {
  const { done, kB } = run(true);
  assert.equal(done, true);
  assert.ok(kB < SMALL_KB + LARGE_KB / 10, `${kB} kB of ${LARGE_KB} kB remain`);
});

test("a C library that is left to itself keeps them", () => {
  const { kB } = run(false);
  assert.ok(kB > LARGE_KB / 2, `${kB} kB of ${LARGE_KB} kB remain`);
});

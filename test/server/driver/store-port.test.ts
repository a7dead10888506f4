// The port of a store: which faults of a load the server survives.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { LoadedState, Result } from "#server/driver/ports.ts";
import { type Settle, storePort } from "#server/driver/store-port.ts";
import { memoryStore } from "#store/memory-store.ts";
import { StoreError, type StoreFault } from "#store/store.ts";

/** Loads from a store that fails. Returns what the port passes on; rejects with the error that ends the program. */
async function loadOf(error: Error, is_closed = false): Promise<Result<LoadedState> | null> {
  let under_way: Promise<void> = Promise.resolve();
  const settle: Settle = (ask, done) => {
    under_way = ask().then(
      (value) => done({ ok: true, value }),
      (failure: Error) => done({ ok: false, error: failure }),
    );
  };
  const port = storePort({ ...memoryStore(), load: () => Promise.reject(error) }, "svr", settle);
  let passed: Result<LoadedState> | null = null;
  if (is_closed) port.close(() => undefined);
  port.load((result) => {
    passed = result;
  });
  await under_way;
  return passed;
}

for (const fault of ["away", "io", "permission", "disk-full", "locked"] satisfies StoreFault[])
  test(`store port: a load with the fault ${fault} can be tried again`, async () => {
    const error = new StoreError(fault, "planted");
    assert.deepEqual(await loadOf(error), { ok: false, error });
  });

for (const fault of ["corrupt", "newer", "lost", "deposed"] satisfies StoreFault[])
  test(`store port: a load with the fault ${fault} ends the program`, async () => {
    await assert.rejects(loadOf(new StoreError(fault, "planted")), /planted/);
  });

test("store port: an error in the program ends it; an error of a load from a closed store is ignored", async () => {
  await assert.rejects(loadOf(new TypeError("planted")), TypeError);
  assert.equal(await loadOf(new TypeError("planted"), true), null);
});

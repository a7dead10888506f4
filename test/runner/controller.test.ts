// When the controller ends because the server does not need it any more (src/runner/controller.ts).

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Backend, RunnerSighting } from "#backends/contract/backend.ts";
import { BackendError } from "#backends/contract/fault.ts";
import { makeTag } from "#backends/contract/tag.ts";
import type { ServerToRunners } from "#protocol/runner-link.ts";
import { Controller } from "#runner/controller.ts";

type Work = ServerToRunners["runners-work"];
const LONG_MS = 1_000_000;

/** A controller with one backend, whose list is what `list` returns. It has looked at its backend while that was enabled. */
async function bed(t: TestContext, list: () => readonly RunnerSighting[], leave_ms_max: number) {
  const directory = mkdtempSync(join(tmpdir(), "partita-controller-"));
  const ended = Promise.withResolvers<void>();
  let looks = 0;
  let is_over = false;
  const backend: Backend = {
    type: "slurm",
    submit: async () => [],
    list: async () => {
      looks++;
      return list();
    },
    cancel: async () => undefined,
    probe: async () => ({ text: "", array_max: 1 }),
    release: async () => undefined,
    close: async () => undefined,
  };
  const controller = new Controller({
    ...{ complex: "c", user: "me", directory, argv: ["/bin/runner"], env: {}, leave_ms_max },
    ownerOf: () => null,
    open: () => backend,
    note: () => undefined,
    send: () => undefined,
    finished: () => {
      is_over = true;
      ended.resolve();
    },
  });
  t.after(async () => {
    await controller.close();
    rmSync(directory, { recursive: true });
  });
  const work = (enabled: boolean): void => {
    const attrs = { type: "slurm", enabled, fallback: "hold", runner_resync_interval: 3600 };
    const data: Work = { backends: [{ name: "sl", partition: "p1", attrs }], demands: [], runners: [] };
    assert.ok(controller.hear({ type: "runners-work", data }));
  };
  const quit = (): void => void assert.ok(controller.hear({ type: "runners-quit", data: {} }));
  /** Waits until the backend was asked again after this call, and everything that follows is done. */
  const looked = async (): Promise<void> => {
    const before = looks;
    while (looks === before) await new Promise(setImmediate);
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
  };
  const [first] = [looked(), work(true)];
  await first;
  return { work, quit, looked, ended: ended.promise, isOver: () => is_over };
}

const runner: RunnerSighting = {
  ...{ tag: makeTag({ complex: "c", backend: "sl", serial: 1 }), index: 0, id: "1_0", state: "running" },
  ...{ reason: "", user: null, host: null, ending: null, fault: null },
};

test("controller: it ends when it is told to and the backend has no runner left, not sooner", async (t) => {
  let shown: readonly RunnerSighting[] = [runner];
  const c = await bed(t, () => shown, LONG_MS);
  const [look] = [c.looked(), c.work(false), c.quit()];
  await look;
  assert.ok(!c.isOver(), "a runner is left");
  shown = [];
  c.work(false);
  c.quit();
  await c.ended;
});

test("controller: it stays if a backend is enabled again", async (t) => {
  let shown: readonly RunnerSighting[] = [runner];
  const c = await bed(t, () => shown, LONG_MS);
  const [look] = [c.looked(), c.work(false), c.quit()];
  await look;
  shown = [];
  const [again] = [c.looked(), c.work(true)];
  await again;
  assert.ok(!c.isOver());
});

test("controller: a backend that fails does not keep it for ever", async (t) => {
  const failing = (): never => {
    throw new BackendError({ kind: "transient", text: "no answer" });
  };
  const c = await bed(t, failing, 50);
  assert.ok(!c.isOver());
  c.work(false);
  c.quit();
  await c.ended;
});

// The adapter for LSF against a stand-in for LSF's commands (test/backends/lsf/stand-in.mjs), which was written from its documentation. No real LSF was used.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Backend } from "#backends/contract/backend.ts";
import { BackendError } from "#backends/contract/fault.ts";
import { openBackend } from "#backends/open-backend.ts";
import type { AttributeValue } from "#model/attribute.ts";
import { order, request } from "../../backends/order.ts";
import { until } from "../complex.ts";
import { installStandIn } from "./lsf-bed.ts";
import { writer, written } from "./runner-script.ts";

type Bed = { readonly dir: string; readonly lsf: string; readonly open: (attributes?: Record<string, AttributeValue>) => Backend };

function bed(t: TestContext): Bed {
  const dir = mkdtempSync(join(tmpdir(), "partita-lsf-"));
  const { lsf, bin } = installStandIn(dir);
  const opened: Backend[] = [];
  t.after(async () => {
    await opened[0]?.cancel((await opened[0].list()).filter(({ state }) => state !== "ended"));
    for (const backend of opened) await backend.close();
    rmSync(dir, { recursive: true, force: true });
  });
  const open = (attributes: Record<string, AttributeValue> = {}): Backend => {
    const backend = openBackend({
      name: "b",
      type: "lsf",
      complex: "k1",
      user: userInfo().username,
      attributes: { bin, ...attributes },
      state_dir: dir,
    });
    opened.push(backend);
    return backend;
  };
  return { dir, lsf, open };
}

test("runners are elements of an array of LSF, found by their tag, and gone when they are cancelled", async (t) => {
  const { dir, open } = bed(t);
  const lsf = open();
  assert.match((await lsf.probe()).text, /^lsf: queues normal Open:Active/);
  assert.deepEqual(await lsf.list(), []);
  const asked = order({ count: 3, argv: writer(dir) });
  const submitted = await lsf.submit(asked);
  for (const index of [0, 1])
    assert.equal((await until(`runner ${index}`, () => written(dir, asked.tag, index))).split("\n")[1], `secret-${index}`);
  const seen = await lsf.list();
  assert.deepEqual(
    seen.map(({ id, state }) => [id, state]),
    submitted.map(({ id }, index) => [id, index < 2 ? "running" : "queued"]),
  );
  assert.deepEqual(
    (await lsf.submit({ ...asked, isFirst: false })).map(({ id }) => id),
    submitted.map(({ id }) => id),
  );
  await lsf.cancel(seen, { queued_only: true });
  assert.deepEqual(
    (await lsf.list()).map(({ state, ending }) => [state, ending]),
    [
      ["running", null],
      ["running", null],
      ["ended", "retry"],
    ],
  );
  writeFileSync(join(dir, "go"), "");
  await until("the end", async () => (await lsf.list()).filter(({ ending }) => ending === "done").length === 2);
  await lsf.cancel(await lsf.list());
});

test("B1: a bsub that hangs after its work is not repeated", async (t) => {
  const { dir, lsf: state, open } = bed(t);
  const asked = order({ argv: writer(dir) });
  writeFileSync(join(state, "hang"), "yes");
  await assert.rejects(open({ command_timeout: 5 }).submit(asked), (error) => {
    assert.ok(error instanceof BackendError, String(error));
    assert.match(error.message, /bsub did not answer within 5 s/);
    return error.kind === "transient" && error.uncertain;
  });
  unlinkSync(join(state, "hang"));
  const lsf = open();
  // On a busy machine bsub may have been killed before its work: then the second submission is the first that LSF sees.
  for (let round = 0; round < 2; round++) assert.equal((await lsf.submit({ ...asked, isFirst: false })).length, 1);
  await until("the runner", () => written(dir, asked.tag, 0));
  assert.equal((await lsf.list()).filter(({ state: each }) => each === "running").length, 1);
});

test("what LSF refuses is told in its words, by kind; a queue that is closed is known before", async (t) => {
  const { lsf: state, open } = bed(t);
  const lsf = open();
  const failure = async (ask: () => Promise<unknown>): Promise<string> => {
    try {
      await ask();
      return "accepted";
    } catch (error) {
      assert.ok(error instanceof BackendError, String(error));
      return `${error.kind}: ${error.message}`;
    }
  };
  assert.match(await failure(() => open({ remote_queue: "nosuch" }).submit(order())), /^configuration: nosuch: No such queue/);
  assert.match(
    await failure(() => open({ remote_queue: "nosuch" }).probe()),
    /^configuration: there is no queue nosuch; there are: normal long shut/,
  );
  assert.match(await failure(() => open({ remote_queue: "shut" }).probe()), /^configuration: queue shut is Closed:Active/);
  assert.match(
    await failure(() => lsf.submit(order({ request: request({ walltime_s: 7200 }) }))),
    /^impossible: RUNLIMIT: Cannot exceed queue's hard limit/,
  );
  assert.match(
    await failure(() => lsf.submit(order({ request: request({ resources: { nosuch: 1 } }) }))),
    /^impossible: Bad resource requirement/,
  );
  assert.match(await failure(() => lsf.submit(order({ count: 30 }))), /^limit: Pending job threshold reached/);
  writeFileSync(join(state, "down"), "yes");
  assert.match(await failure(() => lsf.list()), /^transient: LSF is down/);
  unlinkSync(join(state, "down"));
  assert.deepEqual(await lsf.list(), []);
});

// The adapter for another PBS complex against a second complex of ours.

import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { dirname, join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import type { Backend } from "#backends/contract/backend.ts";
import { BackendError } from "#backends/contract/fault.ts";
import { openBackend } from "#backends/open-backend.ts";
import type { AttributeValue } from "#model/attribute.ts";
import { order, request } from "../../backends/order.ts";
import { type Complex, startComplex, until } from "../complex.ts";
import { writer, written } from "./runner-script.ts";

let complex: Complex;

before(async () => {
  complex = await startComplex();
  complex.qmgr("set server job_history_enable=True", "set node @default resources_available.ncpus=2");
});
after(() => complex.stop());

function bed(t: TestContext): { readonly dir: string; readonly open: (attributes?: Record<string, AttributeValue>) => Backend } {
  const dir = mkdtempSync(join(tmpdir(), "partita-pbs-"));
  chmodSync(dir, 0o755);
  const opened: Backend[] = [];
  t.after(async () => {
    await opened[0]?.cancel((await opened[0].list()).filter(({ state }) => state !== "ended"));
    for (const backend of opened) await backend.close();
    rmSync(dir, { recursive: true, force: true });
  });
  const open = (attributes: Record<string, AttributeValue> = {}): Backend => {
    const config = complex.env()["PBS_CONF_FILE"] ?? "";
    const bin = dirname(complex.command("qsub"));
    const backend = openBackend({
      name: "b",
      type: "pbs",
      complex: "k1",
      user: userInfo().username,
      attributes: { bin, config, ...attributes },
      state_dir: dir,
    });
    opened.push(backend);
    return backend;
  };
  return { dir, open };
}

test("runners are jobs of the other complex, found by their tag, and gone when they are cancelled", async (t) => {
  const { dir, open } = bed(t);
  const pbs = open();
  assert.match((await pbs.probe()).text, /^pbs \d/);
  const asked = order({ tag: "k1.b.1", count: 3, argv: writer(dir) });
  const submitted = await pbs.submit(asked);
  for (const index of [0, 1]) {
    const lines = (await until(`runner ${index}`, () => written(dir, asked.tag, index))).split("\n");
    assert.equal(lines[1], `secret-${index}`);
  }
  const seen = await pbs.list();
  assert.deepEqual(
    seen.map(({ id }) => id).sort(),
    submitted.map(({ id }) => id),
  );
  assert.deepEqual(seen.map(({ state }) => state).sort(), ["queued", "running", "running"]);
  const again = await pbs.submit({ ...asked, isFirst: false });
  assert.deepEqual(
    again.map(({ id }) => id).sort(),
    submitted.map(({ id }) => id),
  );
  await pbs.reschedule?.(seen, { start_s: null, priority: -7 });
  assert.equal(complex.job(submitted[0]?.id.replace(/\[\d+\]/, "[]") ?? "")["Priority"], -7);
  await pbs.cancel(seen, { queued_only: true });
  await until("two runners", async () => (await pbs.list()).filter(({ state }) => state === "queued").length === 0);
  writeFileSync(join(dir, "go"), "");
  await until("no runner", async () => (await pbs.list()).every(({ state }) => state === "ended"));
  assert.ok(
    (await pbs.submit({ ...asked, isFirst: false })).every(({ state }) => state === "ended"),
    "a tag whose runners have ended is not submitted again",
  );
  await pbs.release(asked.tag);
});

test("B1: a submission to another complex that is stopped is not repeated", async (t) => {
  const { dir, open } = bed(t);
  const hasty = open({ command_timeout: 3 });
  const pid = complex.pid("server");
  assert.ok(pid !== null);
  const asked = order({ tag: "k1.b.2", argv: writer(dir) });
  process.kill(pid, "SIGSTOP");
  try {
    await assert.rejects(hasty.submit(asked), (error) => error instanceof BackendError && error.kind === "transient" && error.uncertain);
  } finally {
    process.kill(pid, "SIGCONT");
  }
  const patient = open();
  await patient.submit({ ...asked, isFirst: false });
  await patient.submit({ ...asked, isFirst: false });
  await until("the runner", () => written(dir, asked.tag, 0));
  const live = await until("one runner", async () => {
    const all = (await patient.list()).filter(({ tag, state }) => tag === asked.tag && state !== "ended");
    return all.length === 1 && all;
  });
  await patient.cancel(live);
});

test("what the other complex refuses, or cannot run, is told in its words", async (t) => {
  const { open } = bed(t);
  const pbs = open();
  const refusal = async (parts: Parameters<typeof request>[0], with_ = pbs): Promise<string> => {
    try {
      await with_.submit(order({ tag: "k1.b.3", request: request(parts) }));
      return "accepted";
    } catch (error) {
      assert.ok(error instanceof BackendError, String(error));
      return `${error.kind}: ${error.message}`;
    }
  };
  assert.match(await refusal({ resources: { nosuch: 1 } }), /^impossible: .*Unknown resource/);
  assert.match(await refusal({}, open({ remote_queue: "nosuch" })), /^configuration: .*Unknown queue/);
  assert.match(await refusal({}, open({ config: "/nonexistent" })), /^(configuration|transient): /);
  const asked = order({ tag: "k1.b.4", request: request({ ncpus: 64 }) });
  await pbs.submit(asked);
  const waits = await until("the reason", async () => (await pbs.list()).find(({ tag, fault }) => tag === asked.tag && fault !== null));
  assert.match(waits.fault?.text ?? "", /^Can Never Run/);
  assert.equal(waits.fault?.kind, "impossible");
  assert.doesNotMatch(readFileSync("/proc/self/environ", "latin1"), /secret-0/);
});

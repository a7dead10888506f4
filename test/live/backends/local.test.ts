// The local backend with real processes: it starts what fits, finds its runners after its own end, and starts no runner twice.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Backend, RunnerSighting } from "#backends/contract/backend.ts";
import { openBackend } from "#backends/open-backend.ts";
import { ownerOf } from "#backends/shell/users.ts";
import type { AttributeValue } from "#model/attribute.ts";
import { order, request } from "../../backends/order.ts";
import { until } from "../complex.ts";
import { lackOfUsers } from "../needed-users.ts";

function bed(t: TestContext): { readonly dir: string; readonly open: (attributes?: Record<string, AttributeValue>) => Backend } {
  const dir = mkdtempSync(join(tmpdir(), "partita-local-"));
  const opened: Backend[] = [];
  t.after(async () => {
    for (const backend of opened) {
      await backend.cancel(await backend.list());
      await backend.close();
    }
    rmSync(dir, { recursive: true, force: true });
  });
  const open = (attributes: Record<string, AttributeValue> = { resources_available: { ncpus: 2 } }): Backend => {
    const backend = openBackend({ name: "b", type: "local", complex: "k1", user: "me", attributes, state_dir: dir });
    opened.push(backend);
    return backend;
  };
  return { dir, open };
}

const states = (runners: readonly RunnerSighting[]): string => runners.map(({ state }) => state).join(" ");

test("runners start as far as they fit, the next when one ends, and the last leaves nothing", async (t) => {
  const { dir, open } = bed(t);
  const backend = open();
  const runners = await backend.submit(order({ count: 3 }));
  assert.equal(states(runners), "running running queued");
  assert.match(runners[2]?.reason ?? "", /free resources/);
  await backend.cancel(runners.slice(0, 1));
  await until("the state of the runners", async () => states(await backend.list()) === "ended running running");
  await backend.cancel(await backend.list());
  await until("the state of the runners", async () => states(await backend.list()) === "ended ended ended");
  await backend.release("k1.b.1");
  assert.deepEqual(await backend.list(), []);
  assert.equal(existsSync(join(dir, "tokens", "k1.b.1")), false);
});

test("B1: the same tag is not started twice, also by a backend that was opened anew", async (t) => {
  const { dir, open } = bed(t);
  const first = open();
  const before = await first.submit(order({ count: 2 }));
  await first.close();
  const second = open();
  const after = await second.submit(order({ count: 2, isFirst: false }));
  assert.deepEqual(
    after.map(({ id }) => id),
    before.map(({ id }) => id),
  );
  assert.equal(states(after), "running running");
  // A record that lacks the processes is what remains if the controller is killed between a start and its record.
  await second.close();
  const path = join(dir, "orders", "k1.b.1.json");
  const record = JSON.parse(readFileSync(path, "utf8"));
  writeFileSync(path, JSON.stringify({ ...record, runners: record.runners.map(() => ({ state: "queued", process: null })) }));
  const third = await open().list();
  assert.deepEqual(
    third.map(({ id }) => id),
    before.map(({ id }) => id),
  );
});

test("a runner finds its tag, index and token; the token is in no environment and in no other file", async (t) => {
  const { dir, open } = bed(t);
  const out = join(dir, "out");
  const script = `{ env; stat -c %a "$PARTITA_RUNNER_TOKEN_FILE"; cat "$PARTITA_RUNNER_TOKEN_FILE"; } > ${out}.tmp; mv ${out}.tmp ${out}`;
  const backend = open();
  await backend.submit(order({ argv: ["/bin/sh", "-c", script], env: { A_B: "x y'z" }, tokens: ["geheim"] }));
  await until("the state of the runners", async () => existsSync(out));
  const text = readFileSync(out, "utf8");
  assert.match(text, /^PARTITA_RUNNER_TAG=k1\.b\.1$/m);
  assert.match(text, /^PARTITA_RUNNER_INDEX=0$/m);
  assert.match(text, /^A_B=x y'z$/m);
  assert.match(text, /\n600\ngeheim$/);
  assert.doesNotMatch(text, /=geheim/);
  assert.doesNotMatch(readFileSync(join(dir, "orders", "k1.b.1.json"), "utf8"), /geheim/);
  assert.equal(statSync(join(dir, "tokens")).mode & 0o777, 0o711);
});

test("a program that is missing is told, and the runner starts when it is there", async (t) => {
  const { open } = bed(t);
  const backend = open();
  await backend.submit(order({ argv: ["/nonexistent/runner"] }));
  await until("the state of the runners", async () => {
    const [runner] = await backend.list();
    return runner?.state === "queued" && runner.fault?.kind === "configuration" && /ENOENT/.test(runner.reason);
  });
});

test("cancelling only queued runners leaves those that run", async (t) => {
  const { open } = bed(t);
  const backend = open();
  const runners = await backend.submit(order({ count: 3 }));
  await backend.cancel(runners, { queued_only: true });
  assert.equal(states(await backend.list()), "running running ended");
  await assert.rejects(backend.release("k1.b.1"), /have not ended/);
});

test("what the machine can never give is impossible", async (t) => {
  const { open } = bed(t);
  const backend = open();
  await assert.rejects(backend.submit(order({ request: request({ ncpus: 3 }) })), {
    kind: "impossible",
    message: /3 of ncpus wanted, 2 there/,
  });
  assert.deepEqual(await backend.list(), []);
});

test("a runner that stays beyond its walltime is ended", async (t) => {
  const { open } = bed(t);
  const backend = open();
  await backend.submit(order({ request: request({ walltime_s: -29 }) }));
  await until("the state of the runners", async () => states(await backend.list()) === "ended");
});

const lack = lackOfUsers("pbsuser1", "pbsuser2");
test("in system mode, a process with the environment of a runner is adopted only if it belongs to the runner's user", {
  skip: lack,
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "partita-local-"));
  const [one, two] = ["pbsuser1", "pbsuser2"].map((name) => ownerOf(name));
  assert.ok(one && two);
  const settings = {
    name: "b",
    type: "local",
    complex: "k1",
    user: null,
    attributes: { resources_available: { ncpus: 2 } },
    state_dir: dir,
  } as const;
  const first = openBackend(settings);
  const opened = [first];
  const env = { PARTITA_RUNNER_TAG: "k1.b.1", PARTITA_RUNNER_INDEX: "0" };
  const forged = spawn("/bin/sleep", ["600"], { detached: true, stdio: "ignore", env, uid: two.uid, gid: two.gid });
  t.after(async () => {
    forged.kill("SIGKILL");
    for (const backend of opened) {
      await backend.cancel(await backend.list());
      await backend.close();
    }
    rmSync(dir, { recursive: true, force: true });
  });
  const argv = ["/bin/sleep", "600"];
  const [runner] = await first.submit(order({ owner: one, argv }));
  assert.equal(runner?.state, "running");
  await first.close();
  // What remains if the controller is killed between the start of the process and its record.
  const path = join(dir, "orders", "k1.b.1.json");
  const record = JSON.parse(readFileSync(path, "utf8"));
  writeFileSync(path, JSON.stringify({ ...record, runners: [{ state: "queued", process: null }] }));
  const second = openBackend(settings);
  opened.push(second);
  const [found] = await second.list();
  assert.deepEqual([found?.state, found?.id], ["running", runner.id]);
  assert.notEqual(found?.id, String(forged.pid));
  // With the true runner gone, the forged process does not take its place either: the order is started.
  await second.cancel(await second.list());
  await until("the runner has ended", async () => states(await second.list()) === "ended");
  await second.close();
  writeFileSync(path, JSON.stringify({ ...record, runners: [{ state: "queued", process: null }] }));
  const third = openBackend(settings);
  opened.push(third);
  const [anew] = await third.list();
  assert.equal(anew?.state, "running");
  assert.ok(![runner.id, String(forged.pid)].includes(anew?.id ?? ""), "a new process was started");
});

// The server's shell with a real socket and a store that fails on request: the server answers nothing that is not written, and
// continues.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { connectServer, type ServerConnection } from "#protocol/client.ts";
import type { Request } from "#protocol/messages.ts";
import type { Reply } from "#protocol/wire/reply.ts";
import type { Core } from "#server/core/core.ts";
import { prepareStart } from "#server/core/first-start.ts";
import { loadFromStore } from "#server/driver/store-port.ts";
import { startService } from "#server/shell/service.ts";
import { type MemoryStore, memoryStore } from "#store/memory-store.ts";
import { openAccounting } from "#support/accounting-log.ts";
import { present } from "#support/assert.ts";
import { makeConf, thisMachine } from "#support/conf.ts";
import { openLog } from "#support/log.ts";
import { systemUsers } from "#support/passwd.ts";

type World = {
  readonly home: string;
  readonly core: Core;
  readonly client: ServerConnection;
  readonly store: MemoryStore;
  readonly connect: () => Promise<ServerConnection>;
};

/** A server in user mode with a separate socket, without scheduler and mom. */
async function world(t: TestContext, store = memoryStore()): Promise<World> {
  const home = mkdtempSync(join(tmpdir(), "partita-service-"));
  mkdirSync(join(home, "server_priv"), { mode: 0o750 });
  const conf = makeConf(
    "",
    `PBS_HOME=${home}\nPBS_EXEC=${home}\nPBS_SERVER=svr\nPARTITA_MODE=user\n`,
    {},
    { ...thisMachine(), hostname: "svr" },
  );
  const log = openLog({ dir: join(home, "server_logs"), daemon: "Server@svr" });
  const accounting = openAccounting({ dir: join(home, "server_priv/accounting") });
  const users = systemUsers();
  const config = {
    host: "svr",
    home,
    pbs_version: "x",
    own_user: userInfo().username,
    ctime: String,
    timeZone: () => null,
    userExists: () => true,
  };
  const loaded = await loadFromStore(store, "svr");
  let ended = (): void => undefined;
  const end = new Promise<void>((resolve) => {
    ended = resolve;
  });
  let first_core: Core | null = null;
  const service = await startService({
    conf,
    config,
    store,
    log,
    accounting,
    users,
    loaded,
    pair: null,
    ended,
    prepare(core) {
      first_core = core;
      prepareStart(core, { start: "warm", fresh: loaded.state.scheds.size === 0, node: null, scheduling: false });
    },
  });
  const client = await connectServer({ home });
  t.after(async () => {
    client.close();
    service.stop();
    await end;
    accounting.close();
    log.close();
    rmSync(home, { recursive: true, force: true });
  });
  return { home, core: present<Core>(first_core, "core"), client, store, connect: () => connectServer({ home }) };
}

const submission: Request = { kind: "queue-job", destination: "", attrs: [{ name: "Job_Name", value: "x" }], script: "#!/bin/sh\n" };
const submit = (client: ServerConnection): Promise<Reply> => client.request(submission);
const idOf = (reply: Reply): string => (reply.ok ? (reply.value as { id: string }).id : JSON.stringify(reply));

async function jobs(client: ServerConnection): Promise<string[]> {
  const ids: string[] = [];
  const reply = await client.request(
    { kind: "status", object: "job", ids: [] },
    { onPart: (items) => void ids.push(...items.map((item) => (item as { id: string }).id)) },
  );
  assert.ok(reply.ok, JSON.stringify(reply));
  return ids;
}

/** After a fault the server reads its state again for a moment, so the request is repeated. */
async function submitUntilTaken(client: ServerConnection): Promise<string> {
  for (;;) {
    const reply = await submit(client);
    if (reply.ok) return idOf(reply);
    assert.equal(reply.code, 15010, JSON.stringify(reply));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test("resourcedef has a custom resource before qmgr is answered", async (t) => {
  const { client, home } = await world(t);
  const resourcedef = (): string => readFileSync(join(home, "server_priv/resourcedef"), "utf8");
  assert.equal(resourcedef(), "");
  const attrs = [
    { name: "type", op: "=", value: "long" },
    { name: "flag", op: "=", value: "nh" },
  ] as const;
  const about = { kind: "manager", object: "resource", name: "gpus" } as const;
  assert.ok((await client.request({ ...about, verb: "create", attrs })).ok);
  assert.equal(resourcedef(), "gpus type=long flag=hn\n");
  assert.ok((await client.request({ ...about, verb: "delete", attrs: [] })).ok);
  assert.equal(resourcedef(), "");
});

test("a commit that fails refuses every request of its batch with 15010 and the reason; what was written before stays, the server goes on", async (t) => {
  const w = await world(t);
  assert.equal(idOf(await submit(w.client)), "1.svr");
  w.store.failCommits("disk-full");
  const refused = await Promise.all([submit(w.client), submit(w.client), submit(w.client)]);
  for (const reply of refused)
    assert.deepEqual(reply.ok ? reply : [reply.code, reply.text], [15010, "System error: memory store: disk-full"]);
  assert.equal(await submitUntilTaken(w.client), "2.svr", "the ids of refused jobs are given again");
  assert.deepEqual(await jobs(w.client), ["1.svr", "2.svr"]);
});

test("a store that is full for a while: requests are refused meanwhile and taken afterwards, reads work throughout", async (t) => {
  const w = await world(t);
  await submit(w.client);
  w.store.failCommits("disk-full", 3);
  for (let round = 0; round < 3; round++) assert.equal((await submit(w.client)).ok, false);
  await submitUntilTaken(w.client);
  assert.equal((await jobs(w.client)).length, 2);
});

test("many requests in flight on one connection are answered each once and committed in few batches", async (t) => {
  const w = await world(t);
  const before = w.store.commits;
  const ids = (await Promise.all(Array.from({ length: 500 }, () => submit(w.client)))).map(idOf);
  assert.equal(new Set(ids).size, 500);
  assert.ok(w.store.commits - before < 250, `${w.store.commits - before} commits`);
  assert.equal((await jobs(w.client)).length, 500);
});

test("a client that goes away with requests open disturbs nobody", async (t) => {
  const w = await world(t);
  const other = await w.connect();
  const id = idOf(await submit(other));
  const waiting = other.request({ kind: "wait-job", job: id }).catch((error: Error) => error.name);
  other.close();
  assert.equal(await waiting, "ServerUnreachable");
  assert.equal((await w.client.request({ kind: "delete-job", job: id })).ok, true);
});

test("a server started on the rows of another goes on where that one was", async (t) => {
  const store = memoryStore();
  const first = await world(t, store);
  await submit(first.client);
  await first.client.request({ kind: "hold-job", job: "1.svr", holds: "u" });
  const second = await world(t, store.clone());
  assert.deepEqual(await jobs(second.client), ["1.svr"]);
  assert.equal(idOf(await submit(second.client)), "2.svr");
});

test("an error inside the core costs the requests of its batch (15011), not the server", async (t) => {
  const w = await world(t);
  assert.equal(idOf(await submit(w.client)), "1.svr");
  w.core.state.jobs.set = () => {
    throw new Error("a fault planted by the test");
  };
  const reply = await submit(w.client);
  assert.deepEqual(reply.ok ? reply : [reply.code, reply.text], [15011, "PBS server internal error"]);
  assert.equal(await submitUntilTaken(w.client), "2.svr");
  assert.deepEqual(await jobs(w.client), ["1.svr", "2.svr"]);
});

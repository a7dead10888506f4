// The adapter for OpenStack against a real keystone and nova. nova's fake driver boots no machines, so the test itself runs the user data of a server.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { BackendError } from "#backends/contract/fault.ts";
import { request } from "../../../backends/order.ts";
import { until } from "../../complex.ts";
import { mixedJobs } from "../mixed-jobs.ts";
import { writer, written } from "../runner-script.ts";
import { FakeBoots, OPENRC, openNova } from "./fake-boots.ts";
import { openStackSeat } from "./mixed-seats.ts";
import { bed, startPeer, stopPeer, whyNoPeer } from "./peer-bed.ts";

const skip = whyNoPeer("openstack") ?? false;
before(() => skip === false && startPeer("openstack"));
after(() => skip === false && stopPeer("openstack"));

/** A copy of the credentials that only root can read. */
function credentials(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "partita-os-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const path = join(dir, "credentials");
  writeFileSync(path, readFileSync(OPENRC), { mode: 0o600 });
  return path;
}

const attributes = (t: TestContext, more: Record<string, string | number | readonly string[]> = {}) => ({
  credentials: credentials(t),
  networks: ["none"],
  flavors: "peer[.].*",
  ...more,
});

test("a server is made for each runner, its user data boot the runner, and it is deleted", { skip }, async (t) => {
  const { dir, open, order } = bed(t, "openstack");
  const cloud = open(attributes(t));
  assert.match((await cloud.probe()).text, /^openstack: instances \d+ of 10, cores/);
  const asked = order({ count: 2, argv: writer(dir) });
  const submitted = await cloud.submit(asked);
  assert.deepEqual(
    submitted.map(({ index, state }) => [index, state]),
    [
      [0, "queued"],
      [1, "queued"],
    ],
  );
  const live = await until("two active servers", async () => {
    const all = await cloud.list();
    return all.filter(({ state }) => state === "running").length === 2 && all;
  });
  assert.deepEqual(live.map(({ id }) => id).sort(), submitted.map(({ id }) => id).sort());
  assert.deepEqual((await cloud.submit({ ...asked, isFirst: false })).map(({ id }) => id).sort(), submitted.map(({ id }) => id).sort());
  const nova = await openNova();
  const { server } = JSON.parse((await nova.ask("GET", `/servers/${submitted[1]?.id}`)).text);
  const boot = Buffer.from(server["OS-EXT-SRV-ATTR:user_data"], "base64").toString();
  const booted = spawn("/bin/sh", ["-s"], {
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", PARTITA_NO_SHUTDOWN: "1" },
    stdio: ["pipe", "ignore", "inherit"],
  });
  booted.stdin.end(boot);
  const lines = (await until("the runner that the user data boot", () => written(dir, asked.tag, 1))).split("\n");
  assert.deepEqual(lines.slice(0, 2), ["batch1", "secret-1"]);
  writeFileSync(join(dir, "go"), "");
  await until("the end of the boot script", () => booted.exitCode !== null);
  assert.equal(booted.exitCode, 0);
  await cloud.cancel(live);
  await until("no server", async () => (await cloud.list()).length === 0);
  assert.equal((await nova.ask("GET", `/servers/${submitted[0]?.id}`)).status, 404);
});

test("more than the quota is not asked for, and what nova refuses is told in its words without secrets", { skip }, async (t) => {
  const { open, order } = bed(t, "openstack");
  const cloud = open(attributes(t, { max_spawns: 100 }));
  const first = await cloud.submit(order({ count: 12 }));
  assert.equal(first.length, 10, "the quota of instances is 10");
  const failure = async (ask: () => Promise<unknown>): Promise<string> => {
    try {
      await ask();
      return "accepted";
    } catch (error) {
      assert.ok(error instanceof BackendError, String(error));
      return `${error.kind}: ${error.message}`;
    }
  };
  assert.match(await failure(() => cloud.submit(order())), /^limit: the quota is used up: instances 10 of 10/);
  assert.match(await failure(() => cloud.submit(order({ request: request({ ncpus: 1000 }) }))), /^impossible: no flavour has 1000 cpus/);
  const slow = open(attributes(t, { max_spawns: 1, image: "nosuch" }));
  await until("all are built", async () => (await cloud.list()).every(({ state }) => state !== "queued"));
  await cloud.cancel(first);
  await until("no server", async () => (await cloud.list()).length === 0);
  assert.match(await failure(() => slow.submit(order())), /^configuration: there is no active image nosuch/);
  const path = credentials(t);
  writeFileSync(path, readFileSync(path, "utf8").replace(/OS_PASSWORD=\S+/, "OS_PASSWORD=wrong-secret"));
  const refused = await failure(() => open({ ...attributes(t), credentials: path }).list());
  assert.match(refused, /^configuration: POST auth\/tokens: 401/);
  assert.doesNotMatch(refused, /wrong-secret/);
  chmodSync(path, 0o644);
  assert.throws(() => open({ ...attributes(t), credentials: path }), /mode must be 0600/);
  assert.match(
    await failure(() => open(attributes(t, { url: "http://127.0.0.1:9/v3" })).list()),
    /^transient: POST http:\/\/127\.0\.0\.1:9\/v3\/auth\/tokens: .*ECONNREFUSED/,
  );
});

test("a server that no host has room for is seen once as failed, and deleted", { skip }, async (t) => {
  const { open, order } = bed(t, "openstack");
  const cloud = open(attributes(t, { flavors: ".*" }));
  const name = `peer.huge${process.pid}`;
  const { id, remove } = await hugeFlavor(name);
  t.after(remove);
  const [server] = await cloud.submit(order({ request: request({ options: { flavor: id } }) }));
  const failed = await until("the failed server", async () => (await cloud.list()).find(({ ending }) => ending === "retry"));
  assert.equal(failed.id, server?.id);
  assert.match(failed.reason, /^ERROR: No valid host was found/);
  assert.equal(failed.fault?.kind, "limit");
  await until("it is deleted", async () => (await cloud.list()).length === 0);
});

/** A flavour within the quota that needs more disk than the fake host has. */
async function hugeFlavor(name: string): Promise<{ readonly id: string; readonly remove: () => Promise<void> }> {
  const nova = await openNova();
  const made = JSON.parse((await nova.ask("POST", "/flavors", { flavor: { name, vcpus: 1, ram: 512, disk: 100_000_000 } })).text);
  const id: string = made.flavor.id;
  return { id, remove: async () => void (await nova.ask("DELETE", `/flavors/${id}`)) };
}

test("mixed jobs on servers of OpenStack complete exactly once, and idle servers are deleted", { skip }, async (t) => {
  const boots = new FakeBoots(await openNova());
  t.after(() => boots.close());
  const figures = await mixedJobs(openStackSeat(boots));
  t.diagnostic(JSON.stringify({ ...figures, servers: boots.count }));
});

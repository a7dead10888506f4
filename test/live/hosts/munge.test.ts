// MUNGE through its library, with a munged of the test's own.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, before, test } from "node:test";
import { type Munge, openMunge } from "#protocol/proof/munge.ts";
import { lackOfMunge, type Munged, startMunged } from "./munged.ts";

const skip = lackOfMunge() || (process.geteuid?.() !== 0 && "needs root: credentials are made for a server that runs as root");

let daemon: Munged | null = null;
before(async () => {
  if (skip === false) daemon = await startMunged();
});
after(() => daemon?.close());

const open = (socket: string | null = daemon?.socket ?? null, calls_max = 2, waiting_max = 10_000): Munge =>
  openMunge({ socket, calls_max, waiting_max });

test("munge: a credential proves uid and gid of its maker once", { skip }, async () => {
  const munge = open();
  const credential = await munge.encode("for the server, ä");
  assert.deepEqual(await munge.decode(credential), { uid: 0, gid: 0, payload: "for the server, ä" });
  await assert.rejects(munge.decode(credential), /^MungeError: the credential was used before$/);
});

test("munge: what was made by another user is that user's, whatever it says", { skip }, async () => {
  const socket = daemon?.socket ?? "";
  const { stdout } = spawnSync("setpriv", ["--reuid=65534", "--regid=65534", "--clear-groups", "munge", "-S", socket, "-s", "uid=0"], {
    encoding: "utf8",
    cwd: "/",
  });
  const { uid, gid } = await open().decode(stdout.trim());
  assert.deepEqual([uid, gid], [65534, 65534]);
});

test("munge: damaged credentials are refused, and a missing munged is named", { skip }, async () => {
  const munge = open();
  const credential = await munge.encode("x");
  // Not the last characters: some bits of the last one before the padding mean nothing.
  for (const at of [6, 20, credential.length >> 1, credential.length - 8]) {
    const changed = credential.slice(0, at) + (credential[at] === "A" ? "B" : "A") + credential.slice(at + 1);
    await assert.rejects(munge.decode(changed), { name: "MungeError" }, `character ${at}`);
  }
  await assert.rejects(munge.decode(""), { name: "MungeError" });
  assert.equal((await munge.decode(credential)).uid, 0, "the whole one is still good");
  await assert.rejects(open("/nonexistent/munge").encode("x"), /MungeError: .*\/nonexistent\/munge/);
});

test("munge: thousands of calls are taken in turn, and no more than a number may wait", { skip }, async () => {
  const munge = open();
  const credentials = await Promise.all(Array.from({ length: 2000 }, (_, at) => munge.encode(String(at))));
  const users = await Promise.all(credentials.map((each) => munge.decode(each)));
  assert.deepEqual(
    users.map(({ payload }) => payload),
    credentials.map((_, at) => String(at)),
  );
  const few = open(undefined, 1, 1);
  const outcomes = await Promise.allSettled([few.encode("a"), few.encode("b"), few.encode("c")]);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ["fulfilled", "fulfilled", "rejected"],
  );
  assert.match(await few.encode("d"), /^MUNGE:/, "there is room again");
});

// How programs of backends are run, with real processes: time limit, bounded output, clean environment, trusted files, files of tokens.

import assert from "node:assert/strict";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { BackendError } from "#backends/contract/fault.ts";
import { ask } from "#backends/shell/http.ts";
import { failureOf, programs } from "#backends/shell/programs.ts";
import { tokenFiles } from "#backends/shell/token-files.ts";
import { isAlive, until } from "../complex.ts";

function directory(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "partita-programs-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

function program(dir: string, name: string, text: string): void {
  writeFileSync(join(dir, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
}

const options = (dir: string, timeout_ms = 30_000) => ({ bin: dir, env: { OWN: "1" }, timeout_ms });

test("P1: a program that hangs, with its children, is ended after the time limit, and what it said is told", async (t) => {
  const dir = directory(t);
  program(dir, "hang", `trap '' TERM; sleep 1000 & echo $! > ${dir}/child; echo "sleeping and retrying" >&2; wait; wait; sleep 1000`);
  const ran = await programs(options(dir, 1000)).run("hang", []);
  assert.equal(ran.timed_out, true);
  const error = failureOf("hang", ran, { timeout_ms: 1000, kindOf: () => "configuration", isSubmission: true });
  assert.equal(error.message, "hang did not answer within 1 s: sleeping and retrying");
  assert.deepEqual([error.kind, error.uncertain], ["transient", true]);
  await until("the child is gone", () => !isAlive(Number(readFileSync(join(dir, "child"), "latin1"))));
});

test("P3: an output without end is an error", async (t) => {
  const dir = directory(t);
  program(dir, "flood", "exec yes");
  await assert.rejects(
    programs(options(dir)).run("flood", []),
    (error) => error instanceof BackendError && /printed more than/.test(error.message),
  );
});

test("a program gets its words as they are, the locale C, and none of our environment", async (t) => {
  const dir = directory(t);
  program(dir, "show", 'printf "[%s]" "$@"; echo; cat; env');
  process.env["PARTITA_TEST_SECRET"] = "geheim";
  t.after(() => delete process.env["PARTITA_TEST_SECRET"]);
  const { stdout, status } = await programs(options(dir)).run("show", ["$(id)", "a b", "`x`", "*"], { input: "from stdin\n" });
  assert.equal(status, 0);
  const [words, input, ...env] = stdout.trim().split("\n");
  assert.equal(words, "[$(id)][a b][`x`][*]");
  assert.equal(input, "from stdin");
  assert.ok(env.includes("LC_ALL=C") && env.includes("OWN=1"));
  assert.doesNotMatch(stdout, /geheim/);
});

test("P4: root runs no program of a backend that others can change, and nothing of a user as root", async (t) => {
  if (process.geteuid?.() !== 0) return t.skip("root only");
  const dir = directory(t);
  program(dir, "mine", "id -u");
  chownSync(join(dir, "mine"), 65_534, 65_534);
  await assert.rejects(programs(options(dir)).run("mine", []), /is not run as root: .* belongs to another user/);
  chownSync(join(dir, "mine"), 0, 0);
  chmodSync(dir, 0o755);
  const as = (uid: number) => programs(options(dir)).run("mine", [], { owner: { name: "x", uid, gid: 65_534, groups: [] } });
  assert.equal((await as(65_534)).stdout, "65534\n");
  await assert.rejects(as(0), /root's rights/);
});

test("K1: tokens are in files that their users alone can read, and no link is followed", (t) => {
  const dir = directory(t);
  const owner = process.geteuid?.() === 0 ? { name: "x", uid: 65_534, gid: 65_534, groups: [] } : null;
  const tokens = tokenFiles(join(dir, "tokens"));
  tokens.write({ tag: "k.b.1", tokens: ["a", "b"], owner });
  const path = join(tokens.directoryOf("k.b.1"), "1");
  assert.equal(readFileSync(path, "latin1"), "b");
  assert.equal(statSync(path).mode & 0o777, 0o600);
  if (owner !== null) assert.equal(statSync(path).uid, owner.uid);
  rmSync(path);
  symlinkSync(join(dir, "elsewhere"), path);
  tokens.write({ tag: "k.b.1", tokens: ["a", "b"], owner });
  assert.equal(lstatSync(path).isFile(), true);
  assert.equal(existsSync(join(dir, "elsewhere")), false);
  tokens.remove("k.b.1");
  assert.equal(existsSync(tokens.directoryOf("k.b.1")), false);
  mkdirSync(join(dir, "open"), { mode: 0o777 });
  chmodSync(join(dir, "open"), 0o777);
  assert.throws(
    () => tokenFiles(join(dir, "open")).write({ tag: "k.b.2", tokens: ["a"], owner: null }),
    /can be written by group or others/,
  );
});

test("W1: a service that is silent, endless or gone is an error that says so", async (t) => {
  const server = createServer((request, response) => {
    if (request.url === "/silent") return;
    const flood = (): void => void (response.destroyed || response.write(Buffer.alloc(1 << 20), flood));
    if (request.url === "/endless") flood();
    else response.writeHead(302, { location: "/silent" }).end("moved");
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const get = (path: string, timeout_ms = 60_000) =>
    ask({ method: "GET", url: `http://127.0.0.1:${port}${path}`, headers: {}, timeout_ms });
  await assert.rejects(get("/silent", 500), /GET http:\/\/127\.0\.0\.1:\d+\/silent: no answer within 0\.5 s/);
  await assert.rejects(get("/endless"), /an answer of more than/);
  assert.deepEqual([(await get("/moved")).status, (await get("/moved")).text], [302, "moved"]);
});

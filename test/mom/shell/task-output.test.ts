// Output of tasks on a sister, sent to a mother superior that the test plays.

import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { TaskWanted } from "#mom/run/task-question.ts";
import { OtherMoms } from "#mom/shell/other-moms.ts";
import { carryOutput } from "#mom/shell/task-output.ts";
import { TaskServer } from "#mom/shell/task-server.ts";
import { encodeFrame, frameDecoder } from "#protocol/wire/frame.ts";
import { job, run, world } from "../world.ts";

/** A mom's socket. asked: called with each question. The mom can connect after a first question was answered. */
function mother(home: string, asked: (wanted: TaskWanted, answer: (refusal: string | null) => void) => void) {
  mkdirSync(`${home}/sock`, { recursive: true });
  return new TaskServer({
    home,
    mode: "user",
    happen: (event) => {
      if (event.kind !== "task-asked") return;
      asked(event.wanted, (text) => server().say(event.asked, text === null ? { type: "task-done" } : { type: "task-refused", text }));
    },
    complain: (text) => assert.fail(text),
    others: OTHERS,
  });
  function server() {
    return servers.get(home) as TaskServer;
  }
}
const servers = new Map<string, TaskServer>();
/** The connections to moms on this machine: no certificate is needed. */
const OTHERS = new OtherMoms({ credentials: () => assert.fail("no other host"), revoked: () => new Set(), server_host: "", server: "" });
after(() => OTHERS.close());

test("what was written by a task's end is carried, not what others go on writing; a mom that comes back sends nothing twice", async () => {
  const home = mkdtempSync(join(tmpdir(), "output-"));
  mkdirSync(`${home}/mom_priv/jobs`, { recursive: true });
  const path = `${home}/1.n1.OU`;
  let got = "";
  const socket = mother(`${home}/n0`, (wanted, answer) => {
    if (wanted.kind !== "output") return assert.fail(wanted.kind);
    got += Buffer.from(wanted.content, "base64").toString();
    // Another process keeps writing.
    appendFileSync(path, "more");
    answer(null);
  });
  servers.set(`${home}/n0`, socket);
  await until(() => existsSync(socket.path));
  const w = world();
  const tasks = { n0: socket.path, n1: "" };
  run(w, job({ exec_host: "n0/0+n1/0", exec_vnode: "(n0:ncpus=1)+(n1:ncpus=1)", tasks }));
  const sister = w.state.runs.get("1.n1");
  assert.ok(sister !== undefined);
  sister.plan = {
    ...sister.plan,
    owner: null,
    stdout: { ...sister.plan.stdout, path },
    stderr: { ...sister.plan.stderr, path: `${home}/none` },
  };
  writeFileSync(path, "a".repeat(300_000));
  const fail = (text: string): never => assert.fail(text);
  await carryOutput(home, w.state, OTHERS, fail).drain("1.n1");
  assert.equal(got.length, 300_000);
  const kept = JSON.parse(readFileSync(`${home}/mom_priv/jobs/1.n1.SO`, "utf8")) as unknown;
  assert.deepEqual(kept, { o: 300_000, e: 0 });
  await carryOutput(home, w.state, OTHERS, fail).drain("1.n1");
  assert.equal(got, `${"a".repeat(300_000)}moremore`, "two pieces had come, and after each more was written");
  socket.close();
  rmSync(home, { recursive: true });
});

test("at the end of a run: the mother superior wants no more of its output, or cannot be reached", async () => {
  const home = mkdtempSync(join(tmpdir(), "last-"));
  mkdirSync(`${home}/mom_priv/jobs`, { recursive: true });
  const socket = mother(`${home}/n0`, (_, answer) => answer("no place for output"));
  servers.set(`${home}/n0`, socket);
  await until(() => existsSync(socket.path));
  const outcomes: boolean[] = [];
  for (const n0 of [socket.path, `${home}/nobody.sock`]) {
    const w = world();
    run(w, job({ exec_host: "n0/0+n1/0", exec_vnode: "(n0:ncpus=1)+(n1:ncpus=1)", tasks: { n0, n1: "" } }));
    const sister = w.state.runs.get("1.n1");
    assert.ok(sister !== undefined);
    const stdout = { ...sister.plan.stdout, path: `${home}/1.n1.OU` };
    sister.plan = { ...sister.plan, owner: null, stdout, stderr: { ...sister.plan.stderr, path: `${home}/none` } };
    writeFileSync(stdout.path, "words");
    outcomes.push(await carryOutput(home, w.state, OTHERS, (text) => assert.fail(text)).drainLast("1.n1"));
  }
  assert.deepEqual(outcomes, [true, false]);
  socket.close();
  rmSync(home, { recursive: true });
});

test("of a run only so many questions to its other hosts are open at a time", async () => {
  const home = mkdtempSync(join(tmpdir(), "forward-"));
  mkdirSync(`${home}/n0/sock`, { recursive: true });
  const waiting: ((refusal: string | null) => void)[] = [];
  // The other host answers when the test wants it to.
  const other = mother(`${home}/n1`, (_, answer) => waiting.push(answer));
  servers.set(`${home}/n1`, other);
  const key = { job: "1.n1", run_count: 1 };
  const server = new TaskServer({
    home: `${home}/n0`,
    mode: "user",
    happen: (event) => {
      if (event.kind === "task-asked")
        server.forward({
          kind: "task-forward",
          asked: event.asked,
          place: { kind: "socket", path: other.path },
          run: key,
          wanted: event.wanted,
          owner: 1000,
          most: 2,
          text_max: 1_000_000,
        });
    },
    complain: (text) => assert.fail(text),
    others: OTHERS,
  });
  await until(() => existsSync(server.path) && existsSync(other.path));
  const heard: string[] = [];
  const client = connect(server.path);
  const decoder = frameDecoder(1_000_000);
  client.setEncoding("utf8");
  client.on("data", (chunk: unknown) =>
    decoder.push(String(chunk), ({ data }) => {
      const { token, text } = data as { readonly token: number; readonly text: string };
      heard.push(`${token} ${text}`);
    }),
  );
  const wanted = { ...key, cookie: "c", host: "n1", argv: ["true"], env: [], shell: false };
  const ask = (token: number): unknown => client.write(encodeFrame("task-spawn", { ...wanted, token }));
  for (const token of [1, 2, 3]) ask(token);
  await until(() => heard.length === 1 && waiting.length === 2);
  waiting[0]?.("no");
  await until(() => heard.length === 2);
  ask(4);
  await until(() => waiting.length === 3);
  client.destroy();
  assert.equal(heard[0], "3 job 1.n1 has 2 tasks on other hosts already ($tasks_max)");
  assert.match(heard[1] ?? "", /^[12] no$/);
  server.close();
  other.close();
  rmSync(home, { recursive: true });
});

async function until(what: () => boolean): Promise<void> {
  while (!what()) await new Promise((resolve) => setTimeout(resolve, 1));
}

// The starter with real processes: adopted processes, tasks and terminals of runs that end.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, writeSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { reap } from "#mom/host/posix.ts";
import { readProcess } from "#mom/host/proc-table.ts";
import { openPseudoTerminal } from "#mom/host/pseudo-terminal.ts";
import { ownerOf } from "#mom/host/session-end.ts";
import type { StarterToMom, StartSpec } from "#mom/job/starter-link.ts";
import type { Journal } from "#mom/starter/journal.ts";
import { launch } from "#mom/starter/launch.ts";
import { Starter } from "#mom/starter/starter.ts";

const KEY = { job: "1.n1", run_count: 1 };
const spec = (over: Partial<StartSpec> = {}): StartSpec => ({
  ...KEY,
  path: "/bin/sleep",
  argv: ["sleep", "1000"],
  login: false,
  env: [],
  cwd: "/",
  stdin: null,
  stdout: "/dev/null",
  stderr: "/dev/null",
  umask: 0o77,
  owner: null,
  limits: {},
  nice: null,
  cgroup: null,
  terminal: null,
  ...over,
});

type Sent = { [T in keyof StarterToMom]: { readonly type: T; readonly data: StarterToMom[T] } }[keyof StarterToMom];

/** A starter whose disk never answers, so that exits are never reported. */
function world() {
  const sent: Sent[] = [];
  const journal: Journal = { append() {}, sync: () => new Promise(() => undefined), compact() {}, bytes: 0 };
  const starter = new Starter({
    journal,
    state: { boot: "b", runs: new Map(), last: new Map() },
    groups: null,
    now_ms: () => 1,
    complain: () => undefined,
  });
  const link = { send: (type: string, data: unknown) => void sent.push({ type, data } as Sent), finish() {}, close() {} } as never;
  starter.attach(link);
  const started = (): number => {
    const last = sent.at(-1);
    return last?.type === "starter-started" ? (last.data.runs[0]?.pid ?? 0) : 0;
  };
  const failed = (): readonly string[] =>
    sent.flatMap((each) => (each.type === "starter-failed" ? each.data.runs.map(({ job, text }) => `${job}: ${text}`) : []));
  const adopted = () => sent.flatMap((each) => (each.type === "starter-adopted" ? each.data.runs : []));
  const state = () => sent.findLast((each) => each.type === "starter-state")?.data as StarterToMom["starter-state"];
  return { starter, link, started, failed, adopted, state };
}

async function until(what: () => boolean): Promise<void> {
  while (!what()) await sleep(1);
}
const isDead = (pid: number): boolean => ["Z", undefined].includes(readProcess(pid)?.state);

test("a session that is adopted gets the job's signals, and only its owner's processes do", async (t) => {
  const root = process.getuid?.() === 0;
  if (!root) t.diagnostic("processes of somebody else are left out: only root can make them");
  const { starter, started, adopted, link, state } = world();
  starter.start({ runs: [spec()] });
  const top = started();
  const other = root ? "setpriv --reuid=65534 --clear-groups sleep 1000" : "true";
  const shell: ChildProcess = spawn("/bin/sh", ["-c", `${other} & echo $!; exec sleep 1000`], {
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(shell, "exit");
  const [line] = (await once(shell.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
  const stranger = Number(line.toString());
  if (root) await until(() => ownerOf(stranger) === 65534);
  starter.adopt({ runs: [{ ...KEY, pid: shell.pid ?? 0 }] });
  const session = { session: shell.pid ?? 0, owner: process.geteuid?.() ?? 0 };
  assert.deepEqual(adopted(), [{ ...KEY, ...session }]);
  starter.attach(link);
  assert.deepEqual(
    state().runs.map((each) => (each.state === "running" ? each.adopted : null)),
    [[session]],
    "a mom that comes back hears of it again",
  );
  starter.signal({ runs: [{ ...KEY, signal: 9 }] });
  assert.deepEqual(await ended, [null, "SIGKILL"]);
  await until(() => isDead(top));
  if (root) {
    assert.ok(!isDead(stranger), "nobody else's process is touched");
    process.kill(stranger, "SIGKILL");
  }
  reap(top);
});

test("a task that comes when the job's top process has ended is not started", async () => {
  const { starter, started, failed } = world();
  starter.start({ runs: [spec()] });
  const top = started();
  process.kill(top, "SIGKILL");
  await until(() => isDead(top));
  starter.reapAll();
  starter.start({ runs: [spec({ job: "1.n1#2" })] });
  assert.deepEqual(failed(), ["1.n1#2: job 1.n1 is over"]);
});

test("a mom that comes back while qsub is called asks again and is heard, though the first relay is not buried yet", async () => {
  const { starter, link, failed } = world();
  const ticket = { socket: "partita-nobody-listens", secret: "0".repeat(64) };
  starter.start({ runs: [spec({ terminal: ticket })] });
  starter.attach(link);
  starter.start({ runs: [spec({ terminal: ticket })] });
  assert.equal(starter.active, 2, "two relays");
  await until(() => failed().length === 2);
  assert.match(failed()[1] ?? "", /cannot open interactive qsub socket: /);
  await until(() => {
    starter.reapAll();
    return starter.active === 0;
  });
});

test("a terminal whose user has stopped it does not stop the starter", () => {
  const { master, path } = openPseudoTerminal();
  const slave = openSync(path, constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
  assert.throws(() => {
    for (;;) writeSync(slave, "x".repeat(4096));
  }, /EAGAIN/);
  const outcome = launch(spec({ path: "/no/such/program", argv: ["/no/such/program"], stdout: path, stderr: path }));
  assert.equal("exit_status" in outcome && outcome.exit_status, 254);
  closeSync(slave);
  closeSync(master);
});

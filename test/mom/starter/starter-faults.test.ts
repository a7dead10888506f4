// The starter when its disk refuses writes, and when a file that it opens is not a file.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { JOB_EXEC } from "#model/exit-status.ts";
import type { StarterToMom, StartSpec } from "#mom/job/starter-link.ts";
import { type Journal, readJournal } from "#mom/starter/journal.ts";
import { launch } from "#mom/starter/launch.ts";
import { Starter } from "#mom/starter/starter.ts";

function inDirectory(work: (dir: string) => void): void {
  const dir = mkdtempSync(join(tmpdir(), "starter-faults-"));
  try {
    work(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const spec = (dir: string, over: Partial<StartSpec> = {}): StartSpec => ({
  job: "1.n1",
  run_count: 1,
  path: "/bin/true",
  argv: ["/bin/true"],
  login: false,
  env: [],
  cwd: dir,
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

test("a FIFO where a job's output or program should be does not stop the starter", () =>
  inDirectory((dir) => {
    const fifo = join(dir, "fifo");
    execFileSync("mkfifo", [fifo]);
    const outcome = launch(spec(dir, { stdout: fifo }));
    assert.equal("exit_status" in outcome && outcome.exit_status, JOB_EXEC.FAIL2);
  }));

test("a journal that takes nothing: no run is started, and the starter goes on", () =>
  inDirectory((dir) => {
    const complaints: string[] = [];
    const sent: (readonly [string, unknown])[] = [];
    const full = (): never => {
      throw new Error("no space left");
    };
    const journal: Journal = { append: full, sync: () => Promise.resolve(), compact: full, bytes: 1e9 };
    const starter = new Starter({
      journal,
      state: { boot: "b", runs: new Map(), last: new Map() },
      groups: null,
      now_ms: () => 1,
      complain: (text) => complaints.push(text),
    });
    starter.attach({ send: (type: keyof StarterToMom, data: unknown) => void sent.push([type, data]), finish() {}, close() {} } as never);
    starter.start({ runs: [spec(dir)] });
    starter.forget({ runs: [{ job: "2.n1", run_count: 1 }] });
    assert.equal(starter.active, 0);
    assert.deepEqual(sent.at(-1), [
      "starter-failed",
      { runs: [{ job: "1.n1", run_count: 1, exit_status: JOB_EXEC.RETRY, text: "journal: no space left", at_ms: 1 }] },
    ]);
    assert.equal(complaints.length, 3);
  }));

test("a journal whose last line was torn by a full disk loses no later record", () => {
  const exit = JSON.stringify({ t: "exit", job: "1", run_count: 1, status: { code: 0 }, cput_s: 0, at_ms: 2 });
  assert.equal(readJournal(`${exit.slice(0, 20)}\n${exit}\n`).runs.get("1")?.state, "ended");
});

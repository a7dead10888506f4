// Processes of schedulers: reports about a process that is not a child of the server.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { schedProcesses } from "#server/shell/sched-processes.ts";

test("a silent scheduler that has ended unseen is reported when it is to be killed; a living stranger is left alone", () => {
  const home = mkdtempSync(join(tmpdir(), "partita-sched-processes-"));
  try {
    const ended: (readonly [name: string, pid: number])[] = [];
    const told: string[] = [];
    const processes = schedProcesses({
      home,
      exec: home,
      system: false,
      users: { userByName: () => null, userByUid: () => null, groupNames: () => [] } as never,
      attrsOf: () => ({ sched_priv: home, state: "down" }),
      exited: (name, { pid = 0 }) => void ended.push([name, pid]),
      unfit: () => undefined,
      log: (_name, text) => void told.push(text),
    });
    const { pid } = spawnSync("true");
    processes.kill("default", pid);
    assert.deepEqual(ended, [["default", pid]]);
    processes.kill("default", process.pid);
    assert.equal(ended.length, 1);
    assert.deepEqual(
      told,
      [pid, process.pid].map((each) => `process ${each} is not the scheduler any more`),
    );
  } finally {
    rmSync(home, { recursive: true });
  }
});

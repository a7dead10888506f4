// A host that others use: thresholds, messages to the server, and jobs that are stopped meanwhile.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type Busyness, NOT_BUSY, nextBusyness } from "#mom/config/node-load.ts";
import { strangersOf } from "#mom/config/strangers.ts";
import { idleSeconds } from "#mom/host/measure.ts";
import { helloJobs } from "#mom/run/core.ts";
import { job, run, type World, world } from "../world.ts";

const S = 1000;

test("busy above the maximal load, free below the ideal one, unchanged between them", () => {
  const rows: readonly (readonly [ideal: number | null, max: number | null, loads: readonly number[], busy: string])[] = [
    [2, 4, [1, 3, 4, 5, 3, 2, 1.9, 3], "...BBB.."],
    [null, 4, [5, 4, 3.9], "BB."],
    [2, null, [9, 1], ".."],
    [null, null, [99], "."],
  ];
  for (const [ideal, max, loads, expected] of rows) {
    let busy = NOT_BUSY;
    const seen = loads.map((load) => {
      busy = nextBusyness(busy, { load, idle_s: null }, { load: { ideal, max }, keyboard: null }, 0);
      return busy.load ? "B" : ".";
    });
    assert.equal(seen.join(""), expected, `ideal ${ideal} max ${max}`);
  }
});

test("the keyboard takes the host after min_use seconds of typing, and gives it back after idle_wait without", () => {
  const limits = { load: { ideal: null, max: null }, keyboard: { idle_wait_s: 60, min_use_s: 10, poll_s: 5 } };
  // [second, idle seconds at that time, whether the host is in use]
  const rows: readonly (readonly [number, number | null, boolean])[] = [
    [0, 900, false],
    [5, 1, false],
    [10, 2, false],
    [14, 0, true],
    [40, 26, true],
    [73, 59, true],
    [74, 60, false],
    [80, 3, false],
    // After an interruption the count begins again.
    [90, 13, false],
    [95, 1, false],
    [100, 1, false],
    [105, 1, true],
    [106, null, false],
  ];
  let busy: Busyness = NOT_BUSY;
  for (const [at_s, idle_s, taken] of rows) {
    busy = nextBusyness(busy, { load: 0, idle_s }, limits, at_s * S);
    assert.equal(busy.keyboard, taken, `second ${at_s}`);
  }
});

const NODE = { load: { ideal: 2, max: 4 }, suspend_on_load: false, kbd_idle: null, multinode_requeue: false };
const loaded = (w: World, load: number): string[] => w.on({ kind: "measured", measure: { load, idle_s: null } });

test("the server hears of each change once, and again at a welcome", () => {
  const w = world({ config: { node: NODE } });
  run(w, job());
  assert.deepEqual(loaded(w, 5), ["mom-busy true"]);
  assert.deepEqual(loaded(w, 6), []);
  w.on({ kind: "disconnected" });
  w.on({ kind: "connected" });
  assert.deepEqual(w.on({ kind: "welcome", data: { keep: [], kill: [], acknowledged: [] } }), ["mom-started 1.n1", "mom-busy true"]);
  assert.deepEqual(loaded(w, 1), ["mom-busy false"]);
});

test("with suspend jobs stand still while the load is too high: the clock stops, the server sees a job that runs", () => {
  const w = world({ config: { node: { ...NODE, suspend_on_load: true } } });
  run(w, job());
  w.now_ms += 10 * S;
  assert.deepEqual(loaded(w, 5), ["mom-busy true", "signal 1.n1 19", "mom-idled 1.n1 true"]);
  assert.equal(helloJobs(w.state)[0]?.state, "running");
  assert.equal(w.records.get("1.n1")?.idled, true);
  w.now_ms += 100 * S;
  assert.deepEqual(loaded(w, 1), ["mom-busy false", "signal 1.n1 18", "mom-idled 1.n1 false"]);
  assert.equal(w.state.runs.get("1.n1")?.suspended_total_ms, 100 * S);
});

test("what the server suspends meanwhile is the server's to resume", () => {
  const w = world({ config: { node: { ...NODE, suspend_on_load: true } } });
  run(w, job());
  loaded(w, 5);
  assert.deepEqual(w.on({ kind: "signal", data: { token: 7, job: "1.n1", signal: "suspend" } }), ["signal 1.n1 19", "mom-result ok"]);
  assert.equal(helloJobs(w.state)[0]?.state, "suspended");
  assert.deepEqual(loaded(w, 1), ["mom-busy false"]);
  assert.deepEqual(w.on({ kind: "signal", data: { token: 8, job: "1.n1", signal: "resume" } }), ["signal 1.n1 18", "mom-result ok"]);
});

test("jobs over several hosts are left alone, or sent back to their queue", () => {
  for (const multinode_requeue of [false, true]) {
    const w = world({ config: { node: { ...NODE, suspend_on_load: true, multinode_requeue } } });
    run(w, job({ exec_host: "n1/0+n2/0" }));
    assert.deepEqual(loaded(w, 5), ["mom-busy true", ...(multinode_requeue ? ["signal 1.n1 9"] : [])]);
  }
});

test("$restrict_user spares the system, exceptions and owners of jobs", () => {
  const processes = [0, 999, 1000, 1001, 1002, 1003].map((uid) => ({ pid: 10 + uid, uid }));
  const restrict = { on: true, exceptions: ["carol", "nosuch"], maxsysid: 999 };
  const uidOf = (user: string): number | null => (user === "carol" ? 1002 : null);
  assert.deepEqual(strangersOf(processes, new Set([1001]), restrict, uidOf), [1010, 1013]);
  assert.deepEqual(strangersOf(processes, new Set(), { ...restrict, on: false }, uidOf), []);
});

test("idle since the last input at any terminal; other devices do not count", () => {
  const dev = mkdtempSync(join(tmpdir(), "partita-dev-"));
  try {
    assert.equal(idleSeconds(dev, 1_000_000), null);
    mkdirSync(join(dev, "pts"));
    for (const [name, atime_s] of [
      ["tty1", 900],
      ["pts/3", 940],
      ["pts/ptmx", 999],
      ["tty", 999],
      ["null", 999],
    ] as const) {
      writeFileSync(join(dev, name), "");
      utimesSync(join(dev, name), atime_s, 999);
    }
    assert.equal(idleSeconds(dev, 1_000_000), 60);
  } finally {
    rmSync(dev, { recursive: true });
  }
});

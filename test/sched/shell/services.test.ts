// The service modules in a simulated environment: files in a temporary directory, a clock and a server that the test controls.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, mock, test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import type { Verdict } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import type { CycleReport, ModuleWorld } from "#sched/shapes/module.ts";
import { builtInService } from "#sched/shell/services/index.ts";
import { logPieces } from "#support/log-pieces.ts";
import { universeOf } from "../world.ts";

const NOW_MS = new Date(2026, 10, 22, 12).getTime();
const DAY = "20261122";

const dir = mkdtempSync(join(tmpdir(), "partita-services-"));
after(() => rmSync(dir, { recursive: true, force: true }));

type Told = { readonly logs: string[]; problems: (string | null)[]; wakes: number; reopened: number; now_ms: number };

function worldOf(name: string, options: Record<string, string>, sched_log = dir): ModuleWorld & { readonly told: Told } {
  const told: Told = { logs: [], problems: [], wakes: 0, reopened: 0, now_ms: NOW_MS };
  return {
    name,
    options: new Map(Object.entries(options)),
    sched: "default",
    sched_priv: () => dir,
    sched_log: () => sched_log,
    log: (text) => void told.logs.push(text),
    problem: (text) => void told.problems.push(text),
    wake: () => void told.wakes++,
    now_ms: () => told.now_ms,
    log_file: { path: () => join(sched_log, DAY), fixed: false, reopen: () => void told.reopened++ },
    told,
  };
}

function report(
  jobs: string,
  decisions: CycleReport["decisions"] = [],
  verdicts: readonly Verdict[] = [],
  now_s = NOW_MS / 1000,
): CycleReport {
  const universe = universeOf({ nodes: "a ncpus=4", jobs });
  return { universe, now_s, command: SCHED_COMMAND.TIME, decisions, verdicts, jobs_considered: 0, jobs_started: 0, cycle_ms: 1 };
}

test("log pieces: oldest first, the day's own file last; what is being compressed counts once", () => {
  const names = ["20261122", "20261122.10", "20261122.2.gz", "20261121.gz", "x", "20261122.1.gz.part", "20261120", "20261120.gz"];
  assert.deepEqual(
    logPieces(names).map(({ name }) => name),
    ["20261120", "20261121.gz", "20261122.2.gz", "20261122.10", "20261122"],
  );
});

test("logger: a large file is rotated to the next number and compressed, old ones are compressed or removed, others left alone", async () => {
  const logs = mkdtempSync(join(dir, "logs-"));
  const put = (name: string, text: string): void => writeFileSync(join(logs, name), text);
  put(DAY, "x".repeat(3000));
  put(`${DAY}.1.gz`, "earlier");
  put("20261121", "yesterday");
  put("20261101", "long ago");
  put("20261102.gz", "long ago, too");
  put("notes", "an administrator's");
  symlinkSync(join(logs, "notes"), join(logs, "20261120"));
  put("20261121.gz.part", "left over");
  utimesSync(join(logs, "20261121"), 1000, 1000);
  const world = worldOf("logger", { size_max: "2kb", keep_days: "7" }, logs);
  const module = builtInService(world);
  await module.cycle?.(report(""));
  assert.equal(world.told.reopened, 1);
  assert.deepEqual(readdirSync(logs).sort(), ["20261120", "20261121.gz", `${DAY}.1.gz`, `${DAY}.2.gz`, "notes"]);
  assert.equal(gunzipSync(readFileSync(join(logs, `${DAY}.2.gz`))).length, 3000);
  assert.equal(gunzipSync(readFileSync(join(logs, "20261121.gz"))).toString(), "yesterday");
  assert.match(world.told.problems.join(), /old logs: 20261120: ELOOP/, "a link is not followed");
  rmSync(join(logs, "20261120"));
  put(DAY, "small");
  world.told.now_ms += 3_600_000;
  await module.cycle?.(report(""));
  assert.deepEqual([world.told.reopened, world.told.problems.at(-1)], [1, null]);
});

test("logger: without compression and limits nothing is touched; wrong options keep it out", async () => {
  const logs = mkdtempSync(join(dir, "logs-"));
  for (const name of [DAY, "20200101"]) writeFileSync(join(logs, name), "x".repeat(3000));
  await builtInService(worldOf("logger", { size_max: "0b", gzip: "False" }, logs)).cycle?.(report(""));
  assert.deepEqual(readdirSync(logs).sort(), ["20200101", DAY]);
  assert.throws(() => builtInService(worldOf("logger", { size_max: "many" })), /option size_max: many is no size/);
  assert.throws(() => builtInService(worldOf("logger", { keep_days: "-1" })), /option keep_days: -1 is no whole number/);
  assert.throws(() => builtInService(worldOf("logger", { gzip: "some" })), /option gzip: some is no boolean/);
});

test("logger: compression that was interrupted before the plain file went is done again", async () => {
  const logs = mkdtempSync(join(dir, "logs-"));
  writeFileSync(join(logs, "20261121"), "whole");
  writeFileSync(join(logs, "20261121.gz"), gzipSync("whole"));
  await builtInService(worldOf("logger", {}, logs)).cycle?.(report(""));
  assert.deepEqual(readdirSync(logs), ["20261121.gz"]);
  renameSync(join(logs, "20261121.gz"), join(logs, "x"));
  assert.ok(existsSync(join(logs, "x")));
});

test("profiler: tells what is wrong and that it is over", () => {
  mock.timers.enable({ apis: ["setInterval"] });
  const told = (options: Record<string, string>): Told => {
    const world = worldOf("profiler", { interval: "0", ...options });
    const module = builtInService(world);
    void module.start?.();
    mock.timers.tick(1000);
    void module.shutdown?.();
    mock.timers.tick(5000);
    return world.told;
  };
  try {
    assert.deepEqual(told({ disk_min: "0b" }).problems, [null]);
    assert.match(told({ disk_min: "1000pb" }).problems.join(), /^\d+ MB free in /);
    assert.match(told({ disk_min: "0b", heap_max: "0" }).problems.join(), /^heap: \d+ of \d+ MB in use$/);
    assert.match(
      told({ disk_min: "0b" }).logs.join(),
      /^heap \d+ of \d+ MB, longest stand [\d.]+ s, longest cycle 0.000 s, \d+ MB free for logs$/,
    );
  } finally {
    mock.timers.reset();
  }
});

const run = (job: string) => ({ kind: "run", job, exec_vnode: "(a:ncpus=1)" }) as const;
const OK: Verdict = { ok: true };
const NO: Verdict = { ok: false, code: 15018, text: "no" };

test("job_checker: counts starts, ends and waits; forgets jobs that are gone", () => {
  const world = worldOf("job_checker", { account_time: "3600" });
  const module = builtInService(world);
  const now_s = NOW_MS / 1000;
  const queued = report("1; 2", [run("1"), run("2")], [OK, OK]);
  for (const [id, wait_s] of [
    ["1", 10],
    ["2", 30],
  ] as const) {
    const job = queued.universe.jobs.get(id);
    if (job !== undefined) queued.universe.jobs.set(id, { ...job, etime_s: now_s - wait_s });
  }
  void module.cycle?.(queued);
  void module.cycle?.(report("2 R (a:ncpus=1)", [], [], now_s + 20));
  void module.cycle?.(report("", [], [], now_s + 3600));
  assert.deepEqual(world.told.logs, ["in 3600 s: 2 jobs started, 2 ended, 0 starts refused; waits: mean 20 s, longest 30 s"]);
  void module.cycle?.(report("", [], [], now_s + 7200));
  assert.equal(world.told.logs.length, 1, "nothing happened, nothing is said");
});

test("job_checker: a job whose start was refused is a reason for a cycle later on, until it is started or gone", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const world = worldOf("job_checker", { retry_time: "60" });
    const module = builtInService(world);
    void module.cycle?.(report("1; 2", [run("1"), run("2")], [NO, OK]));
    mock.timers.tick(59_999);
    assert.equal(world.told.wakes, 0);
    mock.timers.tick(1);
    assert.equal(world.told.wakes, 1);
    void module.cycle?.(report("1", [run("1")], [OK], NOW_MS / 1000 + 60));
    mock.timers.tick(1_000_000);
    assert.equal(world.told.wakes, 1, "it was started");
    void module.cycle?.(report("3", [run("3")], [NO], NOW_MS / 1000 + 100));
    mock.timers.tick(60_000);
    void module.cycle?.(report("", [], [], NOW_MS / 1000 + 200));
    mock.timers.tick(1_000_000);
    assert.equal(world.told.wakes, 2, "it is gone");
  } finally {
    mock.timers.reset();
  }
});

import assert from "node:assert/strict";
import fs, { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { RecordLog, readRecords } from "#mom/driver/record-log.ts";
import { parseStat, processesOf } from "#mom/host/proc-table.ts";
import type { SavedRun } from "#mom/run/state.ts";
import { recordFile } from "#mom/shell/record-file.ts";
import { linesOf, readJournal } from "#mom/starter/journal.ts";
import { job, run, world } from "../world.ts";

const line = (record: object): string => `${JSON.stringify(record)}\n`;
const start = (job: string, run_count: number, pid: number): string => line({ t: "start", job, run_count, pid, at_ms: 1, ticks: 7 });
const exit = (job: string, run_count: number, code: number): string =>
  line({ t: "exit", job, run_count, status: { code }, cput_s: 0, at_ms: 2 });

test("the journal read back: runs by their last word, a torn line left out", () => {
  const text = `${line({ t: "boot", boot: "b" })}${start("1", 1, 0)}${start("1", 1, 10)}${start("2", 1, 11)}${exit("2", 1, 3)}${start("3", 1, 12)}${exit("3", 1, 0)}${line({ t: "forget", job: "3", run_count: 1 })}${start("4", 1, 0)}${line({ t: "failed", job: "4", run_count: 1 })}${start("5", 2, 0)}{"t":"exit","job":"1","run_c`;
  const state = readJournal(text);
  assert.equal(state.boot, "b");
  assert.deepEqual(
    [...state.runs.values()].map((each) => [each.job, each.run_count, each.pid, each.state]),
    [
      ["1", 1, 10, "running"],
      ["2", 1, 11, "ended"],
      ["5", 2, 0, "running"],
    ],
  );
  assert.deepEqual([...state.last], [["3", 1]]);
});

test("a compacted journal says the same as the long one", () => {
  const state = readJournal(
    `${line({ t: "boot", boot: "b" })}${start("1", 1, 10)}${start("2", 4, 11)}${exit("2", 4, 3)}${line({ t: "forget", job: "9", run_count: 2 })}`,
  );
  assert.deepEqual(readJournal(linesOf(state)), state);
});

test("a forgotten run does not hide a later one of the same job", () => {
  const state = readJournal(`${start("1", 1, 10)}${exit("1", 1, 0)}${start("1", 2, 20)}${line({ t: "forget", job: "1", run_count: 1 })}`);
  assert.equal(state.runs.get("1")?.run_count, 2);
});

test("a disk that is full at the start of the mom and later: runs are known, the fault is told once, and nothing is lost when there is room", (t) => {
  const directory = mkdtempSync(join(tmpdir(), "partita-records-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "records");
  const w = world();
  run(w, job({ id: "1.n1" }));
  run(w, job({ id: "2.n1" }), 4712);
  const [one, two] = [...w.records.values()] as [SavedRun, SavedRun];
  // A torn last line, as a full disk leaves it.
  writeFileSync(path, `${line({ save: one })}{"save":{"vers`);
  let is_full = true;
  const write = fs.writeSync;
  const full = (): never => {
    throw new Error("ENOSPC: no space left on device, write");
  };
  const mocked = t.mock.method(fs, "writeSync", ((...args: Parameters<typeof write>) =>
    is_full ? full() : write(...args)) as typeof write);
  syncBuiltinESMExports();
  t.after(() => {
    mocked.mock.restore();
    syncBuiltinESMExports();
  });
  const said: string[] = [];
  const log = new RecordLog(recordFile(path), (text) => said.push(text));
  assert.deepEqual(
    log.found.map((each) => each.job.id),
    ["1.n1"],
  );
  log.save(two);
  for (let n = 0; n < 5; n++) log.flush();
  assert.equal(log.fault, "ENOSPC: no space left on device, write");
  is_full = false;
  log.flush();
  assert.equal(log.fault, null);
  log.close();
  assert.deepEqual(said, [`${path}: ENOSPC: no space left on device, write`, `${path}: written again`]);
  assert.deepEqual([...readRecords(readFileSync(path, "utf8")).keys()], ["1.n1", "2.n1"]);
});

test("records of runs read back: the last save counts, a drop removes, a torn line is left out", () => {
  const w = world();
  run(w, job({ id: "1.n1" }));
  run(w, job({ id: "2.n1" }), 4712);
  const [one, two] = [...w.records.values()];
  const text =
    line({ save: one }) +
    line({ save: two }) +
    line({ drop: "1.n1" }) +
    line({ save: { ...two, suspended_total_ms: 5 } }) +
    '{"save":{"ver';
  assert.deepEqual(
    [...readRecords(text).values()].map((each) => [each.job.id, each.suspended_total_ms]),
    [["2.n1", 5]],
  );
  assert.throws(() => readRecords(line({ save: { ...one, version: 2 } })), /version 2/);
});

test("what is noted of a run's tasks is read back with it, until it is saved anew", () => {
  const w = world();
  run(w, job({ id: "1.n1" }));
  const [one] = [...w.records.values()];
  const noted = (next_task: number, run_count = 1): string => line({ tasks: { next_task, cput_s: 0.5 }, of: { job: "1.n1", run_count } });
  const tasks = (text: string) => readRecords(text).get("1.n1")?.tasks;
  assert.deepEqual(tasks(line({ save: one }) + noted(3) + noted(4) + noted(9, 2)), { next_task: 4, cput_s: 0.5 });
  assert.equal(tasks(noted(3) + line({ save: one })), undefined);
  assert.equal(readRecords(line({ drop: "1.n1" }) + noted(3)).size, 0);

  const directory = mkdtempSync(join(tmpdir(), "records-"));
  const path = `${directory}/records`;
  const fail = (text: string): never => assert.fail(text);
  const log = new RecordLog(recordFile(path), fail);
  log.save(one as SavedRun);
  log.saveTasks("1.n1", 1, { next_task: 5, cput_s: 1 });
  log.saveTasks("1.n1", 2, { next_task: 50, cput_s: 1 });
  log.close();
  for (let time = 0; time < 2; time++) {
    // Opening rewrites the file without any loss.
    const again = new RecordLog(recordFile(path), fail);
    assert.deepEqual(again.found[0]?.tasks, { next_task: 5, cput_s: 1 });
    again.close();
  }
  rmSync(directory, { recursive: true });
});

test("/proc/PID/stat: names with blanks and parentheses do not shift the fields", () => {
  const fields = "S 5 77 77 0 -1 4194560 1 2 3 4 50 60 7 8 20 0 1 0 12345 10485760 250 18446744073709551615";
  assert.deepEqual(parseStat(`42 (a) b (c) ${fields}`), {
    pid: 42,
    ppid: 5,
    session: 77,
    state: "S",
    ticks: 125,
    start_ticks: 12345,
    vmem_kb: 10240,
    rss_pages: 250,
  });
  assert.equal(parseStat("42 (x"), null);
  assert.equal(parseStat(""), null);
});

test("the processes of a job: its session and the descendants that left it", () => {
  const process = (pid: number, ppid: number, session: number) => ({
    pid,
    ppid,
    session,
    state: "S",
    ticks: 0,
    start_ticks: 0,
    vmem_kb: 0,
    rss_pages: 0,
  });
  const all = [
    process(1, 0, 1),
    process(10, 1, 1),
    process(100, 10, 100),
    process(101, 100, 100),
    process(102, 101, 102),
    process(103, 1, 100),
    process(200, 10, 200),
  ];
  const found = processesOf(all, new Set([100, 300]));
  assert.deepEqual(
    [...found].map(([leader, list]) => [leader, list.map((each) => each.pid)]),
    [[100, [100, 101, 102, 103]]],
  );
});

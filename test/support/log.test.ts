import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openAccounting } from "#support/accounting-log.ts";
import { manualClock } from "#support/clock.ts";
import { localStamper } from "#support/local-time.ts";
import { LOG_EVENT, openLog } from "#support/log.ts";
import { PBS_BUILD, PBS_VERSION } from "#support/version.ts";

const NOON = new Date(2026, 10, 20, 12, 0, 0).getTime();
const HEADER = (at: string, daemon: string): string[] => [
  `${at};0002;${daemon};Svr;Log;Log opened`,
  `${at};0002;${daemon};Svr;${daemon};pbs_version=${PBS_VERSION}`,
  `${at};0002;${daemon};Svr;${daemon};pbs_build=${PBS_BUILD}`,
];
const lines = (path: string): string[] => readFileSync(path, "utf8").trimEnd().split("\n");

function inDirectory(work: (dir: string) => void): void {
  const dir = mkdtempSync(join(tmpdir(), "partita-log-"));
  try {
    work(dir);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

test("log: the line format, the header of a new file, the mask, errors always", () => {
  inDirectory((dir) => {
    const log = openLog({
      dir,
      daemon: "Server@svr",
      mask: LOG_EVENT.JOB,
      clock: manualClock(NOON),
      header: ["hostname=svr;pbs_leaf_name=N/A"],
    });
    log.record(LOG_EVENT.JOB, "Job", "12.svr", "Job Queued at request of alice@svr");
    log.record(LOG_EVENT.DEBUG2, "Req", "", "held back");
    log.record(LOG_EVENT.ERROR, "Svr", "f", "always");
    log.record(LOG_EVENT.DEBUG | LOG_EVENT.FORCE, "Svr", "f", "forced");
    log.mask |= LOG_EVENT.DEBUG2;
    log.record(LOG_EVENT.DEBUG2, "Req", "", "Type 0 request received from alice@svr, sock=14");
    log.close();
    const at = "11/20/2026 12:00:00";
    assert.deepEqual(lines(join(dir, "20261120")), [
      ...HEADER(at, "Server@svr"),
      `${at};0100;Server@svr;Svr;Server@svr;hostname=svr;pbs_leaf_name=N/A`,
      `${at};0008;Server@svr;Job;12.svr;Job Queued at request of alice@svr`,
      `${at};0001;Server@svr;Svr;f;always`,
      `${at};0080;Server@svr;Svr;f;forced`,
      `${at};0100;Server@svr;Req;;Type 0 request received from alice@svr, sock=14`,
      `${at};0002;Server@svr;Svr;Log;Log closed`,
    ]);
  });
});

test("log: a new local day closes one file and opens the next", () => {
  inDirectory((dir) => {
    const clock = manualClock(new Date(2026, 10, 20, 23, 59, 59).getTime());
    const log = openLog({ dir, daemon: "pbs_sched", clock });
    log.record(LOG_EVENT.SCHED, "Job", "1.svr", "before");
    clock.advance(1000);
    log.record(LOG_EVENT.SCHED, "Job", "1.svr", "after");
    log.close();
    assert.deepEqual(readdirSync(dir).sort(), ["20261120", "20261121"]);
    assert.equal(lines(join(dir, "20261120")).at(-1), "11/21/2026 00:00:00;0002;pbs_sched;Svr;Log;Log closed");
    assert.deepEqual(lines(join(dir, "20261121")).slice(0, 4), [
      ...HEADER("11/21/2026 00:00:00", "pbs_sched"),
      "11/21/2026 00:00:00;0040;pbs_sched;Job;1.svr;after",
    ]);
  });
});

test("log: many records of one moment, each held back or written as one alone is", () => {
  inDirectory((dir) => {
    const log = openLog({ dir, daemon: "Server@svr", mask: LOG_EVENT.JOB, clock: manualClock(NOON) });
    log.records([
      { event: LOG_EVENT.JOB, class: "Job", object: "1.svr", text: "first" },
      { event: LOG_EVENT.DEBUG2, class: "Req", object: "", text: "held back" },
      { event: LOG_EVENT.ERROR, class: "Svr", object: "f", text: "two\nlines" },
    ]);
    log.records([{ event: LOG_EVENT.DEBUG2, class: "Req", object: "", text: "all held back" }]);
    log.record(LOG_EVENT.JOB, "Job", "2.svr", "last");
    log.close();
    const at = "11/20/2026 12:00:00";
    assert.deepEqual(lines(join(dir, "20261120")).slice(3, -1), [
      `${at};0008;Server@svr;Job;1.svr;first`,
      `${at};0001;Server@svr;Svr;f;two\\nlines`,
      `${at};0008;Server@svr;Job;2.svr;last`,
    ]);
  });
});

test("log: a text cannot forge a record", () => {
  inDirectory((dir) => {
    const log = openLog({ dir, daemon: "pbs_mom", clock: manualClock(NOON) });
    log.record(LOG_EVENT.JOB, "Job", "1.svr", "name\n11/20/2026 12:00:00;0008;pbs_mom;Job;2.svr;forged\r");
    log.close();
    assert.equal(
      lines(join(dir, "20261120"))[3],
      "11/20/2026 12:00:00;0008;pbs_mom;Job;1.svr;name\\n11/20/2026 12:00:00;0008;pbs_mom;Job;2.svr;forged\\r",
    );
  });
});

test("log: reopen after an outside rotation, redirect to another directory, -L without rotation", () => {
  inDirectory((dir) => {
    const clock = manualClock(NOON);
    const log = openLog({ dir: join(dir, "a"), daemon: "pbs_mom", clock });
    log.record(LOG_EVENT.JOB, "Job", "1", "first");
    log.flush();
    renameSync(join(dir, "a", "20261120"), join(dir, "a", "old"));
    log.reopen();
    log.record(LOG_EVENT.JOB, "Job", "1", "second");
    log.redirect(join(dir, "b"));
    log.record(LOG_EVENT.JOB, "Job", "1", "third");
    log.close();
    const texts = (path: string): string[] => lines(join(dir, path)).map((line) => line.slice(line.lastIndexOf(";") + 1));
    assert.deepEqual(texts("a/old").slice(3), ["first", "Log closed"]);
    assert.deepEqual(texts("a/20261120").slice(3), ["second", "Log closed"]);
    assert.deepEqual(texts("b/20261120").slice(3), ["third", "Log closed"]);
    const fixed = openLog({ dir: "/nonexistent", file: join(dir, "one"), daemon: "pbs_mom", clock });
    fixed.record(LOG_EVENT.JOB, "Job", "1", "today");
    clock.advance(86_400_000);
    fixed.record(LOG_EVENT.JOB, "Job", "1", "tomorrow");
    fixed.close();
    assert.deepEqual(texts("one").slice(3), ["today", "tomorrow", "Log closed"]);
  });
});

test("log: a disk that refuses loses counted records, and the log says so when it goes on", () => {
  inDirectory((dir) => {
    const log = openLog({ dir, file: "/dev/full", daemon: "pbs_mom", clock: manualClock(NOON), delay_ms: 0 });
    log.record(LOG_EVENT.JOB, "Job", "1", "lost");
    log.close();
  });
  inDirectory((dir) => {
    const log = openLog({ dir: "/proc/nonexistent", daemon: "pbs_mom", clock: manualClock(NOON), delay_ms: 0 });
    for (let at = 0; at < 3; at++) log.record(LOG_EVENT.JOB, "Job", "1", `lost ${at}`);
    log.redirect(dir);
    log.record(LOG_EVENT.JOB, "Job", "1", "kept");
    log.close();
    const [, , , notice, kept] = lines(join(dir, "20261120"));
    assert.match(notice ?? "", /;0001;pbs_mom;Svr;Log;3 log records lost: /);
    assert.match(kept ?? "", /;kept$/);
  });
});

test("log: high resolution time stamps", () => {
  assert.equal(localStamper(true).stamp(NOON + 12.345), "11/20/2026 12:00:00.012345");
  assert.equal(localStamper(false).stamp(NOON + 12.345), "11/20/2026 12:00:00");
});

test("accounting: the record format, the day of the record's own time, order kept", () => {
  inDirectory((dir) => {
    const accounting = openAccounting({ dir, clock: manualClock(NOON) });
    accounting.record("Q", "1.svr", "user=alice queue=workq ");
    accounting.record("D", "1.svr", "requestor=alice@svr", NOON / 1000 + 1);
    for (let at = 0; at < 1000; at++) accounting.record("A", `${at}.svr`, "x");
    accounting.close();
    const all = lines(join(dir, "20261120"));
    assert.deepEqual(all.slice(0, 2), [
      "11/20/2026 12:00:00;Q;1.svr;user=alice queue=workq ",
      "11/20/2026 12:00:01;D;1.svr;requestor=alice@svr",
    ]);
    assert.deepEqual(
      all.slice(2),
      Array.from({ length: 1000 }, (_, at) => `11/20/2026 12:00:00;A;${at}.svr;x`),
    );
  });
});

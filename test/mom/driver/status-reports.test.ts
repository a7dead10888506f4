// What a mom on another host than its server reports, and on which way.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { openingOf, StatusReports } from "#mom/driver/status-reports.ts";
import { DATAGRAM_BYTES_MAX } from "#protocol/datagram/packet.ts";
import { type Opened, StatusDesk } from "#protocol/datagram/status-desk.ts";
import type { MomReport } from "#protocol/mom-link.ts";
import { type FrameOf, parseFrame } from "#protocol/schema-link.ts";
import { aesGcm } from "#protocol/udp/aes-gcm.ts";

type Bed = {
  readonly reports: StatusReports;
  /** passes time until the next report, and returns what the datagrams of it said */
  next(): MomReport[];
  /** answers all datagrams of the last report */
  answer(): void;
  /** frames over the connection since the last call */
  frames(): FrameOf<"mom-to-server">[];
  readonly delays: number[];
  readonly notes: string[];
  ill: string | null;
  keys(): void;
};

/** what the mom's clock shows */
const CLOCK_MS = 1_800_000_000_000;

function bed(host = "n1"): Bed {
  const desk = new StatusDesk({ cipher: aesGcm, random: randomBytes, boot: "1", rotation_ms: 3_600_000 });
  const [delays, notes]: [number[], string[]] = [[], []];
  const frames: FrameOf<"mom-to-server">[] = [];
  let timer: (() => void) | null = null;
  let number = 0;
  let heard: (bytes: Uint8Array) => void = () => undefined;
  let arrived: Opened[] = [];
  const reports = new StatusReports({
    port: {
      cipher: aesGcm,
      open: (hears) => {
        heard = hears;
        return {
          send(bytes) {
            assert.ok(bytes.length <= DATAGRAM_BYTES_MAX);
            const opened = desk.open(bytes, 0);
            assert.ok(opened !== null);
            arrived.push(opened);
          },
          close: () => undefined,
        };
      },
    },
    clock: {
      wall_ms: () => CLOCK_MS + 0.5,
      after(delay_ms, work) {
        delays.push(delay_ms);
        timer = work;
        return () => {
          if (timer === work) timer = null;
        };
      },
    },
    host,
    every_s: () => 15,
    opening: () => openingOf(++number, 0, made.ill),
    answered: () => undefined,
    send: (frame) => void frames.push(frame),
    note: (text) => void notes.push(text),
  });
  const made: Bed = {
    reports,
    delays,
    notes,
    ill: null,
    next() {
      arrived = [];
      const due = timer;
      assert.ok(due !== null, "no report is due");
      due();
      return arrived.map(({ text }) => {
        const parsed = parseFrame("mom-to-server", "mom-report", JSON.parse(text));
        assert.ok(parsed.ok && parsed.frame.type === "mom-report", text);
        return parsed.frame.data;
      });
    },
    answer() {
      for (const { text, answer } of arrived) heard(answer(JSON.stringify({ number: (JSON.parse(text) as MomReport).number })));
    },
    frames: () => frames.splice(0),
    keys() {
      const { channel, key, boot } = desk.admit(1, host, 0);
      reports.takeKeys({ channel, key: Buffer.from(key).toString("base64"), boot });
    },
  };
  made.keys();
  reports.begin();
  return made;
}

/** A report without usage. */
const bare = (number: number): MomReport => ({ number, clock_ms: CLOCK_MS });
const usage = (job: number, cput = 1) => ({ job: `${job}.svr`, run_count: 1, used: { cput, mem: "1024kb", walltime: 60 } });

test("a report every interval; usage stays in them until one with it was answered", () => {
  const b = bed();
  assert.deepEqual(b.next(), [bare(1)]);
  b.answer();
  b.reports.keepUsage([usage(1), usage(2)]);
  assert.deepEqual(b.next(), [{ ...bare(2), jobs: [usage(1), usage(2)] }]);
  // The datagram was lost, and there is news about one of the runs.
  b.reports.keepUsage([usage(1, 2)]);
  assert.deepEqual(b.next(), [{ ...bare(3), jobs: [usage(1, 2), usage(2)] }]);
  // News since the report was sent: its answer says nothing about them.
  b.reports.keepUsage([usage(1, 3)]);
  b.answer();
  assert.deepEqual(b.next(), [{ ...bare(4), jobs: [usage(1, 3)] }]);
  b.answer();
  assert.deepEqual(b.next(), [bare(5)]);
  assert.deepEqual(
    b.delays.slice(1),
    Array.from({ length: 5 }, () => 15_000),
  );
  assert.deepEqual(b.frames(), []);
});

test("resources of the site and what is wrong with the mom", () => {
  const b = bed();
  b.reports.keepSite({ temp: "20" });
  b.ill = `the starter\u0007 of its jobs ${"x".repeat(300)}`;
  const [report] = b.next();
  assert.deepEqual(report?.site, { temp: "20" });
  assert.match(report?.ill ?? "", /^the starter\? of its jobs x+$/);
  assert.equal(report?.ill?.length, 200);
  b.answer();
  b.ill = null;
  assert.deepEqual(b.next(), [bare(2)]);
});

test("the usage of many runs goes into several datagrams, each of which is a report; what fits into none goes over the connection", () => {
  const b = bed();
  const jobs = Array.from({ length: 300 }, (_, at) => usage(at));
  b.reports.keepUsage([...jobs, { job: "999.svr", run_count: 1, used: { note: "x".repeat(2000) } }]);
  b.reports.keepSite({ note: "y".repeat(2000) });
  b.ill = 'é"\\'.repeat(100);
  const reports = b.next();
  assert.ok(reports.length > 10 && reports.length < 60, `${reports.length} reports`);
  assert.deepEqual(
    reports.map(({ number }) => number),
    reports.map((_, at) => at + 1),
  );
  assert.ok(reports.every(({ ill }) => ill !== undefined));
  assert.deepEqual(
    reports.flatMap((report) => report.jobs ?? []).map(({ job }) => job),
    jobs.map(({ job }) => job),
  );
  assert.deepEqual(
    b.frames().map(({ type }) => type),
    ["mom-site", "mom-usage"],
  );
  b.answer();
  assert.equal(b.next().length, 1);
});

test("while datagrams are not answered, reports also go over the connection", () => {
  const b = bed();
  for (let count = 1; count <= 3; count++) {
    b.next();
    assert.deepEqual(b.frames(), [], `${count} unanswered`);
  }
  b.reports.keepUsage([usage(1)]);
  assert.equal(b.next().length, 1, "datagrams are still tried");
  const [frame] = b.frames();
  assert.deepEqual(frame, { type: "mom-report", data: { ...bare(5), unheard: 4, jobs: [usage(1)] } });
  assert.deepEqual(b.notes, ["the server does not answer datagrams: reports go over the connection"]);
  // The answer to it comes over the connection too.
  b.reports.heard({ number: 5 });
  assert.deepEqual(b.next(), [bare(6)]);
  assert.deepEqual(b.frames(), [{ type: "mom-report", data: { ...bare(7), unheard: 5 } }]);
  b.answer();
  b.next();
  assert.deepEqual([b.frames(), b.notes.at(-1)], [[], "the server answers datagrams again"]);
});

test("without a key there are no datagrams, and without a connection no reports; a new connection brings a new key", () => {
  const b = bed();
  b.reports.pause();
  assert.equal(b.reports.isOn, false);
  assert.throws(() => b.next(), /no report is due/);
  b.reports.keepUsage([usage(1)]);
  b.reports.begin();
  assert.deepEqual(b.next(), []);
  assert.equal(b.frames()[0]?.type, "mom-report");
  b.keys();
  assert.deepEqual(
    b.next().map(({ jobs }) => jobs),
    [[usage(1)]],
  );
});

test("moms that are welcomed together do not report together", () => {
  const first = Array.from({ length: 500 }, (_, at) => bed(`node${at}`).delays[0] ?? 0);
  const inSecond = Array.from({ length: 15 }, (_, second) => first.filter((delay_ms) => Math.floor(delay_ms / 1000) === second).length);
  assert.ok(
    inSecond.every((count) => count > 10 && count < 70),
    inSecond.join(),
  );
});

// partita top: lines, keys and the snapshot without a terminal, and ink's rendering by renderToString.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SchedPicture, TopPicture } from "#admin/top/picture.ts";
import { press, screenLines, shownJobs, snapshotText, TOP_START, type TopKey, type TopState } from "#admin/top/screen.ts";
import { RESV_STATE } from "#model/resv-state.ts";
import type { SchedView, WaitingJob } from "#protocol/sched-view.ts";

process.env["TZ"] = "UTC";
const AT_S = Date.UTC(2026, 10, 20, 9, 26, 28) / 1000;

const waiting = (id: string, more: Partial<WaitingJob> = {}): WaitingJob => ({
  id,
  user: "alice",
  queue: "workq",
  select: "1:ncpus=4",
  walltime_s: 3600,
  queued_s: AT_S - 60,
  comment: "Not Running: Not enough free nodes available",
  top_job: false,
  start_s: null,
  ...more,
});

const VIEW: SchedView = {
  sched: "default",
  at_s: AT_S,
  pid: 1,
  since_s: AT_S - 100,
  modules: [],
  problem: null,
  cycles_done: 3,
  jobs_started: 7,
  jobs: { R: 2, Q: 3 },
  classes: 2,
  partitions: [
    {
      name: "pbs-default",
      vnodes: 4,
      free: 2,
      closed: 1,
      bars: [
        { resource: "ncpus", size: false, total: 40, used: 10, reserved: 8, inside: 4, closed: 10 },
        { resource: "mem", size: true, total: 4 * 1024 ** 2, used: 1, reserved: 0, inside: 0, closed: 0 },
      ],
    },
  ],
  cycles: [1, 9, 5].map((cycle_ms) => ({ at_s: AT_S, command: 1, cycle_ms, jobs_considered: 1, jobs_started: 0 })),
  events: [{ at_s: AT_S - 5, job: "1.svr", text: "runs on (n1:ncpus=4)" }],
  waiting: [
    waiting("2.svr", { top_job: true, start_s: AT_S + 60 }),
    waiting("3.svr", { user: "bob" }),
    waiting("4.svr", { queue: "night" }),
  ],
  resvs: [{ id: "R9.svr", start_s: AT_S, end_s: AT_S + 3600, running: true, vnodes: 2 }],
};
const sched = (name: string, more: Partial<SchedPicture> = {}): SchedPicture => ({
  name,
  state: "idle",
  scheduling: true,
  partition: "pbs-default",
  comment: "",
  view: VIEW,
  fault: "",
  ...more,
});
const PICTURE: TopPicture = {
  server: "svr",
  at_s: AT_S,
  scheds: [sched("default"), sched("s1", { state: "down", partition: "p1", comment: "NEEDS_ATTENTION", view: null })],
  unserved: [],
};
const SIZE = { columns: 120, rows: 40 };
const texts = (state: TopState, size = SIZE): string[] =>
  screenLines(PICTURE, state, size).map((line) => line.map(({ text }) => text).join(""));
const keys = (...all: TopKey[]): TopState => all.reduce((state, key) => press(state, key, PICTURE), TOP_START);
const type = (text: string): TopKey => ({ kind: "text", text });

test("top: reservations that are not as they should be say so", () => {
  const at = { start_s: AT_S, end_s: AT_S + 60 };
  const resvs = [
    { id: "R1", ...at, running: true, vnodes: 1, state: RESV_STATE.DEGRADED },
    { id: "R2", ...at, running: false, vnodes: 3, state: RESV_STATE.DEGRADED },
    { id: "R3", ...at, running: false, vnodes: 0, state: RESV_STATE.UNCONFIRMED },
    { id: "R4", ...at, running: false, vnodes: 1, state: RESV_STATE.CONFIRMED },
  ];
  const text = snapshotText({ ...PICTURE, scheds: [sched("default", { view: { ...VIEW, resvs } })] });
  const until = "Fri Nov 20 09:27:28 2026";
  for (const line of [
    `R1 runs, is degraded, until ${until}, 1 vnode`,
    `R2 is degraded, from Fri Nov 20 09:26:28 2026 to ${until}, 3 vnodes`,
    `R3 is not confirmed, from Fri Nov 20 09:26:28 2026 to ${until}`,
    `R4 comes, from Fri Nov 20 09:26:28 2026 to ${until}, 1 vnode`,
  ])
    assert.ok(text.includes(`\n  ${line}\n`), `${line}\n${text}`);
});

test("top: the snapshot shows schedulers, bars, reservations, jobs with planned starts and events", () => {
  const text = snapshotText(PICTURE);
  assert.match(text, /^partita top {2}svr {2}Fri Nov 20 09:26:28 2026\n\ndefault idle {2}partitions pbs-default\n/);
  assert.match(text, /\n {2}jobs Q 3 R 2 {2}shapes 2 {2}cycles 3 {2}last 5.0 ms {2}median 5.0 ms {2}started 7\n/);
  assert.match(text, /\n {2}pbs-default: 4 vnodes, 2 with room, 1 closed\n/);
  assert.match(text, /\n {4}ncpus {2}\[#{10}R{4}r{4}x{10}\.{12}\] 14 of 40 used, 8 reserved\n/);
  assert.match(text, /\n {4}mem {4}\[#\.{39}\] 0.0gb of 4.0gb used\n/, "what is there at all has a mark");
  assert.match(text, /\n {2}R9.svr runs, until Fri Nov 20 10:26:28 2026, 2 vnodes\n/);
  assert.match(text, /\ns1 down {2}partitions p1 {2}NEEDS_ATTENTION\n/);
  assert.match(
    text,
    /\n2.svr +alice +workq +1:ncpus=4 +01:00:00 +Fri Nov 20 09:27:28 2026 {2}Not enough free nodes available\n3.svr +bob /,
  );
  assert.match(text, /\nevents\n {2}09:26:23 default: 1.svr runs on \(n1:ncpus=4\)\n$/);
});

test("top: keys choose, filter, go from scheduler to scheduler, open and scroll an explanation, end", () => {
  const chosen = (state: TopState): string | undefined =>
    screenLines(PICTURE, state, SIZE)
      .flat()
      .find(({ style }) => style === "chosen")
      ?.text.slice(0, 5);
  assert.deepEqual(
    [chosen(TOP_START), chosen(keys({ kind: "down" }, { kind: "down" })), chosen(keys({ kind: "up" }))],
    ["2.svr", "4.svr", "2.svr"],
  );
  const filtered = keys(type("/"), type("b"), type("o"), type("x"), { kind: "backspace" }, { kind: "enter" });
  assert.deepEqual(
    shownJobs(PICTURE, filtered).map(({ id }) => id),
    ["3.svr"],
  );
  assert.match(texts(filtered)[0] ?? "", /\/bo$/);
  assert.equal(keys(type("/"), type("q")).over, false, "q in a filter is a letter");
  assert.equal(shownJobs(PICTURE, press(filtered, { kind: "escape" }, PICTURE)).length, 3);
  assert.deepEqual([keys({ kind: "tab" }).sched, keys({ kind: "tab" }, { kind: "tab" }, { kind: "tab" }).sched], ["default", null]);
  assert.equal(keys({ kind: "down" }, { kind: "enter" }).asking, "3.svr");
  const opened: TopState = { ...TOP_START, opened: { job: "3.svr", text: "Job 3\nline 1\nline 2\n", from: 0 } };
  assert.deepEqual(texts(press(opened, { kind: "down" }, PICTURE)).slice(1), ["line 1", "line 2"]);
  assert.equal(press(opened, { kind: "escape" }, PICTURE).opened, null);
  assert.equal(keys(type("q")).over, true);
});

test("top: no line is longer than the screen is wide, nor are there more than it has rows", () => {
  for (const columns of [1, 20, 80])
    for (const rows of [1, 5, 12, 30]) {
      const lines = texts(TOP_START, { columns, rows });
      assert.ok(lines.length <= rows && lines.every((line) => line.length <= columns), `${columns}x${rows}`);
    }
  assert.ok(
    texts(keys({ kind: "down" }, { kind: "down" }), { columns: 80, rows: 14 }).some((line) => line.startsWith("4.svr")),
    "what is chosen is shown",
  );
  assert.match(snapshotText({ ...PICTURE, scheds: [] }), /No job waits\./);
});

test("top: ink draws the same lines", async () => {
  const [{ renderToString }, { createElement }, { Screen }] = await Promise.all([
    import("ink"),
    import("react"),
    import("#admin/top/app.tsx"),
  ]);
  const drawn = renderToString(createElement(Screen, { picture: PICTURE, state: TOP_START, size: SIZE, reached: true }), {
    columns: SIZE.columns,
  });
  const plain = drawn.split("\n").map((line) => line.trimEnd());
  assert.deepEqual(
    plain,
    texts(TOP_START).map((line) => line.trimEnd()),
  );
  const lost = renderToString(createElement(Screen, { picture: PICTURE, state: TOP_START, size: SIZE, reached: false }), {
    columns: SIZE.columns,
  });
  assert.match(lost, /the server does not answer: this is old/);
});

test("top: jobs that no scheduler looks at are shown, with why and what to do", () => {
  const nobody = {
    sched: "",
    partition: "p9",
    text: "No scheduler serves partition p9",
    remedy: "give it one",
    jobs: 41,
    waiting: [waiting("9.svr")],
  };
  const picture: TopPicture = { ...PICTURE, scheds: [sched("s1", { state: "down", view: null })], unserved: [nobody] };
  const text = snapshotText(picture);
  assert.match(text, /^41 jobs of partition p9 wait: No scheduler serves partition p9\n {2}to mend: give it one$/m);
  assert.match(text, /^9\.svr .*No scheduler serves partition p9$/m);
  assert.doesNotMatch(text, /No job waits/);
  assert.deepEqual(shownJobs({ ...picture, unserved: [{ ...nobody, sched: "s1" }] }, { ...TOP_START, sched: "default" }), []);
  const hidden = snapshotText({ ...picture, unserved: [{ ...nobody, waiting: [] }] });
  assert.doesNotMatch(hidden, /No job waits/, "that none may be told is no news");
});

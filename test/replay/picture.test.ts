// Schedules as pictures: bars never share a lane at the same time, the SVG is well formed, and curves have the right sums.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Algorithm } from "#replay/algorithm.ts";
import { algorithmNamed } from "#replay/algorithm.ts";
import { chooseColouring, coloursOf } from "#replay/colouring.ts";
import type { Gantt, GanttBar } from "#replay/gantt.ts";
import { layLanes, loadOver } from "#replay/gantt.ts";
import { comparisonTable, metricsOf, metricsTable } from "#replay/metrics.ts";
import { pictureOf } from "#replay/picture.ts";
import { ganttOf, replay } from "#replay/replay.ts";
import { numberTicks, timeTicks } from "#replay/svg.ts";
import { type Clock, SINCE_ZERO, timeAxis } from "#replay/time-axis.ts";
import type { TraceJob } from "#replay/trace.ts";

const job = (id: number, submit_s: number, procs: number, est_s: number, run_s = est_s): TraceJob => ({
  id,
  submit_s,
  procs,
  est_s,
  run_s,
  partition: -1,
});

const jobs = fc
  .array(fc.record({ submit_s: fc.nat(40), procs: fc.integer({ min: 1, max: 8 }), run_s: fc.integer({ min: 1, max: 20 }) }), {
    maxLength: 30,
  })
  .map((rows) =>
    rows.sort((a, b) => a.submit_s - b.submit_s).map(({ submit_s, procs, run_s }, at) => job(at + 1, submit_s, procs, run_s + 3, run_s)),
  );

test("lanes: every bar has as many as it has slots, and no two bars that overlap in time share one", () => {
  fc.assert(
    fc.property(jobs, fc.constantFrom("fcfs", "easy", "cons"), (trace, name) => {
      const pools = [{ procs: 8, reservations: [{ start_s: 30, duration_s: 10, procs: 3 }] }];
      const { starts_s } = replay({ jobs: trace, pools, algorithm: algorithmNamed(name) as Algorithm });
      const { bars, crowded } = layLanes(ganttOf({ title: "", jobs: trace, starts_s, pools }));
      assert.deepEqual([bars.length, crowded], [trace.length + 1, 0]);
      const cells = new Set<string>();
      for (const { bar, lanes } of bars) {
        assert.equal(
          lanes.reduce((sum, [, count]) => sum + count, 0),
          bar.slots,
        );
        for (const [first, count] of lanes)
          for (let lane = first; lane < first + count; lane++)
            for (let at_s = bar.from_s; at_s < bar.to_s; at_s++) {
              assert.ok(!cells.has(`${lane} ${at_s}`), `lane ${lane} at ${at_s}`);
              cells.add(`${lane} ${at_s}`);
            }
      }
    }),
  );
});

const bar = (id: string, more: Partial<GanttBar> = {}): GanttBar => ({
  id,
  kind: "job",
  row: 0,
  slots: 1,
  from_s: 0,
  to_s: 10,
  colour: id,
  ...more,
});

test("lanes: what runs in a reservation lies in it; what has no lane of its own is told", () => {
  const rows = [{ name: "a", group: "", slots: 4 }];
  const inside = layLanes({
    title: "",
    rows,
    bars: [
      bar("1", { slots: 1, to_s: 20 }),
      bar("R1", { kind: "reservation", slots: 2, from_s: 5, to_s: 15 }),
      bar("2", { from_s: 6, to_s: 9, slots: 2, inside: "R1" }),
    ],
  });
  assert.deepEqual(
    inside.bars.map(({ bar: { id }, lanes }) => [id, lanes]),
    [
      ["1", [[0, 1]]],
      ["R1", [[1, 2]]],
      ["2", [[1, 2]]],
    ],
  );
  assert.equal(inside.crowded, 0);
  assert.equal(layLanes({ title: "", rows, bars: [bar("1", { slots: 3 }), bar("2", { slots: 2, from_s: 5 })] }).crowded, 1);
});

test("load: used slots and waiting jobs by column", () => {
  const gantt: Gantt = {
    title: "",
    rows: [{ name: "a", group: "", slots: 4 }],
    bars: [bar("1", { slots: 2, to_s: 5, submit_s: 0 }), bar("2", { slots: 4, from_s: 5, to_s: 10, submit_s: 2.5 })],
  };
  assert.deepEqual(loadOver(gantt, 0, 10, 4), { used: [2, 2, 4, 4], waiting: [0, 1, 0, 0] });
  assert.deepEqual(loadOver({ ...gantt, never_started_s: [5] }, 0, 10, 4).waiting, [0, 1, 1, 1], "what never starts waits to the end");
});

/** Tags are closed in reverse order of opening; texts contain no raw < or &. */
function assertWellFormed(svg: string): void {
  const open: string[] = [];
  for (const [all, close, name, self] of svg.matchAll(/<(\/?)([a-zA-Z]+)(?:\s+[\w:-]+="[^"<]*")*\s*(\/?)>/g)) {
    if (close === "/") assert.equal(open.pop(), name, all);
    else if (self !== "/") open.push(name as string);
  }
  assert.deepEqual(open, []);
  const rest = svg.replaceAll(/<\/?[a-zA-Z]+(?:\s+[\w:-]+="[^"<]*")*\s*\/?>/g, "");
  assert.ok(!rest.includes("<"), rest);
  assert.doesNotMatch(svg, /NaN|Infinity|undefined/);
  assert.doesNotMatch(svg, /&(?!(amp|lt|gt|quot);)/);
}

test("the picture is well-formed, shows every bar, cuts what it is told to, and survives having nothing to show", () => {
  const rows = [
    { name: "n<1>", group: "p&1", slots: 4 },
    { name: "n2", group: "p2", slots: 4 },
  ];
  const bars = [
    bar("1.svr"),
    bar("2.svr", { row: 1, slots: 3, from_s: 20, to_s: 50 }),
    bar("R<3>", { kind: "reservation", from_s: 10, to_s: 20 }),
    bar("4", { kind: "planned", from_s: 50, to_s: 60 }),
  ];
  const svg = pictureOf({ title: 'a & b <c> "d"', rows, bars });
  assertWellFormed(svg);
  assert.equal([...svg.matchAll(/<title>/g)].length, 7, "the document, two partitions, four bars");
  assert.match(svg, /2 jobs on 8 slots, 1 reservation \(hatched\), 1 planned \(hollow\)/);
  const cut = pictureOf({ title: "", rows, bars }, { from_s: 0, to_s: 10 });
  assert.equal([...cut.matchAll(/<title>/g)].length, 4);
  assertWellFormed(pictureOf({ title: "", rows, bars: [] }));
  const many = Array.from({ length: 4000 }, (_, at) => bar(String(at), { from_s: at, to_s: at + 1 }));
  const large = pictureOf({ title: "", rows, bars: many });
  assertWellFormed(large);
  assert.ok(large.length < 200_000, "many bars are one path a colour");
});

/** Labels of SVG text as [x, y, text]. */
const labelsOf = (svg: string): [x: number, y: number, text: string][] =>
  [...svg.matchAll(/<text x="(-?[\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</g)].map(([, x, y, text]) => [Number(x), Number(y), text as string]);

/** A clock of a place that is five and a half hours ahead, with long names of days. */
const CALCUTTA: Clock = (time_s) => {
  const { day, second_of_day } = SINCE_ZERO(time_s + 19_800);
  return { day: `28 Sep ${day.slice(4)}`, second_of_day };
};

test("time axis: no label lies on another, whatever is shown", () => {
  fc.assert(
    fc.property(
      fc.nat(2_000_000_000),
      fc.integer({ min: 1, max: 400_000_000 }),
      fc.integer({ min: 300, max: 3000 }),
      fc.constantFrom(SINCE_ZERO, CALCUTTA),
      (from_s, length_s, width, clock) => {
        const svg = timeAxis({ from_s, to_s: from_s + length_s }, { left: 100, width, top: 0, bottom: 50 }, clock).join("\n");
        const labels = labelsOf(svg);
        for (const row of [66, 79]) {
          let end = Number.NEGATIVE_INFINITY;
          for (const [x, , text] of labels.filter(([, y]) => y === row)) {
            const half = (text.length * 6.2) / 2;
            assert.ok(x - half > end, `${text} at ${x} begins before ${end}`);
            end = x + half;
          }
        }
      },
    ),
  );
});

test("time axis: minutes within a day, days below where the day changes, days alone over weeks", () => {
  const texts = (from_s: number, to_s: number): string =>
    labelsOf(timeAxis({ from_s, to_s }, { left: 0, width: 500, top: 0, bottom: 0 }, SINCE_ZERO).join(""))
      .map(([, , text]) => text)
      .join(" ");
  assert.equal(texts(10, 130), "00:00:30 00:01:00 00:01:30 00:02:00");
  assert.equal(texts(0, 3600), "00:00 00:10 00:20 00:30 00:40 00:50 01:00");
  assert.equal(texts(80_000, 90_000), "22:30 day 0 23:00 23:30 00:00 day 1 00:30 01:00");
  assert.equal(texts(0, 30 * 86_400), "day 0 day 7 day 14 day 21 day 28");
});

test("colours: the names that use most have one each, the others share one; a colouring that tells nothing apart is not chosen", () => {
  const bars = Array.from({ length: 20 }, (_, at) => bar(String(at), { colour: `user ${at}`, slots: at + 1 }));
  const { entries, colourOf } = coloursOf([...bars, bar("R1", { kind: "reservation", colour: "" })], "user");
  assert.deepEqual(
    entries.map(({ name }) => name),
    [...Array.from({ length: 11 }, (_, at) => `user ${19 - at}`), "9 others"],
  );
  assert.equal(new Set(entries.map(({ colour }) => colour)).size, 12);
  assert.equal(colourOf(bars[0] as GanttBar), entries.at(-1)?.colour);
  assert.deepEqual(coloursOf(bars, "job").entries, []);
  const one = { user: "u", queue: "q", partition: "p" };
  assert.equal(chooseColouring([one, { ...one, user: "v", queue: "r" }]), "user");
  assert.equal(chooseColouring([one, { ...one, partition: "r" }]), "partition");
  assert.equal(chooseColouring([one, one]), "job");
});

test("several schedules in one picture: one time axis, one legend, the same colours, one scale of what waits", () => {
  const rows = [{ name: "a", group: "p1", slots: 4 }];
  const before = {
    title: "before",
    rows,
    bars: [bar("1", { colour: "alice" }), bar("2", { colour: "bob", from_s: 10, to_s: 20, submit_s: 0 })],
  };
  const after = {
    title: "after",
    rows,
    bars: [bar("2", { colour: "bob" }), bar("1", { colour: "alice", from_s: 60, to_s: 70, submit_s: 60 })],
  };
  const svg = pictureOf([before, after], { title: "what if", colouring: "user", to_s: 30 });
  assertWellFormed(svg);
  const texts = labelsOf(svg).map(([, , text]) => text);
  for (const [text, times] of [
    ["what if", 1],
    ["before", 1],
    ["after", 1],
    ["user:", 1],
    ["alice", 1],
    ["bob", 1],
    ["00:00:10", 1],
    ["2 jobs on 4 slots", 1],
    ["1 job on 4 slots", 1],
  ] as const)
    assert.equal(texts.filter((each) => each === text).length, times, text);
  const fills = (id: string): string[] =>
    [...svg.matchAll(new RegExp(`fill="(#\\w+)"[^>]*><title>${id}:`, "g"))].map((match) => match[1] as string);
  assert.equal(new Set(fills("2")).size, 1);
  assert.notEqual(fills("2")[0], fills("1")[0]);
});

test("ticks: round, within their range, not too many", () => {
  fc.assert(
    fc.property(fc.nat(10_000_000), fc.integer({ min: 1, max: 100_000_000 }), fc.nat(86_399), (from_s, length_s, offset_s) => {
      const { ticks, step_s } = timeTicks(from_s, from_s + length_s, 10, offset_s);
      assert.ok(ticks.length <= 11);
      for (const tick of ticks) assert.ok(tick >= from_s && tick <= from_s + length_s && (tick - offset_s) % step_s === 0);
    }),
  );
  assert.deepEqual(numberTicks(7, 3), [0, 5, 10]);
  assert.deepEqual(numberTicks(0, 3), [0, 1]);
  assert.deepEqual(numberTicks(0.3, 3), [0, 0.1, 0.2, 0.3]);
});

test("metrics: how waits and sizes are distributed; tables", () => {
  const trace = [job(1, 0, 1, 10), job(2, 0, 8, 10), job(3, 0, 3, 4000), job(4, 0, 2000, 10)];
  const metrics = metricsOf(trace, [0, 60, 61, 90_000], 2000);
  assert.deepEqual(
    metrics.waits.map(({ jobs: count }) => count),
    [1, 1, 1, 0, 0, 0, 1, 0],
  );
  assert.deepEqual(metrics.by_procs, [
    { upto: 1, jobs: 1, wait_s_mean: 0, bounded_slowdown_mean: 1 },
    { upto: 4, jobs: 1, wait_s_mean: 61, bounded_slowdown_mean: 4061 / 4000 },
    { upto: 8, jobs: 1, wait_s_mean: 60, bounded_slowdown_mean: 7 },
    { upto: null, jobs: 1, wait_s_mean: 90_000, bounded_slowdown_mean: 9001 },
  ]);
  assert.match(metricsTable("x", metrics), /^> 1024 slots +1 +90000.0000 +9001.0000$/m);
  assert.match(comparisonTable([{ algorithm: "easy", metrics }]), /^easy +4 /m);
});

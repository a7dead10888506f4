// npm run bench -- --only curves [--svg FILE]: what a scheduling cycle costs, against the number of jobs, of shapes and of vnodes, as a picture (default
// docs/cycle-cost.svg). Plain: nothing can run. Strict: strict_ordering and backfill_depth 10, ten jobs are planned in every cycle.

import { escapeXml, label, numberTicks, px, svgDocument, tag } from "#replay/svg.ts";
import { blockedWorld, plannedWorld, type Size } from "./sched-cycle.ts";

type Point = { readonly at: number; readonly ms: number };
type Curve = { readonly name: string; readonly colour: string; readonly points: readonly Point[] };
type Panel = { readonly title: string; readonly curves: readonly Curve[] };

const BASE: Size = { jobs: 20_000, shapes: 500, nodes: 2000 };
// biome-ignore format: a table
const AXES: readonly { readonly title: string; readonly of: keyof Size; readonly values: readonly number[] }[] = [
  { title: "queued jobs (500 shapes, 2,000 vnodes)",  of: "jobs",   values: [1000, 20_000, 40_000, 70_000, 100_000] },
  { title: "shapes (20,000 jobs, 2,000 vnodes)",      of: "shapes", values: [50, 250, 500, 1000, 2000] },
  { title: "vnodes (20,000 jobs, 500 shapes)",        of: "nodes",  values: [500, 2000, 4000, 7000, 10_000] },
];
const REPEATS = 25;

/** Measures and draws. */
export function curves(say: (text: string) => void): string {
  const panels = AXES.map(({ title, of, values }): Panel => {
    const measured = (name: string, colour: string, make: (size: Size) => { go(): unknown }): Curve => ({
      name,
      colour,
      points: values.map((at) => {
        say(`${name}, ${of} ${at}`);
        return { at, ms: cost(make({ ...BASE, [of]: at })) };
      }),
    });
    return { title, curves: [measured("plain", "#4e79a7", blockedWorld), measured("strict, depth 10", "#d1495b", settledPlans)] };
  });
  return draw(panels);
}

function settledPlans(size: Size): { go(): unknown } {
  const world = plannedWorld(size);
  world.publish(world.go());
  return world;
}

/** The fastest of several cycles after a first one, in milliseconds. Other work on the machine can only slow a cycle down. */
function cost(world: { go(): unknown }): number {
  world.go();
  const times = Array.from({ length: REPEATS }, () => {
    const begun = performance.now();
    world.go();
    return performance.now() - begun;
  });
  return Math.min(...times);
}

const WIDTH = 330;
const HEIGHT = 230;
const LEFT = 56;
const TOP = 62;

function draw(panels: readonly Panel[]): string {
  const top = Math.max(...panels.flatMap(({ curves: all }) => all.flatMap(({ points }) => points.map(({ ms }) => ms))));
  const ticks = numberTicks(top, 5);
  const body = [
    label(LEFT, 22, `One scheduling cycle, milliseconds (quickest of ${REPEATS})`, { "font-size": 14 }),
    ...legend(panels[0]?.curves ?? []),
  ];
  panels.forEach((panel, at) => {
    body.push(tag("g", { transform: `translate(${px(LEFT + at * (WIDTH + 50))} ${TOP})` }, drawPanel(panel, ticks).join("\n")));
  });
  return svgDocument("Cost of a scheduling cycle", LEFT + panels.length * (WIDTH + 50), TOP + HEIGHT + 50, body);
}

function legend(all: readonly Curve[]): string[] {
  return all.flatMap(({ name, colour }, at) => [
    tag("path", { d: `M${LEFT + at * 130} 40h24`, stroke: colour, "stroke-width": 2 }),
    label(LEFT + at * 130 + 30, 44, name),
  ]);
}

function drawPanel({ title, curves: all }: Panel, ticks: readonly number[]): string[] {
  const right = Math.max(...all.flatMap(({ points }) => points.map(({ at }) => at)));
  const top = ticks.at(-1) as number;
  const x = (at: number): number => (WIDTH * at) / right;
  const y = (ms: number): number => HEIGHT - (HEIGHT * ms) / top;
  const lines: string[] = [];
  for (const tick of ticks) {
    lines.push(tag("path", { d: `M0 ${px(y(tick))}H${WIDTH}`, stroke: "#e4e4e4" }));
    lines.push(label(-6, y(tick) + 4, String(tick), { "text-anchor": "end" }));
  }
  for (const tick of numberTicks(right, 4)) {
    if (tick <= right) lines.push(label(x(tick), HEIGHT + 16, tick.toLocaleString("en"), { "text-anchor": "middle" }));
  }
  lines.push(tag("path", { d: `M0 0V${HEIGHT}H${WIDTH}`, fill: "none", stroke: "#999999" }));
  for (const { points, colour } of all) {
    const path = points.map(({ at, ms }, index) => `${index === 0 ? "M" : "L"}${px(x(at))} ${px(y(ms))}`).join("");
    lines.push(tag("path", { d: path, fill: "none", stroke: colour, "stroke-width": 2 }));
    for (const { at, ms } of points)
      lines.push(tag("circle", { cx: x(at), cy: y(ms), r: 3, fill: colour }, `<title>${escapeXml(`${at}: ${ms.toFixed(1)} ms`)}</title>`));
  }
  lines.push(label(WIDTH / 2, HEIGHT + 36, title, { "text-anchor": "middle" }));
  return lines;
}

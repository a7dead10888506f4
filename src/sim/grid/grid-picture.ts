// A picture of runs of `partita sim --grid`: for each run, the slots of all clusters over time, those of local users below and
// those of campaigns above.

import { label, numberTicks, svgDocument, tag, timeTicks } from "#replay/svg.ts";
import type { GridReport } from "./grid-sim.ts";

const WIDTH = 900;
const ROW = 110;
const [LEFT, RIGHT, TOP, GAP] = [60, 20, 40, 28];
const [LOCAL, GRID] = ["#9aa5b1", "#2b7bba"];

/** Draws the picture. slots: the number of slots of all clusters together. */
export function gridPicture(reports: readonly GridReport[], slots: number, title: string): string {
  const body: string[] = [
    label(LEFT, 18, title, { "font-weight": "bold" }),
    tag("rect", { x: WIDTH - 250, y: 8, width: 10, height: 10, fill: LOCAL }),
    label(WIDTH - 235, 17, "local users"),
    tag("rect", { x: WIDTH - 150, y: 8, width: 10, height: 10, fill: GRID }),
    label(WIDTH - 135, 17, "campaigns"),
  ];
  reports.forEach((report, row) => body.push(...rowOf(report, slots, TOP + row * (ROW + GAP))));
  const height = TOP + reports.length * (ROW + GAP) + 20;
  const seconds = reports[0]?.seconds ?? 1;
  for (const at of timeTicks(0, seconds, 10).ticks)
    body.push(label(xOf(at, seconds), height - 8, `day ${Number((at / 86_400).toFixed(2))}`, { "text-anchor": "middle", fill: "#555555" }));
  return svgDocument(title, WIDTH, height, body);
}

const xOf = (at_s: number, seconds: number): number => LEFT + ((WIDTH - LEFT - RIGHT) * at_s) / seconds;

function rowOf({ samples, seconds, policy, busy_share }: GridReport, slots: number, top: number): string[] {
  const y = (value: number): number => top + ROW - (ROW * value) / slots;
  const outline = (of: (sample: GridReport["samples"][number]) => number): string => {
    const points = samples.map((sample) => `${xOf(sample.at_s, seconds).toFixed(1)},${y(of(sample)).toFixed(1)}`);
    return [`${LEFT},${y(0)}`, ...points, `${xOf(samples.at(-1)?.at_s ?? 0, seconds).toFixed(1)},${y(0)}`].join(" ");
  };
  const ticks = numberTicks(slots, 3).filter((tick) => tick <= slots);
  return [
    tag("polygon", { points: outline(({ local, grid }) => local + grid), fill: GRID }),
    tag("polygon", { points: outline(({ local }) => local), fill: LOCAL }),
    tag("rect", { x: LEFT, y: top, width: WIDTH - LEFT - RIGHT, height: ROW, fill: "none", stroke: "#bbbbbb" }),
    ...ticks.map((tick) => label(LEFT - 6, y(tick) + 4, String(tick), { "text-anchor": "end", fill: "#555555" })),
    label(
      LEFT + 4,
      top - 5,
      `${policy.predictor}, ${policy.strategy}: ${(100 * busy_share).toFixed(1)} % of the slots offered to campaigns gave results`,
    ),
  ];
}

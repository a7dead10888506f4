// A picture that compares two settings: a pair of bars with mean waits for each size of job and each user. Pure.

import { escapeXml, label, svgDocument, tag } from "./svg.ts";
import type { Share } from "./tune.ts";

const [LEFT, WIDTH, ROW, TOP] = [130, 520, 26, 40];
const COLOURS = ["#bababa", "#4e79a7"] as const;

export type SharePanel = { readonly title: string; readonly shares: readonly Share[] };

/** Returns an SVG with one panel below the other. names: those of the two settings. */
export function shareBars(title: string, names: readonly [string, string], panels: readonly SharePanel[]): string {
  const body: string[] = [label(10, 20, title, { "font-weight": "bold" })];
  let y = TOP;
  names.forEach((name, at) => {
    body.push(
      tag("rect", { x: LEFT + at * 260, y: y - 8, width: 10, height: 10, fill: COLOURS[at] ?? "" }),
      label(LEFT + 16 + at * 260, y, name),
    );
  });
  for (const { title: heading, shares } of panels) {
    y += 34;
    body.push(label(10, y, heading, { "font-weight": "bold" }));
    const most = Math.max(1, ...shares.flatMap(({ wait_s }) => wait_s));
    for (const { name, jobs, wait_s } of shares) {
      y += ROW;
      body.push(label(10, y, `${name} (${jobs})`));
      wait_s.forEach((wait, at) => {
        const width = (WIDTH * wait) / most;
        const box = { x: LEFT, y: y - 12 + at * 9, width, height: 8, fill: COLOURS[at] ?? "" };
        body.push(tag("rect", box, tag("title", {}, escapeXml(`${name}, ${names[at]}: mean wait ${Math.round(wait)} s`))));
      });
      body.push(label(LEFT + WIDTH + 8, y, `${(wait_s[0] / 3600).toFixed(1)} h to ${(wait_s[1] / 3600).toFixed(1)} h`));
    }
  }
  return svgDocument(title, LEFT + WIDTH + 140, y + 20, body);
}

// Small helpers for pictures as SVG text: escaping, numbers, scales and their ticks. Pure; used by pictures of schedules and of the grid, and by
// the benchmark's plots.

export function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** Returns a number with at most two decimals and no trailing zeros. */
export function px(value: number): string {
  return String(Math.round(value * 100) / 100);
}

type Attributes = { readonly [name: string]: string | number };

/** Returns `<tag a="b">body</tag>`. The body must already be markup. */
export function tag(name: string, attributes: Attributes, body = ""): string {
  let text = `<${name}`;
  for (const [key, value] of Object.entries(attributes)) text += ` ${key}="${typeof value === "number" ? px(value) : escapeXml(value)}"`;
  return body === "" ? `${text}/>` : `${text}>${body}</${name}>`;
}

export function label(x: number, y: number, text: string, attributes: Attributes = {}): string {
  return tag("text", { x, y, ...attributes }, escapeXml(text));
}

/** Returns a complete SVG document of this size, with a white background and one plain font. title: a description for screen readers. */
export function svgDocument(title: string, width: number, height: number, body: readonly string[]): string {
  const head = { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${px(width)} ${px(height)}`, "font-size": 11 };
  const all = [
    tag("title", {}, escapeXml(title === "" ? "picture" : title)),
    tag("rect", { width, height, fill: "#ffffff" }),
    ...body,
  ].join("\n");
  return `${tag("svg", { ...head, "font-family": "DejaVu Sans, Helvetica, Arial, sans-serif" }, `\n${all}\n`)}\n`;
}

const SECONDS = [1, 2, 5, 10, 15, 30];
const STEPS_S = [
  ...SECONDS,
  ...SECONDS.map((minutes) => minutes * 60),
  ...[1, 2, 3, 6, 12].map((hours) => hours * 3600),
  ...[1, 2, 7, 14, 28, 91, 182, 364, 728, 1820].map((days) => days * 86_400),
];

/**
 * Returns the times in [from, to] at which a time axis has labels, at most `most` of them, and the step between them.
 * offset_s: seconds by which midnight differs from a multiple of a day.
 */
export function timeTicks(from_s: number, to_s: number, most: number, offset_s = 0): { readonly step_s: number; readonly ticks: number[] } {
  const step_s = STEPS_S.find((step) => (to_s - from_s) / step <= most) ?? Math.ceil((to_s - from_s) / most);
  const ticks: number[] = [];
  for (let at = Math.ceil((from_s - offset_s) / step_s) * step_s + offset_s; at <= to_s; at += step_s) ticks.push(at);
  return { step_s, ticks };
}

/** Returns round numbers from 0 to at least `max`, about `count` of them, in steps of 1, 2 or 5 times a power of ten. */
export function numberTicks(max: number, count: number): number[] {
  if (!(max > 0)) return [0, 1];
  const rough = max / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) as number);
  const ticks: number[] = [];
  for (let at = 0; at < max + step * 0.999; at += step) ticks.push(Number(at.toPrecision(12)));
  return ticks;
}

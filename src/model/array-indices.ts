// Indices of job arrays: what `qsub -J X-Y[:Z]` asks for, what ranges of an id name, and lists as they are shown (docs/reference/commands.md 1.4):
// 1-5:2 · 2-3 · 3,7 · 3,7-9 · `-` for none.

/** first, first + step, ... up to last at most. */
export type IndexRange = { readonly first: number; readonly last: number; readonly step: number };

const RANGE = /^([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?$/;

/** `X-Y` or `X-Y:Z` with 0 <= X <= Y and Z >= 1; null: no indices of an array. */
export function parseArrayIndices(text: string): IndexRange | null {
  return text.includes("-") ? parseRange(text) : null;
}

/** `3`, `1-5`, `1-9:2` and lists of them with commas; null: malformed, or a range that runs backwards. */
export function parseIndexList(text: string): readonly IndexRange[] | null {
  const ranges: IndexRange[] = [];
  for (const part of text.split(",")) {
    const range = parseRange(part);
    if (range === null) return null;
    ranges.push(range);
  }
  return ranges;
}

function parseRange(text: string): IndexRange | null {
  const match = RANGE.exec(text);
  if (match === null) return null;
  const first = Number(match[1]);
  const range = { first, last: Number(match[2] ?? first), step: Number(match[3] ?? 1) };
  return range.first > range.last || range.step < 1 ? null : range;
}

export function indexListText(ranges: readonly IndexRange[]): string {
  return ranges.length === 0 ? "-" : ranges.map(rangeText).join(",");
}

function rangeText({ first, last, step }: IndexRange): string {
  return first === last ? String(first) : step === 1 ? `${first}-${last}` : `${first}-${last}:${step}`;
}

/** How many indices it names. */
export const indexCount = ({ first, last, step }: IndexRange): number => Math.floor((last - first) / step) + 1;

/** The index at a position, counted from 0. */
export const indexAt = ({ first, step }: IndexRange, position: number): number => first + position * step;

/** Where an index stands in the range; -1: nowhere. */
export function positionOf({ first, last, step }: IndexRange, index: number): number {
  const past = index - first;
  return past < 0 || index > last || past % step !== 0 ? -1 : past / step;
}

/** The positions for which `isIn` is true, in order, with neighbours joined into ranges. */
export function rangesOf(range: IndexRange, isIn: (position: number) => boolean): IndexRange[] {
  const found: IndexRange[] = [];
  const count = indexCount(range);
  for (let at = 0; at < count; at++) {
    if (!isIn(at)) continue;
    const from = at;
    while (at + 1 < count && isIn(at + 1)) at++;
    found.push({ first: indexAt(range, from), last: indexAt(range, at), step: range.step });
  }
  return found;
}

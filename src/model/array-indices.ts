// Indices of job arrays: the range that `qsub -J X-Y[:Z]` requests, the ranges in an id, and the lists that commands show
// (docs/reference/commands.md 1.4). Examples: 1-5:2 · 2-3 · 3,7 · 3,7-9 · `-` for an empty list.

/** A range of indices: first, first + step, and so on; no index is greater than last. */
export type IndexRange = { readonly first: number; readonly last: number; readonly step: number };

const RANGE = /^([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?$/;

/** Parses `X-Y` or `X-Y:Z` with 0 <= X <= Y and Z >= 1. Returns null if the text is malformed. */
export function parseArrayIndices(text: string): IndexRange | null {
  return text.includes("-") ? parseRange(text) : null;
}

/**
 * Parses a list of single indices and ranges, joined by commas: `3`, `1-5`, `1-9:2`. Returns null if the text is malformed
 * or the end of a range is smaller than its start.
 */
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

/** The number of indices in a range. */
export const indexCount = ({ first, last, step }: IndexRange): number => Math.floor((last - first) / step) + 1;

/** The index at a position of a range. The first position is 0. */
export const indexAt = ({ first, step }: IndexRange, position: number): number => first + position * step;

/** The position of an index in the range, or -1 if the range does not contain it. */
export function positionOf({ first, last, step }: IndexRange, index: number): number {
  const past = index - first;
  return past < 0 || index > last || past % step !== 0 ? -1 : past / step;
}

/** The indices whose positions in the range `isIn` accepts, in order. Indices at successive positions are joined into one range. */
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

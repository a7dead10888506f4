// Sizes: a whole number with a unit, such as 8gb, 100mw, 51200kb. The unit ends in b for bytes or w for words of 8 bytes;
// upper and lower case are the same. A prefix alone means bytes: 102400K is 102400kb (docs/reference/clients.md). A number
// without a unit is in bytes. A size keeps the unit with which it was given.
//
// I1. In memory a size is its canonical text: if that text is parsed and rendered, the result is the same text.
// I2. The sum of two sizes has the smaller of their units (8gb + 512mb = 8704mb). A sum of words and bytes is in bytes.

/** A size: count times 2^shift bytes, or words if word is true. */
export type Size = { readonly count: number; readonly shift: number; readonly word: boolean };

const PREFIXES = ["", "k", "m", "g", "t", "p"] as const;
const SIZE = /^\+?([0-9]{1,16})([kmgtp]?)([bw]?)$/i;
const WORD_BYTES = 8;

/** Parses a size. Returns null if the text is not a size or is too large to be exact. */
export function parseSize(text: string): Size | null {
  const match = SIZE.exec(text);
  if (match === null) return null;
  const count = Number(match[1]);
  if (!Number.isSafeInteger(count)) return null;
  const prefix = (match[2] ?? "").toLowerCase() as (typeof PREFIXES)[number];
  return { count, shift: PREFIXES.indexOf(prefix) * 10, word: match[3]?.toLowerCase() === "w" };
}

export function renderSize(size: Size): string {
  return `${size.count}${PREFIXES[size.shift / 10] ?? ""}${size.word ? "w" : "b"}`;
}

/** The canonical form of a size text, or null if the text is not a size. */
export function canonicalSize(text: string): string | null {
  const size = parseSize(text);
  return size === null ? null : renderSize(size);
}

/** The number of bytes of a size. It is exact up to 2^53; above that, only for multiples of a large power of two. */
export function sizeBytes(size: Size): number {
  return size.count * 2 ** size.shift * (size.word ? WORD_BYTES : 1);
}

/** The number of kilobytes, rounded up, of a canonical size text. Any other text counts as 0. Assigned amounts are in kilobytes. */
export function sizeKb(text: string): number {
  const size = parseSize(text);
  return size === null ? 0 : Math.ceil(sizeBytes(size) / 1024);
}

/** The canonical text of an amount in kilobytes. */
export function kbText(kb: number): string {
  return `${kb}kb`;
}

/** Computes a + b or a - b in the smaller of both units. Returns null if the result is negative or too large. */
export function combineSizes(a: Size, b: Size, sign: 1 | -1): Size | null {
  const [left, right] = sameUnit(a, b);
  const count = left.count + sign * right.count;
  return count >= 0 && Number.isSafeInteger(count) ? { ...left, count } : null;
}

/** Compares two sizes: returns a negative number if a is smaller than b, 0 if they are equal, a positive number if a is larger. */
export function compareSizes(a: Size, b: Size): number {
  return sizeBytes(a) - sizeBytes(b);
}

function sameUnit(a: Size, b: Size): [Size, Size] {
  const [left, right] = a.word === b.word ? [a, b] : [inBytes(a), inBytes(b)];
  const shift = Math.min(left.shift, right.shift);
  return [withShift(left, shift), withShift(right, shift)];
}

function inBytes(size: Size): Size {
  return size.word ? { count: size.count * WORD_BYTES, shift: size.shift, word: false } : size;
}

function withShift(size: Size, shift: number): Size {
  return { ...size, count: size.count * 2 ** (size.shift - shift), shift };
}

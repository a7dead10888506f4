// Formats the cells of tables: aligns and cuts texts, and shortens sizes (docs/reference/commands.md 2). Pure.

import { nth } from "#support/assert.ts";

/** Aligns a cell to the left. A longer text is cut to width-1 characters and `*`. */
export function left(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 1)}*` : text.padEnd(width);
}

/** Aligns a name in the default listing to the left. A text that has exactly the width of the column is cut too. */
export function leftBelow(text: string, width: number): string {
  return text.length >= width ? `${text.slice(0, width - 1)}*` : text.padEnd(width);
}

/** Aligns a cell to the right. A longer text is cut to the width. */
export function right(text: string, width: number): string {
  return text.length > width ? text.slice(0, width) : text.padStart(width);
}

/** Returns the id with the server's name cut at its first dot: `1.svr.example.org` -> `1.svr`. */
export function shortId(id: string): string {
  const dot = id.indexOf(".");
  if (dot < 0) return id;
  const second = id.indexOf(".", dot + 1);
  return second < 0 ? id : id.slice(0, second);
}

const SIZE = /^(\d{1,16})([kmgtp]?)([bw]?)$/i;
const UNITS = ["b", "kb", "mb", "gb", "tb", "pb"] as const;
const WORD_BYTES = 8;

/** Returns the bytes of a size text, or null if the text is not a size. */
export function sizeBytes(text: string): number | null {
  const match = SIZE.exec(text);
  if (match === null) return null;
  const shift = "kmgtp".indexOf((match[2] ?? "").toLowerCase()) + 1;
  const words = (match[3] ?? "").toLowerCase() === "w";
  return Number(match[1]) * 1024 ** (match[2] === "" ? 0 : shift) * (words ? WORD_BYTES : 1);
}

/**
 * Writes a size as a number of at most `digits` digits and a unit. A number with more digits is rounded up to a larger unit, and bytes always become kilobytes.
 * The form `G` writes the size in gigabytes, and `M` in megawords; both are rounded up. A text that is not a size is returned unchanged.
 */
export function sizeColumn(text: string, form: "short" | "G" | "M" = "short", digits = 4): string {
  const bytes = sizeBytes(text);
  if (bytes === null) return text;
  switch (form) {
    case "G":
      return `${Math.ceil(bytes / 1024 ** 3)}gb`;
    case "M":
      return `${Math.ceil(bytes / WORD_BYTES / 1024 ** 2)}mw`;
    case "short": {
      const match = SIZE.exec(text) as RegExpExecArray;
      const words = (match[3] ?? "").toLowerCase() === "w";
      let unit = match[2] === "" ? 0 : "kmgtp".indexOf(nth(match, 2).toLowerCase()) + 1;
      let count = Number(match[1]) * (words ? WORD_BYTES : 1);
      while ((unit === 0 || count >= 10 ** digits) && unit < UNITS.length - 1) {
        count = Math.ceil(count / 1024);
        unit++;
      }
      return `${count}${UNITS[unit]}`;
    }
    default: {
      const unreachable: never = form;
      return unreachable;
    }
  }
}

// Texts of lists that the grid's commands print.

import { nth } from "#support/assert.ts";

/** Returns the items of a list that the grid has sent. The daemon is of the same release, so its items have the form of grid-messages.ts. */
export function itemsOf<Item>(answer: unknown): readonly Item[] {
  const items = typeof answer === "object" && answer !== null && "items" in answer ? answer.items : [];
  return Array.isArray(items) ? items : [];
}

/** Returns a table with aligned columns. Numbers are on the right. */
export function tableText(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, at) => Math.max(title.length, ...rows.map((row) => (row[at] ?? "").length)));
  const line = (cells: readonly string[], isHead: boolean): string =>
    cells
      .map((cell, at) =>
        at === cells.length - 1
          ? cell
          : !isHead && /^[0-9.,%-]+$/.test(cell)
            ? cell.padStart(nth(widths, at))
            : cell.padEnd(nth(widths, at)),
      )
      .join("  ")
      .trimEnd();
  return [line(head, true), ...rows.map((row) => line(row, false)), ""].join("\n");
}

/** Returns a time as YYYY-MM-DD HH:MM:SS in local time. null: `-`. */
export function timeText(epoch_s: number | null): string {
  if (epoch_s === null) return "-";
  const at = new Date(epoch_s * 1000);
  const two = (part: number): string => String(part).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Returns seconds as HH:MM:SS. null: `-`. */
export function spanText(seconds: number | null): string {
  if (seconds === null) return "-";
  const two = (part: number): string => String(Math.floor(part)).padStart(2, "0");
  return `${two(seconds / 3600)}:${two((seconds % 3600) / 60)}:${two(seconds % 60)}`;
}

/** Returns a bar of a share from 0 to 1. */
export function barText(share: number, width = 30): string {
  const full = Math.round(Math.min(1, Math.max(0, share)) * width);
  return `[${"#".repeat(full)}${".".repeat(width - full)}]`;
}

// Writes the rows of a usage report as a table for people, as CSV or as JSON. Pure.

import { renderDuration } from "#model/values/duration.ts";
import type { Grouping, UsageRow } from "./usage-table.ts";

/** Writes a table for people. The last line is the sum of all rows; it is left out when a job can be in several rows. */
export function usageTable(by: readonly Grouping[], rows: readonly UsageRow[]): readonly (readonly string[])[] {
  const head = [...by, "jobs", "failed", "reruns", "cpu hours", "mean wait", "longest wait", "cpu", "walltime", "mem"];
  return [head, ...rows.map((row) => [...row.key.map((value) => value || "-"), ...cells(row)])];
}

const cells = (row: UsageRow): string[] => [
  String(row.jobs),
  String(row.failed),
  String(row.reruns),
  hours(row.cpu_s).toFixed(1),
  wait(row.wait_mean_s),
  wait(row.wait_max_s),
  percent(row.cpu_efficiency),
  percent(row.walltime_efficiency),
  percent(row.mem_efficiency),
];

const hours = (seconds: number): number => seconds / 3600;
const wait = (seconds: number | null): string => (seconds === null ? "-" : renderDuration(Math.round(seconds)));
const percent = (share: number | null): string => (share === null ? "-" : `${(100 * share).toFixed(0)} %`);

/** Returns the rows as objects: one property for each grouping, then the figures, with times in seconds and hours. */
export function usageObjects(
  by: readonly Grouping[],
  rows: readonly UsageRow[],
): readonly Readonly<Record<string, string | number | null>>[] {
  return rows.map(({ key, cpu_s, ...figures }) => ({
    ...Object.fromEntries(by.map((grouping, at) => [grouping, key[at] ?? ""])),
    ...figures,
    cpu_hours: hours(cpu_s),
  }));
}

/** Returns the same as CSV (RFC 4180), with the names in the first line. An unknown figure is an empty field. */
export function usageCsv(by: readonly Grouping[], rows: readonly UsageRow[]): string {
  const names = [
    ...by,
    "jobs",
    "failed",
    "reruns",
    "cpu_hours",
    "wait_mean_s",
    "wait_max_s",
    "cpu_efficiency",
    "walltime_efficiency",
    "mem_efficiency",
  ];
  const lines = usageObjects(by, rows).map((object) => names.map((name) => field(object[name] ?? null)).join(","));
  return [names.join(","), ...lines].map((line) => `${line}\r\n`).join("");
}

function field(value: string | number | null): string {
  if (value === null) return "";
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// The meaning of the colours of a picture: user, queue, partition, or single job. Pure.

import { mustGet, nth } from "#support/assert.ts";
import type { GanttBar } from "./gantt.ts";

export const COLOURINGS = ["user", "queue", "partition", "job"] as const;
export type Colouring = (typeof COLOURINGS)[number];

/** The names that can decide the colour of a job. */
export type JobNames = { readonly user: string; readonly queue: string; readonly partition: string };

/**
 * Returns the first of user, queue and partition in which the jobs differ. If they differ in none, returns `job`, because
 * one colour for all jobs says nothing.
 */
export function chooseColouring(jobs: readonly JobNames[]): Colouring {
  const tells = (name: keyof JobNames): boolean => jobs.some((job) => job[name] !== jobs[0]?.[name]);
  return (["user", "queue", "partition"] as const).find(tells) ?? "job";
}

const PALETTE = [
  "#4e79a7",
  "#f28e2b",
  "#59a14f",
  "#b07aa1",
  "#edc948",
  "#76b7b2",
  "#e15759",
  "#9c755f",
  "#ff9da7",
  "#8cd17d",
  "#a0cbe8",
  "#d37295",
] as const;
const OTHERS = "#bababa";
const RESERVED = "url(#hatch)";

export type LegendEntry = { readonly name: string; readonly colour: string };
export type Colours = {
  colourOf(bar: GanttBar): string;
  /** names with their colours, the one with the most used slot seconds first; empty if each job has its own colour */
  readonly entries: readonly LegendEntry[];
};

/** Returns the colours of bars. The names with most use get one colour each, and all others share a grey. Single jobs use the colours in turn. */
export function coloursOf(bars: readonly GanttBar[], by: Colouring): Colours {
  const used = new Map<string, number>();
  for (const { colour, kind, slots, from_s, to_s } of bars)
    if (kind !== "reservation") used.set(colour, (used.get(colour) ?? 0) + slots * (to_s - from_s));
  const colours = new Map<string, string>();
  if (by === "job") for (const name of used.keys()) colours.set(name, nth(PALETTE, colours.size % PALETTE.length));
  const names = by === "job" ? [] : [...used].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  const own = names.length > PALETTE.length ? names.slice(0, PALETTE.length - 1) : names;
  own.forEach((name, at) => {
    colours.set(name, nth(PALETTE, at));
  });
  const entries = own.map((name) => ({ name: name === "" ? "none" : name, colour: mustGet(colours, name) }));
  if (own.length < names.length) entries.push({ name: `${names.length - own.length} others`, colour: OTHERS });
  return {
    entries,
    colourOf: ({ colour, kind }) => (kind === "reservation" ? RESERVED : (colours.get(colour) ?? OTHERS)),
  };
}

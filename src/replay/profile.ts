// The free amounts of a pool over time, as a step function. Amounts are taken, or given back, for an interval of time. Times are whole seconds or
// Infinity, intervals are half-open: [from, to).
//
// O1. times ascend strictly; levels[at * width + index] holds from times[at] until the next time, the last one for ever.
// O2. Neighbouring steps differ. After an interval has been given back, its steps are joined, so the number of steps depends only on what is taken
//     at present.

import type { Amount } from "#sched/shapes/request.ts";
import { present } from "#support/assert.ts";
import { firstPlace } from "#support/search.ts";

export type Profile = {
  /** number of resources that are counted */
  readonly width: number;
  readonly times: number[];
  /** free amounts, `width` numbers for each step; negative if more was taken than exists */
  readonly levels: number[];
};

/** Creates a profile that begins at a time, with all amounts free. */
export function createProfile(from_s: number, free: readonly number[]): Profile {
  return { width: free.length, times: [from_s], levels: [...free] };
}

/** Takes amounts away during [from, to). */
export function take(profile: Profile, from_s: number, to_s: number, amounts: readonly Amount[]): void {
  change(profile, from_s, to_s, amounts, -1);
}

/** Gives amounts back during [from, to). */
export function give(profile: Profile, from_s: number, to_s: number, amounts: readonly Amount[]): void {
  change(profile, from_s, to_s, amounts, 1);
}

function change(profile: Profile, from_s: number, to_s: number, amounts: readonly Amount[], sign: 1 | -1): void {
  if (from_s >= to_s) return;
  const { times, levels, width } = profile;
  const first = split(profile, from_s);
  const end = to_s === Number.POSITIVE_INFINITY ? times.length : split(profile, to_s);
  for (const { index, amount } of amounts) {
    const by = sign * amount;
    for (let at = first * width + index; at < end * width; at += width) levels[at] = present(levels[at], "level") + by;
  }
  // The step at the end is joined first, because that leaves the index of the first step unchanged.
  join(profile, end);
  join(profile, first);
}

/**
 * Returns the index of the step that begins at a time, and makes such a step if there is none. A time before the first step
 * moves the beginning of the first step back.
 */
function split(profile: Profile, time_s: number): number {
  const { times, levels, width } = profile;
  const at = stepAt(profile, time_s);
  if (at < 0) {
    times[0] = time_s;
    return 0;
  }
  if (times[at] === time_s) return at;
  times.splice(at + 1, 0, time_s);
  if (width === 1) levels.splice(at + 1, 0, present(levels[at], "level"));
  else levels.splice((at + 1) * width, 0, ...levels.slice(at * width, (at + 1) * width));
  return at + 1;
}

/** Removes a step that equals the one before it. */
function join({ times, levels, width }: Profile, at: number): void {
  if (at <= 0 || at >= times.length) return;
  for (let index = 0; index < width; index++) {
    if (levels[at * width + index] !== levels[(at - 1) * width + index]) return;
  }
  times.splice(at, 1);
  levels.splice(at * width, width);
}

/** Returns the index of the step in which a time lies; -1: the time is before the first step. */
function stepAt({ times }: Profile, time_s: number): number {
  return firstPlace(times, (at_s) => at_s > time_s) - 1;
}

/** Returns the free amount of one resource at a time. */
export function freeAt(profile: Profile, time_s: number, index = 0): number {
  return present(profile.levels[Math.max(0, stepAt(profile, time_s)) * profile.width + index], "level");
}

/** Returns whether the amounts are free during all of [from, to). */
export function isFree(profile: Profile, from_s: number, to_s: number, amounts: readonly Amount[]): boolean {
  const { times } = profile;
  for (let at = Math.max(0, stepAt(profile, from_s)); at < times.length && present(times[at], "time") < to_s; at++) {
    if (!hasAll(profile, at, amounts)) return false;
  }
  return true;
}

/** Returns the earliest time, not before from_s, from which on the amounts are free for the duration; null: there is none. */
export function earliest(profile: Profile, from_s: number, duration_s: number, amounts: readonly Amount[]): number | null {
  const { times } = profile;
  let start_s = from_s;
  for (let at = Math.max(0, stepAt(profile, from_s)); at < times.length; at++) {
    if (!hasAll(profile, at, amounts)) start_s = times[at + 1] ?? Number.POSITIVE_INFINITY;
    else if ((times[at + 1] ?? Number.POSITIVE_INFINITY) >= start_s + duration_s) return start_s;
  }
  return start_s === Number.POSITIVE_INFINITY ? null : start_s;
}

function hasAll({ levels, width }: Profile, at: number, amounts: readonly Amount[]): boolean {
  for (const { index, amount } of amounts) if (present(levels[at * width + index], "level") < amount) return false;
  return true;
}

/** Removes the steps before a time, so that the profile begins there. */
export function beginAt(profile: Profile, time_s: number): void {
  const at = stepAt(profile, time_s);
  if (at < 0) return;
  if (at > 0) {
    profile.times.splice(0, at);
    profile.levels.splice(0, at * profile.width);
  }
  profile.times[0] = time_s;
}

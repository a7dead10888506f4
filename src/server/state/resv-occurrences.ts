// The times of a reservation's occurrences, and their places. An advance reservation has one occurrence; a standing
// reservation has as many as its rule gives. The place of an occurrence is an exec_vnode: the vnodes and amounts that are
// promised for it.

import type { TimeZone } from "#model/civil-time.ts";
import { PBSE, reject } from "#model/pbse.ts";
import { checkDuration, expandRule, parseRule } from "#model/recurrence.ts";
import { nth } from "#support/assert.ts";
import type { Promised, Resv, ResvAttrs } from "./state.ts";

export type Times = { readonly start_s: number; readonly end_s: number };

/** Stands for the place of an occurrence that has no place. */
export const NO_PLACE = -1;

/** The starts of all occurrences, in order. Empty while the start is not known, for a reservation that begins as soon as possible. */
export function occurrenceStarts(attrs: ResvAttrs): readonly number[] {
  const { standing, reserve_start } = attrs;
  return standing?.starts ?? (reserve_start === undefined ? [] : [reserve_start]);
}

/** The starts that a recurrence rule gives. Refuses a rule with the error numbers of src/model/recurrence.ts, and with 15086 if occurrences would overlap. */
export function startsOfRule(text: string, zone: TimeZone, from_s: number, duration_s: number): readonly number[] {
  const rule = parseRule(text);
  checkDuration(rule, duration_s);
  const starts = expandRule(rule, zone, from_s);
  if (starts.some((start_s, at) => at > 0 && start_s - nth(starts, at - 1) < duration_s)) throw reject(PBSE.BADTSPEC);
  return starts;
}

/** The occurrences that have not ended: the present or next one, and all later ones. */
export function occurrencesLeft(resv: Pick<Resv, "attrs" | "starts">): readonly Times[] {
  const { reserve_start, reserve_end, reserve_index, standing } = resv.attrs;
  if (reserve_start === undefined || reserve_end === undefined) return [];
  const first = { start_s: reserve_start, end_s: reserve_end };
  if (standing === undefined) return [first];
  const later = resv.starts.slice(reserve_index ?? 1);
  return [first, ...later.map((start_s) => ({ start_s, end_s: start_s + standing.duration }))];
}

/** Combines old places of the remaining occurrences with new places for some of them. An occurrence is identified by its start. */
export function withPlaces(before: Promised | undefined, added: Promised, left: readonly Times[]): Promised {
  const places: string[] = [];
  const indexOf = (text: string | undefined): number => {
    if (text === undefined) return NO_PLACE;
    const known = places.indexOf(text);
    return known >= 0 ? known : places.push(text) - 1;
  };
  const placeIn = (promised: Promised | undefined, start_s: number): string | undefined => {
    const found = promised?.occurrences.find((each) => each.start_s === start_s);
    return found === undefined ? undefined : promised?.places[found.place];
  };
  const occurrences = left.map((times) => ({ ...times, place: indexOf(placeIn(added, times.start_s) ?? placeIn(before, times.start_s)) }));
  return { occurrences, places };
}

/** The form of PBS for the places of all occurrences, `2#(n1:ncpus=4){0-1}`: after each place the occurrences that have it, counted from 0. */
export function execVnodesText({ occurrences, places }: Promised): string {
  const parts = places.map((text, place) => {
    const indexes = occurrences.flatMap((each, at) => (each.place === place ? [at] : []));
    return `${text}{${ranges(indexes)}}`;
  });
  return `${occurrences.length}#${parts.join("")}`;
}

function ranges(indexes: readonly number[]): string {
  const parts: string[] = [];
  for (let at = 0; at < indexes.length; at++) {
    const first = nth(indexes, at);
    while (indexes[at + 1] === nth(indexes, at) + 1) at++;
    const last = nth(indexes, at);
    parts.push(first === last ? `${first}` : `${first}-${last}`);
  }
  return parts.join(",");
}

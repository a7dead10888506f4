// The resource place, which says how chunks are placed on vnodes:
// `[free|pack|scatter|vscatter][:excl|shared|exclhost][:group=RES]`, in any order (docs/reference/commands.md 1.2).

import { PBSE, reject } from "../pbse.ts";
import type { Resources } from "../resource-table.ts";

export type Arrangement = "free" | "pack" | "scatter" | "vscatter";
export type Sharing = "excl" | "shared" | "exclhost";
/**
 * A parsed place. If the text has no sharing, the field is absent, and the attribute sharing of the vnodes decides. The field group is absent if the text has
 * no group.
 */
export type Place = { readonly arrangement: Arrangement; readonly sharing?: Sharing; readonly group?: string };

const ARRANGEMENTS: ReadonlySet<string> = new Set<Arrangement>(["free", "pack", "scatter", "vscatter"]);
const SHARINGS: ReadonlySet<string> = new Set<Sharing>(["excl", "shared", "exclhost"]);

/**
 * Parses a place. Refuses a malformed text, a repeated part and a group by an unknown resource with 15014, which names
 * Resource_List.place.
 */
export function parsePlace(text: string, resources?: Resources): Place {
  const place = readPlace(text, resources);
  if (place === null) throw reject(PBSE.BADATVAL, "Resource_List.place");
  return place;
}

/** Parses a place like parsePlace, but returns null in place of a refusal. */
export function readPlace(text: string, resources?: Resources): Place | null {
  let arrangement: Arrangement | undefined;
  let sharing: Sharing | undefined;
  let group: string | undefined;
  for (const word of text.trim().split(":")) {
    if (ARRANGEMENTS.has(word) && arrangement === undefined) arrangement = word as Arrangement;
    else if (SHARINGS.has(word) && sharing === undefined) sharing = word as Sharing;
    else if (word.startsWith("group=") && group === undefined && isGroup(word.slice(6), resources)) group = word.slice(6);
    else return null;
  }
  return { arrangement: arrangement ?? "free", ...(sharing === undefined ? {} : { sharing }), ...(group === undefined ? {} : { group }) };
}

/**
 * The place of a job or reservation, from a text that was checked when it was set; if it is unset, FREE. Results are kept by
 * text, because many jobs have the same place and a start reads it three times.
 */
export function placeOf(text: unknown): Place {
  if (typeof text !== "string") return FREE;
  let place = place_of.get(text);
  if (place === undefined) {
    if (place_of.size >= PLACES_MAX) place_of.clear();
    place_of.set(text, (place = readPlace(text) ?? FREE));
  }
  return place;
}
export const FREE: Place = { arrangement: "free" };
const place_of = new Map<string, Place>();
const PLACES_MAX = 1000;

export function placeText(place: Place): string {
  const parts: string[] = [place.arrangement];
  if (place.sharing !== undefined) parts.push(place.sharing);
  if (place.group !== undefined) parts.push(`group=${place.group}`);
  return parts.join(":");
}

function isGroup(name: string, resources: Resources | undefined): boolean {
  return /^[A-Za-z][A-Za-z0-9_-]*$/.test(name) && (resources === undefined || resources.has(name));
}

// Reads the request for a reservation: looks up its attributes, checks and converts their values, computes its times, and
// resolves its chunks (docs/reference/commands.md 5).
//
// Order of checks: 1. attributes one by one  2. times  3. resources together.

import { type AttributeDef, attributeOf, checkSettable, type ResourceValues } from "#model/attribute.ts";
import { PBSE, reject } from "#model/pbse.ts";
import { resolveRequest } from "#model/request/job-request.ts";
import { RESV_ATTRIBUTES } from "#model/tables/resv-attributes.ts";
import { parseValue } from "#model/values/index.ts";
import { listedResource, parseListedValue } from "#model/values/resource-list.ts";
import type { AttrValueText } from "#protocol/messages.ts";
import { checkAskable } from "../attributes/permission.ts";
import type { Transaction } from "../engine/transaction.ts";
import { checkChunkCount, checkGivenText } from "../state/job-text.ts";
import { startsOfRule } from "../state/resv-occurrences.ts";
import type { Attrs, ResourceRecord } from "../state/state.ts";

export type Given = { readonly attrs: Attrs; readonly resources: ResourceValues };

/** Attributes as typed values. Refuses those that users may not set; `partition` is allowed here (pbs_rsub -p). */
export function readAttributes(tx: Transaction, given: readonly AttrValueText[]): Given {
  checkGivenText(tx.state, given);
  const attrs: Attrs = {};
  const resources: { [resource: string]: string | number | boolean } = {};
  for (const attr of given) {
    const def = attributeOf(RESV_ATTRIBUTES, attr.name);
    if (def.name === "Resource_List") readResource(tx, def, attr, resources);
    else {
      if (def.name !== "partition") checkSettable(def, tx.who);
      if (attr.value !== "") attrs[def.name] = parseValue(def, attr.value, tx.state.resources, attr.resource);
    }
  }
  return { attrs, resources };
}

function readResource(
  tx: Transaction,
  def: AttributeDef,
  attr: AttrValueText,
  into: { [resource: string]: string | number | boolean },
): void {
  const resource = listedResource(def, attr.resource, tx.state.resources);
  if (resource.name === "min_walltime" || resource.name === "max_walltime") throw reject(PBSE.NOSTF_RESV);
  checkAskable(def, resource, attr.value, tx.who, tx.state.resources);
  if (attr.value !== "") into[resource.name] = parseListedValue(def, resource, attr.value);
}

export type Times = { readonly start_s: number; readonly end_s: number; readonly duration_s: number };

/**
 * Computes the third of start, end and duration from two of them. Refuses with 15086 if fewer than two are given, if the
 * three contradict each other, if a time is in the past or after LAST_S, or if the end is not after the start.
 */
export function timesOf(start: number | undefined, end: number | undefined, duration: number | undefined, now_s: number): Times {
  const start_s = start ?? (end !== undefined && duration !== undefined ? end - duration : undefined);
  const end_s = end ?? (start !== undefined && duration !== undefined ? start + duration : undefined);
  if (start_s === undefined || end_s === undefined || start_s < now_s || end_s <= start_s || end_s > LAST_S) throw reject(PBSE.BADTSPEC);
  if (duration !== undefined && end_s - start_s !== duration) throw reject(PBSE.BADTSPEC);
  return { start_s, end_s, duration_s: end_s - start_s };
}

/** No reservation ends after the year 9999, because dates have four digits for the year. */
const LAST_S = 253_402_300_799;

/** Resource_List with defaults, sums and walltime, and schedselect. place is free unless it was given. */
export function resolve(
  tx: Transaction,
  asked: ResourceValues,
  duration_s: number,
): { readonly Resource_List: ResourceRecord; readonly schedselect: string } {
  const { walltime: _walltime, place, ...wanted } = asked;
  const request = place === undefined ? wanted : { ...wanted, place };
  const resolved = resolveRequest(request, { queue: {}, server: withoutTime(tx.state.server) }, tx.state.resources);
  checkChunkCount(tx.state, resolved.Resource_List);
  const Resource_List = {
    ...resolved.Resource_List,
    walltime: duration_s,
    ...(place === undefined && !hasNodes(asked) ? { place: "free" } : {}),
  };
  return {
    Resource_List: Object.fromEntries(Object.entries(Resource_List).sort(([a], [b]) => (a < b ? -1 : 1))),
    schedselect: resolved.schedselect,
  };
}

const hasNodes = (asked: ResourceValues): boolean => asked["nodes"] !== undefined;

/** The server's attributes without default walltimes, which are for jobs only: the walltime of a reservation is its duration. */
function withoutTime(server: Attrs): Attrs {
  const next: Attrs = { ...server };
  for (const name of ["resources_default", "resources_max"]) {
    const record = next[name] as ResourceValues | undefined;
    if (record === undefined) continue;
    next[name] = Object.fromEntries(Object.entries(record).filter(([resource]) => !TIMES.has(resource)));
  }
  return next;
}
const TIMES: ReadonlySet<string> = new Set(["walltime", "min_walltime", "max_walltime", "soft_walltime"]);

/**
 * Computes the starts of a standing reservation, which must lie in the future. Returns null for a reservation that is not
 * standing. Refuses an unknown time zone with 15135, and a rule as startsOfRule does.
 */
export function standingOf(tx: Transaction, attrs: Attrs, times: Times): { readonly starts: readonly number[] } | null {
  const { reserve_rrule, reserve_timezone } = attrs;
  if (reserve_rrule === undefined) return null;
  const zone = typeof reserve_timezone === "string" ? tx.config.timeZone(reserve_timezone) : null;
  if (zone === null) throw reject(PBSE.BAD_ICAL_TZ);
  return { starts: startsOfRule(String(reserve_rrule), zone, times.start_s, times.duration_s) };
}

/** Seconds for cleaning up that are added to the end of every reservation (resv_post_processing_time). */
export const postProcessing_s = ({ state }: Transaction): number => Number(state.server["resv_post_processing_time"] ?? 0);

/** The attribute that keeps the seconds for cleaning up with the reservation, because the server's value may change later. */
export const postAttrs = (post_s: number): Attrs => (post_s > 0 ? { post_processing: post_s } : {});

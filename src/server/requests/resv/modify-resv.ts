// pbs_ralter (docs/reference/commands.md 5). Name, mail and lists change at once. The scheduler that confirmed the
// reservation decides about times and chunks, unless a manager forces them. Until the scheduler has answered, the
// reservation keeps its times and vnodes.
//
// Order of checks: 1. the reservation  2. the caller  3. its state  4. attributes  5. hooks  6. times  7. chunks.

import type { ResourceValues } from "#model/attribute.ts";
import { PBSE, reject } from "#model/pbse.ts";
import { RESV_STATE } from "#model/resv-state.ts";
import type { ModifyResvRequest } from "#protocol/messages.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { checkManager } from "../../attributes/permission.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { afterModifyresvHooks } from "../../hooks/reservation.ts";
import { checkResvOwner, resvNamed } from "../../resv/access.ts";
import { alteredTimes, checkSubset } from "../../resv/alteration.ts";
import { confirm, followQueue } from "../../resv/life.ts";
import { logResv } from "../../resv/records.ts";
import { readAttributes, resolve } from "../../resv/submission.ts";
import { schedOfPartition } from "../../state/partitions.ts";
import type { Attrs, Resv } from "../../state/state.ts";

const { CONFIRMED, RUNNING, DEGRADED, BEING_ALTERED } = RESV_STATE;

export function modifyResv(asked: Transaction, request: ModifyResvRequest): Answer {
  const resv = resvNamed(asked, request.resv);
  checkResvOwner(asked, resv);
  if (request.force === true) checkManager(asked.who);
  const { reserve_state } = resv.attrs;
  if (reserve_state !== CONFIRMED && reserve_state !== RUNNING && reserve_state !== DEGRADED) throw reject(PBSE.BADSTATE);
  readAttributes(asked, request.attrs);
  const { tx, attrs: wanted } = afterModifyresvHooks(asked, resv, request.attrs);
  const { attrs: given, resources } = readAttributes(tx, wanted);
  const { interactive, reserve_start, reserve_end, reserve_duration, Authorized_Users, ...others } = given;
  const times = alteredTimes(resv, { start: reserve_start, end: reserve_end, duration: reserve_duration }, tx.now_s, jobsIn(tx, resv));
  const chunks = alteredChunks(tx, resv, resources, times?.duration_s ?? resv.attrs.reserve_duration);
  const set: Attrs = { ...others, ...(Authorized_Users === undefined ? {} : { Authorized_Users }) };
  if (times !== null) Object.assign(set, { reserve_start: times.start_s, reserve_end: times.end_s, reserve_duration: times.duration_s });
  if (chunks !== null) Object.assign(set, chunks, { resources_sorted: true });
  logResv(tx, LOG_EVENT.RESV, resv.id, `Attempting to modify reservation${changesText(tx, resv, times)}`);
  if (times === null && chunks === null) return modifyAtOnce(tx, resv, set, interactive === undefined);
  return request.force === true ? force(tx, resv, set, interactive !== undefined) : ask(tx, resv, set, Number(interactive ?? 0));
}

const jobsIn = (tx: Transaction, resv: Resv): number => tx.state.queues.get(resv.attrs.queue)?.jobs.size ?? 0;

/** The attributes of an alteration that change reserved amounts; null: none. A new duration also changes the walltime. */
function alteredChunks(tx: Transaction, resv: Resv, resources: ResourceValues, duration_s: number): Attrs | null {
  const { Resource_List, reserve_duration } = resv.attrs;
  const { select } = resources;
  if (select === undefined) return duration_s === reserve_duration ? null : { Resource_List: { ...Resource_List, walltime: duration_s } };
  checkSubset(String(Resource_List["select"]), String(select));
  const { place } = Resource_List;
  return { ...resolve(tx, { select, ...(place === undefined ? {} : { place }) }, duration_s) };
}

function changesText(tx: Transaction, { attrs }: Resv, times: { readonly start_s: number; readonly end_s: number } | null): string {
  if (times === null) return "";
  const { ctime } = tx.config;
  const start = times.start_s === attrs.reserve_start ? "" : ` start=${ctime(times.start_s)}`;
  return `${start}${times.end_s === attrs.reserve_end ? "" : ` end=${ctime(times.end_s)}`}`;
}

/**
 * Applies an alteration that needs no scheduler. As in PBS, a client that does not wait and alters lists of users or groups
 * gets a message as if a scheduler had to agree.
 */
function modifyAtOnce(tx: Transaction, resv: Resv, set: Attrs, hurried: boolean): Answer {
  const asks = hurried && LISTS.some((name) => set[name] !== undefined);
  if (Object.keys(set).length > 0) tx.apply({ kind: "changed", object: "resv", name: resv.id, set, unset: [] });
  followQueue(tx, resv);
  return { value: { id: resv.id, word: asks ? "ALTER REQUESTED" : "CONFIRMED" } };
}

const LISTS = ["Authorized_Users", "Authorized_Groups"] as const;

/** Begins an alteration. The old values are kept until the scheduler has agreed; null stands for a value that was not set. */
function begin(tx: Transaction, resv: Resv, set: Attrs): void {
  const before = Object.fromEntries(Object.keys(set).map((name) => [name, resv.attrs[name] ?? null]));
  const alteration = { asked_s: tx.now_s, before };
  tx.apply({ kind: "changed", object: "resv", name: resv.id, set: { ...set, alteration, reserve_state: BEING_ALTERED }, unset: [] });
}

function ask(tx: Transaction, resv: Resv, set: Attrs, interactive: number): Answer {
  begin(tx, resv, set);
  if (interactive === 0) return { value: { id: resv.id, word: "ALTER REQUESTED" } };
  tx.act({ kind: "await-resv", resv: resv.id, token: tx.token, until_s: tx.now_s + Math.abs(interactive) });
  return "deferred";
}

/** Carries out an alteration that a manager forces: the same vnodes for the new time, even if they are promised to other reservations at that time. */
function force(tx: Transaction, resv: Resv, set: Attrs, waits: boolean): Answer {
  begin(tx, resv, { ...set, forced: true });
  const { reserve_start = 0, reserve_end = 0, promised } = resv.attrs;
  const place = promised?.places[promised.occurrences[0]?.place ?? 0];
  confirm(
    tx,
    resv,
    { occurrences: [{ start_s: reserve_start, end_s: reserve_end, place: 0 }], places: place === undefined ? [] : [place] },
    null,
  );
  return { value: { id: resv.id, word: waits || !hasScheduling(tx, resv) ? "CONFIRMED" : "ALTER REQUESTED" } };
}

/** Whether the reservation's scheduler has scheduling True. If not, a client that forces an alteration is told CONFIRMED at once, as in PBS. */
function hasScheduling({ state }: Transaction, { attrs: { partition } }: Resv): boolean {
  return partition === undefined || schedOfPartition(state, partition)?.attrs["scheduling"] === true;
}

// Checks whether the vnodes that were promised to reservations are up (docs/reference/scheduler.md 9). A reservation that
// has lost such a vnode is degraded; after a while, schedulers are asked for other vnodes. The vnodes and amounts that are
// promised for an occurrence are its place.
//
// I1. When a lost vnode comes back, the reservation is confirmed again at once.
// I2. After a start of the server, moms have HELLO_MS to say hello before their vnodes count as lost.
// I3. Maintenance reservations are never degraded, because they are for vnodes that may not work.

import { parseResvId } from "#model/job-id.ts";
import { parseExecVnode } from "#model/request/exec-vnode.ts";
import { RESV_STATE } from "#model/resv-state.ts";
import type { Kernel } from "../engine/kernel.ts";
import { ownTransaction } from "../engine/kernel.ts";
import type { Transaction } from "../engine/transaction.ts";
import { hostOf } from "../state/placement.ts";
import { isBegun, spotsOf } from "../state/resv-holding.ts";
import { NO_PLACE } from "../state/resv-occurrences.ts";
import type { Attrs, Promised, Resv, ResvAttrs, ServerState } from "../state/state.ts";
import { retryLater } from "./life.ts";
import { inTurn, noteShort } from "./lowered.ts";
import { claimsOn } from "./promises.ts";

const HELLO_MS = 60_000;
const HELLO_TIMER = "resv-health:";
const { CONFIRMED, RUNNING, DEGRADED, BEING_ALTERED, IN_CONFLICT } = RESV_STATE;

/** Called at the start of the server: gives the moms time to say hello (I2). */
export function awaitVnodes(kernel: Kernel): void {
  kernel.timers.set(HELLO_TIMER, kernel.now_ms + HELLO_MS);
}

/** Called by the timer resv-health: vnodes whose moms have not said hello now count as lost. */
export function vnodesDue(kernel: Kernel): void {
  for (const resv of [...kernel.state.resvs.values()]) settleHealth(kernel, ownTransaction(kernel), resv);
}

/** Called when resources_available of a vnode has changed: degrades reservations if it has less than was promised, and confirms them if it has enough. */
export function vnodeResized(kernel: Kernel, tx: Transaction, name: string): void {
  noteShort(tx, name);
  vnodeChanged(kernel, tx, name);
}

/** Called when a vnode has changed its state or was created: updates the reservations that it was promised to. */
export function vnodeChanged(kernel: Kernel, tx: Transaction, name: string): void {
  const ids = kernel.state.vnodes.get(name)?.resvs.keys() ?? [];
  for (const id of [...ids]) {
    const resv = kernel.state.resvs.get(id);
    if (resv !== undefined) settleHealth(kernel, tx, resv);
  }
}

/** Called when a vnode that was promised to a reservation was deleted: updates the state of the reservation. */
export function resvVnodeGone(kernel: Kernel, tx: Transaction, id: string): void {
  const resv = kernel.state.resvs.get(id);
  if (resv !== undefined) settleHealth(kernel, tx, resv);
}

/** Sets the state of a reservation that follows from the states of its vnodes. */
export function settleHealth(kernel: Kernel, tx: Transaction, resv: Resv): void {
  const { reserve_state, reserve_substate, promised } = resv.attrs;
  if (promised === undefined || isMaintenance(resv.id)) return;
  if (reserve_state !== CONFIRMED && reserve_state !== RUNNING && reserve_state !== DEGRADED && reserve_state !== BEING_ALTERED) return;
  const lost = placesLost(kernel, resv.attrs).includes(true);
  if (lost && (reserve_substate === CONFIRMED || reserve_substate === RUNNING)) {
    const set: Attrs = { reserve_substate: DEGRADED };
    if (reserve_state === CONFIRMED) set["reserve_state"] = DEGRADED;
    retryLater(tx, resv, { set });
  } else if (
    !lost &&
    (reserve_substate === DEGRADED || reserve_substate === IN_CONFLICT) &&
    !placesLost(kernel, resv.attrs, false).includes(true)
  ) {
    const state = isBegun(resv) ? RUNNING : CONFIRMED;
    const set: Attrs = { reserve_substate: state };
    if (reserve_state !== BEING_ALTERED) set["reserve_state"] = state;
    const unset = ["reconfirm"].filter((attribute) => resv.attrs[attribute] !== undefined);
    tx.apply({ kind: "changed", object: "resv", name: resv.id, set, unset });
  }
}

/**
 * Which occurrences need another place: those without a place, and those with a vnode that is lost or too small. patient: a
 * vnode whose mom has not said hello since the start of the server does not count as lost yet (I2).
 */
export function placesLost(kernel: Pick<Kernel, "state" | "timers">, attrs: ResvAttrs, patient = true): readonly boolean[] {
  const { promised = { occurrences: [], places: [] }, short = [] } = attrs;
  const waits = patient && kernel.timers.at(HELLO_TIMER) !== undefined;
  const lost = promised.places.map((text) =>
    parseExecVnode(text)
      .flat()
      .some(({ vnode }) => short.includes(vnode) || isVnodeLost(kernel.state, vnode, waits)),
  );
  return promised.occurrences.map(({ place }) => place === NO_PLACE || lost[place] === true);
}

function isVnodeLost(state: ServerState, name: string, waits: boolean): boolean {
  const words = state.vnodes.get(name)?.attrs["state"] as readonly string[] | undefined;
  if (words === undefined) return true;
  if (waits && words.includes("state-unknown")) return words.includes("offline");
  return words.some((word) => LOST.has(word));
}
const LOST: ReadonlySet<string> = new Set(["offline", "down", "stale", "state-unknown", "unresolvable", "sleep"]);

/**
 * Called when a vnode was created. Reservations may already have been promised this vnode, before it was deleted, or its
 * whole host. Where such a promise conflicts with newer promises, the reservation loses its place. A maintenance reservation
 * keeps its place, and the reservations that conflict with it lose theirs.
 */
export function vnodeCreated(kernel: Kernel, tx: Transaction, name: string): void {
  const { state } = kernel;
  for (const id of [...(state.vnodes.get(name)?.resvs.keys() ?? [])]) {
    const resv = state.resvs.get(id);
    if (resv?.attrs.promised?.places.some((text) => isOn(text, new Set([name]))) !== true) continue;
    if (isMaintenance(id)) giveWay(tx, state, resv);
    else losePlaces(tx, resv, (occurrence) => isInTheWay(state, resv, occurrence));
  }
  vnodeChanged(kernel, tx, name);
}

/**
 * Called when the attribute sharing of a vnode has changed. A reservation with this vnode, or with another vnode of its
 * host, may now need the vnode or the whole host exclusively. If two reservations conflict because of this, the later one
 * loses its place.
 */
export function sharingChanged(kernel: Kernel, tx: Transaction, name: string): void {
  const { state } = kernel;
  const vnode = state.vnodes.get(name);
  const there = vnode === undefined ? [] : [...(state.hosts.get(hostOf(vnode)) ?? [])];
  const ids = new Set(there.flatMap((other) => [...(state.vnodes.get(other)?.resvs.keys() ?? [])]));
  for (const resv of inTurn(state, ids).toReversed())
    if (!isMaintenance(resv.id) && resv.attrs["forced"] !== true) losePlaces(tx, resv, (occurrence) => isInTheWay(state, resv, occurrence));
}

const isMaintenance = (id: string): boolean => parseResvId(id)?.letter === "M";

const isOn = (exec_vnode: string, names: ReadonlySet<string>): boolean =>
  parseExecVnode(exec_vnode)
    .flat()
    .some(({ vnode }) => names.has(vnode));

/**
 * Whether an occurrence conflicts with another reservation: both have a vnode at the same time, and one of them needs it
 * exclusively.
 */
function isInTheWay(state: ServerState, { id, attrs }: Resv, { start_s, end_s, place }: Occurrence): boolean {
  const spots = spotsOf(state, attrs.Resource_List["place"], attrs.promised?.places[place]);
  const claims = claimsOn(state, new Set(spots.keys()), id);
  return [...spots].some(([name, { exclusive }]) =>
    claims.get(name)?.some((other) => other.start_s < end_s && start_s < other.end_s && (exclusive || other.exclusive)),
  );
}

/** Called when a maintenance reservation takes vnodes: other reservations lose their places on these vnodes at that time. */
export function giveWay(tx: Transaction, state: ServerState, maintenance: Resv): void {
  const [first] = maintenance.attrs.promised?.occurrences ?? [];
  if (first === undefined) return;
  for (const id of [...maintenance.vnodes].flatMap((name) => [...(state.vnodes.get(name)?.resvs.keys() ?? [])])) {
    const resv = id === maintenance.id || isMaintenance(id) ? undefined : state.resvs.get(id);
    const taken = resv?.attrs.promised?.places.map((text) => isOn(text, maintenance.vnodes));
    if (resv === undefined || taken === undefined) continue;
    losePlaces(tx, resv, ({ start_s, end_s, place }) => taken[place] === true && start_s < first.end_s && first.start_s < end_s);
  }
}

/** Takes the places of some occurrences away, and lets schedulers search for new ones. */
function losePlaces(tx: Transaction, resv: Resv, loses: (occurrence: Occurrence) => boolean): void {
  const { promised } = resv.attrs;
  if (promised === undefined) return;
  const occurrences = promised.occurrences.map((each) => (each.place !== NO_PLACE && loses(each) ? { ...each, place: NO_PLACE } : each));
  if (occurrences.every(({ place }, at) => place === promised.occurrences[at]?.place)) return;
  const set: Attrs = { promised: { ...promised, occurrences }, reserve_substate: IN_CONFLICT };
  if (resv.attrs.reserve_state === CONFIRMED) set["reserve_state"] = DEGRADED;
  retryLater(tx, resv, { set, unset: occurrences[0]?.place === NO_PLACE ? ["resv_nodes"] : [] });
}

type Occurrence = Promised["occurrences"][number];

/** Called when a maintenance reservation is gone: lets schedulers search for places for the reservations that lost theirs. */
export function reconfirmConflicting(tx: Transaction): void {
  for (const resv of [...tx.state.resvs.values()])
    if (resv.attrs.reserve_substate === IN_CONFLICT)
      tx.apply({ kind: "changed", object: "resv", name: resv.id, set: { reconfirm: true }, unset: [] });
}

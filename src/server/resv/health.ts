// Whether the vnodes promised to reservations are there (pbs/sched.md 9): a reservation that lost one is degraded, and looks for another place after a while.
//
// I1. A vnode that comes back makes the reservation sound again at once.
// I2. After a start of the server its vnodes are given HELLO_MS to say hello before they count as lost.
// I3. Maintenance reservations are for vnodes that do not work: they are never degraded.

import { parseExecVnode } from "#model/exec-vnode.ts";
import { parseResvId } from "#model/job-id.ts";
import { RESV_STATE } from "#model/resv-state.ts";
import type { Kernel } from "../kernel.ts";
import { ownTransaction } from "../kernel.ts";
import type { Attrs, Promised, Resv, ServerState } from "../state.ts";
import type { Transaction } from "../transaction.ts";
import { isBegun } from "./holding.ts";
import { retryLater } from "./life.ts";
import { NO_PLACE, type Times } from "./occurrences.ts";
import { claimsOn } from "./promises.ts";

const HELLO_MS = 60_000;
const HELLO_TIMER = "resv-health:";
const { CONFIRMED, RUNNING, DEGRADED, BEING_ALTERED, IN_CONFLICT } = RESV_STATE;

/** At the start of the server. */
export function awaitVnodes(kernel: Kernel): void {
  kernel.timers.set(HELLO_TIMER, kernel.now_ms + HELLO_MS);
}

/** The timer resv-health: vnodes that have not said hello are lost. */
export function vnodesDue(kernel: Kernel): void {
  for (const resv of [...kernel.state.resvs.values()]) settleHealth(kernel, ownTransaction(kernel), resv);
}

/** A vnode changed its state, came or went. */
export function vnodeChanged(kernel: Kernel, tx: Transaction, name: string): void {
  const ids = kernel.state.vnodes.get(name)?.resvs.keys() ?? [];
  for (const id of [...ids]) {
    const resv = kernel.state.resvs.get(id);
    if (resv !== undefined) settleHealth(kernel, tx, resv);
  }
}

/** A vnode that a reservation was promised is no more. */
export function resvVnodeGone(kernel: Kernel, tx: Transaction, id: string): void {
  const resv = kernel.state.resvs.get(id);
  if (resv !== undefined) settleHealth(kernel, tx, resv);
}

/** The state that fits its vnodes. */
export function settleHealth(kernel: Kernel, tx: Transaction, resv: Resv): void {
  const { reserve_state, reserve_substate, promised } = resv.attrs;
  if (promised === undefined || parseResvId(resv.id)?.letter === "M") return;
  if (reserve_state !== CONFIRMED && reserve_state !== RUNNING && reserve_state !== DEGRADED && reserve_state !== BEING_ALTERED) return;
  const lost = placesLost(kernel, promised).includes(true);
  if (lost && (reserve_substate === CONFIRMED || reserve_substate === RUNNING)) {
    const set: Attrs = { reserve_substate: DEGRADED };
    if (reserve_state === CONFIRMED) set["reserve_state"] = DEGRADED;
    retryLater(tx, resv, { set });
  } else if (
    !lost &&
    (reserve_substate === DEGRADED || reserve_substate === IN_CONFLICT) &&
    !placesLost(kernel, promised, false).includes(true)
  ) {
    const state = isBegun(resv) ? RUNNING : CONFIRMED;
    const set: Attrs = { reserve_substate: state };
    if (reserve_state !== BEING_ALTERED) set["reserve_state"] = state;
    const unset = ["reconfirm"].filter((attribute) => resv.attrs[attribute] !== undefined);
    tx.apply({ kind: "changed", object: "resv", name: resv.id, set, unset });
  }
}

/** Occurrences that need another place: they have none, or one with a vnode that is lost. patient: vnodes are given their time to say hello (I2). */
export function placesLost(kernel: Pick<Kernel, "state" | "timers">, promised: Promised, patient = true): readonly boolean[] {
  const waits = patient && kernel.timers.at(HELLO_TIMER) !== undefined;
  const lost = promised.places.map((text) =>
    parseExecVnode(text)
      .flat()
      .some(({ vnode }) => isVnodeLost(kernel.state, vnode, waits)),
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

/** A vnode came into being. Who was promised the whole of its host has it too; who was promised it when it was there before loses it for that time. */
export function vnodeCreated(kernel: Kernel, tx: Transaction, name: string): void {
  const { state } = kernel;
  const claims = claimsOn(state, new Set([name])).get(name) ?? [];
  for (const claim of claims) if (claim.exclusive && !isNamed(state.resvs.get(claim.id), name)) yieldTo(tx, state, claim, new Set([name]));
  vnodeChanged(kernel, tx, name);
}

const isNamed = (resv: Resv | undefined, name: string): boolean =>
  resv?.attrs.promised?.places.some((text) => isOn(text, new Set([name]))) === true;

const isOn = (exec_vnode: string, names: ReadonlySet<string>): boolean =>
  parseExecVnode(exec_vnode)
    .flat()
    .some(({ vnode }) => names.has(vnode));

/** A maintenance reservation takes vnodes: others lose what they were promised there for that time. */
export function giveWay(tx: Transaction, state: ServerState, maintenance: Resv): void {
  const [first] = maintenance.attrs.promised?.occurrences ?? [];
  if (first !== undefined) yieldTo(tx, state, { ...first, id: maintenance.id }, maintenance.vnodes);
}

/** All that were promised some of these vnodes for that time lose that place; those for maintenance, and the one that takes them, do not. */
function yieldTo(tx: Transaction, state: ServerState, taker: Times & { readonly id: string }, names: ReadonlySet<string>): void {
  for (const id of [...names].flatMap((name) => [...(state.vnodes.get(name)?.resvs.keys() ?? [])])) {
    const resv = id === taker.id ? undefined : state.resvs.get(id);
    const promised = resv?.attrs.promised;
    if (resv === undefined || promised === undefined || parseResvId(id)?.letter === "M") continue;
    const taken = promised.places.map((text) => isOn(text, names));
    const occurrences = promised.occurrences.map((each) =>
      taken[each.place] === true && each.start_s < taker.end_s && taker.start_s < each.end_s ? { ...each, place: NO_PLACE } : each,
    );
    if (occurrences.every(({ place }, at) => place === promised.occurrences[at]?.place)) continue;
    const set: Attrs = { promised: { ...promised, occurrences }, reserve_substate: IN_CONFLICT };
    if (resv.attrs.reserve_state === CONFIRMED) set["reserve_state"] = DEGRADED;
    retryLater(tx, resv, { set, unset: occurrences[0]?.place === NO_PLACE ? ["resv_nodes"] : [] });
  }
}

/** A maintenance reservation is gone: those that gave way are confirmed again as soon as a scheduler looks. */
export function reconfirmConflicting(tx: Transaction): void {
  for (const resv of [...tx.state.resvs.values()])
    if (resv.attrs.reserve_substate === IN_CONFLICT)
      tx.apply({ kind: "changed", object: "resv", name: resv.id, set: { reconfirm: true }, unset: [] });
}

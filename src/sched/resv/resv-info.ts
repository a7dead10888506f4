// Reads a reservation that the server has sent: its request, and the amounts of vnodes that it holds over time (docs/reference/scheduler.md 9).
//
// V1. Occurrences with the same exec_vnode share one holding, which is kept when the state of the reservation changes. A reservation of the same thousand
//     vnodes for each night of a year thus has one holding and 365 periods.
// V2. The amounts that the server has promised are valid whatever the state of the vnodes: a promise stays when a vnode goes down. If an exec_vnode cannot
//     be read, it holds nothing.

import type { SchedResv } from "#protocol/sched-link.ts";
import { requestOf } from "../order/job-lines.ts";
import type { Held, Holding } from "../shapes/booking.ts";
import type { Amount, Request } from "../shapes/request.ts";
import type { HeldOccurrence, ResvInfo } from "../shapes/reservation.ts";
import { readHolding } from "../shapes/running.ts";
import type { Universe } from "../shapes/universe.ts";
import { sharingOn } from "../shapes/vnode-fit.ts";
import { partitionOf, recordOf } from "../shapes/vnode-state.ts";

/**
 * Reads a reservation. The `sharing` of the present vnodes decides which of them the reservation closes to other jobs. before: the last result for this
 * reservation.
 */
export function readResv(universe: Universe, source: SchedResv, before?: ResvInfo): ResvInfo {
  const { attrs } = source;
  const list = recordOf(attrs["Resource_List"]);
  const request = requestOf(universe, textOf(attrs["schedselect"]), textOf(list["place"]) || "free");
  const { select: _select, place: _place, ...resources } = list;
  const known = new Map(before?.held.map(({ exec_vnode, holding }) => [exec_vnode, holding]));
  const places = source.places.map((text) => known.get(text) ?? resvHolding(universe, request, text));
  const held = source.held.flatMap(({ start_s, end_s, place }): HeldOccurrence[] => {
    const [exec_vnode, holding] = [source.places[place], places[place]];
    return exec_vnode === undefined || holding === undefined ? [] : [{ start_s, end_s, exec_vnode, holding }];
  });
  const partition = textOf(attrs["partition"]);
  return {
    source,
    id: source.id,
    queue: textOf(attrs["queue"]),
    partition: partition === "" ? undefined : partitionOf(partition),
    request,
    resources,
    held,
    present: source.running ? (held[0] ?? null) : null,
    ask: source.ask,
  };
}

/**
 * Returns the amounts that a reservation has on the vnodes of an exec_vnode, and the vnodes of its hosts that it closes. Equal amounts are one object, so
 * that the calendar stores them once.
 */
export function resvHolding(universe: Universe, { place }: Request, exec_vnode: string): Holding {
  const holding = new Map<string, Held>();
  const known = new Map<string, Held>();
  const put = (name: string, held: Held): void => {
    const key = `${held.closes ?? ""} ${held.own} ${held.amounts.map(({ index, amount }) => `${index}=${amount}`)}`;
    const same = known.get(key);
    if (same === undefined) known.set(key, held);
    holding.set(name, same ?? held);
  };
  for (const [name, { amounts }] of readHolding(universe.space, exec_vnode)) {
    const vnode = universe.vnodes.get(name);
    const sharing = vnode === undefined ? (place.sharing ?? "shared") : sharingOn(place, vnode.state.spec);
    put(name, { amounts: summed(amounts), closes: sharing === "shared" ? undefined : CLOSED, own: true });
    if (sharing !== "exclhost") continue;
    for (const other of vnode?.host.vnodes ?? []) {
      if (other.state.spec.sharing === "ignore_excl") continue;
      put(other.name, { amounts: [], own: false, ...holding.get(other.name), closes: CLOSED });
    }
  }
  return holding;
}

/** The state word of a vnode that a reservation has exclusively. */
const CLOSED = "resv-exclusive";

function summed(amounts: readonly Amount[]): Amount[] {
  const sums = new Map<number, number>();
  for (const { index, amount } of amounts) sums.set(index, (sums.get(index) ?? 0) + amount);
  return [...sums].map(([index, amount]) => ({ index, amount }));
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

// Reservations as a scheduler knows them. Types only: resv/resv-info.ts reads them (its rules V1-V2), resv/resv-sets.ts keeps the node sets of running
// reservations (its rules W1-W3).

import type { Occurrence, ResvAsk, SchedJob, SchedResv } from "#protocol/sched-link.ts";
import type { Holding } from "./booking.ts";
import type { Request } from "./request.ts";
import type { NodeSet, Vnode } from "./vnode.ts";

export type HeldOccurrence = Occurrence & { readonly exec_vnode: string; readonly holding: Holding };

export type ResvInfo = {
  readonly source: SchedResv;
  readonly id: string;
  readonly queue: string;
  /** its partition; "": the partition of the default scheduler; undefined: it has none yet, and none was requested */
  readonly partition: string | undefined;
  readonly request: Request;
  /** what it requests in total: Resource_List without select and place */
  readonly resources: Readonly<Record<string, unknown>>;
  readonly held: readonly HeldOccurrence[];
  /** the present occurrence if it is running; null: it is not */
  readonly present: HeldOccurrence | null;
  readonly ask: ResvAsk | undefined;
};

/** A job that runs in a reservation, with the amounts that it holds. */
export type Insider = { readonly job: SchedJob; readonly holding: Holding };

export type ResvSet = { readonly resv: ResvInfo; readonly set: NodeSet; readonly vnodes: ReadonlyMap<string, ResvVnode> };

export type ResvVnode = {
  readonly vnode: Vnode;
  /** the amounts that the reservation holds on this vnode, by resource index; undefined: the reservation did not request the resource */
  readonly granted: readonly (number | undefined)[];
  /** the amounts that jobs of the reservation use here, the number of these jobs, and how many of them use the vnode exclusively */
  readonly inside: number[];
  jobs: number;
  exclusive: number;
};

// Reservations as a scheduler knows them. Types only: resv/resv-info.ts reads them, resv/resv-sets.ts keeps the node sets of running ones (V1-V2, W1-W3).

import type { Occurrence, ResvAsk, SchedJob, SchedResv } from "#protocol/sched-link.ts";
import type { Holding } from "./booking.ts";
import type { Request } from "./request.ts";
import type { NodeSet, Vnode } from "./vnode.ts";

export type HeldOccurrence = Occurrence & { readonly exec_vnode: string; readonly holding: Holding };

export type ResvInfo = {
  readonly source: SchedResv;
  readonly id: string;
  readonly queue: string;
  /** "": the default scheduler's; undefined: of no partition yet, and none was requested */
  readonly partition: string | undefined;
  readonly request: Request;
  /** its total request: Resource_List without select and place */
  readonly resources: Readonly<Record<string, unknown>>;
  readonly held: readonly HeldOccurrence[];
  /** the present occurrence of a running one; null: it does not run */
  readonly present: HeldOccurrence | null;
  readonly ask: ResvAsk | undefined;
};

/** A job that runs in a reservation, and its amounts by vnode. */
export type Insider = { readonly job: SchedJob; readonly holding: Holding };

export type ResvSet = { readonly resv: ResvInfo; readonly set: NodeSet; readonly vnodes: ReadonlyMap<string, ResvVnode> };

export type ResvVnode = {
  readonly vnode: Vnode;
  /** the amounts that the reservation holds here, by resource index; undefined: not stated */
  readonly granted: readonly (number | undefined)[];
  /** the amounts that its jobs use, their number, and the number of those that use the vnode exclusively */
  readonly inside: number[];
  jobs: number;
  exclusive: number;
};

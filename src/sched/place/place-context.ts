// What the placement of one job depends on, besides the job and the node set.

import type { SchedJob } from "#protocol/sched-link.ts";
import type { Window } from "../shapes/booking.ts";
import type { Policy } from "../shapes/policy.ts";
import type { Universe } from "../shapes/universe.ts";
import type { NodeSet } from "../shapes/vnode.ts";

export type PlaceContext = {
  readonly universe: Universe;
  readonly policy: Policy;
  /** Returns the jobs that this cycle has started on a vnode. Jobs that ran before are in the vnode's `jobs`. */
  startedOn(vnode: string): readonly SchedJob[];
  /** smp_cluster_dist round_robin: returns the position of the host used last in a set; null: the walk begins with the first host */
  readonly after: ((set: NodeSet) => number) | null;
  /** when the job would run: what is booked in that window is not free; null: only the present counts */
  readonly window: Window | null;
  /** receives what placement reports about its search, if that is logged (DEBUG3) */
  readonly log?: (text: string) => void;
  /** true: a reservation is being placed, so limits and settings of vnodes for reservations apply instead of those for jobs */
  readonly resv?: boolean;
  /** for a forecast: returns whether a job will have ended by the forecast's time; absent: no job will have ended */
  isOver?(job: string): boolean;
};

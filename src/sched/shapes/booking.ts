// The holders of vnodes, and until when they hold them: running entries, bookings to come, and the outlook of a host,
// which is part of the identity of its bucket.
// Types only: running.ts, place/outlook.ts and calendar/calendar.ts keep them (K1-K7).

import type { SchedJob } from "#protocol/sched-link.ts";
import type { Amount } from "./request.ts";

/** Amounts taken of a vnode. closes, own: as in Part. */
export type Held = { readonly amounts: readonly Amount[]; readonly closes: string | undefined; readonly own: boolean };

/** The amounts that are taken of vnodes, by name. */
export type Holding = ReadonlyMap<string, Held>;

/** A running entry: a job, or a reservation in its period. */
export type Running = {
  /** id of the job or reservation */
  readonly id: string;
  readonly from_s: number;
  /** when it is expected to end; use endOf */
  to_s: number;
  /** the latest time at which it must have left its vnodes */
  readonly last_s: number;
  /** the part of that time that a job may need to end after its walltime */
  readonly grace_s: number;
  /** soft_walltime, if that is less than its allowed time */
  readonly soft_s?: number;
  /** the text that the holding is read from when it is first needed */
  readonly exec_vnode: string;
  holding: Holding | null;
  /** true if the mirror's amounts of vnodes include it; not for a job that a cycle starts */
  readonly counted: boolean;
  gone: boolean;
};

export type RunningBook = {
  readonly running: Map<string, Running>;
  /** running entries, unordered and including entries that are gone; use endsInOrder */
  ends: Running[];
  in_order: boolean;
  gone_count: number;
  /** by vnode: running entries that are not among the vnode's `jobs`: reservations, and jobs started in this cycle */
  readonly besides: Map<string, Running[]>;
  /** jobs that a cycle has taken off their vnodes, and the amounts they give up; `jobs` of vnodes and their amounts still include them */
  readonly away: Map<string, Running>;
  /** the latest expected end of entries that have gone since a cycle last asked: if it is later than now, one ended early */
  freed_s: number;
  /** ids of jobs with a soft_walltime that counts */
  readonly soft: Set<string>;
};

/** [from, to) */
export type Span = { readonly from_s: number; readonly to_s: number };

/** The amounts that are booked of one vnode, at one time or at several. */
export type Part = {
  /** equal for equal contents */
  readonly id: number;
  /** in order and not overlapping: one time of a plan, several for the occurrences of a standing reservation */
  readonly times: readonly Span[];
  /** a reservation: a job that may run into it must not start, even if it is expected to end before */
  readonly firm: boolean;
  /** kill_delay of a plan, the last part of its time, in which a reservation may begin. 0 for a reservation */
  readonly grace_s: number;
  readonly amounts: readonly Amount[];
  /** no other job may use the vnode meanwhile: its state word then */
  readonly closes: string | undefined;
  /** a job runs there (otherwise the vnode is only closed because of another vnode of its host) */
  readonly own: boolean;
};

/** Amounts of a vnode that running entries take from a time on, and the numbers of jobs and reservations. */
export type Left = { readonly from_s: number; readonly used: readonly number[]; readonly jobs: number };

/** The bookings of a vnode of a host. */
export type VnodeOutlook = {
  /** place of the vnode in the order of definition */
  readonly at: number;
  readonly parts: readonly Part[];
  /** the rest of the running entries at each begin of a part: from the first begin on, in order; the last one holds for ever */
  readonly lefts: readonly Left[];
};

/** The bookings on a host: those of each of its vnodes that has any. */
export type Outlook = {
  readonly id: number;
  readonly vnodes: readonly VnodeOutlook[];
  /** begin of the first booking */
  readonly first_s: number;
  /** index of ncpus */
  readonly ncpus: number;
  /** the last window that was asked for, and the part of the outlook in it */
  seen: Window | null;
  seen_key: string;
};

/**
 * When a job would run. firm_to_s: the end of its walltime; until then it keeps away from reservations. to_s: until then it may have its vnodes (with the
 * kill_delay of its queue), and it keeps away from plans. Its expected time (soft_walltime) does not count: a plan must hold even if the job uses all its time.
 */
export type Window = { readonly from_s: number; readonly to_s: number; readonly firm_to_s: number };

export type OutlookBook = {
  /** parts booked to come, by vnode */
  readonly on: Map<string, Part[]>;
  readonly outlooks: Map<string, Outlook>;
  next_outlook: number;
};

/** A booking: it begins later. */
export type Booking = {
  readonly id: string;
  /** plan: a top job's, of one cycle. resv: an occurrence of a reservation, maintenance */
  readonly kind: "plan" | "resv";
  /** from the first time to the last */
  readonly from_s: number;
  readonly to_s: number;
  /** occurrences in one place, in order and apart; absent: all the time */
  readonly times?: readonly Span[];
  /** of a plan: when its walltime ends; absent: at to_s */
  readonly firm_to_s?: number;
  readonly holding: Holding;
  /** the planned job; limits of vnodes count the jobs of its owner */
  readonly job?: SchedJob;
};

export type Calendar = OutlookBook &
  RunningBook & {
    /** something has become free unexpectedly since a cycle last asked: a vnode, a reservation, a planned job that is gone, other limits */
    loosened: boolean;
    readonly bookings: Map<string, Booking & { readonly times: readonly Span[]; readonly parts: ReadonlyMap<string, Part> }>;
    /** ends of reservations, in order; null: to be sorted again */
    resv_ends: readonly number[] | null;
    /** numbers of parts, by contents */
    readonly part_ids: Map<string, number>;
    next_part: number;
  };

// What holds vnodes, and until when: running entries, bookings, which begin later, and the outlook of a host, which is part
// of what distinguishes its bucket. Types only: running.ts, place/outlook.ts and calendar/calendar.ts keep them up to date,
// and their headers say by which rules (K1-K7).

import type { SchedJob } from "#protocol/sched-link.ts";
import type { Amount } from "./request.ts";

/** Amounts that are taken of one vnode. closes, own: see Part. */
export type Held = { readonly amounts: readonly Amount[]; readonly closes: string | undefined; readonly own: boolean };

/** The amounts that are taken of vnodes, by the name of the vnode. */
export type Holding = ReadonlyMap<string, Held>;

/** A running entry: a job, or a reservation in its period. */
export type Running = {
  /** id of the job or reservation */
  readonly id: string;
  readonly from_s: number;
  /** the expected end; read it through endOf */
  to_s: number;
  /** the latest time at which the job or reservation must have left its vnodes */
  readonly last_s: number;
  /** the seconds between the end of a job's walltime and last_s (the kill_delay of its queue) */
  readonly grace_s: number;
  /** soft_walltime in seconds, if it is less than the time that the job may run */
  readonly soft_s?: number;
  /** the text from which `holding` is read when it is first needed */
  readonly exec_vnode: string;
  holding: Holding | null;
  /** true: the assigned amounts of the vnodes already include what this entry holds; false: a job that a cycle starts */
  readonly counted: boolean;
  gone: boolean;
};

export type RunningBook = {
  readonly running: Map<string, Running>;
  /** running entries, not in order and including entries that are gone; use endsInOrder */
  ends: Running[];
  in_order: boolean;
  gone_count: number;
  /** for each vnode the running entries that are not among its `jobs`: reservations, and jobs started in this cycle */
  readonly besides: Map<string, Running[]>;
  /** jobs that a cycle has taken off their vnodes, with the amounts that they give up; the `jobs` and the amounts of vnodes still include them */
  readonly away: Map<string, Running>;
  /** the latest expected end among the entries that have gone since this field was last read; if it is later than now, an entry ended early */
  freed_s: number;
  /** ids of the jobs that are expected to end at their soft_walltime */
  readonly soft: Set<string>;
};

/** The time from from_s to to_s, without to_s itself. */
export type Span = { readonly from_s: number; readonly to_s: number };

/** The amounts of one vnode that a booking takes, in one period or in several. */
export type Part = {
  /** number; parts with equal contents have equal numbers */
  readonly id: number;
  /** the periods, in order and not overlapping: one for a plan, several for the occurrences of a standing reservation */
  readonly times: readonly Span[];
  /** true for a reservation: a job that may run into it must not start, even if it is expected to end before */
  readonly firm: boolean;
  /** kill_delay of a planned job: the last seconds of its period, in which a reservation may already begin. 0 for a reservation */
  readonly grace_s: number;
  readonly amounts: readonly Amount[];
  /** the state word that the vnode then has, because no other job may use it; undefined: none */
  readonly closes: string | undefined;
  /** true: a job runs on this vnode; false: the vnode is only closed because of another vnode of its host */
  readonly own: boolean;
};

/** What running entries take of a vnode from a time on: the amounts, and the number of jobs and reservations. */
export type Left = { readonly from_s: number; readonly used: readonly number[]; readonly jobs: number };

/** The bookings of a vnode of a host. */
export type VnodeOutlook = {
  /** index of the vnode on its host, in the order of definition */
  readonly at: number;
  readonly parts: readonly Part[];
  /**
   * what the running entries still take when bookings begin, in order of time; each element is valid until the time of the next one, the last element for ever
   */
  readonly lefts: readonly Left[];
};

/** The bookings on a host, for each of its vnodes that has any. */
export type Outlook = {
  readonly id: number;
  readonly vnodes: readonly VnodeOutlook[];
  /** when the first booking begins */
  readonly first_s: number;
  /** index of the resource ncpus */
  readonly ncpus: number;
  /** the last window that was asked for, and the key of the bookings in it */
  seen: Window | null;
  seen_key: string;
};

/**
 * The time in which a job would run. firm_to_s: the end of its walltime; until then it must not overlap reservations. to_s: the time until which it may have
 * its vnodes (including the kill_delay of its queue); until then it must not overlap plans. Its expected time (soft_walltime) does not count: a plan must stay
 * possible even if the job uses all its time.
 */
export type Window = { readonly from_s: number; readonly to_s: number; readonly firm_to_s: number };

export type OutlookBook = {
  /** the parts of bookings, by vnode */
  readonly on: Map<string, Part[]>;
  readonly outlooks: Map<string, Outlook>;
  next_outlook: number;
};

/** A plan or an occurrence: it takes amounts of vnodes later. */
export type Booking = {
  readonly id: string;
  /** plan: a top job, planned by this cycle. resv: an occurrence of a reservation, or maintenance */
  readonly kind: "plan" | "resv";
  /** beginning of the first period and end of the last one */
  readonly from_s: number;
  readonly to_s: number;
  /** the periods of occurrences with the same exec_vnode, in order and not overlapping; absent: one period from from_s to to_s */
  readonly times?: readonly Span[];
  /** for a plan: when the walltime of its job ends; absent: at to_s */
  readonly firm_to_s?: number;
  readonly holding: Holding;
  /** the planned job; needed because limits of vnodes count the jobs of its owner */
  readonly job?: SchedJob;
};

export type Calendar = OutlookBook &
  RunningBook & {
    /**
     * true: something became free unexpectedly since this field was last read: a vnode, a reservation, the vnodes of a planned job that is gone; or limits have
     * changed
     */
    loosened: boolean;
    readonly bookings: Map<string, Booking & { readonly times: readonly Span[]; readonly parts: ReadonlyMap<string, Part> }>;
    /** ends of reservations, in order; null: they must be sorted again */
    resv_ends: readonly number[] | null;
    /** numbers of parts, by their contents */
    readonly part_ids: Map<string, number>;
    next_part: number;
  };

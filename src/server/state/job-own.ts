// The server's own data about a job, beside the attributes of PBS. No request sets it and no status shows it. In the
// store's rows the data is among the attributes, under the same names (rows.ts).
//
// O1. A record is replaced, never changed in place; jobs without anything of their own share NOTHING_OWN.
// O2. Attributes hold names of the attribute table alone, and accrual_clock, which is how eligible_time is stored (jobs/eligible-time.ts).

import type { TerminalTicket } from "#protocol/terminal/link.ts";
import type { Attrs, JobAttrs } from "./state.ts";

/**
 * Kept with a job that a request or a scheduler has ended, until the mom's obit. history false: no history is kept
 * (qdel -x). preempted: a scheduler ended the job to make room.
 */
export type Termination = { readonly by: string; readonly history: boolean; readonly mail?: boolean; readonly preempted?: true };

/** Times are epoch seconds. */
export type JobOwn = {
  readonly termination?: Termination;
  /** for an interactive job: the address of its qsub */
  readonly terminal?: TerminalTicket;
  /** an operator named the job's vnodes, which may therefore be oversubscribed */
  readonly placed_by_hand?: true;
  /** the vnodes as the operator typed them, if exec_vnode contains more (qrun -H) */
  readonly sent_to?: string;
  /** seconds for which the run was suspended so far, and the begin of the present suspension (jobs/suspension.ts I5) */
  readonly paused?: number;
  readonly paused_since?: number;
  readonly suspended_by_admin?: true;
  /** the mom was asked to resume the job and has not answered */
  readonly resuming?: true;
  /** when a scheduler decided to preempt the job */
  readonly preempting?: number;
  /** the mom has stopped the job because others use its host: shown as state U */
  readonly idled?: true;
  /** the host on which a checkpoint waits for the next run; the host that keeps output for the next run */
  readonly checkpointed?: string;
  readonly output_on?: string;
  /** vnodes that the job is giving up */
  readonly releasing?: readonly string[];
};

export const NOTHING_OWN: JobOwn = Object.freeze({});

/** null: the value is removed */
export type OwnChange = { readonly [K in keyof JobOwn]?: JobOwn[K] | null };

const NAMES: { readonly [K in keyof Required<JobOwn>]: true } = {
  termination: true,
  terminal: true,
  placed_by_hand: true,
  sent_to: true,
  paused: true,
  paused_since: true,
  suspended_by_admin: true,
  resuming: true,
  preempting: true,
  idled: true,
  checkpointed: true,
  output_on: true,
  releasing: true,
};

export function changedOwn(own: JobOwn, change: OwnChange): JobOwn {
  const left = Object.entries({ ...own, ...change }).filter(([, value]) => value !== null);
  return left.length === 0 ? NOTHING_OWN : (Object.fromEntries(left) as JobOwn);
}

/** The names whose values the change alters. */
export function namesChanged(own: JobOwn, change: OwnChange): readonly (keyof JobOwn)[] {
  return (Object.keys(change) as (keyof JobOwn)[]).filter((name) => (own[name] ?? null) !== change[name]);
}

/** The names that the change removes. */
export const without = (...names: readonly (keyof JobOwn)[]): OwnChange => Object.fromEntries(names.map((name) => [name, null]));

/** Separates the attributes of a stored job from the server's private data among them. */
export function splitRow(row: Attrs): { readonly attrs: JobAttrs; readonly own: JobOwn } {
  const names = Object.keys(row).filter((name) => Object.hasOwn(NAMES, name));
  if (names.length === 0) return { attrs: row as JobAttrs, own: NOTHING_OWN };
  const attrs: Attrs = { ...row };
  for (const name of names) delete attrs[name];
  const own = Object.fromEntries(names.map((name) => [name, row[name]])) as JobOwn;
  // V8 keeps a record slow and large after a property was deleted; a copy is fast and small.
  return { attrs: { ...attrs } as JobAttrs, own };
}

// The server's own data about a job, beside the attributes of PBS. No request can set it, and no status shows it. In the
// rows of the store it is among the attributes, under the names below (rows.ts).
//
// O1. A record is never changed in place but replaced. Jobs without such data share NOTHING_OWN.
// O2. The attributes of a job contain only names of the attribute table, and accrual_clock, which belongs to the stored form
//     of eligible_time (jobs/eligible-time.ts).

import type { TerminalTicket } from "#protocol/terminal/link.ts";
import type { Attrs, JobAttrs } from "./state.ts";

/**
 * Says that a request or a scheduler is ending a running job; kept until the mom's obit. history false: the job does not
 * enter the history (qdel -x). preempted: a scheduler ends the job to free its resources for another job.
 */
export type Termination = { readonly by: string; readonly history: boolean; readonly mail?: boolean; readonly preempted?: true };

/** The data. Times are epoch seconds. */
export type JobOwn = {
  readonly termination?: Termination;
  /** for an interactive job: the address of its qsub */
  readonly terminal?: TerminalTicket;
  /** an operator named the job's vnodes, which may therefore be oversubscribed */
  readonly placed_by_hand?: true;
  /** the text with which the run was started, if exec_vnode is written differently (qrun -H without brackets) */
  readonly sent_to?: string;
  /** paused: the seconds for which the run was suspended before; paused_since: the time when the present suspension began (jobs/suspension.ts I5) */
  readonly paused?: number;
  readonly paused_since?: number;
  readonly suspended_by_admin?: true;
  /** the mom was asked to resume the job and has not answered */
  readonly resuming?: true;
  /** the time at which a scheduler decided to preempt the job */
  readonly preempting?: number;
  /** the mom has suspended the job because someone uses the host; the job is shown in state U */
  readonly idled?: true;
  /** checkpointed: the host that keeps a checkpoint for the next run; output_on: the host that keeps output for the next run */
  readonly checkpointed?: string;
  readonly output_on?: string;
  /** vnodes that the job is giving up */
  readonly releasing?: readonly string[];
  /** runs that have failed by themselves (jobs/retries.ts T2) */
  readonly failures?: number;
  /** the system hold was set because the job failed too often, its runner is dead, or no runner can take it; its owner may release it */
  readonly buried?: true;
  /** the memory and walltime that the job asked for itself; its request has been changed since then (jobs/learning.ts L3) */
  readonly asked?: { readonly mem_kb?: number; readonly walltime_s?: number };
};

export const NOTHING_OWN: JobOwn = Object.freeze({});

/** A change of the data. null: the value is removed. */
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
  failures: true,
  buried: true,
  asked: true,
};

export function changedOwn(own: JobOwn, change: OwnChange): JobOwn {
  const left = Object.entries({ ...own, ...change }).filter(([, value]) => value !== null);
  return left.length === 0 ? NOTHING_OWN : (Object.fromEntries(left) as JobOwn);
}

/** The names in a change whose new values differ from the present values. */
export function namesChanged(own: JobOwn, change: OwnChange): readonly (keyof JobOwn)[] {
  return (Object.keys(change) as (keyof JobOwn)[]).filter((name) => (own[name] ?? null) !== change[name]);
}

/** The change that removes these names. */
export const without = (...names: readonly (keyof JobOwn)[]): OwnChange => Object.fromEntries(names.map((name) => [name, null]));

/** Separates the attributes of a stored job from the server's private data among them. */
export function splitRow(row: Attrs): { readonly attrs: JobAttrs; readonly own: JobOwn } {
  const names = Object.keys(row).filter((name) => Object.hasOwn(NAMES, name));
  if (names.length === 0) return { attrs: row as JobAttrs, own: NOTHING_OWN };
  const attrs: Attrs = { ...row };
  for (const name of names) delete attrs[name];
  const own = Object.fromEntries(names.map((name) => [name, row[name]])) as JobOwn;
  // In V8, a record from which a property was deleted stays slow and large; its copy is fast and small.
  return { attrs: { ...attrs } as JobAttrs, own };
}

// What a batch of events has changed: the rows to write, and changed derived values, which have no row but which schedulers
// must be told.

import type { Attrs, Job, ResourceRecord } from "./state.ts";

export type Changes = {
  /** time of the last event */
  now_s: number;
  /** whether attributes or counters of the server have changed */
  server: boolean;
  /** names of objects that were created, changed or deleted; an object that is no longer in the state was deleted */
  readonly queues: Set<string>;
  readonly vnodes: Set<string>;
  readonly scheds: Set<string>;
  readonly resvs: Set<string>;
  readonly resources: Set<string>;
  readonly hooks: Set<string>;
  readonly run_times: Set<string>;
  readonly backends: Set<string>;
  readonly runners: Set<string>;
  readonly jobs: Set<string>;
  /** among the changed jobs: those that are new, and those with a changed attribute that only the whole row has (rows.ts) */
  readonly jobs_new: Set<string>;
  readonly jobs_whole: Set<string>;
  readonly clocks: Set<string>;
  /** scripts of new jobs */
  readonly scripts: Map<string, string>;
  /** jobs to write into the history */
  readonly ended: Map<string, Job>;
  /** ids of jobs that were removed from the history. purged_arrays: numbers of arrays whose subjobs were removed from it */
  readonly purged: Set<string>;
  /** live jobs whose pressure may change, because a job that waited for them has ended */
  readonly left_behind: Set<string>;
  /** the usage of jobs that have ended */
  readonly last_used: Map<string, ResourceRecord>;
  readonly purged_arrays: Set<number>;
  /** objects with changed derived values, which are not stored but are sent to schedulers */
  readonly told: { server: boolean; readonly queues: Set<string>; readonly vnodes: Set<string>; readonly resvs: Set<string> };
};

export function noChanges(): Changes {
  return {
    now_s: 0,
    server: false,
    queues: new Set(),
    vnodes: new Set(),
    scheds: new Set(),
    resvs: new Set(),
    resources: new Set(),
    hooks: new Set(),
    run_times: new Set(),
    backends: new Set(),
    runners: new Set(),
    jobs: new Set(),
    jobs_new: new Set(),
    jobs_whole: new Set(),
    clocks: new Set(),
    scripts: new Map(),
    ended: new Map(),
    left_behind: new Set(),
    last_used: new Map(),
    purged: new Set(),
    purged_arrays: new Set(),
    told: { server: false, queues: new Set(), vnodes: new Set(), resvs: new Set() },
  };
}

/** The fields of the changes from which messages to schedulers are made. */
const HEARD = ["queues", "vnodes", "scheds", "resvs", "resources", "jobs", "clocks", "left_behind"] as const;
export type Heard = Pick<Changes, (typeof HEARD)[number] | "server" | "last_used" | "told">;

/** Adds changes to those that a scheduler has not been told yet. */
export function addHeard(to: Changes, from: Changes): void {
  to.server ||= from.server;
  to.told.server ||= from.told.server;
  for (const kind of HEARD) for (const name of from[kind]) to[kind].add(name);
  for (const kind of ["queues", "vnodes", "resvs"] as const) for (const name of from.told[kind]) to.told[kind].add(name);
  for (const [id, used] of from.last_used) to.last_used.set(id, used);
}

/** Whether there is anything to write. */
export function hasRows(changes: Changes): boolean {
  const { queues, vnodes, scheds, resvs, resources, hooks, run_times, backends, runners } = changes;
  const { jobs, clocks, ended, purged, purged_arrays } = changes;
  const stored = [
    queues,
    vnodes,
    scheds,
    resvs,
    resources,
    hooks,
    run_times,
    backends,
    runners,
    jobs,
    clocks,
    ended,
    purged,
    purged_arrays,
  ];
  return changes.server || stored.some((set) => set.size > 0);
}

/** A copy of a record with some values set and some names removed. The old record does not change, because others may still use it. */
export function withAttrs<Own extends Attrs>(attrs: Own, set: Attrs, unset: readonly string[]): Own {
  const next = { ...attrs, ...set };
  if (unset.length === 0) return next;
  for (const name of unset) delete (next as Attrs)[name];
  // In V8, a record from which a property was deleted stays slow and large; its copy is fast and small.
  return { ...next };
}

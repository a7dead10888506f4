// Sums over the jobs of users, groups and projects, which limits are compared with: the shape in which the state holds them. entity-usage.ts keeps
// those of submission, clocks.ts those of eligible time.

import type { EntityKind, LimitTable } from "#model/limits/run-limits.ts";

/** jobs, and amounts by resource (sizes in kb) */
export type Sums = { jobs: number; readonly amounts: Map<string, number> };
/** By entity: `o`, `u:alice`, `g:staff`, `p:apollo`. queued: all live jobs; waiting: jobs that do not run (of arrays: subjobs). */
export type Scope = { readonly queued: Map<string, Sums>; readonly waiting: Map<string, Sums> };

export type EntityUsage = {
  /** jobs are counted */
  tracked: boolean;
  /** resources whose amounts are counted */
  readonly resources: Set<string>;
  /** "": the complex, else the queue's name */
  readonly scopes: Map<string, Scope>;
};

export const noUsage = (): EntityUsage => ({ tracked: false, resources: new Set(), scopes: new Map() });

/** The owner that a clock is for. Where no limit distinguishes users, groups, projects or amounts, the clock does not either. */
export type ClockKey = {
  readonly queue: string;
  readonly user: string | null;
  readonly group: string | null;
  readonly project: string | null;
  readonly amounts: { readonly [resource: string]: number };
};
export type Clock = {
  readonly id: string;
  /** null: the clock of jobs to which no limit of their owners applies; it always goes */
  readonly key: ClockKey | null;
  /** the clock showed value_s at a time; since then it has been going, or it stands */
  readonly value_s: number;
  readonly at_s: number;
  readonly goes: boolean;
};

/** Derived from limits and jobs; made anew when limits or partitions change. */
export type Accrual = {
  /** eligible_time_enable */
  enabled: boolean;
  /** limits, eligible_time_enable or partitions have changed: everything must be checked again */
  stale: boolean;
  /** the properties that limits distinguish; kinds is empty if no limit concerns owners */
  kinds: ReadonlySet<EntityKind>;
  resources: readonly string[];
  server: LimitTable;
  queues: ReadonlyMap<string, LimitTable>;
  /** running jobs by scope (`sched:NAME`, `queue:NAME`), then entity (`u:alice`) */
  running: Map<string, Map<string, Sums>>;
  /** jobs on each clock */
  readonly jobs: Map<string, number>;
  /** clocks by entity */
  readonly of: Map<string, Set<string>>;
  /** clocks that may have to stop, to go on, or to be removed */
  readonly dirty: Set<string>;
};

export const NO_LIMITS: LimitTable = { run: new Map(), resources: new Map() };

export const noAccrual = (): Accrual => ({
  enabled: false,
  stale: true,
  kinds: new Set(),
  resources: [],
  server: NO_LIMITS,
  queues: new Map(),
  running: new Map(),
  jobs: new Map(),
  of: new Map(),
  dirty: new Set(),
});

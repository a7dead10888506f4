// Types of the sums over jobs of users, groups and projects, which are compared with limits. entity-usage.ts maintains the
// sums for limits at submission, clocks.ts the sums for eligible time.

import type { EntityKind, LimitTable } from "#model/limits/run-limits.ts";

/** The number of jobs, and their amounts by resource (sizes in kb). */
export type Sums = { jobs: number; readonly amounts: Map<string, number> };
/** Sums by entity: `o`, `u:alice`, `g:staff`, `p:apollo`. queued: over all live jobs; waiting: over jobs (for arrays: subjobs) that do not run. */
export type Scope = { readonly queued: Map<string, Sums>; readonly waiting: Map<string, Sums> };

export type EntityUsage = {
  /** whether jobs are counted at all */
  tracked: boolean;
  /** resources whose amounts are counted */
  readonly resources: Set<string>;
  /** the sums of the complex (key "") and of each queue (key: its name) */
  readonly scopes: Map<string, Scope>;
};

export const noUsage = (): EntityUsage => ({ tracked: false, resources: new Set(), scopes: new Map() });

/** What the jobs of a clock have in common. A field is null if no limit depends on it, for example user; jobs of different users then share the clock. */
export type ClockKey = {
  readonly queue: string;
  readonly user: string | null;
  readonly group: string | null;
  readonly project: string | null;
  readonly amounts: { readonly [resource: string]: number };
};
export type Clock = {
  readonly id: string;
  /** null: the clock of jobs to which no limit on users, groups or projects applies; it always goes */
  readonly key: ClockKey | null;
  /** at the time at_s the clock showed value_s. goes: it has been going since then; else it is stopped */
  readonly value_s: number;
  readonly at_s: number;
  readonly goes: boolean;
};

/** Derived values for clocks, from limits and jobs. They are computed again when limits or partitions change. */
export type Accrual = {
  /** eligible_time_enable */
  enabled: boolean;
  /** limits, eligible_time_enable or partitions have changed, so that everything must be computed again */
  stale: boolean;
  /** the kinds of entities (user, group, project) and the resources that have run limits */
  kinds: ReadonlySet<EntityKind>;
  resources: readonly string[];
  server: LimitTable;
  queues: ReadonlyMap<string, LimitTable>;
  /** sums over running jobs: by `sched:NAME` or `queue:NAME`, then by entity (`u:alice`) */
  running: Map<string, Map<string, Sums>>;
  /** number of jobs by clock */
  readonly jobs: Map<string, number>;
  /** ids of clocks by entity */
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

// Run limits of server and queues (pbs/sched.md 5 and 6): both styles read into one table, running sums of what counts against them, and the check.
// max_running is [o:PBS_ALL], max_user_run is [u:PBS_GENERIC]: they differ in name only, and the server refuses a mixture.
//
// I1. Counted are jobs in state R or E. I2. The order of checks is the order of pbs/sched.md 5.

import type { AttrRecord, SchedJob, Why } from "#protocol/sched-link.ts";
import type { ResourceSpace } from "./resource-space.ts";
import { amountOf } from "./resource-space.ts";

export type EntityKind = "g" | "p" | "o" | "u";

/** Limits of one object, by `u:alice`, `u:PBS_GENERIC`, `o:PBS_ALL`. */
export type LimitTable = {
  readonly run: ReadonlyMap<string, number>;
  readonly resources: ReadonlyMap<string, ReadonlyMap<string, number>>;
};

/** What a class of jobs must distinguish because some limit looks at it. */
export type LimitProfile = {
  readonly user: boolean;
  readonly group: boolean;
  readonly project: boolean;
  /** resources counted, in a fixed order */
  readonly resources: readonly string[];
};

/** What runs for one entity (`u:alice`, `o:`): number of jobs and amounts in the order of the profile's resources. */
export type Usage = { jobs: number; readonly amounts: number[] };
export type UsageTable = Map<string, Usage>;

const NO_LIMITS: LimitTable = { run: new Map(), resources: new Map() };
const GENERIC = "PBS_GENERIC";
const ALL = "o:PBS_ALL";

/** soft: of max_run_soft and its relatives. */
export function limitTable(space: ResourceSpace, attrs: AttrRecord, soft = false): LimitTable {
  const suffix = soft ? "_soft" : "";
  const run = new Map<string, number>();
  const resources = new Map<string, Map<string, number>>();
  const setRun = (key: string, value: unknown): void => {
    if (typeof value === "number") run.set(key, value);
  };
  const setResource = (resource: string, key: string, value: unknown): void => {
    const amount = amountOf(space.all.get(resource), value);
    if (amount === null) return;
    let table = resources.get(resource);
    if (table === undefined) resources.set(resource, (table = new Map()));
    table.set(key, amount);
  };
  for (const [key, value] of entriesOf(attrs[`max_run${suffix}`])) setRun(key, value);
  for (const [resource, table] of entriesOf(attrs[`max_run_res${suffix}`]))
    for (const [key, value] of entriesOf(table)) setResource(resource, key, value);
  if (!soft) setRun(ALL, attrs["max_running"]);
  setRun(`u:${GENERIC}`, attrs[`max_user_run${suffix}`]);
  setRun(`g:${GENERIC}`, attrs[`max_group_run${suffix}`]);
  for (const [resource, value] of entriesOf(attrs[`max_user_res${suffix}`])) setResource(resource, `u:${GENERIC}`, value);
  for (const [resource, value] of entriesOf(attrs[`max_group_res${suffix}`])) setResource(resource, `g:${GENERIC}`, value);
  return run.size === 0 && resources.size === 0 ? NO_LIMITS : { run, resources };
}

/** What the tables together look at. extra: resources that are counted for other reasons, and owners that vnodes' limits look at. */
export function limitProfile(
  tables: Iterable<LimitTable>,
  extra: { readonly resources: Iterable<string>; readonly user: boolean; readonly group: boolean },
): LimitProfile {
  const kinds = new Set<string>();
  const resources = new Set(extra.resources);
  for (const table of tables) {
    for (const key of table.run.keys()) kinds.add(key.slice(0, 1));
    for (const [resource, limits] of table.resources) {
      resources.add(resource);
      for (const key of limits.keys()) kinds.add(key.slice(0, 1));
    }
  }
  return {
    user: extra.user || kinds.has("u"),
    group: extra.group || kinds.has("g"),
    project: kinds.has("p"),
    resources: [...resources].sort(),
  };
}

export function sameProfile(a: LimitProfile, b: LimitProfile): boolean {
  return a.user === b.user && a.group === b.group && a.project === b.project && a.resources.join() === b.resources.join();
}

/** Whether a job counts against limits. */
export function isRunning(job: SchedJob): boolean {
  return (job.state === "R" || job.state === "E") && job.array === undefined;
}

/** Adds (sign 1) or takes away (sign -1) a running job's share. Entities without jobs leave the table. */
export function countJob(space: ResourceSpace, profile: LimitProfile, table: UsageTable, job: SchedJob, sign: 1 | -1): void {
  countEntity(space, profile, table, "o:", job, sign);
  if (profile.user) countEntity(space, profile, table, `u:${job.user}`, job, sign);
  if (profile.group) countEntity(space, profile, table, `g:${job.group}`, job, sign);
  if (profile.project) countEntity(space, profile, table, `p:${job.project}`, job, sign);
}

function countEntity(space: ResourceSpace, profile: LimitProfile, table: UsageTable, key: string, job: SchedJob, sign: 1 | -1): void {
  let usage = table.get(key);
  if (usage === undefined) table.set(key, (usage = { jobs: 0, amounts: profile.resources.map(() => 0) }));
  usage.jobs += sign;
  for (let at = 0; at < profile.resources.length; at++) {
    const resource = profile.resources[at] as string;
    const amount = amountOf(space.all.get(resource), job.resources[resource]);
    if (amount !== null) usage.amounts[at] = (usage.amounts[at] as number) + sign * amount;
  }
  if (usage.jobs === 0) table.delete(key);
}

/** One object whose limits are asked: the server, or a queue by its name. */
export type LimitScope = { readonly queue: string | undefined; readonly limits: LimitTable; readonly usage: UsageTable | undefined };

const KINDS: readonly EntityKind[] = ["g", "p", "o", "u"];

/** The first limit that a further job would break, queue before server, numbers of jobs before amounts; null: none. */
export function checkLimits(space: ResourceSpace, profile: LimitProfile, scopes: readonly LimitScope[], job: SchedJob): Why | null {
  for (const scope of scopes) {
    if (scope.limits.run.size === 0) continue;
    for (const kind of KINDS) {
      const why = checkRun(scope, kind, job);
      if (why !== null) return why;
    }
  }
  for (const scope of scopes) {
    if (scope.limits.resources.size === 0) continue;
    for (const kind of KINDS) {
      for (const [resource, limits] of scope.limits.resources) {
        const asked = amountOf(space.all.get(resource), job.resources[resource]);
        if (asked === null || asked === 0) continue;
        const why = checkResource(scope, kind, job, { resource, limits, asked, at: profile.resources.indexOf(resource) });
        if (why !== null) return why;
      }
    }
  }
  return null;
}

function checkRun(scope: LimitScope, kind: EntityKind, job: SchedJob): Why | null {
  const entity = entityOf(kind, job);
  const found = limitOf(scope.limits.run, kind, entity);
  if (found === null) return null;
  const running = scope.usage?.get(`${kind}:${entity}`)?.jobs ?? 0;
  if (running + 1 <= found.limit) return null;
  const named = !found.generic && kind !== "o";
  const code = `${scope.queue === undefined ? "SERVER" : "QUEUE"}_${NAMES[kind]}_${named ? "NAMED_" : ""}JOB_LIMIT`;
  return {
    code,
    module: "limits",
    have: String(running),
    total: String(found.limit),
    ...(scope.queue === undefined ? {} : { where: scope.queue }),
    ...(named ? { entity } : {}),
  };
}

type AskedLimit = { readonly resource: string; readonly limits: ReadonlyMap<string, number>; readonly asked: number; readonly at: number };

function checkResource(scope: LimitScope, kind: EntityKind, job: SchedJob, { resource, limits, asked, at }: AskedLimit): Why | null {
  const entity = entityOf(kind, job);
  const found = limitOf(limits, kind, entity);
  if (found === null) return null;
  const used = scope.usage?.get(`${kind}:${entity}`)?.amounts[at] ?? 0;
  if (used + asked <= found.limit) return null;
  const named = !found.generic && kind !== "o";
  const code = `${scope.queue === undefined ? "SERVER" : "QUEUE"}_${NAMES[kind]}_${named ? "NAMED_" : ""}RES_LIMIT`;
  return {
    code,
    module: "limits",
    resource,
    want: String(asked),
    have: String(used),
    total: String(found.limit),
    ...(scope.queue === undefined ? {} : { where: scope.queue }),
    ...(named ? { entity } : {}),
  };
}

const NAMES = { g: "GROUP", p: "PROJECT", o: "OVERALL", u: "USER" } as const;

function entityOf(kind: EntityKind, job: SchedJob): string {
  switch (kind) {
    case "g":
      return job.group;
    case "p":
      return job.project;
    case "u":
      return job.user;
    case "o":
      return "";
    default: {
      const unreachable: never = kind;
      return unreachable;
    }
  }
}

function limitOf(
  limits: ReadonlyMap<string, number>,
  kind: EntityKind,
  entity: string,
): { readonly limit: number; readonly generic: boolean } | null {
  if (kind === "o") {
    const limit = limits.get(ALL);
    return limit === undefined ? null : { limit, generic: true };
  }
  const own = limits.get(`${kind}:${entity}`);
  if (own !== undefined) return { limit: own, generic: false };
  const limit = limits.get(`${kind}:${GENERIC}`);
  return limit === undefined ? null : { limit, generic: true };
}

/** The limit that holds for an entity; null: none. */
export function limitFor(limits: ReadonlyMap<string, number>, kind: EntityKind, entity: string): number | null {
  return limitOf(limits, kind, entity)?.limit ?? null;
}

function entriesOf(value: unknown): [string, unknown][] {
  return typeof value === "object" && value !== null ? Object.entries(value) : [];
}

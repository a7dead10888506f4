// Run limits of server and queues (docs/reference/scheduler.md 5 and 6): sums over running jobs, and the check.
//
// I1. Jobs in state R or E count. I2. The order of checks is the order of docs/reference/scheduler.md 5.

import { ENTITY_KINDS, type EntityKind, type LimitTable, limitOf } from "#model/limits/run-limits.ts";
import type { SchedJob, Why } from "#protocol/sched-link.ts";
import { present } from "#support/assert.ts";
import type { ResourceSpace } from "./resource-space.ts";
import { amountAt, amountOf } from "./resource-space.ts";

/** The properties by which classes of jobs must be distinguished because some limit depends on them. */
export type LimitProfile = {
  readonly user: boolean;
  readonly group: boolean;
  readonly project: boolean;
  /** the resources that are counted, in a fixed order */
  readonly resources: readonly string[];
};

/** What the running jobs of one entity (`u:alice`; `o:` for all) use: the number of jobs, and amounts in the order of the profile's resources. */
export type Usage = { jobs: number; readonly amounts: number[] };
export type UsageTable = Map<string, Usage>;

/** Returns the profile of all tables together. extra: resources that are counted for other reasons, and whether limits of vnodes depend on user or group. */
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

/** Returns whether a job counts for limits. */
export function isRunning(job: SchedJob): boolean {
  return (job.state === "R" || job.state === "E") && job.array === undefined;
}

/** Adds (sign 1) or subtracts (sign -1) a running job. Entities that then have no jobs are removed from the table. */
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
    const resource = present(profile.resources[at], "resource");
    const amount = amountOf(space.all.get(resource), job.resources[resource]);
    if (amount !== null) usage.amounts[at] = amountAt(usage.amounts, at) + sign * amount;
  }
  if (usage.jobs === 0) table.delete(key);
}

/** An object with limits: the server, or a queue given by its name. */
export type LimitScope = { readonly queue: string | undefined; readonly limits: LimitTable; readonly usage: UsageTable | undefined };

/** Returns the first limit that one more job would break; null: none. Limits of the queue come before limits of the server, numbers of jobs before amounts. */
export function checkLimits(space: ResourceSpace, profile: LimitProfile, scopes: readonly LimitScope[], job: SchedJob): Why | null {
  for (const scope of scopes) {
    if (scope.limits.run.size === 0) continue;
    for (const kind of ENTITY_KINDS) {
      const why = checkRun(scope, kind, job);
      if (why !== null) return why;
    }
  }
  for (const scope of scopes) {
    if (scope.limits.resources.size === 0) continue;
    for (const kind of ENTITY_KINDS) {
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

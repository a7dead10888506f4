// Counts how many jobs, and what amounts of resources, each user, group and project has queued, in the complex and in each
// queue. Limits at submission are compared with these sums (docs/reference/errors.md 3). Nothing is counted until a limit
// needs it. Then all jobs are counted once, and each later change of a job updates the sums (apply.ts).
//
// I1. The cost of an update, and of reading a sum, does not depend on the number of jobs.
// I2. The sums always equal the result of a new count (checkUsage).

import type { EntityUse, JobEntities, LimitFamily } from "#model/limits/limits.ts";
import type { ResourceDef } from "#model/resource-table.ts";
import { assert } from "#support/assert.ts";
import { amountOf } from "./amounts.ts";
import type { EntityUsage, Scope, Sums } from "./entity-sums.ts";
import { isIn, isWaiting } from "./job-phase.ts";
import type { Job, JobAttrs } from "./state.ts";
import { SUBJOB } from "./subjobs.ts";

type Counted = {
  readonly usage: EntityUsage;
  readonly jobs: ReadonlyMap<string, Job>;
  readonly resources: ReadonlyMap<string, ResourceDef>;
};

/** The number of jobs that a job counts as: an array counts as its waiting subjobs; subjobs that have started are counted as jobs. */
export const weightOf = (job: Job): number => job.subjobs?.counts[SUBJOB.QUEUED] ?? 1;

/** Adds a job to the sums (1) or removes it (-1). To change a job, remove it before and add it afterwards. weight: see weightOf. */
export function countJob(state: Pick<Counted, "usage" | "resources">, attrs: JobAttrs, sign: 1 | -1, weight = 1): void {
  if (!state.usage.tracked || weight === 0) return;
  for (const scope of ["", attrs.queue]) {
    const { queued, waiting } = scopeOf(state.usage, scope);
    addTo(state, queued, attrs, sign * weight);
    if (isWaitingToRun(attrs)) addTo(state, waiting, attrs, sign * weight);
  }
}

/**
 * Whether the job counts as waiting: it has not started, or was queued again. As in PBS, a held job also counts. An array
 * that has begun counts as its waiting subjobs.
 */
export const isWaitingToRun = (attrs: JobAttrs): boolean => isWaiting({ attrs }) || isIn({ attrs }, "begun");

/**
 * The number of jobs, or the amount of a resource, that the user, group and project of a job have in a queue (scope "": in
 * the complex). The first call starts the counting.
 */
export function usageOf(state: Counted, scope: string, family: LimitFamily, who: JobEntities, resource?: string): EntityUse {
  track(state, resource);
  const sums = state.usage.scopes.get(scope)?.[family];
  const of = (entity: string): number => {
    const found = sums?.get(entity);
    return resource === undefined ? (found?.jobs ?? 0) : (found?.amounts.get(resource) ?? 0);
  };
  return { all: of("o"), user: of(`u:${who.user}`), group: of(`g:${who.group}`), project: of(`p:${who.project}`) };
}

export const entitiesOf = (attrs: JobAttrs): JobEntities => ({ user: attrs.euser, group: attrs.egroup, project: attrs.project });

/** Throws if the sums of a state are wrong. */
export function checkUsage(state: Counted): void {
  if (!state.usage.tracked) return;
  const fresh: Counted = { ...state, usage: { tracked: true, resources: state.usage.resources, scopes: new Map() } };
  for (const job of state.jobs.values()) countJob(fresh, job.attrs, 1, weightOf(job));
  for (const [scope, { queued, waiting }] of [...state.usage.scopes, ...fresh.usage.scopes]) {
    for (const [family, sums] of [
      ["queued", queued],
      ["waiting", waiting],
    ] as const) {
      for (const entity of sums.keys()) {
        const [a, b] = [state, fresh].map(({ usage }) => usage.scopes.get(scope)?.[family].get(entity));
        assert((a?.jobs ?? 0) === (b?.jobs ?? 0), `${family} jobs of ${entity} in "${scope}": ${a?.jobs} counted, ${b?.jobs} there`);
        for (const resource of state.usage.resources) {
          const difference = (a?.amounts.get(resource) ?? 0) - (b?.amounts.get(resource) ?? 0);
          assert(Math.abs(difference) < 1e-6, `${family} ${resource} of ${entity} in "${scope}" differs by ${difference}`);
        }
      }
    }
  }
}

/** Starts to count jobs, or amounts of one more resource. */
function track(state: Counted, resource: string | undefined): void {
  const { usage } = state;
  if (usage.tracked && (resource === undefined || usage.resources.has(resource))) return;
  usage.tracked = true;
  if (resource !== undefined) usage.resources.add(resource);
  usage.scopes.clear();
  for (const job of state.jobs.values()) countJob(state, job.attrs, 1, weightOf(job));
}

function scopeOf(usage: EntityUsage, name: string): Scope {
  let scope = usage.scopes.get(name);
  if (scope === undefined) {
    scope = { queued: new Map(), waiting: new Map() };
    usage.scopes.set(name, scope);
  }
  return scope;
}

function addTo({ usage, resources }: Pick<Counted, "usage" | "resources">, sums: Map<string, Sums>, attrs: JobAttrs, by: number): void {
  for (const entity of ["o", `u:${attrs.euser}`, `g:${attrs.egroup}`, `p:${attrs.project}`]) {
    let sum = sums.get(entity);
    if (sum === undefined) {
      sum = { jobs: 0, amounts: new Map() };
      sums.set(entity, sum);
    }
    sum.jobs += by;
    for (const resource of usage.resources) {
      const amount = amountOf(resources.get(resource), attrs.Resource_List[resource]);
      if (amount !== null) sum.amounts.set(resource, (sum.amounts.get(resource) ?? 0) + by * amount);
    }
    if (sum.jobs === 0) sums.delete(entity);
  }
}

// Whether limits of server and queue leave room for a job, or for a larger one (docs/reference/errors.md 3).
//
// I1. All limits must hold: old style, numbers of jobs, amounts of resources; of the queue, then of the complex.

import type { EntityLimits, ResourceEntityLimits } from "#model/attribute.ts";
import {
  countRefusal,
  type EntityUse,
  type JobEntities,
  type LimitFamily,
  type LimitScope,
  queuableRefusal,
  resourceRefusal,
} from "#model/limits/limits.ts";
import { amountOf } from "../state/amounts.ts";
import { entitiesOf, isWaitingToRun, usageOf } from "../state/entity-usage.ts";
import type { Attrs, JobAttrs, Queue, ServerState } from "../state/state.ts";

/** Where the job is counted at present: it is left out of the counts when it changes within its queue or moves within the complex. */
export type Counted = { readonly attrs: JobAttrs };

/** The job that would enter or change. weight: the number of jobs that it counts for. */
type Asked = { readonly attrs: JobAttrs; readonly weight: number };

type Place = { readonly scope: LimitScope; readonly name: string; readonly limits: Attrs };

const FAMILIES: readonly (readonly [family: LimitFamily, counts: string, amounts: string])[] = [
  ["queued", "max_queued", "max_queued_res"],
  ["waiting", "queued_jobs_threshold", "queued_jobs_threshold_res"],
];

/** Refuses with 15046, 15142 or 15143 what would exceed a limit. already: the same job as it is counted now. weight: an array counts for its subjobs. */
export function checkQueueLimits(state: ServerState, attrs: JobAttrs, queue: Queue, already?: Counted, weight = 1): void {
  const enters = already === undefined || already.attrs.queue !== queue.name;
  const max_queuable = queue.attrs["max_queuable"];
  const full = enters ? queuableRefusal(typeof max_queuable === "number" ? max_queuable : undefined, queue.jobs.size) : null;
  if (full !== null) throw full;
  const asked = { attrs, weight };
  checkPlace(
    state,
    asked,
    { scope: { kind: "queue", name: queue.name }, name: queue.name, limits: queue.attrs },
    enters ? undefined : already,
  );
  checkPlace(state, asked, { scope: { kind: "complex" }, name: "", limits: state.server }, already);
}

function checkPlace(state: ServerState, asked: Asked, place: Place, already: Counted | undefined): void {
  for (const [family, counts, amounts] of FAMILIES) {
    if (family === "waiting" && !isWaitingToRun(asked.attrs)) continue;
    // A job that is counted there already adds only the difference, and counts anew for entities that it did not count for.
    const counted = already !== undefined && (family === "queued" || isWaitingToRun(already.attrs)) ? already : undefined;
    const limits = place.limits[counts] as EntityLimits | undefined;
    if (limits !== undefined) checkCount(state, asked, place, family, limits, counted);
    const resources = place.limits[amounts] as ResourceEntityLimits | undefined;
    if (resources !== undefined) checkAmounts(state, asked, place, family, resources, counted);
  }
}

function checkCount(
  state: ServerState,
  { attrs, weight }: Asked,
  { scope, name }: Place,
  family: LimitFamily,
  limits: EntityLimits,
  counted: Counted | undefined,
): void {
  const who = entitiesOf(attrs);
  const added = addedFor(who, counted, weight, weight);
  const refusal = countRefusal(limits, { family, scope, who, use: usageOf(state, name, family, who), added });
  if (refusal !== null) throw refusal;
}

function checkAmounts(
  state: ServerState,
  { attrs, weight }: Asked,
  { scope, name }: Place,
  family: LimitFamily,
  limits: ResourceEntityLimits,
  counted: Counted | undefined,
): void {
  const who = entitiesOf(attrs);
  for (const resource of Object.keys(limits)) {
    const def = state.resources.get(resource);
    const amount = amountOf(def, attrs.Resource_List[resource]);
    if (def === undefined || amount === null) continue;
    const before = counted === undefined ? 0 : (amountOf(def, counted.attrs.Resource_List[resource]) ?? 0);
    const refusal = resourceRefusal(limits[resource], def, {
      family,
      scope,
      who,
      use: usageOf(state, name, family, who, resource),
      added: addedFor(who, counted, amount * weight, before * weight),
    });
    if (refusal !== null) throw refusal;
  }
}

/** The addition for each entity: the whole job if it did not count for the entity, else the difference. */
function addedFor(who: JobEntities, counted: Counted | undefined, now: number, before: number): EntityUse {
  const old = counted === undefined ? undefined : entitiesOf(counted.attrs);
  const of = (kind: keyof JobEntities): number => (old?.[kind] === who[kind] ? now - before : now);
  return { all: old === undefined ? now : now - before, user: of("user"), group: of("group"), project: of("project") };
}

// Finds the queue that a destination names, and checks whether that queue accepts a job: at submission, at qmove, and
// from a routing queue (docs/reference/commands.md 1.2, docs/reference/errors.md 3).
//
// Order: 1. enabled 15021  2. from_route_only 15022  3. lists of hosts, users and groups 15007  4. size of an array 15107
//        5. options for a backend 15014; exclusiveness in a reservation 15156  6. bounds of resources 15036  7. max_queuable 15046, then limits on numbers of jobs
//        15142 and on amounts of resources 15143.
//
// I1. The job must be within all limits, of the old and the new style, for numbers of jobs and amounts of resources. The
//     limits of the queue are checked first, then those of the complex (docs/reference/errors.md 3).

import { indexCount, parseArrayIndices } from "#model/array-indices.ts";
import type { EntityLimits, ResourceEntityLimits, ResourceValue, ResourceValues } from "#model/attribute.ts";
import { listOf, resourcesOf, textOf } from "#model/attribute-reader.ts";
import {
  countRefusal,
  type EntityUse,
  type JobEntities,
  type LimitFamily,
  type LimitScope,
  queuableRefusal,
  resourceRefusal,
} from "#model/limits/limits.ts";
import { PBSE, Reject, reject } from "#model/pbse.ts";
import { jobOptions } from "#model/request/backend-options.ts";
import { alterRequest, isOldStyle, type RequestDefaults } from "#model/request/job-request.ts";
import { placeOf } from "#model/request/place.ts";
import type { ResourceDef } from "#model/resource-table.ts";
import { compareResourceValues } from "#model/values/resource-value.ts";
import { checkQueueLists, type Submitter } from "../attributes/permission.ts";
import type { Transaction } from "../engine/transaction.ts";
import { isExecution, waitingState } from "../jobs/life.ts";
import { amountOf } from "../state/amounts.ts";
import { entitiesOf, isWaitingToRun, usageOf, weightOf } from "../state/entity-usage.ts";
import { backendsFor, partitionOf, partitionOfBackend } from "../state/partitions.ts";
import { resvOfQueue } from "../state/resv-holding.ts";
import type { Attrs, Job, JobAttrs, Queue, ServerState } from "../state/state.ts";
import { SUBJOBS_MAX } from "../state/subjobs.ts";

export type Entry = {
  readonly from_route: boolean;
  readonly submitter: Submitter;
  /** the refusal by the bounds of the queue, if they were checked already; null: they allow the job */
  readonly bounds?: Reject | null;
  /** the job as the limits count it at present */
  readonly already?: Counted;
  /** for a waiting array: the number of its subjobs that were not deleted */
  readonly weight?: number;
};

/** Refuses a job that the queue does not accept. attrs: the job's attributes as they would be in the queue. */
export function checkEntry(tx: Transaction, attrs: JobAttrs, queue: Queue, entry: Entry): void {
  const { state } = tx;
  if (queue.attrs["enabled"] !== true) throw reject(PBSE.QUNOENB);
  if (queue.attrs["from_route_only"] === true && !entry.from_route) throw reject(PBSE.QACESS);
  checkQueueLists(queue.attrs, entry.submitter);
  checkArraySize(state, queue, attrs);
  checkBackendOptions(state, attrs, queue);
  if (state.resv_queues.has(queue.name)) checkJobInResv(state, attrs, queue);
  if (entry.bounds === undefined) checkBounds(attrs.Resource_List, queue.attrs, state.server, state.resources);
  else if (entry.bounds !== null) throw entry.bounds;
  checkQueueLimits(
    state,
    { ...attrs, job_state: waitingState(attrs, tx.now_s).job_state, queue: queue.name } as JobAttrs,
    queue,
    entry.already,
    entry.weight ?? subjobCount(attrs),
  );
}

/**
 * Refuses with 15014 options for a backend (backend_opts) that no backend of the queue's partition takes. Options of a job in a routing queue are checked when the job enters its
 * execution queue.
 */
export function checkBackendOptions(state: ServerState, attrs: Attrs, queue: Queue): void {
  const text = attrs["backend_opts"];
  if (typeof text !== "string" || !isExecution(queue)) return;
  const partition = partitionOf(queue);
  const refusals: Reject[] = [];
  let count = 0;
  for (const backend of state.backends.values()) {
    if (partitionOfBackend(backend) !== partition) continue;
    count++;
    try {
      const allowed = backend.attrs["backend_opts_allowed"];
      jobOptions(
        textOf(backend.attrs, "type") ?? "",
        allowed === undefined ? undefined : listOf(backend.attrs, "backend_opts_allowed"),
        text,
      );
    } catch (error) {
      if (!(error instanceof Reject)) throw error;
      refusals.push(error);
    }
  }
  if (count === 0)
    throw new Reject(PBSE.BADATVAL, `Illegal attribute or resource value: backend_opts: no backend serves queue ${queue.name}`);
  const [refusal] = refusals;
  if (refusal !== undefined && refusals.length === count) throw refusal;
}

/** Checks a job that comes from another queue and returns its changed attributes: defaults of the new queue replace the defaults of the old queue. */
export function admitJob(tx: Transaction, job: Job, queue: Queue, how: { readonly from_route: boolean }): Attrs {
  const { state } = tx;
  const { attrs } = job;
  const resolved = alterRequest(attrs.Resource_List, defaultsGoing(state, job), requestDefaults(state, queue), state.resources);
  const next = { ...attrs, ...resolved } as JobAttrs;
  const at = attrs.Job_Owner.lastIndexOf("@");
  const submitter = { user: attrs.Job_Owner.slice(0, at), host: attrs.Job_Owner.slice(at + 1), groups: [attrs.egroup] };
  checkEntry(tx, next, queue, { from_route: how.from_route, submitter, already: { attrs }, weight: weightOf(job) });
  return { Resource_List: resolved.Resource_List, schedselect: resolved.schedselect };
}

/**
 * The resources that a job loses when it leaves its queue: those that equal a default of the queue, or of a backend of its partition, because they probably
 * come from it. Chunk resources of a job with select are sums and are computed again.
 */
function defaultsGoing(state: ServerState, job: Job): { readonly [resource: string]: ResourceValue | undefined } {
  const list = job.attrs.Resource_List;
  const defaults = requestDefaults(state, state.queues.get(job.attrs.queue));
  const { resources_default, resources_max } = defaults.queue;
  const old_style = isOldStyle(list, defaults, state.resources);
  const going: { [resource: string]: undefined } = {};
  for (const [name, value] of Object.entries({ ...defaults.backend?.resources_default, ...resources_max, ...resources_default })) {
    if (list[name] !== value || name === "select" || name === "place" || name === "nodes" || name === "nodect") continue;
    if (old_style || !state.resources.get(name)?.flags.includes("h")) going[name] = undefined;
  }
  return going;
}

// --- reservations

/** Refuses with 15156 a job for the queue of a reservation if the job requests more exclusiveness than the reservation has. */
function checkJobInResv(state: ServerState, attrs: JobAttrs, queue: Queue): void {
  const resv = resvOfQueue(state, queue.name);
  if (resv === undefined) return;
  const job = placeOf(attrs.Resource_List["place"]).sharing;
  const own = placeOf(resv.attrs.Resource_List["place"]).sharing;
  const conflict = (job === "exclhost" && own !== "exclhost") || (job === "excl" && own !== "excl" && own !== "exclhost");
  if (conflict) throw reject(PBSE.JOBINRESV_CONFLICT);
}

// --- arrays

/** The number of jobs that a submission counts as: for an array the number of its subjobs, else 1. */
function subjobCount(attrs: Attrs): number {
  const range = parseArrayIndices(String(attrs["array_indices_submitted"] ?? ""));
  return range === null ? 1 : indexCount(range);
}

/** Refuses with 15107 an array that is too large for the complex or the queue (max_array_size). */
function checkArraySize(state: ServerState, queue: Queue, attrs: Attrs): void {
  if (attrs["array_indices_submitted"] === undefined) return;
  const count = subjobCount(attrs);
  for (const limit of [state.server["max_array_size"] ?? MAX_ARRAY_SIZE_DEFAULT, queue.attrs["max_array_size"], SUBJOBS_MAX]) {
    if (typeof limit === "number" && count > limit) throw reject(PBSE.MaxArraySize);
  }
}

const MAX_ARRAY_SIZE_DEFAULT = 10_000;

// --- bounds of resources

type Resources = ReadonlyMap<string, ResourceDef>;

/**
 * Refuses with 15036 a job that resources_min or resources_max of the queue forbid. For a resource without a maximum of the
 * queue, the server's maximum counts. list: Resource_List with defaults and sums. Values without an order are not bounded.
 */
export function checkBounds(list: ResourceValues, queue: Attrs, server: Attrs, resources: Resources): void {
  const queue_max = resourcesOf(queue, "resources_max");
  const server_max = resourcesOf(server, "resources_max");
  bound(list, resourcesOf(queue, "resources_min"), resources, (order) => order >= 0);
  bound(list, { ...server_max, ...queue_max }, resources, (order) => order <= 0);
}

function bound(list: ResourceValues, bounds: ResourceValues, resources: Resources, isWithin: (order: number) => boolean): void {
  for (const name of Object.keys(bounds)) {
    const def = resources.get(name);
    const [asked, limit] = [list[name], bounds[name]];
    if (def === undefined || asked === undefined || limit === undefined) continue;
    const order = compareResourceValues(def, asked, limit);
    if (order !== null && !isWithin(order)) throw reject(PBSE.EXCQRESC);
  }
}

// --- limits of queue and server

/**
 * A job as the limits count it at present. Used for a job that changes within its queue or moves to another queue: such a job
 * adds only the difference to the counts.
 */
export type Counted = { readonly attrs: JobAttrs };

/** The job as it would be after it enters the queue or changes. weight: the number of jobs that it counts as. */
type Asked = { readonly attrs: JobAttrs; readonly weight: number };

type Place = { readonly scope: LimitScope; readonly name: string; readonly limits: Attrs };

const FAMILIES: readonly (readonly [family: LimitFamily, counts: string, amounts: string])[] = [
  ["queued", "max_queued", "max_queued_res"],
  ["waiting", "queued_jobs_threshold", "queued_jobs_threshold_res"],
];

/**
 * Refuses with 15046, 15142 or 15143 a job that would exceed a limit. already: the same job as it is counted now. weight:
 * the number of jobs that it counts as; for an array, the number of its subjobs.
 */
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
    const limits = place.limits[counts] as EntityLimits | undefined;
    const resources = place.limits[amounts] as ResourceEntityLimits | undefined;
    if (limits === undefined && resources === undefined) continue;
    if (family === "waiting" && !isWaitingToRun(asked.attrs)) continue;
    // A job that this limit already counts adds only the difference. For an entity for which the job was not counted, it adds its whole amount.
    const counted = already !== undefined && (family === "queued" || isWaitingToRun(already.attrs)) ? already : undefined;
    if (limits !== undefined) checkCount(state, asked, place, family, limits, counted);
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

/** What the job adds to the use of each entity: if the job already counts for the entity, the difference; else its whole amount. */
function addedFor(who: JobEntities, counted: Counted | undefined, now: number, before: number): EntityUse {
  const old = counted === undefined ? undefined : entitiesOf(counted.attrs);
  const of = (kind: keyof JobEntities): number => (old?.[kind] === who[kind] ? now - before : now);
  return { all: old === undefined ? now : now - before, user: of("user"), group: of("group"), project: of("project") };
}

// --- destinations

/**
 * The queue that `queue`, `queue@server` or `@server` names on this server. Refuses an unknown queue with 15018, no default queue with 15037, another
 * server with 15008.
 */
export function localQueue(tx: Transaction, destination: string): Queue {
  const [name = "", server] = destination.split("@");
  if (server !== undefined && !isOwnName(tx, server)) throw reject(PBSE.BADHOST);
  const wanted = name === "" ? tx.state.server["default_queue"] : name;
  const queue = typeof wanted === "string" ? tx.state.queues.get(wanted) : undefined;
  if (queue === undefined) throw reject(name === "" ? PBSE.QUENODFLT : PBSE.UNKQUE);
  return queue;
}

/** Whether a name means this server: its own name or `default`, also as a full host name. */
export function isOwnName(tx: Transaction, server: string): boolean {
  const short = server.toLowerCase().split(".")[0];
  return (
    server === "default" || short === tx.state.name.toLowerCase().split(".")[0] || short === tx.config.host.toLowerCase().split(".")[0]
  );
}

/**
 * Returns the defaults for jobs of a queue. They come from the queue, then from the server, and at last from the backends of the queue's partition. Runners live for a limited
 * time in most backends, so a backend may say how long jobs without a walltime may run (default_walltime, docs/runners.md). undefined: a queue that does not
 * exist any more.
 */
export function requestDefaults(state: ServerState, queue: Queue | undefined): RequestDefaults {
  const defaults = { queue: queue?.attrs ?? {}, server: state.server };
  if (queue === undefined || state.backends.size === 0) return defaults;
  for (const { attrs } of backendsFor(state, partitionOf(queue))) {
    const walltime = attrs["default_walltime"];
    if (typeof walltime === "number") return { ...defaults, backend: { resources_default: { walltime } } };
  }
  return defaults;
}

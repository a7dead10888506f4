// Clocks of eligible time (docs/reference/scheduler.md 4). Whether the time of a queued job counts as eligible depends on
// limits and on the running jobs of its owner. Therefore, when a job starts or ends, the time of all jobs with the same
// owner and limits may begin or cease to count. These jobs share a clock, and each job stores the difference to the clock.
// When a limit is reached or no longer reached, one clock stops or goes on, for any number of jobs.
//
// I1. A job has a clock if and only if eligible_time_enable is True and the job is in an execution queue and either queued
//     or held by somebody other than its owner.
// I2. A clock is stopped while one more running job of its owner would exceed a run limit on users, groups or projects.
//     Limits for all jobs together (o:PBS_ALL) do not stop it.
// I3. The derived values here always equal the result of a new computation (checkAccrual).

import { ENTITY_KINDS, type EntityKind, type LimitTable, limitOf, limitTable, lookedAt } from "#model/limits/run-limits.ts";
import { assert } from "#support/assert.ts";
import { addAmounts, amountOf } from "./amounts.ts";
import { type Accrual, type Clock, type ClockKey, NO_LIMITS, noAccrual, type Sums } from "./entity-sums.ts";
import { isIn } from "./job-phase.ts";
import { schedOfQueue } from "./partitions.ts";
import type { Attrs, JobAttrs, Queue, ServerState } from "./state.ts";

/** The id of the clock that always goes. */
const FREE_CLOCK = "free";

// --- limits

/** Reads eligible_time_enable and the limits, and counts the running jobs. */
export function readAccrual(state: ServerState): void {
  const { accrual } = state;
  accrual.stale = false;
  accrual.enabled = state.server["eligible_time_enable"] === true;
  accrual.server = ownersOnly(state, state.server);
  accrual.queues = new Map([...state.queues.values()].map((queue) => [queue.name, ownersOnly(state, queue.attrs)]));
  const looked = [accrual.server, ...accrual.queues.values()].map(lookedAt);
  accrual.kinds = new Set(looked.flatMap(({ kinds }) => [...kinds]) as EntityKind[]);
  accrual.resources = [...new Set(looked.flatMap(({ resources }) => resources))].sort();
  accrual.running = new Map();
  for (const job of state.jobs.values()) countRunning(state, job.attrs, 1);
  for (const id of state.clocks.keys()) accrual.dirty.add(id);
}

/** The limits on users, groups and projects. */
function ownersOnly(state: ServerState, attrs: Attrs): LimitTable {
  const table = limitTable(attrs, (resource, value) => amountOf(state.resources.get(resource), value));
  const keep = (limits: ReadonlyMap<string, number>): Map<string, number> => new Map([...limits].filter(([key]) => !key.startsWith("o:")));
  const resources = [...table.resources].map(([resource, limits]) => [resource, keep(limits)] as const);
  return { run: keep(table.run), resources: new Map(resources.filter(([, limits]) => limits.size > 0)) };
}

// --- running jobs

/** Adds a running job (1) to the counts, or removes it (-1), and marks the clocks that may stop or go on because of it. */
export function countRunning(state: ServerState, attrs: JobAttrs, sign: 1 | -1): void {
  const { accrual } = state;
  if (!accrual.enabled || accrual.kinds.size === 0 || !isCounted(attrs)) return;
  for (const scope of scopesOf(state, attrs.queue)) {
    let table = accrual.running.get(scope);
    if (table === undefined) accrual.running.set(scope, (table = new Map()));
    for (const entity of entitiesOf(attrs)) add(state, table, entity, attrs, sign);
    if (table.size === 0) accrual.running.delete(scope);
  }
  for (const entity of entitiesOf(attrs)) for (const id of accrual.of.get(entity) ?? []) accrual.dirty.add(id);
}

/** Whether schedulers count the job as running: it runs or exits. For arrays, the subjobs are counted. */
const isCounted = (attrs: JobAttrs): boolean => isIn({ attrs }, "starting", "running", "rerunning", "exiting") && attrs["array"] !== true;

const entitiesOf = (attrs: Pick<JobAttrs, "euser" | "egroup" | "project">): string[] => [
  `u:${attrs.euser}`,
  `g:${attrs.egroup}`,
  `p:${attrs.project}`,
];

/**
 * Returns the keys of the two sums in which the jobs of a queue are counted. The sum of the queue's scheduler is compared with
 * the limits of the server (docs/reference/scheduler.md 2). The sum of the queue is compared with the limits of the queue.
 */
function scopesOf(state: ServerState, queue_name: string): string[] {
  const queue = state.queues.get(queue_name);
  const sched = queue === undefined ? undefined : schedOfQueue(state, queue)?.name;
  return [`sched:${sched ?? ""}`, `queue:${queue_name}`];
}

function add(state: ServerState, table: Map<string, Sums>, entity: string, attrs: JobAttrs, sign: 1 | -1): void {
  let sums = table.get(entity);
  if (sums === undefined) table.set(entity, (sums = { jobs: 0, amounts: new Map() }));
  sums.jobs += sign;
  for (const resource of state.accrual.resources) {
    const amount = amountOf(state.resources.get(resource), attrs.Resource_List[resource]);
    if (amount !== null) addAmounts(sums.amounts, new Map([[resource, amount]]), sign);
  }
  if (sums.jobs === 0) table.delete(entity);
}

// --- clocks

/** The time that a clock shows. */
export const shownBy = ({ value_s, at_s, goes }: Clock, now_s: number): number => value_s + (goes ? Math.max(0, now_s - at_s) : 0);

/** The key of a queued job's clock; null: no limit on users, groups or projects exists. */
export function clockKey(state: ServerState, attrs: JobAttrs): ClockKey | null {
  const { kinds, resources } = state.accrual;
  if (kinds.size === 0) return null;
  const amounts: { [resource: string]: number } = {};
  for (const resource of resources) {
    const amount = amountOf(state.resources.get(resource), attrs.Resource_List[resource]);
    if (amount !== null && amount !== 0) amounts[resource] = amount;
  }
  return {
    queue: attrs.queue,
    user: kinds.has("u") ? attrs.euser : null,
    group: kinds.has("g") ? attrs.egroup : null,
    project: kinds.has("p") ? attrs.project : null,
    amounts,
  };
}

export const clockId = (key: ClockKey | null): string =>
  key === null ? FREE_CLOCK : JSON.stringify([key.queue, key.user, key.group, key.project, key.amounts]);

/** Whether a clock must be stopped in the present state (I2). */
export function isStopped(state: ServerState, key: ClockKey | null): boolean {
  const { accrual } = state;
  if (key === null || accrual.kinds.size === 0) return false;
  const [sched = "", queue = ""] = scopesOf(state, key.queue);
  const own = accrual.queues.get(key.queue) ?? NO_LIMITS;
  return isReached(own, accrual.running.get(queue), key) || isReached(accrual.server, accrual.running.get(sched), key);
}

function isReached(limits: LimitTable, running: ReadonlyMap<string, Sums> | undefined, key: ClockKey): boolean {
  return ENTITY_KINDS.some((kind) => {
    const entity = { u: key.user, g: key.group, p: key.project, o: null }[kind];
    if (entity === null) return false;
    const sums = running?.get(`${kind}:${entity}`);
    const most = limitOf(limits.run, kind, entity);
    if (most !== null && (sums?.jobs ?? 0) + 1 > most.limit) return true;
    return Object.entries(key.amounts).some(([resource, asked]) => {
      const limit = limitOf(limits.resources.get(resource) ?? NO_LIMITS.run, kind, entity);
      return limit !== null && (sums?.amounts.get(resource) ?? 0) + asked > limit.limit;
    });
  });
}

/** Adds a clock to the index by entity, or removes it. */
export function indexClock(accrual: Accrual, { id, key }: Pick<Clock, "id" | "key">, isThere: boolean): void {
  if (key === null) return;
  for (const [kind, name] of [
    ["u", key.user],
    ["g", key.group],
    ["p", key.project],
  ] as const) {
    if (name === null) continue;
    const entity = `${kind}:${name}`;
    const ids = accrual.of.get(entity);
    if (!isThere) {
      ids?.delete(id);
      if (ids?.size === 0) accrual.of.delete(entity);
    } else if (ids === undefined) accrual.of.set(entity, new Set([id]));
    else ids.add(id);
  }
}

/** Counts that a job begins to use a clock (1) or no longer uses it (-1). */
export function countOnClock({ accrual }: ServerState, attrs: Attrs, sign: 1 | -1): void {
  const id = attrs["accrual_clock"];
  if (typeof id !== "string") return;
  const jobs = (accrual.jobs.get(id) ?? 0) + sign;
  if (jobs !== 0) accrual.jobs.set(id, jobs);
  else {
    accrual.jobs.delete(id);
    accrual.dirty.add(id);
  }
}

export const isExecutionQueue = (queue: Queue | undefined): boolean => queue?.attrs["queue_type"] === "Execution";

/** Throws if derived values are wrong, or if a clock goes that should be stopped. */
export function checkAccrual(state: ServerState): void {
  const { accrual } = state;
  if (accrual.stale || accrual.dirty.size > 0) return;
  const fresh: ServerState = { ...state, accrual: noAccrual() };
  for (const clock of state.clocks.values()) indexClock(fresh.accrual, clock, true);
  for (const job of state.jobs.values()) countOnClock(fresh, job.attrs, 1);
  readAccrual(fresh);
  const plain = ({ running, jobs, of }: Accrual): string =>
    JSON.stringify([
      sorted(running, (table) => sorted(table, (sums) => [sums.jobs, sorted(sums.amounts, Math.round)])),
      sorted(jobs, Number),
      sorted(of, (ids) => [...ids].sort()),
    ]);
  assert(plain(accrual) === plain(fresh.accrual), `eligible time: ${plain(accrual)} counted, ${plain(fresh.accrual)} there`);
  for (const { id, key, goes } of state.clocks.values()) {
    assert(goes !== isStopped(state, key), `clock ${id} ${goes ? "goes" : "stands"}`);
    assert(key === null || accrual.jobs.has(id), `clock ${id} is nobody's`);
  }
  for (const id of accrual.jobs.keys()) assert(state.clocks.has(id), `no clock ${id}`);
}

const sorted = <T>(map: ReadonlyMap<string, T>, of: (value: T) => unknown): unknown[] =>
  [...map].map(([key, value]) => [key, of(value)] as const).sort(([a], [b]) => (a < b ? -1 : 1));

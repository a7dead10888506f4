// Makes the state from stored rows, and the state of a new complex. Rows contain the attributes of objects; all derived
// values are computed here.

import { defaultAttributes } from "#model/attribute.ts";
import { parseResvId } from "#model/job-id.ts";
import { builtinResources, type ResourceDef } from "#model/resource-table.ts";
import type { Hook } from "#model/tables/hook.ts";
import { DEFAULT_SCHED, freshSched } from "#model/tables/sched-attributes.ts";
import { SERVER_ATTRIBUTES } from "#model/tables/server-attributes.ts";
import type { Loaded } from "#store/store.ts";
import { addJob, arrayOf } from "./apply.ts";
import { indexClock } from "./clocks.ts";
import { type Clock, noAccrual, noUsage } from "./entity-sums.ts";
import type { JobOwn } from "./job-own.ts";
import { addResv, indexVnode, newQueue, newVnode } from "./named-objects.ts";
import { CLOCK_ROW, jobOfRows } from "./rows.ts";
import type { Attrs, Job, JobAttrs, ResvAttrs, RunnerAttrs, RunTime, ServerState } from "./state.ts";
import { loadSubjobs, noteLive } from "./subjobs.ts";
import { refreshVnode } from "./vnode-states.ts";

/** The live objects in the store. The order of the lists has no meaning. */
export type StoredState = {
  readonly server: Attrs;
  readonly counters: { readonly next_seq: number; readonly next_order: number; readonly next_rank: number };
  readonly history_count: number;
  readonly resources: readonly ResourceDef[];
  readonly queues: readonly { readonly name: string; readonly order: number; readonly attrs: Attrs }[];
  readonly vnodes: readonly {
    readonly name: string;
    readonly order: number;
    readonly attrs: Attrs;
    readonly set_by_admin: readonly string[];
  }[];
  readonly scheds: readonly { readonly name: string; readonly order: number; readonly attrs: Attrs }[];
  readonly resvs: readonly { readonly id: string; readonly attrs: Attrs }[];
  readonly hooks: readonly Hook[];
  /** the clocks of eligible time */
  readonly clocks?: readonly Clock[];
  readonly run_times: readonly { readonly key: string; readonly value: RunTime }[];
  readonly backends?: readonly { readonly name: string; readonly order: number; readonly attrs: Attrs }[];
  readonly runners?: readonly { readonly name: string; readonly order: number; readonly attrs: RunnerAttrs }[];
  readonly jobs: Iterable<StoredJob>;
};

export type StoredJob = { readonly id: string; readonly seq: number; readonly attrs: JobAttrs; readonly own: JobOwn };

/** Makes a state from stored objects. It uses their records without a copy. name: the name of the server. */
export function loadState(name: string, stored: StoredState): ServerState {
  const state = emptyState(name);
  state.server = { ...stored.server };
  Object.assign(state, stored.counters);
  state.history_count = stored.history_count;
  for (const resource of stored.resources) state.resources.set(resource.name, resource);
  for (const queue of byOrder(stored.queues)) state.queues.set(queue.name, newQueue(queue.name, queue.order, queue.attrs, 0));
  for (const { name: vnode_name, order, attrs, set_by_admin } of byOrder(stored.vnodes)) {
    const vnode = newVnode(vnode_name, order, attrs, [...set_by_admin]);
    state.vnodes.set(vnode_name, vnode);
    indexVnode(state, vnode, null);
  }
  for (const sched of byOrder(stored.scheds)) state.scheds.set(sched.name, { ...sched });
  for (const { id, attrs } of [...stored.resvs].sort(byCreation)) addResv(state, id, attrs as ResvAttrs, null);
  for (const hook of byOrder(stored.hooks)) state.hooks.set(hook.name, { ...hook });
  for (const clock of stored.clocks ?? []) {
    state.clocks.set(clock.id, clock);
    indexClock(state.accrual, clock, true);
    state.accrual.dirty.add(clock.id);
  }
  for (const backend of byOrder(stored.backends ?? [])) state.backends.set(backend.name, { ...backend });
  for (const runner of byOrder(stored.runners ?? [])) state.runners.set(runner.name, { ...runner });
  for (const { key, value } of stored.run_times) state.run_times.set(key, value);
  const jobs = [...stored.jobs].sort((a, b) => a.attrs.queue_rank - b.attrs.queue_rank);
  for (const job of jobs) {
    addJob(state, loadedJob(job), null);
    state.next_rank = Math.max(state.next_rank, job.attrs.queue_rank);
  }
  for (const job of state.jobs.values()) {
    const array = arrayOf(state, job);
    if (array !== undefined) noteLive(array.subjobs, Number(job.attrs["array_index"]), job.attrs.job_state, 1);
  }
  for (const vnode of state.vnodes.values()) refreshVnode(vnode, null);
  return state;
}

const byCreation = (a: { readonly id: string; readonly attrs: Attrs }, b: { readonly id: string; readonly attrs: Attrs }): number =>
  Number(a.attrs["ctime"]) - Number(b.attrs["ctime"]) || (parseResvId(a.id)?.seq ?? 0) - (parseResvId(b.id)?.seq ?? 0);
/** Makes a job from its row. The row of an array also has the states of its subjobs (rows.ts). */
function loadedJob({ id, seq, attrs, own }: StoredJob): Job {
  if (attrs["array"] !== true) return { id, seq, attrs, own };
  const { subjobs, ...rest } = attrs as JobAttrs & { readonly subjobs: string };
  return { id, seq, attrs: rest as JobAttrs, own, subjobs: loadSubjobs(String(attrs["array_indices_submitted"]), subjobs) };
}

const byOrder = <T extends { readonly order: number }>(list: readonly T[]): T[] => [...list].sort((a, b) => a.order - b.order);

/** A state without objects and attributes. */
function emptyState(name: string): ServerState {
  return {
    name,
    server: {},
    next_seq: 0,
    next_order: 1,
    next_rank: 0,
    history_count: 0,
    resources: builtinResources(),
    queues: new Map(),
    vnodes: new Map(),
    scheds: new Map(),
    backends: new Map(),
    runners: new Map(),
    hooks: new Map(),
    run_times: new Map(),
    jobs: new Map(),
    resvs: new Map(),
    resv_queues: new Map(),
    counts: new Map(),
    assigned: new Map(),
    placements: new Map(),
    hosts: new Map(),
    chunk_slots: new Map(),
    clocks: new Map(),
    accrual: noAccrual(),
    usage: noUsage(),
  };
}

/**
 * The state of a complex at its first start: the attributes of the server, and the default scheduler
 * (docs/reference/attributes.md 2, 3). The first queue and node are created later, by events (core/first-start.ts).
 */
export function freshState(
  name: string,
  config: { readonly home: string; readonly host: string; readonly pbs_version: string },
): ServerState {
  const state = emptyState(name);
  state.server = { ...defaultAttributes(SERVER_ATTRIBUTES), server_host: config.host, pbs_version: config.pbs_version };
  state.scheds.set(DEFAULT_SCHED, { name: DEFAULT_SCHED, order: 0, attrs: { ...freshSched(DEFAULT_SCHED, config.home, config.host) } });
  return state;
}

/** Makes a state from loaded rows. name: the present name of the server. Existing job ids still end in the name with which they were made. */
export function stateOfRows(name: string, loaded: Loaded, history_count: number): ServerState {
  const { objects, counters, jobs } = loaded;
  return loadState(name, {
    server: (objects.server.find((row) => !row.name.startsWith("."))?.data ?? {}) as Attrs,
    counters: { next_seq: counters["next_seq"] ?? 0, next_order: counters["next_order"] ?? 1, next_rank: counters["next_rank"] ?? 0 },
    history_count,
    resources: objects.resources.map((row) => row.data as ResourceDef),
    clocks: objects.server.filter((row) => row.name.startsWith(CLOCK_ROW)).map((row) => row.data as Clock),
    queues: named<{ order: number; attrs: Attrs }>(objects.queues),
    vnodes: named<{ order: number; attrs: Attrs; set_by_admin: string[] }>(objects.vnodes),
    scheds: named<{ order: number; attrs: Attrs }>(objects.scheds),
    resvs: objects.resvs.map((row) => ({ id: row.name, ...(row.data as { attrs: Attrs }) })),
    hooks: named<Omit<Hook, "name">>(objects.hooks),
    run_times: objects.run_times.map((row) => ({ key: row.name, value: row.data as RunTime })),
    backends: named<{ order: number; attrs: Attrs }>(objects.backends),
    runners: named<{ order: number; attrs: RunnerAttrs }>(objects.runners),
    jobs: jobs.map(({ id, seq, data, run }) => ({ id, seq, ...jobOfRows(data, run) })),
  });
}

/** Returns rows as objects with their names. Data: the type of the data that the server itself writes into these rows. */
function named<Data extends object>(
  rows: readonly { readonly name: string; readonly data: unknown }[],
): ({ readonly name: string } & Data)[] {
  return rows.map((row) => ({ name: row.name, ...(row.data as Data) }));
}

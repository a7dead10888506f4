// A grid without a daemon: the core, clusters that show what a test says, and a campaign.

import assert from "node:assert/strict";
import type { JobSighting } from "#backends/contract/cluster.ts";
import { POLICY_DEFAULT } from "#grid/cycle/grid-cycle.ts";
import type { Asker } from "#grid/requests/answers.ts";
import { handle } from "#grid/requests/handle.ts";
import { emptyState, type GridJob, type GridState, jobsOf } from "#grid/state/grid-state.ts";
import { readState, textsNeeded } from "#grid/state/rows.ts";
import { GridCore, refOf } from "#grid/work/core.ts";
import { jobsThere } from "#grid/work/looking.ts";
import type { GridRequest } from "#protocol/grid-messages.ts";
import { type Batch, type Loaded, OBJECT_TABLES } from "#store/store.ts";
import { present } from "#support/assert.ts";

export const ROOT: Asker = { name: "root", is_manager: true };
export const ANNA: Asker = { name: "anna", is_manager: false };
export const BOB: Asker = { name: "bob", is_manager: false };

const POLICY = { ...POLICY_DEFAULT, hasCopies: false };

export function coreOf(state: GridState = emptyState()): GridCore {
  return new GridCore({ state, policy: POLICY, key: "g1", user: null, settle_s: 0 });
}

/** A core with clusters of the type partita. */
export function coreWith(...clusters: readonly string[]): GridCore {
  const core = coreOf();
  for (const name of clusters) must(core, ROOT, { kind: "grid-cluster-add", name, type: "partita", options: {}, users: [], mapping: {} });
  return core;
}

/** Returns the value of an answer; fails if it is a refusal. */
export function must<Value>(core: GridCore, asker: Asker, request: GridRequest, now_s = 0): Value {
  const answer = handle(core, asker, request, now_s);
  assert.ok(answer.ok && "value" in answer, JSON.stringify(answer));
  return answer.value as Value;
}

/** Returns the text of a refusal; fails if the request is done. */
export function refused(core: GridCore, asker: Asker, request: GridRequest): string {
  const answer = handle(core, asker, request, 0);
  assert.ok(!answer.ok, JSON.stringify(answer));
  return answer.text;
}

/** Submits a campaign of anna on all clusters, and returns its id. */
export function submit(core: GridCore, jdl: object = {}): number {
  const clusters = Object.fromEntries([...core.state.clusters.keys()].map((name) => [name, {}]));
  const text = JSON.stringify({ name: "c", nb_jobs: 10, exec_file: "x", canary: false, clusters, ...jdl });
  return must<{ readonly id: number }>(core, ANNA, { kind: "grid-submit", jdl: text }).id;
}

/** Submits and releases what a cycle for a cluster with free cpus plans. Returns the jobs of the campaign there. */
export function launch(core: GridCore, cluster: string, free: number, now_s: number): readonly GridJob[] {
  show(core, cluster, [], now_s, free, new Set());
  core.setJobsMax(cluster, 1000);
  core.plan(cluster, now_s);
  for (const order of core.toSubmit(cluster)) {
    core.apply({ kind: "order-begun", serial: order.serial });
    core.apply({
      kind: "acknowledged",
      serial: order.serial,
      ids: new Map([...order.jobs.values()].map(({ index, id }) => [index, `r${id}`])),
    });
    core.apply({ kind: "released", serial: order.serial });
  }
  return jobsIn(core, cluster);
}

export const jobsIn = (core: GridCore, cluster: string): readonly GridJob[] =>
  [...core.state.campaigns.values()].flatMap((campaign) => [...jobsOf(campaign)].filter(({ order }) => order.cluster === cluster));

/** Shows the core a list of jobs of a cluster. */
export function show(
  core: GridCore,
  cluster: string,
  jobs: readonly JobSighting[],
  now_s: number,
  free = 0,
  known: ReadonlySet<GridJob> = jobsThere(core.state, cluster),
): ReturnType<GridCore["seen"]> {
  return core.seen(cluster, { jobs, capacity: { total: 16, free }, text: "v1" }, known, now_s);
}

/** A sighting of a job: queued unless the test says otherwise. */
export function sighting(job: GridJob, more: Partial<JobSighting> = {}): JobSighting {
  const ref = refOf(job, present(job.remote_id, "remote id"));
  return {
    ...ref,
    state: "queued",
    reason: "",
    host: null,
    exit_code: null,
    ending: null,
    run_s: null,
    mem_kb: null,
    fault: null,
    ...more,
  };
}

export const ended = (job: GridJob, exit_code: number, run_s: number, more: Partial<JobSighting> = {}): JobSighting =>
  sighting(job, { state: "ended", ending: "exit", exit_code, run_s, ...more });

/** A store in memory: takes batches of a core, and gives the state of the next daemon. */
export function memory(): { take(core: GridCore): void; next(): GridState; rows(table: string): ReadonlyMap<string, unknown> } {
  const tables = new Map<string, Map<string, Batch[keyof Batch] | unknown>>(OBJECT_TABLES.map((table) => [table, new Map()]));
  const scripts = new Map<string, string>();
  let counters: Loaded["counters"] = {};
  return {
    take(core) {
      // The store keeps text, so nothing of the rows is shared with the state.
      const batch = core.takeBatch();
      if (batch === null) return;
      const {
        put = [],
        drop = [],
        jobs_gone = [],
        scripts: texts = [],
        counters: numbers = {},
      } = JSON.parse(JSON.stringify(batch)) as Batch;
      for (const { table, name } of drop) tables.get(table)?.delete(name);
      for (const { table, name, data } of put) tables.get(table)?.set(name, data);
      for (const id of jobs_gone) scripts.delete(id);
      for (const { id, text } of texts) scripts.set(id, text);
      counters = { ...counters, ...numbers };
    },
    next() {
      const objects = Object.fromEntries(
        OBJECT_TABLES.map((table) => [table, [...(tables.get(table) ?? [])].map(([name, data]) => ({ name, data }))]),
      );
      const loaded = { objects, jobs: [], counters, fresh: false } as unknown as Loaded;
      return readState(loaded, new Map(textsNeeded(loaded).flatMap((key) => (scripts.has(key) ? [[key, scripts.get(key) ?? ""]] : []))));
    },
    rows: (table) => tables.get(table) ?? new Map(),
  };
}

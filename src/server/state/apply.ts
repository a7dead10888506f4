// Applies events to the state: changes attributes, updates derived values, and notes which rows must be written and what
// schedulers must be told. The events of queues, vnodes, schedulers, reservations, backends and runners are in
// named-objects.ts.
//
// I1. The cost of an event does not depend on the number of jobs, queues and vnodes.
// I2. An event that cannot be applied (unknown object, name taken) is a programmer's error, because whoever emits an event
//     must check this before.

import { idsAhead } from "#model/depend.ts";
import { canFollow, type JobState } from "#model/job-state.ts";
import { assert, present, unreachable } from "#support/assert.ts";
import { definitionsChanged } from "./amounts.ts";
import { type Changes, withAttrs } from "./changes.ts";
import { countOnClock, countRunning, indexClock } from "./clocks.ts";
import { countJob, weightOf } from "./entity-usage.ts";
import type { Event } from "./event.ts";
import { sharedAttrs } from "./intern.ts";
import { changedOwn, namesChanged } from "./job-own.ts";
import { howOver } from "./job-phase.ts";
import { countJobText } from "./job-text.ts";
import { changeObject, createObject, removeObject } from "./named-objects.ts";
import { place } from "./occupancy.ts";
import { hasVnodes, placementOf } from "./placement.ts";
import { isOfRun } from "./rows.ts";
import type { Job, JobAttrs, RunTime, ServerState } from "./state.ts";
import { newSubjobs, noteLive, SUBJOB, type Subjobs, setSubjobState } from "./subjobs.ts";

/**
 * Applies one event. now_s: the time of the event (epoch seconds), which becomes mtime of jobs and last_state_change_time of
 * vnodes. changes: gets the rows to write and what schedulers must be told.
 */
export function apply(state: ServerState, event: Event, changes: Changes, now_s: number): void {
  changes.now_s = now_s;
  switch (event.kind) {
    case "server-changed":
      state.server = withAttrs(state.server, event.set, event.unset);
      changes.server = true;
      break;
    case "created":
      createObject(state, event, changes);
      break;
    case "changed":
      changeObject(state, event.object, event.name, event.set, event.unset, changes);
      break;
    case "deleted":
      removeObject(state, event.object, event.name, changes);
      break;
    case "sched-here":
      present(state.scheds.get(event.name), `scheduler ${event.name}`).here = true;
      break;
    case "runtime":
      if (event.object === "server") state.server = withAttrs(state.server, event.set, []);
      else {
        const sched = present(state.scheds.get(event.name), `scheduler ${event.name}`);
        sched.attrs = withAttrs(sched.attrs, event.set, []);
      }
      break;
    case "vnode-admin-set": {
      const vnode = present(state.vnodes.get(event.name), `vnode ${event.name}`);
      vnode.set_by_admin = [...new Set([...vnode.set_by_admin, ...event.add])].filter((name) => !event.remove.includes(name));
      changes.vnodes.add(event.name);
      break;
    }
    case "clock-put":
      indexClock(state.accrual, event.clock, true);
      state.clocks.set(event.clock.id, event.clock);
      changes.clocks.add(event.clock.id);
      break;
    case "clock-deleted":
      indexClock(state.accrual, present(state.clocks.get(event.id), `clock ${event.id}`), false);
      state.clocks.delete(event.id);
      changes.clocks.add(event.id);
      break;
    case "resource-put":
      state.resources.set(event.resource.name, event.resource);
      definitionsChanged(state.resources);
      changes.resources.add(event.resource.name);
      break;
    case "resource-deleted":
      state.resources.delete(event.name);
      definitionsChanged(state.resources);
      changes.resources.add(event.name);
      break;
    case "hook-put": {
      const order = state.hooks.get(event.name)?.order ?? state.next_order++;
      state.hooks.set(event.name, { name: event.name, order, attrs: event.attrs, script: event.script, config: event.config });
      changes.hooks.add(event.name);
      changes.server = true;
      break;
    }
    case "hook-deleted":
      assert(state.hooks.delete(event.name), `no hook ${event.name}`);
      changes.hooks.add(event.name);
      break;
    case "run-time-learned":
      learn(state, event.key, event.value, changes);
      break;
    case "job-created":
      createJob(state, event, changes);
      break;
    case "job-changed":
      changeJob(state, present(state.jobs.get(event.id), `job ${event.id}`), event, changes);
      break;
    case "subjobs-deleted":
      deleteSubjobs(state, present(state.jobs.get(event.id), `job ${event.id}`), event.indices, changes);
      break;
    case "job-ended":
      endJob(state, present(state.jobs.get(event.id), `job ${event.id}`), event.history, changes);
      break;
    case "history-purged":
      for (const id of event.ids) changes.purged.add(id);
      state.history_count = Math.max(0, state.history_count - event.ids.length);
      for (const seq of event.arrays ?? []) purgeSubjobs(state, seq, changes);
      break;
    default:
      unreachable(event);
  }
}

/** Stores what was learned of a key. If there are too many, the one that was learned longest ago is dropped. */
function learn({ run_times }: ServerState, key: string, value: RunTime, changes: Changes): void {
  run_times.delete(key);
  run_times.set(key, value);
  changes.run_times.add(key);
  if (run_times.size <= RUN_TIMES_MAX) return;
  const [oldest] = run_times.keys();
  run_times.delete(oldest as string);
  changes.run_times.add(oldest as string);
}
/** The largest number of combinations of user, project and job name whose run times are stored. */
export const RUN_TIMES_MAX = 10_000;

function createJob(state: ServerState, event: Extract<Event, { kind: "job-created" }>, changes: Changes): void {
  assert(!state.jobs.has(event.id), `job ${event.id} exists`);
  const attrs = sharedAttrs(event.attrs);
  const subjobs = attrs["array"] === true ? { subjobs: newSubjobs(String(attrs["array_indices_submitted"])) } : {};
  const job: Job = { id: event.id, seq: event.seq, attrs, own: event.own, ...subjobs };
  changes.jobs.add(job.id);
  changes.jobs_new.add(job.id);
  if (attrs["array_id"] !== undefined) {
    startSubjob(state, job, changes);
    return;
  }
  state.next_seq = event.seq;
  state.next_rank = Math.max(state.next_rank, event.attrs.queue_rank);
  addJob(state, job, changes);
  changes.server = true;
  if (event.script !== null) changes.scripts.set(job.id, event.script);
}

/** Makes a subjob that has waited in its array a job of its own. */
function startSubjob(state: ServerState, job: Job, changes: Changes): void {
  const array = present(arrayOf(state, job), `array of ${job.id}`);
  const index = indexOf(job);
  countJob(state, array.attrs, -1);
  setSubjobState(array.subjobs, index, SUBJOB.LIVE);
  noteLive(array.subjobs, index, job.attrs.job_state, 1);
  changes.jobs.add(array.id);
  addJob(state, job, changes);
}

function deleteSubjobs(state: ServerState, array: Job, indices: readonly number[], changes: Changes): void {
  const subjobs = present(array.subjobs, `subjobs of ${array.id}`);
  countJob(state, array.attrs, -1, indices.length);
  for (const index of indices) setSubjobState(subjobs, index, SUBJOB.DELETED);
  changes.jobs.add(array.id);
}

type ArrayJob = Job & { readonly subjobs: Subjobs };

/** The array of a subjob; undefined: the job is not a subjob. */
export function arrayOf(state: ServerState, job: Job): ArrayJob | undefined {
  const id = job.attrs["array_id"];
  const array = typeof id === "string" ? state.jobs.get(id) : undefined;
  return array?.subjobs === undefined ? undefined : (array as ArrayJob);
}

const indexOf = (job: Job): number => Number(job.attrs["array_index"]);

/** Adds a job to the state and to all derived values. changes: null while the state is loaded. */
export function addJob(state: ServerState, job: Job, changes: Changes | null): void {
  state.jobs.set(job.id, job);
  countAll(state, job, 1);
  count(state, job.attrs.queue, job.id, job.attrs.job_state, 1);
  const placement = job.attrs.exec_vnode === undefined ? null : placementOf(state, job.attrs);
  if (placement !== null) place(state, job, placement, 1, changes);
}

/** Adds a job (1) to the sums that limits and eligible time need, or removes it (-1). */
function countAll(state: ServerState, job: Job, sign: 1 | -1): void {
  const { attrs } = job;
  countJobText(state, attrs, sign);
  if (state.usage.tracked) countJob(state, attrs, sign, weightOf(job));
  if (attrs["accrual_clock"] !== undefined) countOnClock(state, attrs, sign);
  if (state.accrual.enabled) countRunning(state, attrs, sign);
}

function changeJob(state: ServerState, job: Job, { set, unset, own }: Extract<Event, { kind: "job-changed" }>, changes: Changes): void {
  const { job_state, queue } = job.attrs;
  const moves =
    (set["job_state"] !== undefined && set["job_state"] !== job_state) || (set["queue"] !== undefined && set["queue"] !== queue);
  const replaces = moves || PLACING.some((name) => set[name] !== undefined || unset.includes(name));
  const old = replaces && hasVnodes(job.attrs) ? state.placements.get(job.id) : undefined;
  if (old !== undefined) place(state, job, old, -1, changes);
  const weight = weightOf(job);
  const recounts = replaces || COUNTING.some((name) => set[name] !== undefined);
  const touched = unset.length > 0 ? [...Object.keys(set), ...unset] : Object.keys(set);
  countJobText(state, job.attrs, -1, touched);
  countJob(state, job.attrs, -1, weight);
  countOnClock(state, job.attrs, -1);
  if (recounts) countRunning(state, job.attrs, -1);
  const rest = unset.length > 0 ? withAttrs(job.attrs, {}, unset) : job.attrs;
  // The record is made by one copy, because in V8 a record becomes slow and large if names are added to it one by one.
  job.attrs = { ...rest, mtime: changes.now_s, ...sharedAttrs(set) } as JobAttrs;
  if (job.attrs.queue_rank > state.next_rank) {
    state.next_rank = job.attrs.queue_rank;
    changes.server = true;
  }
  countJobText(state, job.attrs, 1, touched);
  countJob(state, job.attrs, 1, weight);
  countOnClock(state, job.attrs, 1);
  if (recounts) countRunning(state, job.attrs, 1);
  if (moves) {
    assert(
      canFollow(job_state as JobState, job.attrs.job_state as JobState),
      `job ${job.id} cannot go from ${job_state} to ${job.attrs.job_state}`,
    );
    recount(state, job, queue, job_state);
    noteSubjob(state, job, job_state, changes);
  }
  const next = replaces ? placementOf(state, job.attrs) : null;
  if (next !== null) place(state, job, next, 1, changes);
  changes.jobs.add(job.id);
  const touched_own = own === undefined ? [] : namesChanged(job.own, own);
  if (own !== undefined && touched_own.length > 0) job.own = changedOwn(job.own, own);
  if (!isOfRun(set, [...unset, ...touched_own])) changes.jobs_whole.add(job.id);
}

/** The attributes, besides job_state, on which placementOf depends. */
const PLACING = ["exec_vnode", "Resource_List", "resources_released"] as const;

/** The attributes that decide for which user, group and project a running job is counted. */
const COUNTING = ["euser", "egroup", "project"] as const;

function endJob(state: ServerState, job: Job, history: boolean, changes: Changes): void {
  const placement = state.placements.get(job.id);
  if (placement !== undefined) place(state, job, placement, -1, changes);
  count(state, job.attrs.queue, job.id, job.attrs.job_state, -1);
  countAll(state, job, -1);
  endSubjob(state, job, changes);
  state.jobs.delete(job.id);
  changes.jobs.add(job.id);
  for (const id of idsAhead(job.attrs["depend"], state.name)) if (state.jobs.has(id)) changes.left_behind.add(id);
  if (job.attrs.resources_used !== undefined) changes.last_used.set(job.id, job.attrs.resources_used);
  if (!history) return;
  changes.ended.set(job.id, { id: job.id, seq: job.seq, attrs: job.attrs, own: job.own });
  state.history_count++;
}

/** Called when the state of a subjob has changed: updates the counts in its array. */
function noteSubjob(state: ServerState, job: Job, before: string, changes: Changes): void {
  const array = arrayOf(state, job);
  if (array === undefined || job.attrs.job_state === before) return;
  noteLive(array.subjobs, indexOf(job), before, -1);
  noteLive(array.subjobs, indexOf(job), job.attrs.job_state, 1);
  changes.jobs.add(array.id);
}

function endSubjob(state: ServerState, job: Job, changes: Changes): void {
  const array = arrayOf(state, job);
  if (array === undefined) return;
  const { substate, Exit_status } = job.attrs;
  noteLive(array.subjobs, indexOf(job), job.attrs.job_state, -1);
  const how = howOver(substate) === "deleted" ? SUBJOB.DELETED : Exit_status === 0 ? SUBJOB.FINISHED : SUBJOB.FAILED;
  setSubjobState(array.subjobs, indexOf(job), how);
  changes.jobs.add(array.id);
}

/**
 * Removes the history records of an array's subjobs, also those that the present batch has not written yet. Their number is
 * not known here; the store counts the remaining records later (core/core.ts historyCounted).
 */
function purgeSubjobs(state: ServerState, seq: number, changes: Changes): void {
  changes.purged_arrays.add(seq);
  for (const [id, job] of changes.ended) {
    if (job.seq !== seq || job.attrs["array_id"] === undefined) continue;
    changes.ended.delete(id);
    state.history_count--;
  }
}

function count(state: ServerState, queue_name: string, id: string, job_state: string, by: 1 | -1): void {
  const queue = present(state.queues.get(queue_name), `queue ${queue_name} of job ${id}`);
  bump(queue.counts, job_state, by);
  bump(state.counts, job_state, by);
  if (by === 1) queue.jobs.add(id);
  else queue.jobs.delete(id);
}

/** Updates the counts of queues and states after a job has changed its queue or state. */
function recount(state: ServerState, { id, attrs }: Job, queue_name: string, job_state: string): void {
  if (attrs.queue !== queue_name) {
    count(state, queue_name, id, job_state, -1);
    count(state, attrs.queue, id, attrs.job_state, 1);
    return;
  }
  const { counts } = present(state.queues.get(queue_name), `queue ${queue_name} of job ${id}`);
  for (const table of [counts, state.counts]) {
    bump(table, job_state, -1);
    bump(table, attrs.job_state, 1);
  }
}

function bump(counts: Map<string, number>, key: string, by: number): void {
  const sum = (counts.get(key) ?? 0) + by;
  if (sum === 0) counts.delete(key);
  else counts.set(key, sum);
}

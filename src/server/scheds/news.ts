// What a change of an object means for schedulers: for their processes, their comments and the deltas that they get, and for
// the values that the default scheduler shares with the server.
//
// N1. scheduling and scheduler_iteration of the server and of the default scheduler are one value (docs/reference/attributes.md 2, 3).

import { DEFAULT_SCHED } from "#model/tables/sched-attributes.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import type { Kernel } from "../engine/kernel.ts";
import { runtimeOf, type SchedRuntime } from "../engine/sched-runtime.ts";
import type { Transaction } from "../engine/transaction.ts";
import { isRoute } from "../jobs/life.ts";
import { askersChanged } from "../resv/timing.ts";
import { type AttrChange, changes } from "../state/event.ts";
import { isRemote, partitionOf, partitionOfBackend, partitionsOf, schedOfPartition, shouldRun } from "../state/partitions.ts";
import type { Attrs, Sched } from "../state/state.ts";
import { commentFollows } from "./comment.ts";
import { configure, trigger } from "./cycles.ts";
import { wantsPressure } from "./mirror.ts";
import { forgetUnreached, homeOf, isWantedThere } from "./remote.ts";
import { checkUser, lost, restartProcess, startProcess, stopProcess } from "./session.ts";
import { setServerState } from "./state.ts";

// --- objects that schedulers see

/** Called when a vnode was moved to another partition: triggers that partition's scheduler, because jobs may have waited for a vnode. */
export function vnodeMoved(kernel: Kernel, _tx: Transaction, name: string): void {
  const vnode = kernel.state.vnodes.get(name);
  const sched = vnode === undefined ? undefined : schedOfPartition(kernel.state, partitionOf(vnode));
  if (sched !== undefined) trigger(kernel, sched.name, SCHED_COMMAND.NEW);
}

/** Called when an execution queue was started. If eligible time is counted (eligible_time_enable), triggers all schedulers. */
export function queueStarted(kernel: Kernel, _tx: Transaction, name: string): void {
  const queue = kernel.state.queues.get(name);
  if (queue === undefined || isRoute(queue) || kernel.state.server["eligible_time_enable"] !== true) return;
  for (const sched of kernel.scheds.by_name.keys()) trigger(kernel, sched, SCHED_COMMAND.STARTQ);
}

/** Called when a partition may have gained or lost an enabled backend: tells its scheduler, and makes it try the waiting jobs again. */
function elasticityChanged(kernel: Kernel, partition: string): void {
  for (const queue of kernel.state.queues.values()) if (partitionOf(queue) === partition) kernel.changes.told.queues.add(queue.name);
  const sched = schedOfPartition(kernel.state, partition);
  if (sched !== undefined) trigger(kernel, sched.name, SCHED_COMMAND.NEW);
}

export function backendChanged(kernel: Kernel, _tx: Transaction, name: string, before: Attrs | null): void {
  const backend = kernel.state.backends.get(name);
  const partitions = new Set(
    [backend, before === null ? undefined : { name, order: 0, attrs: before }].flatMap((each) =>
      each === undefined ? [] : [partitionOfBackend(each)],
    ),
  );
  const enabled = backend?.attrs["enabled"] === true;
  if (backend !== undefined && before !== null && enabled === (before["enabled"] === true) && partitions.size === 1) return;
  for (const partition of partitions) elasticityChanged(kernel, partition);
}

// --- attributes of the server

export function serverChanged(kernel: Kernel, _tx: Transaction, change: AttrChange): void {
  const { server } = kernel.state;
  if (change.set["eligible_time_enable"] === true)
    for (const name of kernel.scheds.by_name.keys()) trigger(kernel, name, SCHED_COMMAND.ETE_ON);
  if (!changes(change, "job_sort_formula")) return;
  const formula = server["job_sort_formula"];
  kernel.out.actions.push({ kind: "formula", text: typeof formula === "string" ? formula : null });
  for (const runtime of kernel.scheds.by_name.values()) formulaChanged(kernel, runtime);
}

/** Called when job_sort_formula has changed: a formula that names `pressure` needs the pressure of all jobs, so the scheduler gets a snapshot. */
function formulaChanged({ state }: Kernel, runtime: SchedRuntime): void {
  const sched = state.scheds.get(runtime.name);
  if (sched !== undefined && wantsPressure(state, sched)) runtime.needs_snapshot ||= runtime.link !== null;
}

/** The attributes that the server and the default scheduler share (N1). */
const MIRRORED = ["scheduling", "scheduler_iteration"] as const;

export function serverMirrored(kernel: Kernel, tx: Transaction, { set }: AttrChange): void {
  const mirrored: { [name: string]: unknown } = {};
  for (const name of MIRRORED) if (set[name] !== undefined) mirrored[name] = set[name];
  if (Object.keys(mirrored).length === 0 || !kernel.state.scheds.has(DEFAULT_SCHED)) return;
  mirrorOnce(kernel, () => tx.apply({ kind: "changed", object: "sched", name: DEFAULT_SCHED, set: mirrored, unset: [] }));
}

function schedMirrored(kernel: Kernel, tx: Transaction, attrs: Attrs): void {
  const changed = MIRRORED.filter((name) => kernel.state.server[name] !== attrs[name]);
  if (changed.length === 0) return;
  const set = Object.fromEntries(changed.filter((name) => attrs[name] !== undefined).map((name) => [name, attrs[name]]));
  const unset = changed.filter((name) => attrs[name] === undefined);
  mirrorOnce(kernel, () => tx.apply({ kind: "server-changed", set, unset }));
}

/** Copies a value between the server and the default scheduler, without copying back the change that this causes. */
function mirrorOnce({ scheds }: Kernel, copy: () => void): void {
  if (scheds.mirroring) return;
  scheds.mirroring = true;
  copy();
  scheds.mirroring = false;
}

// --- schedulers

export function schedCreated(kernel: Kernel, _tx: Transaction, name: string): void {
  runtimeOf(kernel, name);
  const sched = kernel.state.scheds.get(name);
  if (sched === undefined) return;
  if (!isRemote(sched, kernel.config)) kernel.out.actions.push({ kind: "prepare-sched", sched: name });
  if (shouldRun(sched)) startProcess(kernel, name);
  commentFollows(kernel, sched, Object.keys(sched.attrs), []);
}

export function schedDeleted(kernel: Kernel, _tx: Transaction, name: string): void {
  stopProcess(kernel, name);
  const link = kernel.scheds.by_name.get(name)?.link ?? null;
  if (link !== null) {
    kernel.out.actions.push({ kind: "drop-link", link });
    // Requests that wait for the scheduler are answered now. When the link breaks later, the server no longer knows whose link it was.
    lost(kernel, link);
  }
  kernel.scheds.by_name.delete(name);
  for (const timer of ["accumulate", "iteration", "refill", "sched-start", "sched-silent"]) kernel.timers.clear(`${timer}:${name}`);
}

export function schedChanged(kernel: Kernel, tx: Transaction, name: string, change: AttrChange, before: Attrs): void {
  const sched = kernel.state.scheds.get(name);
  if (sched === undefined) return;
  const runtime = runtimeOf(kernel, name);
  const names = [...Object.keys(change.set), ...change.unset];
  if (names.includes("partition")) {
    runtime.needs_snapshot = runtime.link !== null;
    if (partitionsOf(sched).length === 0 && (before["partition"] as readonly string[] | undefined)?.length) stopProcess(kernel, name);
  }
  if (names.includes("sched_user") && kernel.config.own_user === null && !isRemote(sched, kernel.config)) restartProcess(kernel, name);
  if (names.includes("sched_user")) checkUser(kernel, sched);
  if (names.includes("job_sort_formula") || names.includes("backfill.formula")) formulaChanged(kernel, runtime);
  if (names.some((attribute) => !SILENT.has(attribute))) configure(kernel, name);
  if (names.includes("scheduler_iteration")) rearmIteration(kernel, name, Number(sched.attrs["scheduler_iteration"] ?? 600));
  if (names.includes("sched_host") || names.includes("sched_port")) placeChanged(kernel, sched, runtime, before);
  if (!isWantedThere(kernel, sched)) notDialled(kernel, sched, runtime);
  if (shouldRun(sched) && names.some((each) => DECIDE_START.has(each)) && kernel.ending.stopping === "no") startProcess(kernel, name);
  if (names.includes("scheduling") || names.includes("partition")) askersChanged(kernel);
  if (change.set["scheduling"] === true) trigger(kernel, name, SCHED_COMMAND.CMD);
  commentFollows(kernel, sched, names, change.unset);
  if (name !== DEFAULT_SCHED) return;
  schedMirrored(kernel, tx, sched.attrs);
  setServerState(kernel);
}

/**
 * Called when sched_host or sched_port has changed. If the host has changed, the scheduler is ended on its former host; if
 * only the port has, a new connection is made.
 */
function placeChanged(kernel: Kernel, sched: Sched, runtime: SchedRuntime, before: Attrs): void {
  const { name } = sched;
  const home = homeOf(sched, kernel.config);
  if (home !== homeOf({ name, attrs: before }, kernel.config)) {
    forgetUnreached(kernel, sched);
    return stopProcess(kernel, name);
  }
  if (home === "" || runtime.link === null || sched.attrs["sched_port"] === before["sched_port"]) return;
  kernel.out.actions.push({ kind: "drop-link", link: runtime.link });
  lost(kernel, runtime.link);
}

/** Ends the attempts to dial a scheduler that could not be reached at the last attempt. */
function notDialled(kernel: Kernel, sched: Sched, runtime: SchedRuntime): void {
  if (runtime.unreached === null) return;
  forgetUnreached(kernel, sched);
  stopProcess(kernel, sched.name);
}

/** Attributes that decide whether the server keeps a process for a scheduler. */
const DECIDE_START: ReadonlySet<string> = new Set(["scheduling", "partition", "sched_host", "sched_port"]);

/** Attributes whose change does not make the scheduler read its files again: the server sets them itself, or they only trigger a cycle. */
const SILENT: ReadonlySet<string> = new Set(["scheduling", "comment", "state"]);

function rearmIteration(kernel: Kernel, name: string, iteration_s: number): void {
  if (kernel.timers.at(`iteration:${name}`) === undefined && kernel.scheds.by_name.get(name)?.link === null) return;
  if (iteration_s > 0) kernel.timers.set(`iteration:${name}`, kernel.now_ms + iteration_s * 1000);
  else kernel.timers.clear(`iteration:${name}`);
}

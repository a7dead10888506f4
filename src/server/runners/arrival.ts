// The life of a runner in the server: it connects and becomes a vnode, takes jobs, and leaves; or it is lost.
//
//   asked --hello--> idle <--job--> busy        idle --mom-quit--> (gone)
//   idle, busy --connection lost, runner_lost_after--> lost --hello--> idle, busy
//   any --its backend does not have it any more--> (gone), its jobs are requeued or fail
//
// A1. A runner is a vnode of the partition of its backend, with the amounts of its bucket and one job at a time. The runner's own reports change none of these values.
// A2. A runner that is lost keeps its jobs: it may still run. Its jobs have lost_since until the runner is back. They end as failed tries (jobs/retries.ts), or are requeued
//     if the runner was preempted, only when its backend says that the runner does not exist any more. If a person says so (partita confirm-dead, qdel -W dead), they are held.
// A3. A runner that is connected exists, whatever its backend says: the hello of the runner is newer than the list of the backend.

import { defaultAttributes } from "#model/attribute.ts";
import { listOf } from "#model/attribute-reader.ts";
import { bucketResources } from "#model/request/bucket.ts";
import { NODE_ATTRIBUTES } from "#model/tables/node-attributes.ts";
import { DEFAULT_PARTITION } from "#model/tables/sched-attributes.ts";
import { inOrder } from "#model/values/node-state.ts";
import { parseResourceValue } from "#model/values/resource-value.ts";
import type { MomHello } from "#protocol/mom-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";
import { endRun } from "../moms/sisters.ts";
import { partitionOfBackend } from "../state/partitions.ts";
import type { Attrs, Backend, Runner, ServerState } from "../state/state.ts";

/** Seconds at the end of a runner's life that its jobs may not use: it takes no job whose walltime reaches into them. */
const END_MARGIN_S = 30;
const LOST_AFTER_S_DEFAULT = 60;

const log = (kernel: Kernel, name: string, text: string): void =>
  void kernel.out.logs.push({ event: LOG_EVENT.SYSTEM, class: "Node", object: name, text });

/** Called before the hello of a mom is handled. If the mom is a runner without a vnode, makes its vnode. */
export function runnerArrives(kernel: Kernel, hello: MomHello): void {
  const { state, timers } = kernel;
  const runner = state.runners.get(hello.host);
  if (runner === undefined) return;
  timers.clear(`runner-lost:${runner.name}`);
  kernel.runners.reasons.delete(runner.name);
  const tx = ownTransaction(kernel);
  if (runner.attrs.lost_s !== undefined) {
    log(kernel, runner.name, "runner is back");
    tx.apply({ kind: "changed", object: "runner", name: runner.name, set: {}, unset: ["lost_s"] });
    for (const id of [...(state.vnodes.get(runner.name)?.jobs.keys() ?? [])])
      if (state.jobs.get(id)?.attrs["lost_since"] !== undefined) tx.apply({ kind: "job-changed", id, set: {}, unset: ["lost_since"] });
  }
  if (state.vnodes.has(runner.name)) return;
  const backend = state.backends.get(runner.attrs.backend);
  const { life_s, bucket } = runner.attrs;
  // The jobs of a bucket without walltime have no limit of time, so their runner has none.
  const end_s = bucket.walltime_s === null ? null : tx.now_s + Math.floor(life_s - (hello.runner?.age_s ?? 0)) - END_MARGIN_S;
  const attrs = vnodeOf(state, runner, backend, end_s, hello.port);
  const resources = Object.keys(bucketResources(runner.attrs.bucket)).map((name) => `resources_available.${name}`);
  const set_by_admin = ["partition", "max_running", "no_multinode_jobs", ...resources];
  tx.apply({ kind: "created", object: "node", name: runner.name, attrs, set_by_admin });
  log(kernel, runner.name, `runner of backend ${runner.attrs.backend} for ${runner.attrs.bucket.key}`);
}

function vnodeOf(
  state: ServerState,
  { name, attrs }: Runner,
  backend: Backend | undefined,
  runner_end: number | null,
  Port: number,
): Attrs {
  const partition = backend === undefined ? DEFAULT_PARTITION : partitionOfBackend(backend);
  const resources: Attrs = { host: name, vnode: name };
  for (const [resource, text] of Object.entries(bucketResources(attrs.bucket))) {
    const def = state.resources.get(resource);
    const value = def === undefined ? null : parseResourceValue(def, text);
    if (value !== null) resources[resource] = value;
  }
  return {
    ...defaultAttributes(NODE_ATTRIBUTES),
    Mom: [name],
    Port,
    ...(partition === DEFAULT_PARTITION ? {} : { partition }),
    resources_available: resources,
    max_running: 1,
    no_multinode_jobs: true,
    backend: attrs.backend,
    ...(attrs.remote === undefined ? {} : { backend_id: attrs.remote }),
    runner_bucket: attrs.bucket.key,
    ...(runner_end === null ? {} : { runner_end }),
  };
}

/** Called when the connection of a mom is lost: a runner that does not come back soon counts as lost. */
export function runnerAway(kernel: Kernel, host: string): void {
  const runner = kernel.state.runners.get(host);
  if (runner === undefined || !kernel.state.vnodes.has(host)) return;
  kernel.runners.idle.delete(host);
  const after_s = kernel.state.backends.get(runner.attrs.backend)?.attrs["runner_lost_after"];
  kernel.timers.set(`runner-lost:${host}`, kernel.now_ms + Number(after_s ?? LOST_AFTER_S_DEFAULT) * 1000);
}

/** Called by the timer `runner-lost`. */
export function runnerLost(kernel: Kernel, name: string): void {
  const runner = kernel.state.runners.get(name);
  if (runner === undefined || kernel.moms.by_host.has(name.toLowerCase())) return;
  log(kernel, name, "runner is lost: its backend is asked whether it still exists");
  const tx = ownTransaction(kernel);
  tx.apply({ kind: "changed", object: "runner", name, set: { lost_s: tx.now_s }, unset: [] });
  for (const id of [...(kernel.state.vnodes.get(name)?.jobs.keys() ?? [])])
    if (kernel.state.jobs.has(id)) tx.apply({ kind: "job-changed", id, set: { lost_since: tx.now_s }, unset: [] });
}

/** Called at the start of the server: runners that had a vnode are away until they say hello. */
export function allAway(kernel: Kernel): void {
  for (const name of kernel.state.runners.keys()) runnerAway(kernel, name);
}

/** Makes a runner take no further job: its vnode becomes offline, and the runner leaves when its job has ended. */
export function drain(kernel: Kernel, { name }: Runner): void {
  const vnode = kernel.state.vnodes.get(name);
  if (kernel.runners.draining.has(name) || vnode === undefined) return;
  kernel.runners.draining.add(name);
  const state = inOrder([...listOf(vnode.attrs, "state"), "offline"]);
  const comment = "runner leaves when its job has ended";
  ownTransaction(kernel).apply({ kind: "changed", object: "node", name, set: { state, comment }, unset: [] });
}

/** Makes a connected runner without jobs leave: deletes its vnode and ends its process. */
export function leave(kernel: Kernel, runner: Runner): void {
  const mom = kernel.moms.by_host.get(runner.name.toLowerCase());
  if (mom !== undefined) kernel.out.moms.push({ link: mom.link, type: "mom-quit", data: {} });
  log(kernel, runner.name, "runner has no job any more and leaves");
  forget(kernel, runner);
}

/**
 * Called when the backend, or a person, says that a runner does not exist any more (A2, A3). how: dead: a person says so; the server then believes it even if the runner
 * seems to be connected. preempted: the backend took the runner's place away, so that its jobs have not failed. Returns whether the runner is gone.
 */
export function runnerGone(kernel: Kernel, runner: Runner, why: string, how: "gone" | "preempted" | "dead"): boolean {
  const { state, moms } = kernel;
  const mom = moms.by_host.get(runner.name.toLowerCase());
  if (mom !== undefined && how !== "dead") return false;
  if (mom !== undefined) kernel.out.moms.push({ link: mom.link, type: "mom-quit", data: {} });
  log(kernel, runner.name, `runner does not exist any more: ${why}`);
  const vnode = state.vnodes.get(runner.name);
  for (const id of [...(vnode?.jobs.keys() ?? [])]) {
    const job = state.jobs.get(id);
    if (job !== undefined) endRun(kernel, job, { kind: "mother-silent", runner: how });
  }
  if (vnode !== undefined && vnode.jobs.size > 0) return false;
  forget(kernel, runner);
  return true;
}

function forget(kernel: Kernel, { name }: Runner): void {
  const tx = ownTransaction(kernel);
  kernel.timers.clear(`runner-lost:${name}`);
  kernel.timers.clear(`silent:${name.toLowerCase()}`);
  kernel.runners.idle.delete(name);
  kernel.runners.draining.delete(name);
  kernel.runners.reasons.delete(name);
  if (kernel.state.vnodes.has(name)) tx.apply({ kind: "deleted", object: "node", name });
  tx.apply({ kind: "deleted", object: "runner", name });
}

// A pass over all runners and waiting jobs: makes the picture for pbs_runners, lets idle runners leave, and holds jobs that no runner can take.
//
// P1. A pass follows every change that matters, but not sooner than a moment after the last pass; that moment grows with the number of jobs, so that passes take a small
//     part of the server's time.
// P2. Without a change, the picture is sent again every runner_resync_interval.
// P3. A runner leaves when it has had no job for runner_idle_wait (openstack: keep_alive). While jobs of its bucket wait, it leaves after BLOCKED_WAIT_MS if that is
//     later, because its scheduler may only be slow.
// P4. When no backend is enabled and no runner is recorded, pbs_runners is told to end with each picture. It ends when it has seen that the backends have no runner left. It stays
//     if a later picture needs it.

import { assumedOption } from "#model/tables/backend-options.ts";
import { addHolds } from "#model/values/hold.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";
import { logJob, settleJob } from "../jobs/life.ts";
import { IMPOSSIBLE } from "../jobs/retries.ts";
import { doingOf, hasRunners, partitionOf } from "../state/partitions.ts";
import type { Backend, Job, Runner, ServerState } from "../state/state.ts";
import { drain, leave } from "./arrival.ts";
import { type Counted, countDemands, pictureOf } from "./demand.ts";
import { relearn } from "./relearn.ts";
import { startsRunners } from "./usable.ts";

const PASS_MS_MIN = 100;
/** About the time in which a pass examines one job; the pause after a pass is PAUSE_TIMES times as long as the pass. */
const JOB_MS = 0.0005;
const PAUSE_TIMES = 20;
/** The shortest time after which a runner without a job leaves although jobs of its bucket wait (P3). */
const BLOCKED_WAIT_MS = 30_000;
/** The largest number of jobs to which one pass gives a hold; the next pass continues. */
const HELD_MAX = 100;
const RESYNC_S_DEFAULT = 60;
const KEEP_ALIVE_S = Number(assumedOption("keep_alive"));

/** Called after each change that may change the number of runners: a pass follows soon (P1). */
export function passSoon(kernel: Kernel): void {
  if (!hasRunners(kernel)) return;
  const { state, timers, runners, now_ms } = kernel;
  const pause_ms = PASS_MS_MIN + state.jobs.size * JOB_MS * PAUSE_TIMES;
  const due_ms = Math.max(now_ms, runners.passed_ms + pause_ms);
  if ((timers.at("runners") ?? Number.POSITIVE_INFINITY) > due_ms) timers.set("runners", due_ms);
}

/** The largest number of kinds of jobs that wait for a new estimate. More are estimated anew when their next job ends. */
const RELEARN_MAX = 1000;

/** Called when the amounts that jobs of a kind should ask for have changed. */
export function relearnSoon(kernel: Kernel, key: string): void {
  if (kernel.runners.relearn.size < RELEARN_MAX) kernel.runners.relearn.add(key);
  passSoon(kernel);
}

/** Called by the timer `runners`. */
export function pass(kernel: Kernel): void {
  const { state, runners, now_ms } = kernel;
  runners.passed_ms = now_ms;
  if (!hasRunners(kernel)) return dismiss(kernel);
  const isLeft = relearn(kernel);
  const counted = countDemands(state);
  const waiting = new Map(counted.demands.map(({ bucket }) => [bucket.key, bucket]));
  runners.wanted = waiting;
  runners.demands = counted.demands;
  let next_ms = isLeft ? now_ms : now_ms + resync_s(state) * 1000;
  for (const runner of [...state.runners.values()]) next_ms = Math.min(next_ms, lookAt(kernel, runner, waiting));
  holdImpossible(kernel, counted);
  send(kernel, counted);
  dismiss(kernel);
  kernel.timers.set("runners", Math.max(next_ms, now_ms + PASS_MS_MIN));
}

/** Whether pbs_runners has anything to do. */
export function isNeeded({ state, config }: Kernel): boolean {
  if (state.runners.size > 0) return true;
  for (const backend of state.backends.values()) if (startsRunners(config, backend)) return true;
  return false;
}

/** Tells pbs_runners to end if it is not needed (P4). */
function dismiss(kernel: Kernel): void {
  const { link } = kernel.runners;
  if (link !== null && !isNeeded(kernel)) kernel.out.runners.push({ link, type: "runners-quit", data: {} });
}

function resync_s(state: ServerState): number {
  let least = Number.POSITIVE_INFINITY;
  for (const { attrs } of state.backends.values()) least = Math.min(least, Number(attrs["runner_resync_interval"] ?? RESYNC_S_DEFAULT));
  return Number.isFinite(least) ? least : RESYNC_S_DEFAULT;
}

/** Lets a runner leave if its time has come. Returns when it must be looked at again. */
function lookAt(kernel: Kernel, runner: Runner, waiting: ReadonlyMap<string, unknown>): number {
  const { state, runners, now_ms } = kernel;
  const { name, attrs } = runner;
  const backend = state.backends.get(attrs.backend);
  if (!startsRunners(kernel.config, backend)) drain(kernel, runner);
  if (doingOf(state, runner) !== "idle" || !kernel.moms.by_host.has(name.toLowerCase()) || isPromised(state, name)) {
    runners.idle.delete(name);
    return Number.POSITIVE_INFINITY;
  }
  const since_ms = runners.idle.get(name) ?? now_ms;
  runners.idle.set(name, since_ms);
  const due_ms = since_ms + patience_ms(kernel, runner, backend, waiting);
  if (due_ms > now_ms) return due_ms;
  leave(kernel, runner);
  return Number.POSITIVE_INFINITY;
}

function patience_ms(
  { runners }: Kernel,
  { name, attrs }: Runner,
  backend: Backend | undefined,
  waiting: ReadonlyMap<string, unknown>,
): number {
  if (runners.draining.has(name)) return 0;
  const wait_ms = idleWait_s(backend) * 1000;
  return waiting.has(attrs.bucket.key) ? Math.max(wait_ms, BLOCKED_WAIT_MS) : wait_ms;
}

/** How long a runner waits for another job. A server of a cloud takes long to boot, so that its runner waits longer (keep_alive). */
function idleWait_s(backend: Backend | undefined): number {
  const least_s = Number(backend?.attrs["runner_idle_wait"] ?? 0);
  return backend?.attrs["type"] === "openstack" ? Math.max(least_s, Number(backend.attrs["keep_alive"] ?? KEEP_ALIVE_S)) : least_s;
}

/** Whether a reservation has the runner's vnode. */
const isPromised = (state: ServerState, name: string): boolean => (state.vnodes.get(name)?.resvs.size ?? 0) > 0;

/** Holds jobs that no runner can take, if their partition has no vnodes except runners. */
function holdImpossible(kernel: Kernel, { impossible }: Counted): void {
  for (const [job, why] of impossible.slice(0, HELD_MAX)) holdJob(kernel, job, why);
}

/** Gives a job a system hold with the reason why no runner can take it. qrls lets it be tried again; see also controller.ts C4. */
export function holdJob(kernel: Kernel, job: Job, why: string): void {
  const queue = kernel.state.queues.get(job.attrs.queue);
  if (queue === undefined || hasOwnVnodes(kernel.state, partitionOf(queue))) return;
  const tx = ownTransaction(kernel);
  logJob(tx, LOG_EVENT.JOB, job.id, `Job held, no runner can take it: ${why}`);
  settleJob(tx, job, {
    Hold_Types: addHolds(job.attrs.Hold_Types, "s"),
    comment: `Can Never Run: no runner can take it: ${why}`,
    fail_reason: IMPOSSIBLE,
  });
  tx.apply({ kind: "job-changed", id: job.id, set: {}, unset: [], own: { buried: true } });
}

function hasOwnVnodes(state: ServerState, partition: string): boolean {
  for (const vnode of state.vnodes.values()) if (!state.runners.has(vnode.name) && partitionOf(vnode) === partition) return true;
  return false;
}

/** Sends the picture if it has changed, or if the last one is old (P2). */
function send(kernel: Kernel, { demands }: Counted): void {
  const { runners, out, now_ms, state } = kernel;
  if (runners.link === null) return;
  const data = pictureOf(kernel, demands);
  const text = JSON.stringify(data);
  if (text === runners.sent && now_ms - runners.sent_ms < resync_s(state) * 1000) return;
  runners.sent = text;
  runners.sent_ms = now_ms;
  out.runners.push({ link: runners.link, type: "runners-work", data });
}

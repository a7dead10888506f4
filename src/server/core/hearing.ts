// The table of listeners: it says which functions of the server are called after an event, regardless of its cause.
// Each function is in the folder of the object that it changes. Request handlers do not call these functions.
//
// I1. The listeners of an event are called in the order of the table, after the event was applied. They may apply further
//     events; the listeners after them then see the state after these events.
// I2. A listener with `when` is called only if that condition is true, so that an event that no listener needs costs nothing.

import { unreachable } from "#support/assert.ts";
import type { Kernel } from "../engine/kernel.ts";
import type { Transaction } from "../engine/transaction.ts";
import { armPeriodic, jobOver, jobPosted, resvHappened, watchVnodes } from "../hooks/afterwards.ts";
import { momHooksChanged } from "../hooks/mom-hooks.ts";
import { endArrayIfOver, subjobEnded } from "../jobs/array-end.ts";
import { dependentsAtChange, dependentsAtEnd } from "../jobs/dependencies.ts";
import { jobAccrues, movesLimits } from "../jobs/eligible-time.ts";
import { armJob, isExecution, isRoute, loseTopjob } from "../jobs/life.ts";
import { preemptionMet } from "../jobs/preemption.ts";
import { startMet } from "../jobs/start-wait.ts";
import { jobOfWaiters, runOfWaiters, subjobsOfWaiters } from "../jobs/waiters.ts";
import { gracesChanged } from "../moms/grace.ts";
import { heartbeatChanged } from "../moms/heartbeat.ts";
import { nodeCreated } from "../moms/host-vnodes.ts";
import { reportsChanged } from "../moms/missed-reports.ts";
import { resvVnodeGone, sharingChanged, vnodeChanged, vnodeCreated, vnodeResized } from "../resv/health.ts";
import { askersChanged, resvChanged, resvGone, resvJobsChanged } from "../resv/timing.ts";
import { backendChanged as runnersWanted } from "../runners/controller.ts";
import { dropHandOuts } from "../runners/hand-out.ts";
import { beginRunnersHeartbeat } from "../runners/heartbeat.ts";
import { passSoon, relearnSoon } from "../runners/pass.ts";
import * as cycles from "../scheds/cycles.ts";
import { schedHeartbeatChanged } from "../scheds/heartbeat.ts";
import { jobIsNews } from "../scheds/mirror.ts";
import * as news from "../scheds/news.ts";
import { arrayOf } from "../state/apply.ts";
import { type AttrChange, changes, type Event } from "../state/event.ts";
import { isIn, isPlanned, isWaiting, isWithMom, phaseName } from "../state/job-phase.ts";
import { hasRunners } from "../state/partitions.ts";
import type { Attrs, Job, JobAttrs, Resv, ResvAttrs, Vnode } from "../state/state.ts";
import { queueStarted, routeSoon } from "../submit/routing.ts";

/**
 * The occasions on which listeners are called, and the arguments that they get. before: the attributes before the event. An
 * object that no longer exists is passed with its last values.
 */
type News = {
  readonly "job-created": [job: Job];
  readonly "job-changed": [job: Job, before: JobAttrs];
  readonly "job-ended": [job: Job];
  readonly "subjobs-deleted": [array: Job, indices: readonly number[]];
  readonly "server-changed": [change: AttrChange];
  readonly "queue-created": [];
  readonly "queue-changed": [name: string, change: AttrChange];
  readonly "queue-deleted": [];
  readonly "vnode-created": [name: string];
  readonly "vnode-changed": [name: string, change: AttrChange];
  readonly "vnode-deleted": [vnode: Vnode];
  readonly "sched-created": [name: string];
  readonly "sched-changed": [name: string, change: AttrChange, before: Attrs];
  readonly "sched-deleted": [name: string];
  readonly "backend-changed": [name: string, before: Attrs | null];
  readonly "runner-changed": [];
  readonly "resv-created": [id: string];
  readonly "resv-changed": [id: string, before: ResvAttrs];
  readonly "resv-deleted": [resv: Resv];
  readonly "resources-changed": [];
  readonly "hook-changed": [name: string];
  readonly "amounts-learned": [key: string];
};

type Hearer<Told extends unknown[]> = {
  readonly when?: (kernel: Kernel, ...told: Told) => boolean;
  readonly hears: (kernel: Kernel, tx: Transaction, ...told: Told) => void;
};

const hasHooks = ({ state }: Kernel): boolean => state.hooks.size > 0;
const accrues = ({ state }: Kernel): boolean => state.accrual.enabled;
const isInResv = ({ state }: Kernel, job: Job): boolean => state.resv_queues.has(job.attrs.queue);
const hasMoved = (job: Job, before: JobAttrs): boolean => job.attrs.queue !== before.queue;
const hasArrived = (job: Job, before: JobAttrs): boolean => hasMoved(job, before) || job.attrs.job_state !== before.job_state;

/** Routes a job that is in a routing queue. For a job in an execution queue that may be started, triggers the scheduler. */
function queueHears(kernel: Kernel, tx: Transaction, job: Job): void {
  const queue = kernel.state.queues.get(job.attrs.queue);
  if (queue === undefined) return;
  if (isRoute(queue)) routeSoon(kernel, tx, job, queue);
  else if (isIn(job, "queued", "begun") && isExecution(queue)) cycles.jobQueued(kernel, queue, job.id);
}

function resvHears(kernel: Kernel, queue: string): void {
  const resv = kernel.state.resv_queues.get(queue);
  if (resv !== undefined) resvJobsChanged(kernel, resv);
}

const passHears = (kernel: Kernel): void => passSoon(kernel);

/** Called when something has changed on which the lists of jobs for runners depend (runners/hand-out.ts O3). */
const listsEnd = (kernel: Kernel): void => dropHandOuts(kernel);
const hasLists = ({ runners }: Kernel): boolean => runners.hand_outs.size > 0;
/** Attributes of a scheduler that change with its cycles. */
const OF_CYCLES: ReadonlySet<string> = new Set(["state", "comment"]);

const limitsMove = (kernel: Kernel): void => {
  kernel.state.accrual.stale = true;
};

const HEARERS: { readonly [K in keyof News]: readonly Hearer<News[K]>[] } = {
  "job-created": [
    { hears: (kernel, _tx, job) => jobIsNews(kernel, job.id) },
    { when: hasHooks, hears: jobPosted },
    { when: (_kernel, job) => phaseName(job) === "waiting", hears: armJob },
    { when: isInResv, hears: (kernel, _tx, job) => resvHears(kernel, job.attrs.queue) },
    { hears: queueHears },
    { when: accrues, hears: jobAccrues },
    { when: hasRunners, hears: passHears },
  ],
  "job-changed": [
    {
      when: (kernel, job, before) => hasHooks(kernel) && isWithMom({ attrs: before }) && isWaiting(job),
      hears: (kernel, _tx, job, before) => jobOver(kernel, job.id, before),
    },
    {
      when: ({ jobs }, job, before) => jobs.reruns.size > 0 && isWithMom({ attrs: before }) && isWaiting(job),
      hears: runOfWaiters,
    },
    { when: (kernel, job, before) => hasHooks(kernel) && hasMoved(job, before), hears: jobPosted },
    {
      when: (_kernel, job, before) => hasMoved(job, before),
      hears: (kernel, _tx, job, before) => {
        for (const queue of [before.queue, job.attrs.queue]) resvHears(kernel, queue);
      },
    },
    {
      when: (_kernel, job, before) => job.attrs["topjob"] === true && (!isPlanned(job) || hasMoved(job, before)),
      hears: (_kernel, tx, job) => loseTopjob(tx, job),
    },
    { when: (_kernel, job) => job.attrs["depend"] !== undefined, hears: (_kernel, tx, job, before) => dependentsAtChange(tx, job, before) },
    { hears: (kernel, _tx, job) => jobIsNews(kernel, job.id) },
    {
      when: (_kernel, job, before) => job.attrs.job_state !== before.job_state,
      hears: (kernel, _tx, job) => preemptionMet(kernel, job.id),
    },
    { when: ({ jobs }) => jobs.starting.size > 0, hears: (kernel, _tx, job) => startMet(kernel, job.id) },
    {
      when: (_kernel, job, before) => hasArrived(job, before) || job.attrs.Execution_Time !== before.Execution_Time,
      hears: armJob,
    },
    {
      when: (kernel, job, before) => isInResv(kernel, job) && hasArrived(job, before),
      hears: (kernel, _tx, job) => resvHears(kernel, job.attrs.queue),
    },
    { when: (_kernel, job, before) => hasArrived(job, before), hears: queueHears },
    { when: accrues, hears: jobAccrues },
    { when: (kernel, job, before) => hasRunners(kernel) && hasArrived(job, before), hears: passHears },
  ],
  "job-ended": [
    { hears: (kernel, _tx, job) => jobIsNews(kernel, job.id) },
    {
      when: (kernel, job) => hasHooks(kernel) && job.attrs.stime !== undefined,
      hears: (kernel, _tx, job) => jobOver(kernel, job.id, job.attrs),
    },
    { hears: (kernel, _tx, job) => preemptionMet(kernel, job.id) },
    { hears: (kernel, _tx, job) => startMet(kernel, job.id) },
    {
      hears: ({ timers }, _tx, { id }) => {
        for (const timer of ["wait", "route"]) timers.clear(`${timer}:${id}`);
      },
    },
    // The crew of the job's last run may still exist, because the job has given up its sisters before its end.
    { hears: ({ moms }, _tx, { id }) => void moms.crews.delete(id) },
    { hears: (kernel, _tx, job) => cycles.jobGone(kernel, job) },
    { hears: jobOfWaiters },
    {
      hears: ({ state }, tx, job) => {
        const array = arrayOf(state, job);
        if (array !== undefined) subjobEnded(tx, array, job);
      },
    },
    { when: (_kernel, job) => job.attrs["depend"] !== undefined, hears: (_kernel, tx, job) => dependentsAtEnd(tx, job) },
    { when: isInResv, hears: (kernel, _tx, job) => resvHears(kernel, job.attrs.queue) },
    { when: hasRunners, hears: passHears },
  ],
  "subjobs-deleted": [
    { hears: (kernel, _tx, array) => jobIsNews(kernel, array.id) },
    { when: ({ jobs }) => jobs.waiters.size > 0, hears: subjobsOfWaiters },
    { hears: (_kernel, tx, array) => endArrayIfOver(tx, array) },
  ],
  "server-changed": [
    { when: hasLists, hears: listsEnd },
    { hears: news.serverMirrored },
    {
      when: (_kernel, { set }) => set["log_events"] !== undefined,
      hears: ({ state, out }) => {
        const mask = state.server["log_events"];
        if (typeof mask === "number") out.actions.push({ kind: "log-events", mask });
      },
    },
    { hears: news.serverChanged },
    { when: (_kernel, change) => changes(change, "node_silence_timeout"), hears: heartbeatChanged },
    { when: (_kernel, change) => changes(change, "node_silence_timeout", "node_answer_timeout"), hears: reportsChanged },
    { when: (_kernel, change) => changes(change, "node_fail_requeue", "node_requeue_min"), hears: gracesChanged },
    { when: (_kernel, change) => changes(change, "sched_silence_timeout"), hears: schedHeartbeatChanged },
    { when: (_kernel, change) => changes(change, "sched_silence_timeout"), hears: beginRunnersHeartbeat },
    {
      // These attributes decide how long finished jobs are kept.
      when: (_kernel, change) => changes(change, "job_history_enable", "job_history_duration"),
      hears: ({ timers, now_ms }) => timers.set("purge-history", now_ms),
    },
    { when: (_kernel, change) => movesLimits(change), hears: limitsMove },
  ],
  "queue-created": [{ hears: limitsMove }],
  "queue-changed": [
    { when: hasLists, hears: listsEnd },
    { when: (_kernel, _name, { set }) => set["started"] === true, hears: queueStarted },
    { when: (_kernel, _name, { set }) => set["started"] === true, hears: news.queueStarted },
    { when: (_kernel, _name, change) => movesLimits(change), hears: limitsMove },
  ],
  "queue-deleted": [{ hears: limitsMove }],
  "vnode-created": [{ hears: nodeCreated }, { hears: vnodeCreated }],
  "vnode-changed": [
    { when: (_kernel, _name, change) => changes(change, "resources_available"), hears: vnodeResized },
    {
      when: (_kernel, _name, change) => !changes(change, "resources_available") && change.set["state"] !== undefined,
      hears: vnodeChanged,
    },
    { when: (_kernel, _name, change) => changes(change, "sharing"), hears: sharingChanged },
    { when: (_kernel, _name, change) => changes(change, "partition"), hears: news.vnodeMoved },
  ],
  "vnode-deleted": [
    {
      hears: (kernel, tx, { resvs }) => {
        for (const id of [...resvs.keys()]) resvVnodeGone(kernel, tx, id);
      },
    },
  ],
  "sched-created": [{ hears: news.schedCreated }, { hears: limitsMove }],
  "sched-changed": [
    { hears: news.schedChanged },
    {
      when: (kernel, _name, { set, unset }) => hasLists(kernel) && [...Object.keys(set), ...unset].some((each) => !OF_CYCLES.has(each)),
      hears: listsEnd,
    },
    { when: (_kernel, _name, change) => movesLimits(change), hears: limitsMove },
  ],
  "sched-deleted": [{ hears: news.schedDeleted }, { hears: askersChanged }, { hears: limitsMove }],
  "backend-changed": [{ hears: news.backendChanged }, { hears: runnersWanted }],
  "runner-changed": [{ hears: runnersWanted }],
  "amounts-learned": [{ when: hasRunners, hears: (kernel, _tx, key) => relearnSoon(kernel, key) }],
  "resv-created": [{ when: hasLists, hears: listsEnd }, { hears: (kernel, _tx, id) => resvChanged(kernel, id, null) }],
  "resv-changed": [
    { when: hasLists, hears: listsEnd },
    { hears: (kernel, _tx, id, before) => resvChanged(kernel, id, before) },
    {
      when: hasHooks,
      hears: (kernel, _tx, id, before) => resvHappened(kernel, before.reserve_state, kernel.state.resvs.get(id), { id, attrs: before }),
    },
  ],
  "resv-deleted": [
    { when: hasHooks, hears: (kernel, _tx, resv) => resvHappened(kernel, resv.attrs.reserve_state, undefined, resv) },
    { hears: (kernel, _tx, { id }) => resvGone(kernel, id) },
  ],
  "resources-changed": [
    {
      hears: (kernel) => {
        for (const name of kernel.scheds.by_name.keys()) cycles.configure(kernel, name);
      },
    },
    { hears: momHooksChanged },
    { hears: limitsMove },
  ],
  "hook-changed": [{ hears: (kernel, _tx, name) => armPeriodic(kernel, name) }, { hears: watchVnodes }, { hears: momHooksChanged }],
};

function tell<K extends keyof News>(kernel: Kernel, tx: Transaction, what: K, ...told: News[K]): void {
  for (const { when, hears } of HEARERS[what]) if (when === undefined || when(kernel, ...told)) hears(kernel, tx, ...told);
}

/** Applies an event and calls all its listeners. */
export function consequences(kernel: Kernel, tx: Transaction, event: Event, apply: () => void): void {
  const { state } = kernel;
  switch (event.kind) {
    case "job-created":
      apply();
      return tell(kernel, tx, event.kind, state.jobs.get(event.id) as Job);
    case "job-changed": {
      const job = state.jobs.get(event.id) as Job;
      const before = job.attrs;
      apply();
      return tell(kernel, tx, event.kind, job, before);
    }
    case "job-ended": {
      const job = state.jobs.get(event.id) as Job;
      apply();
      return tell(kernel, tx, event.kind, job);
    }
    case "subjobs-deleted":
      apply();
      return tell(kernel, tx, event.kind, state.jobs.get(event.id) as Job, event.indices);
    case "server-changed":
      apply();
      return tell(kernel, tx, event.kind, event);
    case "created":
      apply();
      return tellCreated(kernel, tx, event);
    case "changed":
      return tellChanged(kernel, tx, event, apply);
    case "deleted":
      return tellDeleted(kernel, tx, event, apply);
    case "resource-put":
    case "resource-deleted":
      apply();
      return tell(kernel, tx, "resources-changed");
    case "hook-put":
    case "hook-deleted":
      apply();
      return tell(kernel, tx, "hook-changed", event.name);
    case "clock-put":
    case "clock-deleted":
    case "runtime":
    case "sched-here":
    case "vnode-admin-set":
    case "history-purged":
      return apply();
    case "run-time-learned":
      apply();
      if (event.moved === true) tell(kernel, tx, "amounts-learned", event.key);
      return;
    default:
      unreachable(event);
  }
}

type Of<K extends Event["kind"]> = Extract<Event, { kind: K }>;

function tellCreated(kernel: Kernel, tx: Transaction, { object, name }: Of<"created">): void {
  if (object === "queue") tell(kernel, tx, "queue-created");
  else if (object === "node") tell(kernel, tx, "vnode-created", name);
  else if (object === "sched") tell(kernel, tx, "sched-created", name);
  else if (object === "backend") tell(kernel, tx, "backend-changed", name, null);
  else if (object === "runner") tell(kernel, tx, "runner-changed");
  else tell(kernel, tx, "resv-created", name);
}

function tellChanged(kernel: Kernel, tx: Transaction, event: Of<"changed">, apply: () => void): void {
  const { object, name } = event;
  const { scheds, resvs, backends } = kernel.state;
  const backend = object === "backend" ? backends.get(name)?.attrs : undefined;
  const sched = object === "sched" ? scheds.get(name)?.attrs : undefined;
  const resv = object === "resv" ? resvs.get(name)?.attrs : undefined;
  apply();
  if (object === "queue") tell(kernel, tx, "queue-changed", name, event);
  else if (object === "node") tell(kernel, tx, "vnode-changed", name, event);
  else if (sched !== undefined) tell(kernel, tx, "sched-changed", name, event, sched);
  else if (resv !== undefined) tell(kernel, tx, "resv-changed", name, resv);
  else if (backend !== undefined) tell(kernel, tx, "backend-changed", name, backend);
  else if (object === "runner") tell(kernel, tx, "runner-changed");
}

function tellDeleted(kernel: Kernel, tx: Transaction, { object, name }: Of<"deleted">, apply: () => void): void {
  const vnode = object === "node" ? kernel.state.vnodes.get(name) : undefined;
  const resv = object === "resv" ? kernel.state.resvs.get(name) : undefined;
  const backend = object === "backend" ? kernel.state.backends.get(name) : undefined;
  apply();
  if (object === "queue") tell(kernel, tx, "queue-deleted");
  else if (object === "sched") tell(kernel, tx, "sched-deleted", name);
  else if (vnode !== undefined) tell(kernel, tx, "vnode-deleted", vnode);
  else if (resv !== undefined) tell(kernel, tx, "resv-deleted", resv);
  else if (backend !== undefined) tell(kernel, tx, "backend-changed", name, backend.attrs);
  else if (object === "runner") tell(kernel, tx, "runner-changed");
}

// Routing queues: a job moves on to the first destination that accepts it (docs/reference/attributes.md 4, attributes
// route_*). Destinations are queues of this server; destinations on other servers come with a later release.
//
// I1. A job that every destination refuses for good is aborted. A job that may be accepted later is tried again every
//     route_retry_time seconds, for at most route_lifetime.
// I2. Held and waiting jobs stay in the routing queue, unless route_held_jobs or route_waiting_jobs allow them to move on.

import { PBSE, Reject } from "#model/pbse.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Kernel } from "../engine/kernel.ts";
import type { Transaction } from "../engine/transaction.ts";
import { accountAborted, accountQueued } from "../jobs/accounting-record.ts";
import { endWaiting } from "../jobs/end.ts";
import { isRoute, logJob, moveJob } from "../jobs/life.ts";
import { isIn, isWaiting } from "../state/job-phase.ts";
import type { Job, Queue } from "../state/state.ts";
import { admitJob, localQueue } from "./admission.ts";

/** The largest number of queues that a job may pass through. */
const HOPS_MAX = 10;
const RETRY_S_DEFAULT = 30;

/** Refusals after which a job is tried again, because the reason may pass: for example queue disabled, too many jobs. */
const RETRIED: ReadonlySet<number> = new Set([PBSE.QUNOENB, PBSE.MAXQUED, PBSE.ENTLIMCT, PBSE.ENTLIMRESC, PBSE.SYSTEM, PBSE.INTERNAL]);

/** Called for a job in a routing queue: sends the job on if it may move now, else sets the time of the next attempt. */
export function routeSoon(kernel: Kernel, tx: Transaction, job: Job, queue: Queue): void {
  kernel.timers.clear(`route:${job.id}`);
  if (queue.attrs["started"] !== true || !isWaiting(job) || !mayGo(job, queue)) return;
  const lifetime_s = Number(queue.attrs["route_lifetime"] ?? 0);
  if (lifetime_s > 0 && tx.now_s > job.attrs.qtime + lifetime_s) return giveUp(tx, job, "Route queue lifetime exceeded");
  if (Number(job.attrs["hop_count"] ?? 1) > HOPS_MAX) return giveUp(tx, job, "Job routing over too many hops");
  const refusals: Reject[] = [];
  for (const destination of destinationsOf(queue)) {
    const refusal = tryDestination(tx, job, destination);
    if (refusal === null) return;
    refusals.push(refusal);
  }
  if (refusals.some((refusal) => RETRIED.has(refusal.code))) {
    const retry_s = Number(queue.attrs["route_retry_time"] ?? RETRY_S_DEFAULT);
    kernel.timers.set(`route:${job.id}`, kernel.now_ms + Math.max(1, retry_s) * 1000);
  } else {
    giveUp(tx, job, "Job rejected by all possible destinations");
  }
}

/** Called when a routing queue was started: sends its jobs on. */
export function queueStarted(kernel: Kernel, tx: Transaction, name: string): void {
  const queue = kernel.state.queues.get(name);
  if (queue === undefined || !isRoute(queue)) return;
  for (const id of [...queue.jobs]) routeSoon(kernel, tx, kernel.state.jobs.get(id) as Job, queue);
}

function mayGo(job: Job, queue: Queue): boolean {
  if (isIn(job, "held")) return queue.attrs["route_held_jobs"] === true;
  if (isIn(job, "waiting")) return queue.attrs["route_waiting_jobs"] === true;
  return true;
}

function destinationsOf(queue: Queue): readonly string[] {
  const list = queue.attrs["route_destinations"];
  return Array.isArray(list) ? (list as string[]) : [];
}

/** Tries to move the job to a destination. Returns the refusal; null: the job was moved. */
function tryDestination(tx: Transaction, job: Job, destination: string): Reject | null {
  try {
    const queue = localQueue(tx, destination);
    const set = admitJob(tx, job, queue, { from_route: true });
    moveJob(tx, job, queue, { ...set, hop_count: Number(job.attrs["hop_count"] ?? 1) + 1 });
    accountQueued(tx, job);
    return null;
  } catch (error) {
    if (error instanceof Reject) return error;
    throw error;
  }
}

function giveUp(tx: Transaction, job: Job, text: string): void {
  logJob(tx, LOG_EVENT.JOB, job.id, text);
  accountAborted(tx, job.id, text);
  tx.act({ kind: "mail", job: job.id, point: "a", text });
  endWaiting(tx, job, true);
}

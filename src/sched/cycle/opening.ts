// The beginning of a cycle, before jobs are tried: logs the time, classes and buckets; finds out whether anything can be scheduled at all; expects later ends
// of jobs that take longer than expected; makes the preemption levels; and writes comments for jobs whose queue is not started.

import type { Why } from "#protocol/sched-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { endsInOrder } from "../calendar/calendar.ts";
import { agreeComment } from "../order/job-lines.ts";
import { knowEntities } from "../order/ranking.ts";
import { bucketNames } from "../place/node-bucket-names.ts";
import { createLevels } from "../preempt/preempt-level.ts";
import { dateText } from "../shapes/local-time.ts";
import type { Cycle } from "../shapes/module.ts";
import type { LevelOf } from "../shapes/ranking.ts";
import { commentText } from "../shapes/reasons.ts";
import type { Universe } from "../shapes/universe.ts";
import type { Run } from "./run.ts";

export function logOpening(cycle: Cycle): void {
  cycle.log({ event: LOG_EVENT.DEBUG, class: "Req", object: "", text: "Starting Scheduling Cycle" });
  logTime(cycle);
}

/**
 * Prepares the order of jobs and calls the modules. Returns "leave" if decisions of a module must be carried out first: the
 * cycle then ends without trying jobs.
 */
export function begin(run: Run): "leave" | "go on" {
  knowEntities(run.ranks);
  extendRunning(run);
  const answers = run.modules.map((module) => module.begin?.(run));
  return answers.includes("leave") ? "leave" : "go on";
}

/** Returns the preemption levels, by which jobs are ordered before anything else; null without preemption. */
export function levelsOf(run: Run): LevelOf | null {
  const preempts = run.policy.preemptive_sched && run.modules.some((module) => module.makeRoom !== undefined);
  return preempts ? createLevels(run.ranks) : null;
}

function logTime(cycle: Cycle): void {
  const { book, now_s } = cycle;
  const { prime, until_s } = cycle.prime;
  const end =
    until_s === null ? "It will never end" : `It will end in ${until_s - now_s} seconds at ${dateText(book.local.civil(until_s))}`;
  cycle.log({ event: LOG_EVENT.DEBUG2, class: "Svr", object: "", text: `It is ${prime ? "primetime" : "non-primetime"}.  ${end}` });
  const { year } = book.holidays;
  if (year !== 0 && year < book.local.civil(now_s).year) {
    cycle.log({ event: LOG_EVENT.ADMIN, class: "Fil", object: "holidays", text: "The holiday file is out of date; please update it." });
  }
}

/**
 * Returns why a scheduler can schedule nothing at all: it has no partition, no vnodes or no queues (docs/reference/scheduler.md 2); null: it can. Jobs get no
 * comment about it.
 */
export function whyIdle({ sched, vnodes, queues }: Universe): Why | null {
  const { partition } = sched.attrs;
  const partitioned =
    sched.name === "default" || (Array.isArray(partition) ? partition.length > 0 : typeof partition === "string" && partition !== "");
  if (!partitioned) return { code: "SCHED_WITHOUT_PARTITION", where: sched.name };
  if (vnodes.size === 0) return { code: "SCHED_WITHOUT_NODES", where: sched.name };
  return queues.size === 0 ? { code: "SCHED_WITHOUT_QUEUES", where: sched.name } : null;
}

export function canSchedule(cycle: Cycle): boolean {
  const why = whyIdle(cycle.universe);
  if (why === null) return true;
  const svr = { event: LOG_EVENT.SCHED, class: "Svr" } as const;
  if (why.code === "SCHED_WITHOUT_PARTITION") cycle.log({ ...svr, object: "query_server", text: "Scheduler does not contain a partition" });
  if (why.code === "SCHED_WITHOUT_NODES")
    cycle.log({ ...svr, object: "query_nodes", text: "No nodes found in partitions serviced by scheduler" });
  cycle.log({ event: LOG_EVENT.SYSTEM, class: "Svr", object: "", text: "Problem with creating server data structure" });
  return false;
}

/** Logs the numbers of classes and buckets. Buckets are named only if log_events asks for it, because naming them visits all of them. */
export function logShapes(cycle: Cycle): void {
  const { universe } = cycle;
  const text = `Number of job equivalence classes: ${universe.classes.size}`;
  cycle.log({ event: LOG_EVENT.DEBUG3, class: "Sched", object: "create_resresv_sets", text });
  for (const name of bucketNames(universe)) {
    cycle.log({ event: LOG_EVENT.DEBUG3, class: "Node", object: "create_node_buckets", text: `Created node bucket ${name}` });
  }
}

/**
 * Gives running jobs that should have ended by now a later expected end. Bookings take that into account. For a job with a soft_walltime the new
 * expected time is published (docs/reference/scheduler.md 7).
 */
function extendRunning(cycle: Cycle): void {
  const { universe, now_s } = cycle;
  const { calendar, jobs } = universe;
  if (calendar.on.size > 0 || calendar.soft.size > 0) endsInOrder(universe, now_s);
  for (const id of calendar.soft) {
    const { from_s = 0, to_s = 0, last_s = 0, grace_s = 0, soft_s = 0 } = calendar.running.get(id) ?? {};
    const soft_walltime_s = Math.min(to_s, last_s - grace_s) - from_s;
    const job = jobs.get(id);
    if (soft_walltime_s > soft_s && job?.state === "R" && job.estimated?.soft_walltime !== soft_walltime_s)
      cycle.decide({ kind: "extend", job: id, soft_walltime_s });
  }
}

/** Writes the reason into the comments of jobs whose queue is not started. These jobs are not tried. */
export function tellStopped(cycle: Cycle): void {
  const { universe } = cycle;
  const why: Why = { code: "QUEUE_NOT_STARTED", module: "queue" };
  for (const queue of universe.queues.values()) {
    if (queue.started || !queue.execution) continue;
    for (const line of universe.lines.get(queue.name) ?? []) {
      agreeComment(line, commentText(why));
      for (const entry of line.differ) cycle.tell(entry, why);
    }
  }
}

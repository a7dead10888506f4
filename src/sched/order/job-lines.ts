// Keeps queued jobs in lines. All jobs of one class (equal jobs) in one queue form a line, which changes by insertion and removal (shapes/universe.ts U3,
// U4).
//
// The key of a class contains everything about a job that a check may use: the request, the amounts that queue and server count, the owner if limits depend
// on the owner, the queue if it makes a difference. Values that only order jobs (job_sort_key, rank) are not part of it.

import { readExecVnode } from "#model/request/exec-vnode.ts";
import { FREE, placeOf, placeText } from "#model/request/place.ts";
import { pairOf, selectText } from "#model/request/select.ts";
import type { SchedJob, Why } from "#protocol/sched-link.ts";
import { killDelayOf } from "../shapes/durations.ts";
import type { JobClass, JobEntry, JobLine, Queue } from "../shapes/job-line.ts";
import { looksAt } from "../shapes/preempt-rules.ts";
import { commentText } from "../shapes/reasons.ts";
import type { Request } from "../shapes/request.ts";
import { checkedPart, parseRequest } from "../shapes/request.ts";
import { bucketKeyOf } from "../shapes/runner-bucket.ts";
import type { Universe } from "../shapes/universe.ts";
import { nodeSetKey, resvSetKey } from "../shapes/vnode-state.ts";
import { isOffered } from "./array-turn.ts";
import { hasOwnGrouping } from "./group-resources.ts";
import { percentageOf, placeInStrand, shareEntity, trackKey } from "./ranking.ts";
import { dropFromStrand, insert, jobsOf, strandOf } from "./strands.ts";

/** Adds a job, or replaces it by its new state. */
export function putEntry(universe: Universe, job: SchedJob): void {
  const old = universe.entries.get(job.id);
  if (old !== undefined && sameForScheduling(old.job, job) && sameForModules(universe, old.job, job)) {
    old.job = job;
    noteComment(old);
    return;
  }
  dropEntry(universe, job.id);
  const request = job.state === "S" ? resumeRequest(universe, job) : requestOf(universe, job.schedselect, job.place);
  const line = isOffered(job) ? lineOf(universe, job, request) : null;
  if (line === null) {
    universe.entries.set(job.id, { job, request, order: [], line, strand: null, under: false, gone: false });
    return;
  }
  askGroup(universe, request);
  const { key, order } = placeInStrand(universe, job);
  const strand = strandOf(line, trackKey(universe, job), key);
  const entry: JobEntry = { job, request, order, line, strand, under: false, gone: false };
  universe.entries.set(job.id, entry);
  line.size++;
  insert(strand, entry);
  noteComment(entry);
}

/**
 * Notes that a job or reservation groups vnodes by a resource, so that placement sets for this resource are needed. They are then kept for ever, because
 * there are at most as many groupings as resources.
 */
export function askGroup(universe: Universe, { place }: Request): void {
  if (place.group === undefined || universe.asked_groups.has(place.group)) return;
  universe.asked_groups.add(place.group);
  universe.groups_stale = true;
}

export function dropEntry(universe: Universe, id: string): void {
  const entry = universe.entries.get(id);
  if (entry === undefined) return;
  universe.entries.delete(id);
  entry.gone = true;
  const { line, strand } = entry;
  if (line === null || strand === null) return;
  line.differ.delete(entry);
  line.differ_under.delete(entry);
  line.size--;
  dropFromStrand(strand);
  if (line.size === 0) dropLine(universe, line);
}

/** Compares a job's comment with the agreed comment of its line. The line has sets of the jobs whose comment differs. */
export function noteComment(entry: JobEntry): void {
  const { line, under } = entry;
  if (line === null) return;
  const [wrong, other] = under ? [line.differ_under, line.differ] : [line.differ, line.differ_under];
  other.delete(entry);
  if (isTold(entry, under ? UNDER_TEXT : line.said)) wrong.delete(entry);
  else wrong.add(entry);
}

/** Returns whether a job has this comment, or needs none because it is an array that has begun and keeps its comment. */
const isTold = ({ job }: JobEntry, said: string | undefined): boolean => job.comment === said || job.state === "B";

/** The comment of jobs whose formula value is under the threshold. */
export const UNDER_WHY: Why = { code: "JOB_UNDER_THRESHOLD", module: "prioritizer" };
const UNDER_TEXT = commentText(UNDER_WHY);

/** In a line with more than MANY_JOBS jobs, a new text that differs only in amounts is agreed at most once in AMOUNTS_S seconds. */
const MANY_JOBS = 100;
const AMOUNTS_S = 60;

/**
 * Sets the agreed comment of a line. In a long line, a text that differs only in amounts (A: 3 instead of A: 4) waits for the next minute. Otherwise every
 * end of a job would change the comments of all waiting jobs. The first job of the line gets the text in any case, from the code that tries it.
 */
export function agreeComment(line: JobLine, text: string, kind = "", now_s = 0): void {
  if (line.said === text) return;
  const isLong = line.size > MANY_JOBS;
  if (isLong && line.said !== undefined && kind !== "" && kind === line.said_kind && now_s - line.said_s < AMOUNTS_S) return;
  line.said = text;
  line.said_kind = kind;
  line.said_s = now_s;
  line.differ.clear();
  for (const entry of jobsOf(line)) if (!entry.under && !isTold(entry, text)) line.differ.add(entry);
}

/**
 * Returns the key of the set of vnodes that jobs of a queue may use. These are the vnodes of its reservation or, otherwise, those assigned to the queue. If the
 * queue has neither, they are the vnodes of its partition that belong to no queue.
 */
export function nodeSetOf(universe: Universe, queue: Queue | undefined): string {
  const resv = queue === undefined ? undefined : universe.resv_queues.get(queue.name);
  if (resv !== undefined) return resvSetKey(resv.id);
  const own = nodeSetKey(queue?.partition ?? "", queue?.name ?? "");
  return universe.sets.has(own) ? own : nodeSetKey(queue?.partition ?? "", "");
}

function lineOf(universe: Universe, job: SchedJob, request: Request): JobLine {
  const key = classKey(universe, job, request);
  let jobClass = universe.classes.get(key);
  if (jobClass === undefined) universe.classes.set(key, (jobClass = { key, lines: new Map() }));
  let line = jobClass.lines.get(job.queue);
  if (line === undefined) {
    line = newLine(job, jobClass);
    jobClass.lines.set(job.queue, line);
    let lines = universe.lines.get(job.queue);
    if (lines === undefined) universe.lines.set(job.queue, (lines = new Set()));
    lines.add(line);
  }
  return line;
}

const newLine = ({ queue, sched_preempted_s }: SchedJob, jobClass: JobClass): JobLine => ({
  queue,
  preempted_s: sched_preempted_s,
  class: jobClass,
  tracks: new Map(),
  size: 0,
  said: undefined,
  said_kind: "",
  said_s: 0,
  differ: new Set(),
  differ_under: new Set(),
});

function dropLine(universe: Universe, line: JobLine): void {
  line.class.lines.delete(line.queue);
  if (line.class.lines.size === 0) universe.classes.delete(line.class.key);
  const lines = universe.lines.get(line.queue);
  lines?.delete(line);
  if (lines?.size === 0) universe.lines.delete(line.queue);
}

const REQUESTS_KEPT = 10_000;

export function requestOf(universe: Universe, select: string, place: string, resumed?: Pick<Request, "resumes" | "keeps_cpus">): Request {
  const key = `${select}\n${place}${resumed === undefined ? "" : `\n${resumed.keeps_cpus === true}`}`;
  let request = universe.requests.get(key);
  if (request === undefined) {
    // Requests that no job has any more are dropped from the table; a job keeps its own request.
    if (universe.requests.size > REQUESTS_KEPT + 2 * universe.entries.size) universe.requests.clear();
    const parsed = checkedPart(parseRequest(universe.space, select, place, universe.next_id++), universe.checks);
    universe.requests.set(key, (request = { ...parsed, ...resumed }));
  }
  return request;
}

/**
 * Returns the request of a suspended job, which can resume only where it was. The request names the vnodes of the job and asks for the amounts that the job
 * released there, with the same `sharing` as before.
 */
export function resumeRequest(universe: Universe, { exec_vnode = "", released = exec_vnode, place }: SchedJob): Request {
  const parts = (readExecVnode(released) ?? []).flat();
  const select = selectText({ chunks: parts.map(({ vnode, pairs }) => ({ count: 1, pairs: [pairOf("vnode", vnode), ...pairs] })) });
  const { sharing } = placeOf(place);
  const needs_cpus = parts.some(({ pairs }) => pairs.some(({ name }) => name === "ncpus"));
  const resumed: Pick<Request, "resumes" | "keeps_cpus"> = needs_cpus ? { resumes: true } : { resumes: true, keeps_cpus: true };
  return requestOf(universe, select, placeText({ ...FREE, ...(sharing === undefined ? {} : { sharing }) }), resumed);
}

function classKey(universe: Universe, job: SchedJob, request: Request): string {
  const { profile } = universe;
  const queue = universe.queues.get(job.queue);
  const parts: string[] = [String(request.id)];
  if (profile.user) parts.push(`u${job.user}`);
  if (profile.group) parts.push(`g${job.group}`);
  if (profile.project) parts.push(`p${job.project}`);
  if (job.topjob_ineligible === true) parts.push("!");
  if (job.sched_preempted_s !== undefined) parts.push(`P${job.sched_preempted_s}`);
  if (looksAt(universe.preempt, "fairshare") && universe.policy.preemptive_sched) parts.push(`e${shareEntity(universe, job)}`);
  if (job.resv !== undefined) parts.push(`R${job.resv}`);
  parts.push(matters(universe, queue) ? `q${job.queue}` : `s${nodeSetOf(universe, queue)}`);
  // Runners take the jobs of one bucket, and hand them out one after another (cycle/hand-out.ts).
  if (queue?.attrs["elastic"] === true) parts.push(`B${bucketKeyOf(universe, job)}`, `g${job.group}`, `q${job.queue}`);
  const timed = timesMatter(universe, queue);
  if (timed && killDelayOf(queue) > 0) parts.push(`k${killDelayOf(queue)}`);
  for (const [name, value] of Object.entries(job.resources)) {
    if (isJobWide(universe, name, timed)) parts.push(`${name}=${value}`);
  }
  // Only an array has a limit of its own (max_run_subjobs).
  if (job.array?.max_run_subjobs !== undefined) parts.push(`a${job.id}`);
  const { ranking } = universe;
  if (ranking.fair_share && ranking.policy.fairshare_enforce_no_shares && percentageOf(universe, job) <= 0) parts.push("no shares");
  for (const module of universe.distinguishing) parts.push(`${module.name}:${module.classKey?.(job)}`);
  return parts.join("\t");
}

/** Returns whether a check can give a job of this queue another answer than an equal job of another queue in the same partition. */
function matters(universe: Universe, queue: Queue | undefined): boolean {
  if (queue === undefined) return true;
  const { policy } = universe;
  return (
    queue.limits.run.size > 0 ||
    queue.limits.resources.size > 0 ||
    queue.available.size > 0 ||
    queue.soft_limits.run.size > 0 ||
    queue.soft_limits.resources.size > 0 ||
    // Jobs of express queues may preempt others.
    (policy.preemptive_sched && queue.priority >= universe.preempt.queue_prio) ||
    hasOwnGrouping(universe, queue) ||
    [policy.primetime_prefix, policy.nonprimetime_prefix, policy.dedicated_prefix].some(
      (prefix) => prefix !== "" && queue.name.startsWith(prefix),
    )
  );
}

/** The resources that say how long a job runs. */
const TIMES: ReadonlySet<string> = new Set(["walltime", "soft_walltime", "min_walltime", "max_walltime"]);

/** Returns whether a check of queue, server, limits or time uses a job-wide amount of the resource. */
function isJobWide(universe: Universe, name: string, timed: boolean): boolean {
  if (universe.policy.resources.has(name) || universe.profile.resources.includes(name) || name === "preempt_targets") return true;
  return timed && TIMES.has(name);
}

/** Returns whether the time of a job matters: dedicated time, bookings or the ends of runners may be in the way of jobs that would run into them. */
function timesMatter({ times_matter, sched, resvs }: Universe, queue: Queue | undefined): boolean {
  if (queue?.attrs["elastic"] === true) return true;
  return times_matter || sched.attrs["sched_preempt_enforce_resumption"] === true || resvs.size > 0;
}

/** Returns whether two states of a job differ only in values that a scheduler ignores (mostly the comment). */
function sameForScheduling(a: SchedJob, b: SchedJob): boolean {
  return (
    a.state === b.state &&
    a.queue === b.queue &&
    a.rank === b.rank &&
    a.schedselect === b.schedselect &&
    a.place === b.place &&
    a.user === b.user &&
    a.group === b.group &&
    a.project === b.project &&
    a.priority === b.priority &&
    a.account === b.account &&
    a.backend_opts === b.backend_opts &&
    a.clock === b.clock &&
    a.eligible_time_s === b.eligible_time_s &&
    a.accrue_type === b.accrue_type &&
    a.resv === b.resv &&
    a.pressure_s === b.pressure_s &&
    a.topjob_ineligible === b.topjob_ineligible &&
    a.sched_preempted_s === b.sched_preempted_s &&
    (a.state !== "S" || (a.exec_vnode === b.exec_vnode && a.released === b.released)) &&
    isOffered(a) === isOffered(b) &&
    (a.array?.max_run_subjobs === undefined) === (b.array?.max_run_subjobs === undefined) &&
    sameRecord(a.resources, b.resources)
  );
}

function sameForModules({ distinguishing }: Universe, a: SchedJob, b: SchedJob): boolean {
  return distinguishing.every((module) => module.classKey?.(a) === module.classKey?.(b));
}

function sameRecord(a: SchedJob["resources"], b: SchedJob["resources"]): boolean {
  if (a === b) return true;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}

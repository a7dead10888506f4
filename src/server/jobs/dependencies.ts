// Dependencies between jobs (docs/reference/commands.md 1.3, 3): the jobs that a job waits for, the jobs that a start
// or an end releases, and the conditions that can no longer be met.
//
//   new job --all met--> Q          --some not--> H 22, hold s --last one met--> Q
//           --never--> F 92         a job whose condition can never be met is deleted, and so are all jobs that wait for it
//
// P1. A job's depend names the jobs that it waits for (after..., on). The depend of each of those jobs names the waiting job
//     (before...).
// P2. A job whose last dependency is met loses its hold s. A manager may remove that hold earlier; the dependency then has
//     no further effect.
// P3. A job that is deleted before it ran releases no other job. One that is deleted while it runs has failed, whatever its Exit_status.
// P4. Of the jobs of a runone set one runs at a time; meanwhile the others have a hold s. When the running job ends, the
//     others are deleted; when it is queued again, they lose the hold.

import { listOf } from "#model/attribute-reader.ts";
import {
  AFTER_TYPES,
  type AfterType,
  countLeft,
  type Dependencies,
  dependencyItems,
  type End,
  entriesOf,
  hasEntry,
  idsAhead,
  isAfter,
  isBefore,
  isDependent,
  isMet,
  jobOfEntry,
  keptItems,
  parseDependencies,
  reverseType,
  withCount,
  withDependency,
  withEntries,
  withoutDependency,
} from "#model/depend.ts";
import { limitOf } from "#model/limits/server-limits.ts";
import { PBSE, Reject, reject } from "#model/pbse.ts";
import { addHolds, removeHolds } from "#model/values/hold.ts";
import { mustGet, nth } from "#support/assert.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Transaction } from "../engine/transaction.ts";
import { howOver, isHeldForDependency, isIn, isRunning, isWaiting, isWithMom, phaseName } from "../state/job-phase.ts";
import type { Attrs, Job, JobAttrs, ServerState } from "../state/state.ts";
import { accountAborted } from "./accounting-record.ts";
import { unstartedAttrs } from "./array-end.ts";
import { leave, statusOfRun } from "./end.ts";
import { logJob, settleJob } from "./life.ts";

export const dependenciesOf = (state: ServerState, attrs: Attrs): Dependencies => parseDependencies(listOf(attrs, "depend"), state.name);

const entryOf = (state: ServerState, id: string): string => `${id}@${state.name}`;
/** The dependencies as items of depend; undefined: no dependency is left. */
const itemsOf = (dependencies: Dependencies): string[] | undefined =>
  dependencies.length === 0 ? undefined : dependencyItems(dependencies);

// --- requests for dependencies

/** Ids of the named jobs that are not live. Their records must be read from the history (Transaction.historyOf) before askDependencies is called. */
export function recordsOfDependencies(tx: Transaction, items: readonly string[] | undefined): string[] {
  if (items === undefined) return [];
  return parseDependencies(items, tx.state.name, limitOf(tx.state, "max_depend_jobs"))
    .flatMap((item) => (item.type === "on" ? [] : item.ids.map(jobOfEntry)))
    .filter((id) => !tx.state.jobs.has(id));
}

/** What requested dependencies would do. refusal: the id of a job, if the dependency on that job can never be met; null: all can be met. */
export type Asked = {
  readonly dependencies: Dependencies;
  readonly refusal: string | null;
  /** finished jobs that already satisfy the request */
  readonly met: readonly string[];
  /** live jobs whose own depend gets an entry for the job with the request */
  readonly others: readonly { readonly id: string; readonly type: Dependencies[number]["type"] }[];
};

/**
 * Finds out what requested dependencies would do; changes nothing. job: the job with the request, and its owner. Only jobs
 * of that owner may be made to wait or kept from running. Refuses with 15054 a circle, more jobs than max_depend_jobs, and
 * jobs whose own depend lists are too long for one request (GRAPH_FACTOR).
 */
export function askDependencies(tx: Transaction, job: { readonly id: string; readonly owner: string }, items: readonly string[]): Asked {
  const { state } = tx;
  const ids_max = limitOf(state, "max_depend_jobs");
  const wanted = parseDependencies(items, state.name, ids_max);
  const others: { readonly id: string; readonly type: Dependencies[number]["type"] }[] = [];
  let left: Dependencies = [];
  let refusal: string | null = null;
  const met: string[] = [];
  for (const item of wanted) {
    if (item.type === "on") {
      left = withCount(left, item.count);
      continue;
    }
    const waiting: string[] = [];
    for (const entry of item.ids) {
      const id = jobOfEntry(entry);
      if (id === job.id) throw reject(PBSE.BADDEPEND);
      const standing = isAfter(item.type) ? standingOf(tx, item.type, id) : mayTell(state, item.type, id, job.owner) ? "waits" : "never";
      if (standing === "met") {
        if (!state.jobs.has(id)) met.push(id);
        continue;
      }
      waiting.push(entry);
      if (standing === "never") refusal ??= id;
      else others.push({ id, type: item.type });
    }
    left = withEntries(left, item.type, waiting);
  }
  if (refusal === null) checkLists(state, others, ids_max);
  // Only an existing job, or a new job that names others with before..., can be part of a circle: no other job waits for a new job yet.
  if (refusal === null && (state.jobs.has(job.id) || others.some((other) => isBefore(other.type))))
    refuseCircle(state, job.id, others, ids_max);
  return { dependencies: left, refusal, met, others };
}

/** One request reads or writes at most GRAPH_FACTOR * max_depend_jobs entries in the depend lists of other jobs. No list becomes longer than that. */
const GRAPH_FACTOR = 100;

const tooMuchBehind = (ids_max: number): Reject =>
  new Reject(
    PBSE.BADDEPEND,
    `Invalid Job Dependency: the jobs named have more than ${ids_max * GRAPH_FACTOR} dependencies of their own (${GRAPH_FACTOR} times max_depend_jobs)`,
  );

/** Refuses a request if the lists of the named jobs, each of which would get an entry, are too long. */
function checkLists(state: ServerState, others: Asked["others"], ids_max: number): void {
  let entries = 0;
  for (const { id, type } of others) {
    const other = state.jobs.get(id);
    if (other === undefined || type === "on") continue;
    const known = entriesOf(dependenciesOf(state, other.attrs), reverseType(type)).length;
    // Each of several runone jobs lists all others, so all lists grow.
    entries += type === "runone" ? known * known : known;
    if (entries >= ids_max * GRAPH_FACTOR) throw tooMuchBehind(ids_max);
  }
}

/** Whether a condition is met, can be met, or can never be met. */
function standingOf(tx: Transaction, type: AfterType, id: string): "met" | "waits" | "never" {
  const live = tx.state.jobs.get(id);
  if (live !== undefined) return type === "after" && hasStarted(live) ? "met" : "waits";
  const record = tx.history(id);
  return record !== undefined && isMet(type, endOf(record)) ? "met" : "never";
}

const hasStarted = (job: Job): boolean =>
  job.subjobs === undefined ? isWithMom(job) && !isIn(job, "starting") : job.attrs.stime !== undefined;
const endOf = ({ attrs }: Job): End => ({ ran: attrs.stime !== undefined, exit_status: statusOfRun(attrs) });

/**
 * Whether a job of this owner may enter itself into the depend of another job (id). The other job must have the same owner.
 * before...: it must also be waiting, and the count of its `on` not used up; runone: it must not have ended.
 */
function mayTell(state: ServerState, type: Dependencies[number]["type"], id: string, owner: string): boolean {
  const other = state.jobs.get(id);
  if (other === undefined || other.attrs.Job_Owner !== owner) return false;
  return type === "runone" || (isWaiting(other) && countLeft(dependenciesOf(state, other.attrs)) > 0);
}

/** Refuses a job that would wait for itself through other jobs, and a search that visits too many entries. */
function refuseCircle(state: ServerState, id: string, others: Asked["others"], ids_max: number): void {
  const waiting = new Set(others.flatMap((other) => (isBefore(other.type) ? [other.id] : [])));
  waiting.add(id);
  const seen = new Set<string>();
  const ahead = others.flatMap((other) => (isAfter(other.type) ? [other.id] : []));
  let met = 0;
  for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
    if (waiting.has(next)) throw reject(PBSE.BADDEPEND);
    if (seen.has(next)) continue;
    seen.add(next);
    const job = state.jobs.get(next);
    if (job === undefined) continue;
    const further = idsAhead(job.attrs["depend"], state.name);
    met += further.length;
    if (met > ids_max * GRAPH_FACTOR) throw tooMuchBehind(ids_max);
    for (const one of further) ahead.push(one);
  }
}

/** The attributes depend and Hold_Types that the request leads to. depend is undefined if all dependencies are met already. */
export function withAsked(
  { dependencies }: Asked,
  Hold_Types: string,
): { readonly depend: string[] | undefined; readonly Hold_Types: string } {
  const depend = itemsOf(dependencies);
  return { depend, Hold_Types: isDependent(depend) ? addHolds(Hold_Types, "s") : Hold_Types };
}

/** Called when the job exists: gives the other jobs their entries, or ends the job at once if its request was refused. */
export function enterDependencies(tx: Transaction, id: string, { refusal, met, others }: Asked): void {
  const job = tx.state.jobs.get(id);
  if (job === undefined) return;
  for (const parent of met) logJob(tx, LOG_EVENT.JOB, id, `${parent} Job has finished, dependency satisfied`);
  if (refusal !== null) return giveUp(tx, job, `Dependency request for job rejected by ${refusal}`);
  for (const other of others) tell(tx, job, other);
  if (companionsOf(tx.state, job).some(isOneRun)) holdForRunOne(tx, job);
}

/** The other live jobs of the job's runone set. */
function companionsOf(state: ServerState, job: Job): Job[] {
  return entriesOf(dependenciesOf(state, job.attrs), "runone").flatMap((entry) => {
    const other = state.jobs.get(jobOfEntry(entry));
    return other === undefined || other === job ? [] : [other];
  });
}

/** Whether the job is the running job of its runone set: a job that is with a mom, or an array that has begun. */
const isOneRun = (job: Job): boolean => (job.subjobs === undefined ? isWithMom(job) : job.attrs.stime !== undefined);

function holdForRunOne(tx: Transaction, job: Job): void {
  if (isWaiting(job)) settleJob(tx, job, { Hold_Types: addHolds(job.attrs.Hold_Types, "s") });
}

function tell(tx: Transaction, job: Job, { id, type }: Asked["others"][number]): void {
  const other = tx.state.jobs.get(id);
  if (other === undefined || type === "on") return;
  const entry = entryOf(tx.state, job.id);
  let dependencies = dependenciesOf(tx.state, other.attrs);
  if (isBefore(type)) dependencies = withCount(dependencies, countLeft(dependencies) - 1);
  // Each of several runone jobs lists all others.
  if (type === "runone") for (const third of entriesOf(dependencies, "runone")) joinRunOne(tx, job, jobOfEntry(third));
  setDependencies(tx, other, withDependency(dependencies, reverseType(type), entry));
}

function joinRunOne(tx: Transaction, job: Job, third_id: string): void {
  const third = tx.state.jobs.get(third_id);
  if (third === undefined || third.id === job.id) return;
  setDependencies(tx, third, withDependency(dependenciesOf(tx.state, third.attrs), "runone", entryOf(tx.state, job.id)));
  setDependencies(tx, job, withDependency(dependenciesOf(tx.state, job.attrs), "runone", entryOf(tx.state, third.id)));
}

function setDependencies(tx: Transaction, job: Job, dependencies: Dependencies, set: Attrs = {}): void {
  const depend = dependencies.length === 0 ? undefined : keptItems(dependencies, tx.state.name);
  settleJob(
    tx,
    job,
    depend === undefined ? set : { ...set, depend },
    depend === undefined && job.attrs["depend"] !== undefined ? ["depend"] : [],
  );
}

/**
 * Replaces the dependencies of a job (qalter): removes the job from the lists of the jobs that it waited for. The entries of
 * jobs that wait for it are kept.
 */
export function replaceDependencies(tx: Transaction, job: Job, asked: Asked): { readonly depend: string[] | undefined } {
  const before = dependenciesOf(tx.state, job.attrs);
  withdraw(tx, job, before);
  const kept = before.filter((item) => isBefore(item.type));
  let dependencies: Dependencies = [...asked.dependencies.filter((item) => !isBefore(item.type)), ...kept];
  for (const item of asked.dependencies)
    if (item.type !== "on" && isBefore(item.type)) dependencies = withEntries(dependencies, item.type, item.ids);
  return { depend: itemsOf(dependencies) };
}

/** Called for a job that no longer waits: removes its entries from the jobs that it waited for and from the jobs of its runone set. */
function withdraw(tx: Transaction, job: Job, dependencies: Dependencies): void {
  for (const item of dependencies) {
    if (item.type === "on" || isBefore(item.type)) continue;
    for (const id of item.ids) {
      const other = tx.state.jobs.get(jobOfEntry(id));
      if (other === undefined || other === job) continue;
      const next = withoutDependency(dependenciesOf(tx.state, other.attrs), reverseType(item.type), entryOf(tx.state, job.id));
      setDependencies(tx, other, next);
    }
  }
}

// --- effects of starts and ends

/**
 * Called after a change of a job that others may wait for. If the job was given to a mom, was requeued or has started (for
 * an array: its first subjob has started), the jobs that depend on it are held or released.
 */
export function dependentsAtChange(tx: Transaction, job: Job, before: JobAttrs): void {
  const { stime } = job.attrs;
  const [phase, last] = [phaseName(job), { attrs: before }];
  if (job.subjobs !== undefined) {
    if (before.stime !== undefined || stime === undefined) return;
    for (const other of companionsOf(tx.state, job)) holdForRunOne(tx, other);
    dependentsAtStart(tx, job);
    return;
  }
  if (phase === "starting" && !isRunning(last)) for (const other of companionsOf(tx.state, job)) holdForRunOne(tx, other);
  if (isWaiting(job) && isWithMom(last)) releaseCompanions(tx, job);
  if (phase === "running" && isIn(last, "starting")) dependentsAtStart(tx, job);
}

function dependentsAtStart(tx: Transaction, job: Job): void {
  for (const entry of entriesOf(dependenciesOf(tx.state, job.attrs), "before")) release(tx, jobOfEntry(entry), "after", job.id);
}

/** Called when the running job of a runone set is queued again: each job of the set may run now, unless it has other dependencies. */
function releaseCompanions(tx: Transaction, job: Job): void {
  for (const other of companionsOf(tx.state, job)) {
    const { Hold_Types, depend } = other.attrs;
    if (!isWaiting(other) || isDependent(depend) || companionsOf(tx.state, other).some(isOneRun)) continue;
    settleJob(tx, other, { Hold_Types: removeHolds(Hold_Types, "s") });
  }
}

/** Called when a job has ended: releases or deletes the jobs that wait for it. */
export function dependentsAtEnd(tx: Transaction, job: Job): void {
  const dependencies = dependenciesOf(tx.state, job.attrs);
  const end = endOfLive(job);
  if (end.ran) for (const other of companionsOf(tx.state, job)) if (isWaiting(other)) giveUpAll(tx, other, job.id);
  if (end.exit_status === undefined) {
    // The job was deleted before it ran (P3). If its own dependency was the cause, all jobs that waited for the job are deleted already.
    const given_up = howOver(job.attrs.substate) === "finished";
    withdraw(tx, job, given_up ? dependencies.filter(({ type }) => type === "runone") : dependencies);
    return;
  }
  for (const type of AFTER_TYPES) {
    for (const entry of entriesOf(dependencies, reverseType(type))) {
      const id = jobOfEntry(entry);
      if (isMet(type, end)) release(tx, id, type, job.id);
      else if (waitsFor(tx.state, id, type, job.id)) giveUpAll(tx, mustGet(tx.state.jobs, id), job.id);
    }
  }
}

/** How the job ended. A deleted job has failed, even if it reacted to the signal with exit status 0. */
function endOfLive(job: Job): End {
  const end = endOf(job);
  const failed = howOver(job.attrs.substate) === "deleted" && end.exit_status === 0;
  return { ...end, ...(failed ? { exit_status: DELETED_WHILE_RUNNING } : {}) };
}
const DELETED_WHILE_RUNNING = 271;

function waitsFor(state: ServerState, id: string, type: AfterType, parent: string): boolean {
  const job = state.jobs.get(id);
  return job !== undefined && isWaiting(job) && hasEntry(dependenciesOf(state, job.attrs), type, entryOf(state, parent));
}

function release(tx: Transaction, id: string, type: AfterType, parent: string): void {
  const job = tx.state.jobs.get(id);
  if (job === undefined || !waitsFor(tx.state, id, type, parent)) return;
  logJob(tx, LOG_EVENT.JOB, id, `Dependency on job ${parent} released.`);
  const left = withoutDependency(dependenciesOf(tx.state, job.attrs), type, entryOf(tx.state, parent));
  const free = !isDependent(itemsOf(left)) && isHeldForDependency(job);
  setDependencies(tx, job, left, free ? { Hold_Types: removeHolds(job.attrs.Hold_Types, "s") } : {});
}

/** Deletes a job and all jobs that wait for it, directly or indirectly. The last jobs of a chain are deleted first, so that no job is visited twice. */
function giveUpAll(tx: Transaction, job: Job, parent: string): void {
  const order: { readonly job: Job; readonly for: string }[] = [{ job, for: parent }];
  const seen = new Set([job.id]);
  for (let at = 0; at < order.length; at++) {
    const { job: one } = nth(order, at);
    const dependencies = dependenciesOf(tx.state, one.attrs);
    for (const type of AFTER_TYPES) {
      for (const entry of entriesOf(dependencies, reverseType(type))) {
        const id = jobOfEntry(entry);
        if (seen.has(id) || !waitsFor(tx.state, id, type, one.id)) continue;
        seen.add(id);
        order.push({ job: mustGet(tx.state.jobs, id), for: one.id });
      }
    }
  }
  for (const { job: one, for: because } of order.reverse()) giveUp(tx, one, `Job deleted as result of dependency on job ${because}`);
}

/** Ends the job with state F, substate 92 and no comment, and writes record A. */
function giveUp(tx: Transaction, job: Job, text: string): void {
  logJob(tx, LOG_EVENT.JOB, job.id, text);
  accountAborted(tx, job.id, text);
  tx.act({ kind: "mail", job: job.id, point: "a", text });
  leave(tx, job, "finished", job.subjobs === undefined ? {} : unstartedAttrs(job.subjobs), true);
}

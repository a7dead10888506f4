// Dependencies between jobs (docs/reference/commands.md 1.3, 3): who waits for whom, what a start or an end releases, and what can no more be met.
//
//   new job --all met--> Q          --some not--> H 22, hold s --last one met--> Q
//           --never--> F 92         a job of which can never be met what it waits for goes the same way, and all that wait for it
//
// P1. What a job waits for stands in its own depend (after..., on) and, the other way round (before...), in that of the job it waits for.
// P2. A job whose last dependency is met loses its hold s. A manager may take that hold away before; the dependency stays and releases nothing then.
// P3. A job that is deleted before it ran releases nobody. One that is deleted while it runs has failed, whatever its Exit_status.
// P4. Of runone jobs one runs at a time: the others have a hold s while it runs. They are deleted when it ends, and lose the hold when it is queued again.

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
import { PBSE, Reject, reject } from "#model/pbse.ts";
import { limitOf } from "#model/server-limits.ts";
import { addHolds, removeHolds } from "#model/values/hold.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Transaction } from "../engine/transaction.ts";
import { howOver, isHeldForDependency, isIn, isRunning, isWaiting, isWithMom, phaseName } from "../state/job-phase.ts";
import type { Attrs, Job, JobAttrs, ServerState } from "../state/state.ts";
import { accountAborted } from "./accounting-record.ts";
import { unstartedAttrs } from "./array-end.ts";
import { leave, statusOfRun } from "./end.ts";
import { logJob, settleJob } from "./life.ts";

export const dependenciesOf = (state: ServerState, attrs: Attrs): Dependencies =>
  parseDependencies((attrs["depend"] as readonly string[] | undefined) ?? [], state.name);

const entryOf = (state: ServerState, id: string): string => `${id}@${state.name}`;
/** undefined: nothing is left. */
const itemsOf = (dependencies: Dependencies): string[] | undefined =>
  dependencies.length === 0 ? undefined : dependencyItems(dependencies);

// --- when dependencies are asked for

/** Ids of jobs that are named and not live: their records must be at hand (Transaction.historyOf). */
export function recordsOfDependencies(tx: Transaction, items: readonly string[] | undefined): string[] {
  if (items === undefined) return [];
  return parseDependencies(items, tx.state.name, limitOf(tx.state, "max_depend_jobs"))
    .flatMap((item) => (item.type === "on" ? [] : item.ids.map(jobOfEntry)))
    .filter((id) => !tx.state.jobs.has(id));
}

/** What becomes of dependencies that are asked for. refusal: one of them can never be met; who it was. */
export type Asked = {
  readonly dependencies: Dependencies;
  readonly refusal: string | null;
  /** finished jobs that already are what is asked of them */
  readonly met: readonly string[];
  /** live jobs that must know of it */
  readonly others: readonly { readonly id: string; readonly type: Dependencies[number]["type"] }[];
};

/**
 * job: the job that asks. owner: only jobs of this owner may be told to wait or not to run.
 * Refuses with 15054 a circle, more jobs than max_depend_jobs, and jobs whose own lists are too long for one request (GRAPH_FACTOR).
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
  // Nobody waits for a new job yet, but those whom it tells to.
  if (refusal === null && (state.jobs.has(job.id) || others.some((other) => isBefore(other.type))))
    refuseCircle(state, job.id, others, ids_max);
  return { dependencies: left, refusal, met, others };
}

/** One request reads and writes at most this many times max_depend_jobs entries of other jobs' lists; no list grows beyond that. */
const GRAPH_FACTOR = 100;

const tooMuchBehind = (ids_max: number): Reject =>
  new Reject(
    PBSE.BADDEPEND,
    `Invalid Job Dependency: the jobs named have more than ${ids_max * GRAPH_FACTOR} dependencies of their own (${GRAPH_FACTOR} times max_depend_jobs)`,
  );

/** The lists of the jobs that are named grow by an entry each: not too much text together. */
function checkLists(state: ServerState, others: Asked["others"], ids_max: number): void {
  let entries = 0;
  for (const { id, type } of others) {
    const other = state.jobs.get(id);
    if (other === undefined || type === "on") continue;
    const known = entriesOf(dependenciesOf(state, other.attrs), reverseType(type)).length;
    // Each of several runone jobs knows all others, and all lists grow.
    entries += type === "runone" ? known * known : known;
    if (entries >= ids_max * GRAPH_FACTOR) throw tooMuchBehind(ids_max);
  }
}

/** Whether what is asked of a job is so already, may come, or never will. */
function standingOf(tx: Transaction, type: AfterType, id: string): "met" | "waits" | "never" {
  const live = tx.state.jobs.get(id);
  if (live !== undefined) return type === "after" && hasStarted(live) ? "met" : "waits";
  const record = tx.history(id);
  return record !== undefined && isMet(type, endOf(record)) ? "met" : "never";
}

const hasStarted = (job: Job): boolean =>
  job.subjobs === undefined ? isWithMom(job) && !isIn(job, "starting") : job.attrs.stime !== undefined;
const endOf = ({ attrs }: Job): End => ({ ran: attrs.stime !== undefined, exit_status: statusOfRun(attrs) });

/** before...: the other waits with an `on` to spare; runone: it is not over. Both only among jobs of one owner. */
function mayTell(state: ServerState, type: Dependencies[number]["type"], id: string, owner: string): boolean {
  const other = state.jobs.get(id);
  if (other === undefined || other.attrs.Job_Owner !== owner) return false;
  return type === "runone" || (isWaiting(other) && countLeft(dependenciesOf(state, other.attrs)) > 0);
}

/** Nobody may wait for himself by way of others. A search that meets too many entries is a refusal, too. */
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

/** depend and Hold_Types of a job that asks; depend undefined: none is left. */
export function withAsked(
  { dependencies }: Asked,
  Hold_Types: string,
): { readonly depend: string[] | undefined; readonly Hold_Types: string } {
  const depend = itemsOf(dependencies);
  return { depend, Hold_Types: isDependent(depend) ? addHolds(Hold_Types, "s") : Hold_Types };
}

/** The job is there: the others are told, or it goes at once. */
export function enterDependencies(tx: Transaction, id: string, { refusal, met, others }: Asked): void {
  const job = tx.state.jobs.get(id);
  if (job === undefined) return;
  for (const parent of met) logJob(tx, LOG_EVENT.JOB, id, `${parent} Job has finished, dependency satisfied`);
  if (refusal !== null) return giveUp(tx, job, `Dependency request for job rejected by ${refusal}`);
  for (const other of others) tell(tx, job, other);
  if (companionsOf(tx.state, job).some(isOneRun)) holdForRunOne(tx, job);
}

/** Live jobs of its runone set. */
function companionsOf(state: ServerState, job: Job): Job[] {
  return entriesOf(dependenciesOf(state, job.attrs), "runone").flatMap((entry) => {
    const other = state.jobs.get(jobOfEntry(entry));
    return other === undefined || other === job ? [] : [other];
  });
}

/** It is the one that runs: with a mom, or an array that has begun. */
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
  // Each of several runone jobs knows all others.
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

/** qalter: what it waited for before is forgotten by those it waited for; who waits for it stays. */
export function replaceDependencies(tx: Transaction, job: Job, asked: Asked): { readonly depend: string[] | undefined } {
  const before = dependenciesOf(tx.state, job.attrs);
  withdraw(tx, job, before);
  const kept = before.filter((item) => isBefore(item.type));
  let dependencies: Dependencies = [...asked.dependencies.filter((item) => !isBefore(item.type)), ...kept];
  for (const item of asked.dependencies)
    if (item.type !== "on" && isBefore(item.type)) dependencies = withEntries(dependencies, item.type, item.ids);
  return { depend: itemsOf(dependencies) };
}

/** A job waits no more: those it waited for, and its runone companions, are told. */
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

// --- what follows from starts and ends

/** A job that others wait for may have been given to a mom, or may have started (an array: its first subjob has). */
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

/** The one that ran is queued again: each of its set may run now, unless it waits for something else. */
function releaseCompanions(tx: Transaction, job: Job): void {
  for (const other of companionsOf(tx.state, job)) {
    const { Hold_Types, depend } = other.attrs;
    if (!isWaiting(other) || isDependent(depend) || companionsOf(tx.state, other).some(isOneRun)) continue;
    settleJob(tx, other, { Hold_Types: removeHolds(Hold_Types, "s") });
  }
}

/** A job is over and gone from the live ones. */
export function dependentsAtEnd(tx: Transaction, job: Job): void {
  const dependencies = dependenciesOf(tx.state, job.attrs);
  const end = endOfLive(job);
  if (end.ran) for (const other of companionsOf(tx.state, job)) if (isWaiting(other)) giveUpAll(tx, other, job.id);
  if (end.exit_status === undefined) {
    // Deleted before it ran (P3). Who was given up for a dependency took along all that waited for it already.
    const given_up = howOver(job.attrs.substate) === "finished";
    withdraw(tx, job, given_up ? dependencies.filter(({ type }) => type === "runone") : dependencies);
    return;
  }
  for (const type of AFTER_TYPES) {
    for (const entry of entriesOf(dependencies, reverseType(type))) {
      const id = jobOfEntry(entry);
      if (isMet(type, end)) release(tx, id, type, job.id);
      else if (waitsFor(tx.state, id, type, job.id)) giveUpAll(tx, tx.state.jobs.get(id) as Job, job.id);
    }
  }
}

/** A deletion is a failure, whatever the job made of the signal. Who still waits for its start waits in vain. */
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

/** A job and all that wait for it, directly or by way of others, go: those behind first, so that none is asked for again. */
function giveUpAll(tx: Transaction, job: Job, parent: string): void {
  const order: { readonly job: Job; readonly for: string }[] = [{ job, for: parent }];
  const seen = new Set([job.id]);
  for (let at = 0; at < order.length; at++) {
    const { job: one } = order[at] as (typeof order)[number];
    const dependencies = dependenciesOf(tx.state, one.attrs);
    for (const type of AFTER_TYPES) {
      for (const entry of entriesOf(dependencies, reverseType(type))) {
        const id = jobOfEntry(entry);
        if (seen.has(id) || !waitsFor(tx.state, id, type, one.id)) continue;
        seen.add(id);
        order.push({ job: tx.state.jobs.get(id) as Job, for: one.id });
      }
    }
  }
  for (const { job: one, for: because } of order.reverse()) giveUp(tx, one, `Job deleted as result of dependency on job ${because}`);
}

/** State F, substate 92, no comment of its own; record A. */
function giveUp(tx: Transaction, job: Job, text: string): void {
  logJob(tx, LOG_EVENT.JOB, job.id, text);
  accountAborted(tx, job.id, text);
  tx.act({ kind: "mail", job: job.id, point: "a", text });
  leave(tx, job, "finished", job.subjobs === undefined ? {} : unstartedAttrs(job.subjobs), true);
}

// Module `preemption` (docs/reference/scheduler.md 8): a job that cannot start preempts running jobs of lower levels. The victims are found by taking jobs
// off their vnodes in the cycle's universe, lowest level and latest start first, until the job could start. Those whose removal turns out not to be
// necessary are put back.
//
// V1. Only jobs of lower levels are preempted, and none whose removal would raise another job above the level of the job that needs the room.
// V2. Jobs are preempted only if the other job can then start: the preempt decisions come directly before the decision to run it.
// V3. No job is preempted without need: when the other victims are gone and the new job has its vnodes, none of the victims could stay.
// V4. A victim whose preemption failed is spared for a while.

import { SUBSTATE } from "#model/job-state.ts";
import { asksFor } from "#model/request/select.ts";
import { isNodeUsable } from "#model/values/node-state.ts";
import type { SchedJob, Why } from "#protocol/sched-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { createLevels, levelsMove } from "../preempt/preempt-level.ts";
import type { Candidate, Cycle, PolicyModule } from "../shapes/module.ts";
import type { Placed } from "../shapes/placed.ts";
import { methodsFor } from "../shapes/preempt-rules.ts";
import type { LevelOf } from "../shapes/ranking.ts";
import { logText } from "../shapes/reasons.ts";
import { amountAt, amountOf } from "../shapes/resource-space.ts";
import { readHolding } from "../shapes/running.ts";
import type { Universe } from "../shapes/universe.ts";
import type { Vnode } from "../shapes/vnode.ts";
import { isChecked, matchesAll } from "../shapes/vnode-fit.ts";
import { stateWords } from "../shapes/vnode-state.ts";

type Victim = { readonly job: SchedJob; readonly level: number; readonly methods: string; readonly vnodes: readonly Vnode[] };
type State = {
  readonly levelOf: LevelOf;
  /** whether levels may change while jobs start and are preempted */
  readonly moves: boolean;
  /** running jobs in the order in which they would be preempted; null: not needed yet */
  victims: readonly Victim[] | null;
  attempts: number;
};
const STATES = new WeakMap<Cycle, State>();

export const preemption: PolicyModule = {
  name: "preemption",
  begin(cycle) {
    if (!cycle.policy.preemptive_sched) return;
    STATES.set(cycle, { levelOf: createLevels(cycle.ranks), moves: levelsMove(cycle.ranks), victims: null, attempts: 0 });
  },
  makeRoom(cycle, candidate, why) {
    const state = STATES.get(cycle);
    const { job } = candidate.entry;
    if (state === undefined || job.resv !== undefined || asksFor(job.schedselect, "aoe")) return null;
    const level = cycle.qrun ? Number.POSITIVE_INFINITY : state.levelOf(job);
    if (level <= cycle.universe.preempt.lowest) return null;
    state.victims ??= victimsOf(cycle, state);
    if (!state.victims.some((victim) => victim.level < level && !cycle.room.away.has(victim.job.id))) return null;
    const most = cycle.policy.preempt_attempts;
    if (most !== null && state.attempts >= most) {
      tell(cycle, job.id, "Not attempting to preempt: over max cycle preempt limit");
      return null;
    }
    state.attempts++;
    tell(cycle, job.id, "Employing preemption to try and run high priority job.");
    if (isHopeless(why)) {
      cycle.log({ event: LOG_EVENT.DEBUG, class: "Job", object: job.id, text: `Preempt: Can not preempt to run job: ${logText(why)}` });
      return null;
    }
    const targets = targetsOf(cycle, job, state.victims);
    return targets === null ? null : new Attempt(cycle, state, candidate, level).run(targets, why);
  },
};

function tell(cycle: Cycle, object: string, text: string): void {
  cycle.log({ event: LOG_EVENT.DEBUG2, class: "Job", object, text });
}

// --- jobs that may be preempted

/** Returns the running jobs that could be preempted at all: the lowest level first, and within a level the latest start first. */
function victimsOf(cycle: Cycle, { levelOf }: State): Victim[] {
  const { universe, failed_victims } = cycle;
  const victims: Victim[] = [];
  for (const id of universe.calendar.running.keys()) {
    const job = universe.jobs.get(id);
    if (job?.state !== "R" || job.resv !== undefined || !universe.queues.has(job.queue)) continue;
    if ((failed_victims.get(id) ?? 0) > cycle.now_s) continue;
    const methods = methodsOf(universe, job, cycle.now_s);
    const vnodes = [...readHolding(universe.space, job.exec_vnode ?? "").keys()].flatMap((name) => universe.vnodes.get(name) ?? []);
    const isUp = vnodes.length > 0 && vnodes.every(({ node }) => isNodeUsable(stateWords(node)));
    if (methods !== "" && isUp) victims.push({ job, level: levelOf(job), methods, vnodes });
  }
  return victims.sort(
    (a, b) => a.level - b.level || (b.job.stime_s ?? 0) - (a.job.stime_s ?? 0) || b.job.rank - a.job.rank || (a.job.id < b.job.id ? 1 : -1),
  );
}

/** Returns the methods of preempt_order that are possible for the job, given its remaining time. */
function methodsOf({ preempt, space }: Universe, job: SchedJob, now_s: number): string {
  const confirmed = job.substate === SUBSTATE.RUNNING;
  const allowed = { S: confirmed, C: confirmed && job.no_checkpoint !== true, R: job.rerunable, D: true };
  const asked = (name: string): number | null => amountOf(space.all.get(name), job.resources[name]);
  const used = (name: string): number => amountOf(space.all.get(name), job.resources_used?.[name]) ?? 0;
  const time_s = asked("soft_walltime") ?? asked("walltime");
  const cput_s = asked("cput");
  // The mom reports a job's usage only from time to time, so the time since the start counts if it is longer.
  const walltime_s = Math.max(used("walltime"), now_s - (job.stime_s ?? now_s) - (job.paused_s ?? 0));
  const left = time_s !== null ? percentLeft(time_s, walltime_s) : cput_s !== null ? percentLeft(cput_s, used("cput")) : null;
  return [...methodsFor(preempt, left)].filter((method) => allowed[method as keyof typeof allowed]).join("");
}

const percentLeft = (asked: number, used: number): number => (asked <= 0 ? 0 : 100 - (100 * used) / asked);

/** Returns the jobs that the job may preempt according to its preempt_targets; null: none. */
function targetsOf(cycle: Cycle, job: SchedJob, victims: readonly Victim[]): readonly Victim[] | null {
  const text = job.resources["preempt_targets"];
  if (!cycle.universe.preempt.targets || typeof text !== "string" || text === "") return victims;
  const wanted = targetWords(text);
  if (wanted.some((word) => word.toLowerCase() === "none")) {
    tell(cycle, job.id, "No preemption set specified for the job: Job will not preempt");
    return null;
  }
  const found = victims.filter((victim) => wanted.some((word) => isTarget(cycle.universe, word, victim.job)));
  const limited = `Limited running jobs used for preemption from ${victims.length} to ${found.length}`;
  tell(cycle, job.id, found.length > 0 ? limited : `${limited}: No jobs to preempt`);
  return found.length > 0 ? found : null;
}

/** Splits preempt_targets: `queue=a,queue=b,Resource_List.ncpus=4`. A word without a name gets the name of the word before it: `queue=a,b`. */
function targetWords(text: string): string[] {
  let name = "";
  return text.split(",").map((part) => {
    const word = part.trim();
    const equals = word.indexOf("=");
    if (equals < 0) return name === "" || word.toLowerCase() === "none" ? word : `${name}=${word}`;
    name = word.slice(0, equals).trim();
    return `${name}=${word.slice(equals + 1).trim()}`;
  });
}

/** Returns whether a job matches a word such as `queue=workq` or `Resource_List.ncpus=4`. */
function isTarget({ space }: Universe, word: string, job: SchedJob): boolean {
  const [key = "", ...rest] = word.split("=");
  const value = rest.join("=");
  if (key.toLowerCase() === "queue") return job.queue === value;
  const dot = key.indexOf(".");
  if (dot < 0 || key.slice(0, dot).toLowerCase() !== "resource_list") return false;
  const name = key.slice(dot + 1);
  const [have, want] = [job.resources[name], space.all.get(name)];
  if (have === undefined) return false;
  const amount = amountOf(want, have);
  return amount === null ? String(have) === value : amount === amountOf(want, value);
}

/** The reasons that preemption cannot remove (docs/reference/scheduler.md 8). */
const HOPELESS: ReadonlySet<string> = new Set([
  "SCHD_ERROR",
  "NOT_QUEUED",
  "QUEUE_NOT_STARTED",
  "QUEUE_NOT_EXEC",
  "DED_TIME",
  "CROSS_DED_TIME_BOUNDARY",
  "PRIME_ONLY",
  "NONPRIME_ONLY",
  "CROSS_PRIME_BOUNDARY",
  "SPECIFIED_MISSING",
  "CANT_SPAN_PSET",
  "RESERVATION_INTERFERENCE",
  "MAX_RUN_SUBJOBS",
  "NO_FAIRSHARES",
  "JOB_UNDER_THRESHOLD",
  "STRICT_ORDERING",
  "NOT_SUPPORTED",
]);

const isHopeless = (why: Why): boolean => why.never === true || HOPELESS.has(why.code);

// --- the search for victims

/** The search for the victims of one job. It is a class because it takes back all its changes unless it succeeds. */
class Attempt {
  readonly #cycle: Cycle;
  readonly #state: State;
  readonly #candidate: Candidate;
  readonly #level: number;
  readonly #gone: Victim[] = [];

  constructor(cycle: Cycle, state: State, candidate: Candidate, level: number) {
    this.#cycle = cycle;
    this.#state = state;
    this.#candidate = candidate;
    this.#level = level;
  }

  run(victims: readonly Victim[], why: Why): Placed | null {
    const { room } = this.#cycle;
    this.#cycle.settle();
    const mark = room.mark();
    const placed = this.#takeAway(victims, why) ? room.occupy(this.#candidate) : null;
    if (placed === null || !this.#keepsItsLevel()) {
      room.rollBack(mark);
      return null;
    }
    this.#letStay();
    // If all removed jobs may stay, none of them had the missing resource. (A vnode without free cpus is closed even for jobs that request
    // none.)
    if (this.#gone.length === 0) {
      room.rollBack(mark);
      return null;
    }
    const { id } = this.#candidate.entry.job;
    for (const { job, methods } of this.#gone) this.#cycle.decide({ kind: "preempt", job: job.id, methods, for: id });
    return placed;
  }

  /** Removes running jobs until the job could start. Returns false if it could not start even if all of them were removed. */
  #takeAway(victims: readonly Victim[], first: Why): boolean {
    const { room } = this.#cycle;
    const passed_over = new Set<Victim>();
    let why: Why | null = first;
    while (why !== null) {
      if (isHopeless(why)) return false;
      const reason: Why = why;
      const useful: readonly Victim[] = victims.filter(
        (victim) => this.#mayGo(victim) && !passed_over.has(victim) && this.#helps(victim, reason),
      );
      if (useful.length === 0) {
        if (this.#gone.length === 0) tell(this.#cycle, this.#candidate.entry.job.id, "Found no preemptable candidates");
        return false;
      }
      why = this.#state.moves ? this.#oneByOne(useful, reason, passed_over) : this.#inSteps(useful, reason);
      if (why === null) break;
      if (kindOf(why) === kindOf(reason)) return false;
    }
    for (const { job } of this.#gone) tell(this.#cycle, job.id, "Simulation: preempting job");
    tell(this.#cycle, this.#candidate.entry.job.id, "Simulation: Preempted enough work to run job");
    return room.couldStart(this.#candidate) === null;
  }

  #mayGo({ job, level }: Victim): boolean {
    return level < this.#level && !this.#cycle.room.away.has(job.id);
  }

  /**
   * Removes the smallest number of running jobs after which the reason changes or disappears. The number is found by
   * doubling and halving. Returns the last reason.
   */
  #inSteps(useful: readonly Victim[], first: Why): Why | null {
    const { room } = this.#cycle;
    let [at, step, doubling] = [0, 1, true];
    let why: Why | null = first;
    while (at < useful.length) {
      const mark = room.mark();
      const row = useful.slice(at, at + step);
      for (const { job, methods } of row) room.vacate(job, methods);
      const after = room.couldStart(this.#candidate);
      const same = after !== null && kindOf(after) === kindOf(first);
      if (!same && row.length > 1) {
        room.rollBack(mark);
        step = Math.floor(row.length / 2);
        doubling = false;
        continue;
      }
      this.#gone.push(...row);
      at += row.length;
      why = after;
      if (!same) return after;
      if (doubling) step *= 2;
    }
    return why;
  }

  /** Removes running jobs one by one, because levels can change. Skips those whose removal would raise another job too high. */
  #oneByOne(useful: readonly Victim[], first: Why, passed_over: Set<Victim>): Why | null {
    const { room } = this.#cycle;
    let why: Why | null = first;
    for (const victim of useful) {
      const mark = room.mark();
      room.vacate(victim.job, victim.methods);
      if ([...this.#gone, victim].some(({ job }) => this.#state.levelOf(job) > this.#level)) {
        room.rollBack(mark);
        passed_over.add(victim);
        tell(this.#cycle, victim.job.id, "Preempting job will escalate its priority or priority of other jobs, not preempting it");
        continue;
      }
      this.#gone.push(victim);
      why = room.couldStart(this.#candidate);
      if (why === null || kindOf(why) !== kindOf(first)) return why;
      tell(this.#cycle, this.#candidate.entry.job.id, `Simulation: not enough work preempted: ${logText(why)}`);
    }
    return why;
  }

  /** Returns whether the job keeps its level when it runs. */
  #keepsItsLevel(): boolean {
    const { job } = this.#candidate.entry;
    if (!this.#state.moves || this.#cycle.qrun || this.#state.levelOf(job) >= this.#level) return true;
    tell(this.#cycle, job.id, "Job not run because it would immediately be preemptable.");
    return false;
  }

  /** Tries to put removed jobs back, the last removed one first. */
  #letStay(): void {
    for (const victim of [...this.#gone].reverse()) {
      if (!this.#cycle.room.putBack(victim.job.id)) continue;
      this.#gone.splice(this.#gone.indexOf(victim), 1);
      tell(this.#cycle, victim.job.id, "Simulation: preemption of job not needed.");
    }
  }

  /** Returns whether a running job holds any of the missing resources. */
  #helps({ job, vnodes }: Victim, why: Why): boolean {
    const { universe } = this.#cycle;
    const own = this.#candidate.entry.job;
    const has = why.resource === undefined || (amountOf(universe.space.all.get(why.resource), job.resources[why.resource]) ?? 0) > 0;
    const limit = /^(QUEUE|SERVER)_(USER|GROUP|PROJECT|OVERALL)_.*LIMIT$/.exec(why.code);
    if (limit !== null) {
      const [, scope, entity] = limit;
      const counts =
        entity === "USER"
          ? job.user === own.user
          : entity === "GROUP"
            ? job.group === own.group
            : entity !== "PROJECT" || job.project === own.project;
      return (scope === "SERVER" || job.queue === own.queue) && counts && has;
    }
    if (why.code === "INSUFFICIENT_QUEUE_RESOURCE") return job.queue === own.queue && has;
    if (why.code === "INSUFFICIENT_SERVER_RESOURCE") return has;
    return vnodes.some((vnode) => this.#isUseful(vnode));
  }

  /** Returns whether an empty vnode could take one of the job's chunks, or a part of one. */
  #isUseful({ name, set, host, state }: Vnode): boolean {
    const { universe } = this.#cycle;
    const { checks } = universe;
    if (set !== this.#candidate.set) return false;
    return this.#candidate.entry.request.chunks.some((chunk) => {
      if ((chunk.vnode ?? name) !== name || (chunk.host ?? host.name) !== host.name || !matchesAll(checks, state.spec, chunk)) return false;
      return (
        host.vnodes.length > 1 ||
        chunk.amounts.every(({ index, amount }) => !isChecked(checks, index) || amount <= amountAt(state.spec.avail, index))
      );
    });
  }
}

/** Returns what distinguishes kinds of reasons: a reason without its amounts. */
const kindOf = ({ code, resource, where, entity }: Why): string => [code, resource, where, entity].join("|");

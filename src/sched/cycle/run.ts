// A cycle while it runs: its decisions and log records, the jobs it has started, and the functions that modules see
// (shapes/module.ts). Its changes of the universe are taken back by undo() (Y1 of cycle.ts).

import { createFairshare, type Fairshare } from "#model/fairshare.ts";
import { renderDuration } from "#model/values/duration.ts";
import type { Decision, HandOut, SchedJob, Why } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { takeFromServer } from "../calendar/ahead.ts";
import { type StartedJobs, startedJobs } from "../calendar/started-jobs.ts";
import { nextBound } from "../calendar/time-bounds.ts";
import { chainOf } from "../modules/index.ts";
import { count } from "../order/run-count.ts";
import { undoMoves } from "../place/node-sets.ts";
import { placedText } from "../place/placement.ts";
import { createRoom } from "../preempt/room.ts";
import { takeBeside } from "../resv/resv-sets.ts";
import type { JobEntry } from "../shapes/job-line.ts";
import { isToldByVerdict, type LogRecord } from "../shapes/log-record.ts";
import { type Candidate, type Cycle, type PolicyModule, type Room, STAGES, type Stage } from "../shapes/module.ts";
import type { Placed } from "../shapes/placed.ts";
import type { Policy } from "../shapes/policy.ts";
import type { PolicyBook } from "../shapes/policy-book.ts";
import { commentText, logText, NEVER_TEXT } from "../shapes/reasons.ts";
import type { RankContext, Universe } from "../shapes/universe.ts";
import type { Host, HostBucket } from "../shapes/vnode.ts";
import { type CycleCandidates, createCandidates } from "./candidates.ts";
import { createDatedLog, type DatedLog } from "./dated-log.ts";
import { type CycleParts, cycleParts } from "./parts.ts";
import { type CyclePlaces, createPlaces } from "./places.ts";
import type { Probe } from "./probe.ts";
import { type CycleInput, type CycleResult, NO_MEMORY } from "./result.ts";

/**
 * The checks for a job in a reservation (docs/reference/scheduler.md 9). Other checks are not needed: the reservation
 * granted the job's vnodes, its time and its share of the server.
 */
const INSIDE: ReadonlySet<Stage> = new Set<Stage>(["queue", "fairshare", "limits", "queue-resources"]);

/** The default of sched_cycle_length in seconds. */
const CYCLE_LENGTH_S = 1200;

/** One run of a cycle. It is a class because it remembers its changes of the universe, to take them back. */
export class Run implements Cycle {
  readonly universe: Universe;
  readonly book: PolicyBook;
  readonly policy: Policy;
  readonly now_s: number;
  readonly prime: Cycle["prime"];
  readonly qrun: boolean;
  readonly periodic: boolean;
  readonly probing: boolean;
  readonly fairshare: Fairshare;
  readonly ranks: RankContext;
  readonly server_taken = new Map<string, number>();
  complete = false;
  readonly room: Room;
  readonly failed_victims: ReadonlyMap<string, number>;

  readonly modules: readonly PolicyModule[];
  readonly candidates: CycleCandidates;
  readonly places: CyclePlaces;
  /** decisions that are handed out while the cycle runs */
  readonly parts: CycleParts;
  /** true: log_events contains DEBUG3, so placement reports its search */
  readonly traces: boolean;
  /** sched_cycle_length */
  readonly length_s: number;
  readonly elapsed_s: () => number;
  /** number of jobs tried so far */
  considered = 0;
  /** the job that is to be explained; null: there is none, or its turn is over */
  probe: Probe | null;
  /** the jobs that runners get next (hand-out.ts) */
  hand_outs: readonly HandOut[] = [];

  readonly #decisions: Decision[] = [];
  readonly #log: DatedLog;
  #later: (() => void)[] = [];
  readonly #checks: readonly NonNullable<PolicyModule["checks"]>[number][];
  readonly #moved = new Map<Host, HostBucket>();
  readonly #started: StartedJobs;
  readonly #last_host: Map<string, number>;
  readonly #told_s: number;
  /** whether this cycle sends comments */
  readonly #tells: boolean;
  #wake_s = Number.POSITIVE_INFINITY;

  constructor(universe: Universe, book: PolicyBook, policy: Policy, prime: Cycle["prime"], input: CycleInput) {
    this.universe = universe;
    this.book = book;
    this.policy = policy;
    this.now_s = input.now_s;
    this.prime = prime;
    this.#log = createDatedLog(input.dated_s ?? (() => 0));
    this.qrun = input.command === SCHED_COMMAND.AJOB;
    this.periodic = input.command === SCHED_COMMAND.TIME;
    this.probing = input.probe !== undefined;
    this.fairshare = input.fairshare ?? createFairshare(book.fairshare, null, input.now_s);
    this.ranks = { universe, fairshare: this.fairshare, now_s: input.now_s, errors: new Map() };
    this.modules = chainOf(book);
    const checks = this.modules.flatMap((module) => module.checks ?? []);
    this.#checks = STAGES.flatMap((stage) => checks.filter((check) => check.stage === stage));
    const { last_host, told_s, failed_victims } = input.memory ?? NO_MEMORY;
    this.failed_victims = new Map([...failed_victims].filter(([, until_s]) => until_s > input.now_s));
    this.candidates = createCandidates(universe);
    this.#started = startedJobs(universe, input.now_s);
    this.#last_host = new Map(last_host);
    this.traces = (Number(universe.sched.attrs["log_events"] ?? 0) & LOG_EVENT.DEBUG3) !== 0;
    this.places = this.#createPlaces();
    this.room = this.#createRoom();
    this.#told_s = told_s;
    this.probe = input.probe ?? null;
    this.elapsed_s = input.elapsed_s ?? (() => 0);
    this.parts = cycleParts(this.#decisions, this.elapsed_s);
    this.length_s = Number(universe.sched.attrs["sched_cycle_length"] ?? CYCLE_LENGTH_S);
    const period_s = Number(universe.sched.attrs["attr_update_period"] ?? 0);
    this.#tells = policy.update_comments && (this.qrun || Math.abs(input.now_s - told_s) >= period_s);
  }

  #createPlaces(): CyclePlaces {
    return createPlaces({
      universe: this.universe,
      policy: this.policy,
      now_s: this.now_s,
      startedOn: (vnode) => this.#started.on(vnode),
      last_host: this.#last_host,
      trace: this.traces ? (record) => this.log(record) : null,
    });
  }

  #createRoom(): Room {
    return createRoom({
      universe: this.universe,
      server_taken: this.server_taken,
      startedOn: (vnode) => this.#started.on(vnode),
      couldStart: (candidate) => this.whyNot(candidate),
      check: (candidate, stages) => this.check(this, candidate, stages),
      noteMoved: (moves) => this.#noteMoved(moves),
      place: (candidate) => {
        const result = candidate.entry.job.state === "S" ? this.places.placeBack(candidate) : this.places.place(candidate);
        return "why" in result ? null : result.placed;
      },
    });
  }

  log(record: LogRecord): void {
    this.#log.add(record);
  }
  decide(decision: Decision): void {
    if (isToldByVerdict(decision)) this.#log.add({ decision: this.#decisions.length });
    this.#decisions.push(decision);
  }
  check(then: Cycle, candidate: Candidate, stages?: readonly Stage[]): Why | null {
    const inside = candidate.entry.job.resv !== undefined;
    for (const { stage, check } of this.#checks) {
      if ((stages !== undefined && !stages.includes(stage)) || (inside && !INSIDE.has(stage))) continue;
      const why = check(then, candidate);
      if (why !== null) return why;
    }
    return null;
  }
  wakeAt(at_s: number): void {
    this.#wake_s = Math.min(this.#wake_s, at_s);
  }
  enterStarted(): void {
    this.#started.enter();
  }
  later(work: () => void): void {
    this.#later.push(work);
  }
  logHere(): (record: LogRecord) => void {
    return this.#log.place();
  }
  planned(candidate: Candidate, start_s: number): void {
    for (const module of this.modules) module.planned?.(this, candidate, start_s);
  }
  keepsOn(): boolean {
    return this.length_s <= 0 || this.elapsed_s() <= this.length_s;
  }

  settle(): void {
    const works = this.#later;
    this.#later = [];
    for (const work of works) work();
  }

  candidate(entry: JobEntry): Candidate {
    return this.candidates.of(entry);
  }

  /** Returns why a job cannot start now with the run time of its candidate; null: it can. Does not start it. */
  whyNot(candidate: Candidate): Why | null {
    return this.check(this, candidate) ?? this.places.whyNone(candidate);
  }

  /** Whether work that was given to later() waits. It is done just before the next job is started. */
  get postpones(): boolean {
    return this.#later.length > 0;
  }

  /** Starts a job for which vnodes were found. */
  start(candidate: Candidate, placed: Placed): void {
    const { job } = candidate.entry;
    const exec_vnode = job.state === "S" ? (job.exec_vnode ?? "") : placedText(this.universe, placed.chunks);
    if (job.resources["min_walltime"] === undefined) this.decide({ kind: "run", job: job.id, exec_vnode });
    else {
      this.decide({ kind: "run", job: job.id, exec_vnode, walltime_s: candidate.most_s });
      this.log({
        event: LOG_EVENT.SCHED,
        class: "Job",
        object: job.id,
        text: `Job will run for duration=${renderDuration(candidate.most_s)}`,
      });
    }
    count(this.universe, job, 1);
    if (job.resv === undefined) takeFromServer(this.universe, this.server_taken, job, 1);
    else this.#noteMoved(takeBeside(this.universe, job.resv, placed.chunks));
    this.#noteMoved(placed.moved);
    this.places.note(placed);
    this.#started.add(candidate, placed);
    for (const module of this.modules) module.started?.(this, candidate, placed);
  }

  /** the jobs that this cycle has started */
  get started(): readonly SchedJob[] {
    return this.#started.jobs;
  }

  /** Notes in which bucket each host was before this cycle moved it. */
  #noteMoved(hosts: Placed["moved"]): void {
    for (const [host, bucket] of hosts) if (!this.#moved.has(host)) this.#moved.set(host, bucket);
  }

  /** Writes the reason into the log, and into the job's comment if the comment differs (Y3). */
  tell(entry: JobEntry, why: Why): void {
    const { id, comment } = entry.job;
    this.log({ event: LOG_EVENT.SCHED, class: "Job", object: id, text: logText(why) });
    if (why.never === true) this.log({ event: LOG_EVENT.SCHED, class: "Job", object: id, text: NEVER_TEXT });
    const text = commentText(why);
    // An array that has begun keeps its comment.
    if (text !== comment && this.#tells && !this.candidates.hasBegun(entry)) this.decide({ kind: "comment", job: id, comment: text, why });
  }

  result(): CycleResult {
    const { universe } = this;
    const node_buckets = [...universe.sets.values()].reduce((sum, set) => sum + set.filled, 0);
    return {
      decisions: this.#decisions,
      ...this.#log.result(),
      stats: { jobs_considered: this.considered, jobs_started: this.#started.jobs.length, classes: universe.classes.size, node_buckets },
      memory: { last_host: this.#last_host, told_s: this.#tells ? this.now_s : this.#told_s, failed_victims: this.failed_victims },
      bound_s: this.#nextBound(),
      hand_outs: this.hand_outs,
    };
  }

  #nextBound(): number | null {
    if (this.universe.lines.size === 0) return null;
    const at_s = Math.min(this.#wake_s, nextBound(this.book, this.now_s) ?? Number.POSITIVE_INFINITY);
    return at_s === Number.POSITIVE_INFINITY ? null : at_s;
  }

  /** Restores the universe as it was before the cycle (Y1). */
  undo(): void {
    this.#started.takeBack();
    this.room.close();
    undoMoves(this.universe, this.#moved);
    for (const job of this.#started.jobs) count(this.universe, job, -1);
  }
}

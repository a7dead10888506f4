// One scheduling cycle (docs/reference/scheduler.md 3): a function of universe, policy and clock that yields decisions and log records. It places jobs in the
// universe and takes everything back at its end, so that the universe is unchanged (Y1). Decisions that the server carries out come back as deltas.
//
// Y1. The universe is left as it was found.
// Y2. A class of equal jobs is tried until one of its jobs is blocked, and then not again in this cycle; its other jobs get the same reason (U4).
// Y3. A comment is decided only if it differs from the job's comment, so jobs whose comment stays cost nothing. In a long line, a mere change of amounts is
//     sent at most once a minute to the jobs behind the first.

import { createFairshare, type Fairshare, forgetTemporary } from "#model/fairshare.ts";
import { renderDuration } from "#model/values/duration.ts";
import type { Decision, Why } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { takeFromServer } from "../calendar/ahead.ts";
import { isDue } from "../calendar/published-place.ts";
import { type StartedJobs, startedJobs } from "../calendar/started-jobs.ts";
import { nextBound } from "../calendar/time-bounds.ts";
import { setPolicy } from "../mirror/mirror.ts";
import { chainOf, mirrorOptions } from "../modules/index.ts";
import { agreeComment } from "../order/job-lines.ts";
import { jobsInOrder } from "../order/job-order.ts";
import { knowEntities } from "../order/ranking.ts";
import { count } from "../order/run-count.ts";
import { undoMoves } from "../place/node-sets.ts";
import { placedText } from "../place/placement.ts";
import { createLevels } from "../preempt/preempt-level.ts";
import { asItWas, createRoom } from "../preempt/room.ts";
import { takeBeside } from "../resv/resv-sets.ts";
import { primeStatus } from "../shapes/holidays.ts";
import type { JobClass, JobEntry, JobLine } from "../shapes/job-line.ts";
import type { LogRecord } from "../shapes/log-record.ts";
import { isToldByVerdict } from "../shapes/log-record.ts";
import type { Candidate, Cycle, PolicyModule, Room, Stage } from "../shapes/module.ts";
import { STAGES } from "../shapes/module.ts";
import type { Placed } from "../shapes/placed.ts";
import type { Policy } from "../shapes/policy.ts";
import type { PolicyBook } from "../shapes/policy-book.ts";
import type { LevelOf } from "../shapes/ranking.ts";
import { commentText, kindOf, logText, NEVER_TEXT } from "../shapes/reasons.ts";
import type { RankContext, Universe } from "../shapes/universe.ts";
import type { Host, HostBucket } from "../shapes/vnode.ts";
import { type CycleCandidates, createCandidates } from "./candidates.ts";
import { createDatedLog, type DatedLog } from "./dated-log.ts";
import { canSchedule, extendRunning, logShapes, logTime, tellStopped } from "./opening.ts";
import { type CycleParts, cycleParts, type InParts } from "./parts.ts";
import { type CyclePlaces, createPlaces } from "./places.ts";
import type { Probe } from "./probe.ts";
import { type CycleInput, type CycleResult, NO_MEMORY } from "./result.ts";
import { shrink } from "./shrink-to-fit.ts";

/** Runs a cycle. If the universe was indexed for another policy (prime time began, sched_config changed), it is indexed anew first. */
export function cycle(universe: Universe, book: PolicyBook, input: CycleInput): CycleResult {
  const parts = cycleInParts(universe, book, input);
  for (let part = parts.next(); ; part = parts.next()) if (part.done === true) return part.value;
}

/**
 * The same, with decisions handed out as they are made (parts.ts). Between two parts no other code may read or change the universe. A caller that
 * ends the generator there (return()) must discard the universe, too.
 */
export function* cycleInParts(universe: Universe, book: PolicyBook, input: CycleInput): InParts<CycleResult> {
  const prime = primeStatus(book.holidays, book.local, input.now_s);
  const policy = prime.prime ? book.prime : book.non_prime;
  setPolicy(universe, mirrorOptions(book, policy));
  const run = new Run(universe, book, policy, prime, input);
  try {
    yield* run.go(input);
  } finally {
    // Shares outlive a universe that is discarded.
    forgetTemporary(run.fairshare);
  }
  return run.result();
}

/** The checks for a job in a reservation (docs/reference/scheduler.md 9): its vnodes, its time and its share of the server were granted with the reservation. */
const INSIDE: ReadonlySet<Stage> = new Set<Stage>(["queue", "fairshare", "limits", "queue-resources"]);

/** sched_cycle_length where the scheduler has none */
const CYCLE_LENGTH_S = 1200;

/** A cycle under way. It is a class because its changes of the universe must be taken back (Y1). */
class Run implements Cycle {
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

  readonly #decisions: Decision[] = [];
  readonly #log: DatedLog;
  #later: (() => void)[] = [];
  readonly #modules: readonly PolicyModule[];
  readonly #stays: readonly NonNullable<PolicyModule["stays"]>[];
  readonly #checks: readonly NonNullable<PolicyModule["checks"]>[number][];
  readonly #blocked = new Map<JobClass, Why>();
  readonly #moved = new Map<Host, HostBucket>();
  readonly #candidates: CycleCandidates;
  readonly #started: StartedJobs;
  readonly #places: CyclePlaces;
  readonly #last_host: Map<string, number>;
  readonly #told_s: number;
  /** comments are sent */
  readonly #tells: boolean;
  /** DEBUG3 is logged: placement reports its search */
  readonly #traces: boolean;
  readonly #elapsed_s: () => number;
  /** sched_cycle_length */
  readonly #length_s: number;
  /** null: there is none, or it was logged already */
  #probe: Probe | null;
  #held_back: Why | null = null;
  #considered = 0;
  #wake_s = Number.POSITIVE_INFINITY;
  readonly #parts: CycleParts;

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
    this.#modules = chainOf(book);
    this.#stays = this.#modules.flatMap((module) => module.stays?.bind(module) ?? []);
    const checks = this.#modules.flatMap((module) => module.checks ?? []);
    this.#checks = STAGES.flatMap((stage) => checks.filter((check) => check.stage === stage));
    const { last_host, told_s, failed_victims } = input.memory ?? NO_MEMORY;
    this.failed_victims = new Map([...failed_victims].filter(([, until_s]) => until_s > input.now_s));
    this.#candidates = createCandidates(universe);
    this.#started = startedJobs(universe, input.now_s);
    this.#last_host = new Map(last_host);
    const traces = (Number(universe.sched.attrs["log_events"] ?? 0) & LOG_EVENT.DEBUG3) !== 0;
    this.#traces = traces;
    this.#places = createPlaces({
      universe,
      policy,
      now_s: input.now_s,
      startedOn: (vnode) => this.#started.on(vnode),
      last_host: this.#last_host,
      trace: traces ? (record) => this.log(record) : null,
    });
    this.room = createRoom({
      universe,
      server_taken: this.server_taken,
      startedOn: (vnode) => this.#started.on(vnode),
      couldStart: (candidate) => this.#whyNot(candidate),
      check: (candidate, stages) => this.check(this, candidate, stages),
      noteMoved: (moves) => this.#noteMoved(moves),
      place: (candidate) => {
        const result = candidate.entry.job.state === "S" ? this.#places.placeBack(candidate) : this.#places.place(candidate);
        return "why" in result ? null : result.placed;
      },
    });
    this.#told_s = told_s;
    this.#probe = input.probe ?? null;
    this.#elapsed_s = input.elapsed_s ?? (() => 0);
    this.#parts = cycleParts(this.#decisions, this.#elapsed_s);
    this.#length_s = Number(universe.sched.attrs["sched_cycle_length"] ?? CYCLE_LENGTH_S);
    const period_s = Number(universe.sched.attrs["attr_update_period"] ?? 0);
    this.#tells = policy.update_comments && (this.qrun || Math.abs(input.now_s - told_s) >= period_s);
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
    for (const module of this.#modules) module.planned?.(this, candidate, start_s);
  }
  keepsOn(): boolean {
    return this.#length_s <= 0 || this.#elapsed_s() <= this.#length_s;
  }

  *go({ job, again }: CycleInput): InParts<void> {
    if (again !== undefined) return this.#goOn(again);
    this.log({ event: LOG_EVENT.DEBUG, class: "Req", object: "", text: "Starting Scheduling Cycle" });
    logTime(this);
    if (canSchedule(this)) {
      if (this.#traces) logShapes(this);
      knowEntities(this.ranks);
      extendRunning(this);
      const leaves = this.#modules.map((module) => module.begin?.(this)).includes("leave");
      if (this.qrun) this.#runOne(job ?? "");
      else if (!leaves || this.#probe !== null) this.complete = yield* this.#all();
      this.settle();
      if (!this.qrun) this.#tellVictims();
      // The job's turn did not come: its queue is stopped, or the cycle has ended before.
      if (this.#probe !== null) this.#tellProbe(this.universe.entries.get(this.#probe.job), null);
      for (const module of this.#modules) module.end?.(this);
    } else if (this.qrun) this.decide({ kind: "qrun-refused", job: job ?? "", text: "Problem with creating server data structure" });
    this.log({ event: LOG_EVENT.DEBUG, class: "Req", object: "", text: "Leaving Scheduling Cycle" });
    this.#undo();
  }

  /** Modules that have begun are also told of the end if the cycle is given up between two parts. */
  *#all(): InParts<boolean> {
    let given_up = true;
    try {
      const complete = yield* this.#runAll();
      given_up = false;
      return complete;
    } catch (error) {
      given_up = false;
      throw error;
    } finally {
      if (given_up) for (const module of this.#modules) module.end?.(this);
    }
  }

  result(): CycleResult {
    const { universe } = this;
    const node_buckets = [...universe.sets.values()].reduce((sum, set) => sum + set.filled, 0);
    return {
      decisions: this.#decisions,
      ...this.#log.result(),
      stats: { jobs_considered: this.#considered, jobs_started: this.#started.jobs.length, classes: universe.classes.size, node_buckets },
      memory: { last_host: this.#last_host, told_s: this.#tells ? this.now_s : this.#told_s, failed_victims: this.failed_victims },
      bound_s: this.#nextBound(),
    };
  }

  #nextBound(): number | null {
    if (this.universe.lines.size === 0) return null;
    const at_s = Math.min(this.#wake_s, nextBound(this.book, this.now_s) ?? Number.POSITIVE_INFINITY);
    return at_s === Number.POSITIVE_INFINITY ? null : at_s;
  }

  // --- the jobs

  /** A further pass: jobs for which not all victims made room. The first pass has published the top jobs. */
  #goOn(ids: readonly string[]): void {
    knowEntities(this.ranks);
    extendRunning(this);
    const leaves = this.#modules.map((module) => module.begin?.(this)).includes("leave");
    for (const id of leaves ? [] : ids) {
      const entry = this.#candidates.entryOf(id);
      if (entry === undefined || entry.line === null) continue;
      const why = this.#consider(entry);
      if (why === null) continue;
      this.tell(entry, why);
      if (this.qrun) this.decide({ kind: "qrun-refused", job: id, text: logText(why) });
    }
    this.settle();
    if (!this.qrun) this.#tellVictims();
    for (const module of this.#modules) module.end?.(this);
    this.#undo();
  }

  /** qrun: only this job, regardless of limits. */
  #runOne(id: string): void {
    this.log({ event: LOG_EVENT.JOB, class: "Job", object: id, text: "Received qrun request" });
    const entry = this.#candidates.entryOf(id);
    if (entry === undefined) {
      this.decide({ kind: "qrun-refused", job: id, text: "Unknown Job Id" });
      return;
    }
    const why = this.#consider(entry);
    if (why === null) return;
    this.tell(entry, why);
    this.decide({ kind: "qrun-refused", job: id, text: logText(why) });
  }

  /** True: the cycle has tried all the jobs that it should. */
  *#runAll(): InParts<boolean> {
    if (this.#probe === null) tellStopped(this);
    const most = this.policy.max_job_check;
    const each = this.#modules.some((module) => module.triesEach?.(this) === true);
    for (const jobs = jobsInOrder(this.ranks, this.policy, this.#levels()); ; ) {
      const next = jobs.next();
      if (next === null) return true;
      if (most !== null && this.#considered >= most) {
        const text = `Bailed out of main job loop after checking to see if ${most} jobs could run.`;
        this.log({ event: LOG_EVENT.SCHED, class: "Sched", object: "", text });
        return true;
      }
      if (!this.keepsOn()) {
        const text = `Cycle duration of ${Math.floor(this.#elapsed_s())} seconds has exceeded sched_cycle_length of ${this.#length_s} seconds`;
        this.log({ event: LOG_EVENT.SCHED, class: "Svr", object: "toolong", text: `Leaving the scheduling cycle: ${text}` });
        return false;
      }
      if (this.#parts.isDue()) yield this.#parts.take();
      const { entry, line } = next;
      if (this.#stays.length > 0 && this.#isLeftAlone(entry)) {
        jobs.advance();
        continue;
      }
      // If another job of its class cannot start, this says nothing about the place that was promised to this job.
      const known = (each || isDue(entry.job, this.now_s) ? undefined : this.#blocked.get(line.class)) ?? this.#held_back;
      if (this.#tellProbe(entry, known)) return false;
      const why = known ?? this.#consider(entry);
      if (why === null) {
        if (this.#candidates.hasMore(entry)) jobs.stay();
        else jobs.advance();
        continue;
      }
      this.#block(entry, line.class, why, known !== null);
      if (this.#probe === null) agreeComment(line, commentText(why), kindOf(why), this.now_s);
      else if (this.#isProbedIn(line) && !this.#wants(entry) && this.#tellProbe(this.universe.entries.get(this.#probe.job), why))
        return false;
      if (known === null) this.tell(entry, why);
      else if (line.differ.has(entry)) {
        this.#logConsidering(entry);
        this.tell(entry, why);
      }
      // Jobs behind the first of a class are visited only if a module wants them (as top jobs), or if they need a comment.
      if (this.#held_back === null && this.#wants(entry)) jobs.advance();
      else jobs.skipToDiffering();
    }
  }

  #isLeftAlone(entry: JobEntry): boolean {
    const candidate = this.candidate(entry);
    return this.#stays.some((stays) => stays(this, candidate));
  }

  #wants(entry: JobEntry): boolean {
    const candidate = this.candidate(entry);
    return this.#modules.some((module) => module.wants?.(this, candidate) === true);
  }

  // --- the job of a question (probe.ts)

  #isProbedIn(line: JobLine): boolean {
    return this.#probe !== null && this.universe.entries.get(this.#probe.job)?.line === line;
  }

  /** true: it was this job's turn. */
  #tellProbe(entry: JobEntry | undefined, known: Why | null): boolean {
    const probe = this.#probe;
    if (probe === null || entry === undefined || entry.job.id !== probe.job) return false;
    this.#probe = null;
    this.settle();
    const candidate = this.candidate(entry);
    probe.look(this, { known, candidate, entry, context: this.#places.context(candidate) });
    return true;
  }

  /** A job cannot run. again: the first of its class could not run either; only modules that ask for it are told. */
  #block(entry: JobEntry, jobClass: JobClass, why: Why, again: boolean): void {
    if (this.#held_back !== null) return;
    this.#blocked.set(jobClass, why);
    // A job in a reservation waits for its own vnodes: it holds back no other job, and no job is preempted for it.
    if (entry.job.resv !== undefined) return;
    const candidate = this.candidate(entry);
    for (const module of this.#modules) {
      if (again && module.wants?.(this, candidate) !== true) continue;
      const after = module.blocked?.(this, candidate, why) ?? "go on";
      if (after !== "go on") this.#held_back ??= after;
    }
  }

  /** Tries to start a job, a shrink-to-fit job with less time if necessary. null: it has started; otherwise the reason. */
  #consider(entry: JobEntry): Why | null {
    this.#considered++;
    this.#logConsidering(entry);
    const { fault } = entry.request;
    if (fault !== undefined) return { code: "NOT_SUPPORTED", where: fault, never: true };
    const candidate = this.candidate(entry);
    let why = this.#later.length > 0 ? this.#whyNot(candidate) : null;
    if (why === null) {
      this.settle();
      why = this.#try(candidate);
    }
    if (why !== null && entry.job.resources["min_walltime"] !== undefined) {
      // The jobs before it get their plans before it is tried with less time.
      this.settle();
      why = shrink(this, candidate, why, { start: (shorter) => this.#try(shorter), could: (shorter) => this.#whyNot(shorter) === null });
    }
    if (why !== null && this.#makeRoom(candidate, why)) why = null;
    if (why === null) this.#candidates.noteStart(entry);
    return why;
  }

  /** True: running jobs make room, and the job has started. */
  #makeRoom(candidate: Candidate, why: Why): boolean {
    for (const module of this.#modules) {
      const placed = module.makeRoom?.(this, candidate, why) ?? null;
      if (placed === null) continue;
      this.room.keep(candidate);
      this.#start(candidate, placed);
      return true;
    }
    return false;
  }

  /** Jobs that will be suspended get a comment with the reason of their wait, as far as it is known now. */
  #tellVictims(): void {
    for (const away of this.room.away.values()) {
      if (!away.methods.startsWith("S")) continue;
      const candidate = asItWas(this.universe, away);
      this.#logConsidering(candidate.entry);
      const why = this.#whyNot(candidate);
      if (why !== null) this.tell(candidate.entry, why);
    }
  }

  /** The preemption levels, which order jobs before anything else; null without preemption. */
  #levels(): LevelOf | null {
    const preempts = this.policy.preemptive_sched && this.#modules.some((module) => module.makeRoom !== undefined);
    return preempts ? createLevels(this.ranks) : null;
  }

  /** Why a job cannot start for its candidate's time, without starting it. */
  #whyNot(candidate: Candidate): Why | null {
    const why = this.check(this, candidate);
    if (why !== null) return why;
    return this.#places.whyNone(candidate);
  }

  settle(): void {
    const works = this.#later;
    this.#later = [];
    for (const work of works) work();
  }

  /** Tries to start a job for its candidate's time. null: it has started. */
  #try(candidate: Candidate): Why | null {
    const why = this.check(this, candidate);
    if (why !== null) return why;
    const result = this.#places.place(candidate);
    if ("why" in result) return this.#places.whyBooked(candidate, result.why);
    this.#start(candidate, result.placed);
    return null;
  }

  candidate(entry: JobEntry): Candidate {
    return this.#candidates.of(entry);
  }

  #start(candidate: Candidate, placed: Placed): void {
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
    this.#places.note(placed);
    this.#started.add(candidate, placed);
    for (const module of this.#modules) module.started?.(this, candidate, placed);
  }

  /** Where hosts were before this cycle moved them. */
  #noteMoved(hosts: Placed["moved"]): void {
    for (const [host, bucket] of hosts) if (!this.#moved.has(host)) this.#moved.set(host, bucket);
  }

  #logConsidering(entry: JobEntry): void {
    this.log({ event: LOG_EVENT.DEBUG, class: "Job", object: entry.job.id, text: "Considering job to run" });
  }

  /** The reason for the log, and for the job's comment if that differs (Y3). */
  tell(entry: JobEntry, why: Why): void {
    const { id, comment } = entry.job;
    this.log({ event: LOG_EVENT.SCHED, class: "Job", object: id, text: logText(why) });
    if (why.never === true) this.log({ event: LOG_EVENT.SCHED, class: "Job", object: id, text: NEVER_TEXT });
    const text = commentText(why);
    // An array that has begun keeps its comment.
    if (text !== comment && this.#tells && !this.#candidates.hasBegun(entry)) this.decide({ kind: "comment", job: id, comment: text, why });
  }

  // --- after the jobs

  #undo(): void {
    this.#started.takeBack();
    this.room.close();
    undoMoves(this.universe, this.#moved);
    for (const job of this.#started.jobs) count(this.universe, job, -1);
  }
}

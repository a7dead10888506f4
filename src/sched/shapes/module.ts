// The interface of modules (docs/modules.md). `modules:` of sched_config names a chain of them. Each module is told when the scheduler starts, of
// every cycle, and when the scheduler ends. Policy modules are pure and change only their cycle. Service modules may use files, clocks and the
// network, and are told of a cycle when it is over.
//
// For the first job of each class in turn, a cycle calls every check in the order of STAGES; the first reason counts. If there is no reason, the
// job is placed and started. The functions `started` and `blocked` tell the modules what has happened.
//
// M1. Everything about a job that a policy module's check uses is in the key of the job's class (universe.ts U4). A site's module adds to the key
//     with classKey.
// M2. A site's module that throws or gives an illegal answer leaves the chain until the files are read again. A fault in a built-in module ends
//     the scheduler.

import type { Fairshare } from "#model/fairshare.ts";
import type { Decision, SchedCommand, SchedJob, Verdict, Why } from "#protocol/sched-link.ts";
import type { Durations } from "./durations.ts";
import type { PrimeStatus } from "./holidays.ts";
import type { JobEntry, Queue } from "./job-line.ts";
import type { LogRecord } from "./log-record.ts";
import type { Placed } from "./placed.ts";
import type { Policy } from "./policy.ts";
import type { PolicyBook } from "./policy-book.ts";
import type { RankContext, Universe } from "./universe.ts";
import type { NodeSet } from "./vnode.ts";

/** The stages of checks, in their order (docs/reference/scheduler.md 5). */
export const STAGES = [
  /** whether the queue is one from which jobs run */
  "queue",
  /** fairshare: with fairshare_enforce_no_shares, jobs of an entity without shares do not run (docs/reference/scheduler.md 10) */
  "fairshare",
  /** whether all vnodes together could hold the job, now or ever */
  "totals",
  /** run limits of queue and server, and max_run_subjobs of an array */
  "limits",
  /** prime and dedicated time */
  "time",
  /** resources_available of the queue */
  "queue-resources",
  /** resources_available of the server */
  "server-resources",
  /** whether a start now would disturb reservations or top jobs in the calendar (docs/reference/scheduler.md 7, 9) */
  "calendar",
] as const;
export type Stage = (typeof STAGES)[number];

/** The options of one module, from lines `NAME.key: value` of sched_config: the value of each key, as written. */
export type Options = ReadonlyMap<string, string>;
/** The options of all modules, by the name of the module. */
export type ModuleOptions = ReadonlyMap<string, Options>;
/** An option that a module accepts. If a module has a list of its options, the log reports any other option. */
export type OptionRow = {
  readonly name: string;
  readonly default: string;
  readonly help: string;
  /** the legal values; absent: any value */
  readonly values?: readonly string[];
};

/**
 * A job as a cycle tries it: its request, where it may run, and the time for which it is tried (for shrink-to-fit possibly less than requested). array: the
 * array whose next subjob this job is. array.started: how many of its subjobs this cycle has started (order/array-turn.ts T1).
 */
export type Candidate = Durations & {
  readonly entry: JobEntry;
  readonly queue: Queue | undefined;
  readonly set: NodeSet | undefined;
  readonly array?: { readonly job: SchedJob; readonly started: number };
};

/** A cycle while it runs. Modules may read all of it, and change it only through its functions. */
export type Cycle = {
  readonly universe: Universe;
  readonly book: PolicyBook;
  readonly policy: Policy;
  readonly now_s: number;
  readonly prime: PrimeStatus;
  /** true: the cycle is for a qrun, so run limits do not count */
  readonly qrun: boolean;
  /** true: only time has caused the cycle: scheduler_iteration is over, or the scheduler requested a cycle for this time (wakeAt) */
  readonly periodic: boolean;
  /** true: the cycle only explains a job (partita explain), so decisions have no effect */
  readonly probing: boolean;
  /** usage of shares; what this cycle adds to it is temporary */
  readonly fairshare: Fairshare;
  /** what the order of jobs depends on besides the jobs themselves */
  readonly ranks: RankContext;
  /** true: all jobs were tried; the cycle did not end early */
  readonly complete: boolean;
  /** amounts of the server's resources that jobs started in this cycle took, by resource */
  readonly server_taken: ReadonlyMap<string, number>;
  log(record: LogRecord): void;
  decide(decision: Decision): void;
  /**
   * Returns the first reason that the chain's checks give against a job, in this cycle or at a later time
   * (calendar/ahead.ts); null: none. stages: only these are checked.
   */
  check(then: Cycle, candidate: Candidate, stages?: readonly Stage[]): Why | null;
  /** Returns the request of a job and where it may run; for an array, the request and vnodes of its next subjob. */
  candidate(entry: JobEntry): Candidate;
  /** Tells the chain that a job was planned. */
  planned(candidate: Candidate, start_s: number): void;
  /** Enters the jobs started so far in the calendar, so that the ends of the amounts they hold are known there. */
  enterStarted(): void;
  /** Postpones work until just before the next job is started, or until the last job was tried. */
  later(work: () => void): void;
  /** Reserves room at the present end of the log for a line that may be written later. */
  logHere(): (record: LogRecord) => void;
  /** Does the work that was postponed with later(). */
  settle(): void;
  /** Returns false if the cycle has taken longer than sched_cycle_length. */
  keepsOn(): boolean;
  /** Requests a cycle at a time, unless one comes before. */
  wakeAt(at_s: number): void;
  /** makes room in this cycle by taking running jobs off their vnodes */
  readonly room: Room;
  /** jobs whose preemption failed, each with the time until which it is spared */
  readonly failed_victims: ReadonlyMap<string, number>;
  /** Writes the reason into the log, and into the job's comment if the comment differs. */
  tell(entry: JobEntry, why: Why): void;
};

export type PolicyModule = {
  readonly kind?: "policy";
  /** the module's name in `modules:` of sched_config */
  readonly name: string;
  readonly options?: readonly OptionRow[];
  /** Called when the chain was created: the scheduler has started, or has read its files again. */
  start?(): void;
  /**
   * Returns a text of the job's properties that the module's checks use and that the key of a class does not contain. Jobs
   * with equal texts get equal answers (M1).
   */
  classKey?(job: SchedJob): string;
  /**
   * Called once in a cycle, before jobs are tried. Returns "leave" if decisions of the module must be carried out first: the
   * cycle then ends without trying jobs.
   */
  begin?(cycle: Cycle): void | "leave";
  readonly checks?: readonly { readonly stage: Stage; check(cycle: Cycle, candidate: Candidate): Why | null }[];
  /** Called when a job was given vnodes. */
  started?(cycle: Cycle, candidate: Candidate, placed: Placed): void;
  /**
   * Called when the first job of a class cannot start for this reason. A module may preempt running jobs for it (cycle.room). If it then
   * returns where the job was placed, the job is started. null: the module cannot help.
   */
  makeRoom?(cycle: Cycle, candidate: Candidate, why: Why): Placed | null;
  /**
   * Called when the first job of a class cannot run. Returns what happens to the jobs after it: `go on`, or the reason that holds all of them back.
   * Backfill uses this, because a blocked job may become a top job.
   */
  blocked?(cycle: Cycle, candidate: Candidate, why: Why): Why | "go on";
  /**
   * Returns true if equal jobs may get different answers. Each job is then tried; otherwise, when a job of a class is
   * blocked, the class is not tried again.
   */
  triesEach?(cycle: Cycle): boolean;
  /** Returns true if a job must not be tried in this cycle, because it was planned and nothing has changed. */
  stays?(cycle: Cycle, candidate: Candidate): boolean;
  /**
   * Returns true if a job, and with it all jobs behind it in its track, must be tried only after all other jobs, in the order that the policy has for
   * such jobs (backfill.order).
   */
  putsOff?(cycle: Cycle, entry: JobEntry): boolean;
  /** Returns whether `blocked` must be called for further jobs of a class that is already blocked. They are not tried again. */
  wants?(cycle: Cycle, candidate: Candidate): boolean;
  /** Called when a job became a top job, so that its vnodes are kept free. */
  planned?(cycle: Cycle, candidate: Candidate, start_s: number): void;
  /**
   * Called once in a cycle, after the last job. It is also called if the cycle is given up (the server is lost);
   * cycle.complete is then false, and no decision counts.
   */
  end?(cycle: Cycle): void;
  /** Called when the module leaves the chain: the scheduler ends, or its files were read again. */
  shutdown?(): void;
};

/** A finished cycle, with its decisions and the server's verdicts. */
export type CycleReport = {
  readonly universe: Universe;
  readonly now_s: number;
  readonly command: SchedCommand;
  readonly decisions: readonly Decision[];
  /** one verdict for each decision, in the order of decisions */
  readonly verdicts: readonly Verdict[];
  readonly jobs_considered: number;
  readonly jobs_started: number;
  /** time from the trigger of the cycle to the last verdict */
  readonly cycle_ms: number;
};

export type ServiceModule = {
  readonly kind: "service";
  readonly name: string;
  readonly options?: readonly OptionRow[];
  /** Called when the chain was created. */
  start?(): void | Promise<void>;
  /** Called when a cycle is over and the server has its decisions. If it returns a promise, it is not called again before the promise is settled. */
  cycle?(report: CycleReport): void | Promise<void>;
  /** Called when the module leaves the chain. The scheduler waits a short time for the promise. */
  shutdown?(): void | Promise<void>;
};

export type Module = PolicyModule | ServiceModule;

/** What a service module, or a site's module of either kind, gets when it is created. */
export type ModuleWorld = {
  /** the module's name */
  readonly name: string;
  readonly options: Options;
  /** the scheduler's name */
  readonly sched: string;
  sched_priv(): string;
  sched_log(): string;
  /** Writes one line into the scheduler's log. event: SCHED (0x40) by default. */
  log(text: string, event?: number): void;
  /** Reports a problem to the administrator. It stays in the scheduler's comment and log until null removes it. */
  problem(text: string | null): void;
  /** Asks the server for a cycle. */
  wake(): void;
  now_ms(): number;
  readonly log_file: {
    /** Returns the path of the file that is written at present. */
    path(): string;
    /** option -L: true if the log is one file that is never replaced */
    readonly fixed: boolean;
    /** Closes the file and opens the file with the present name. */
    reopen(): void;
  };
};

/** A job that was taken off its vnodes. methods: letters of preempt_order, in the order in which they are tried (`SCR`). */
export type Away = { readonly job: SchedJob; readonly methods: string };

export type Room = {
  /** the jobs that were taken away, in the order in which they were taken */
  readonly away: ReadonlyMap<string, Away>;
  mark(): number;
  rollBack(mark: number): void;
  vacate(job: SchedJob, methods: string): void;
  /** Returns why a job could not start at present; null: it could. */
  couldStart(candidate: Candidate): Why | null;
  /** Places the job for which room is made; null: there is not enough room. */
  occupy(candidate: Candidate): Placed | null;
  /** the vnodes of the job that was placed; null: none was */
  readonly occupied: Placed | null;
  /** Puts a job back on its vnodes. Returns false if another job needs what it had. */
  putBack(id: string): boolean;
  /** Keeps all changes that were not rolled back. The cycle now starts the job that was placed. */
  keep(candidate: Candidate): void;
  /** Counts all jobs that were taken away as running again, on their vnodes. The hosts themselves are moved back by the cycle. */
  close(): void;
};

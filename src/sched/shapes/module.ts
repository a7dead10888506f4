// The interface of modules (docs/modules.md). `modules:` of sched_config names a chain of them. Each module is informed
// of the scheduler's start, of every cycle and of the scheduler's end. Policy modules are pure and write only into their
// cycle; service modules may use files, clocks and the network, and are informed of a cycle when it is over.
//
// For the head of each class of jobs in turn, a cycle asks every check in the order of STAGES; the first reason counts. A
// job without a reason is placed and started; `started` and `blocked` inform the modules. Where a stage has no module
// yet, its row names the section of docs/reference/scheduler.md that belongs there.
//
// M1. Everything that a policy module's check looks at is in the key of the class (universe.ts U4); a site's module adds to the key with classKey.
// M2. A site's module that throws or gives an illegal answer leaves the chain until the files are read again; built-in modules assert and crash.

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

/** The order of checks (docs/reference/scheduler.md 5). */
export const STAGES = [
  /** whether the queue is one from which jobs run */
  "queue",
  /** fairshare: an entity without shares never runs (docs/reference/scheduler.md 10) */
  "fairshare",
  /** whether all vnodes together could hold the job, now or at all */
  "totals",
  /** run limits of queue and server; of an array: max_run_subjobs */
  "limits",
  /** prime and dedicated time */
  "time",
  /** resources_available of the queue */
  "queue-resources",
  /** resources_available of the server */
  "server-resources",
  /** reservations and top jobs of the calendar that a start now would disturb (docs/reference/scheduler.md 7, 9) */
  "calendar",
] as const;
export type Stage = (typeof STAGES)[number];

/** `NAME.key: value` of sched_config: values by key, as written. */
export type Options = ReadonlyMap<string, string>;
/** Options by the name of the module. */
export type ModuleOptions = ReadonlyMap<string, Options>;
/** An option that a module knows. Options outside of such a list are named in the log. */
export type OptionRow = {
  readonly name: string;
  readonly default: string;
  readonly help: string;
  /** legal values; absent: any value */
  readonly values?: readonly string[];
};

/**
 * The request of a job, where it may run, and the time for which it is tried (shrink-to-fit: possibly less than requested). array: the job is the next subjob
 * of this array, of which `started` subjobs were started in this cycle (order/array-turn.ts T1).
 */
export type Candidate = Durations & {
  readonly entry: JobEntry;
  readonly queue: Queue | undefined;
  readonly set: NodeSet | undefined;
  readonly array?: { readonly job: SchedJob; readonly started: number };
};

/** A cycle under way. Modules may read all of it and write only through its functions. */
export type Cycle = {
  readonly universe: Universe;
  readonly book: PolicyBook;
  readonly policy: Policy;
  readonly now_s: number;
  readonly prime: PrimeStatus;
  /** a qrun: run limits do not count */
  readonly qrun: boolean;
  /** triggered by time alone: scheduler_iteration is over, or the scheduler requested a cycle for now (wakeAt) */
  readonly periodic: boolean;
  /** a question about a job (partita explain): decisions do not count */
  readonly probing: boolean;
  /** usage of shares; the usage that this cycle adds is temporary */
  readonly fairshare: Fairshare;
  /** values that the worth of jobs depends on, besides the jobs */
  readonly ranks: RankContext;
  /** all jobs were tried; the cycle did not end early */
  readonly complete: boolean;
  /** amounts that jobs started in this cycle took at the server, by resource */
  readonly server_taken: ReadonlyMap<string, number>;
  log(record: LogRecord): void;
  decide(decision: Decision): void;
  /** the answer of the chain's checks about a job, in this cycle or at a later time (calendar/ahead.ts). stages: only these */
  check(then: Cycle, candidate: Candidate, stages?: readonly Stage[]): Why | null;
  /** the request of a job and where it may run; for an array its next subjob */
  candidate(entry: JobEntry): Candidate;
  /** informs the chain that a job was planned */
  planned(candidate: Candidate, start_s: number): void;
  /** puts the jobs started so far into the calendar, because the amounts that they hold will become free */
  enterStarted(): void;
  /** postpones work until the next job is started, or until the end of the last one */
  later(work: () => void): void;
  /** reserves this place in the log for a line that may be written later */
  logHere(): (record: LogRecord) => void;
  /** runs the work postponed with later() */
  settle(): void;
  /** false: the cycle has taken longer than sched_cycle_length */
  keepsOn(): boolean;
  /** requests a cycle at a time, if none comes before */
  wakeAt(at_s: number): void;
  /** running jobs that make room in this cycle */
  readonly room: Room;
  /** jobs whose preemption failed, and until when they are spared */
  readonly failed_victims: ReadonlyMap<string, number>;
  /** the reason for the log, and for the job's comment if that differs */
  tell(entry: JobEntry, why: Why): void;
};

export type PolicyModule = {
  readonly kind?: "policy";
  /** its name in `modules:` of sched_config */
  readonly name: string;
  readonly options?: readonly OptionRow[];
  /** the chain was made: the scheduler has started, or read its files again */
  start?(): void;
  /** properties of a job that its checks look at and that are not in the key of a class already: jobs with equal texts get equal answers (M1) */
  classKey?(job: SchedJob): string;
  /** once a cycle, before jobs are tried. "leave": decisions of the module come first, and the cycle ends without trying jobs */
  begin?(cycle: Cycle): void | "leave";
  readonly checks?: readonly { readonly stage: Stage; check(cycle: Cycle, candidate: Candidate): Why | null }[];
  /** a job was given vnodes */
  started?(cycle: Cycle, candidate: Candidate, placed: Placed): void;
  /**
   * The head of a class cannot start for this reason. A module may preempt running jobs for it (cycle.room). It returns where the job was
   * placed, and the job is started; null: the module cannot help.
   */
  makeRoom?(cycle: Cycle, candidate: Candidate, why: Why): Placed | null;
  /**
   * The head of a class cannot run. Returns the fate of the jobs after it: `go on`, or the reason that holds all of them back. Backfill uses this: a
   * blocked job may become a top job.
   */
  blocked?(cycle: Cycle, candidate: Candidate, why: Why): Why | "go on";
  /** equal jobs may get different answers: each is tried, not only the first of its class until it is blocked */
  triesEach?(cycle: Cycle): boolean;
  /** a job is not tried in this cycle: it was planned, and nothing has changed */
  stays?(cycle: Cycle, candidate: Candidate): boolean;
  /** whether `blocked` is called for further jobs of a class that is blocked already; they are not tried again */
  wants?(cycle: Cycle, candidate: Candidate): boolean;
  /** a job became a top job: its place is kept free */
  planned?(cycle: Cycle, candidate: Candidate, start_s: number): void;
  /** once a cycle, after the last job; also if the cycle is given up before (the server is lost): cycle.complete is then false, and no decision counts */
  end?(cycle: Cycle): void;
  /** the module leaves the chain: the scheduler ends, or its files were read again */
  shutdown?(): void;
};

/** A finished cycle: its decisions and the server's answers. */
export type CycleReport = {
  readonly universe: Universe;
  readonly now_s: number;
  readonly command: SchedCommand;
  readonly decisions: readonly Decision[];
  /** one verdict for each decision, in their order */
  readonly verdicts: readonly Verdict[];
  readonly jobs_considered: number;
  readonly jobs_started: number;
  /** trigger to last verdict */
  readonly cycle_ms: number;
};

export type ServiceModule = {
  readonly kind: "service";
  readonly name: string;
  readonly options?: readonly OptionRow[];
  /** the chain was made */
  start?(): void | Promise<void>;
  /** called when a cycle is over and the server has its decisions; not called again before a promise returned here is settled */
  cycle?(report: CycleReport): void | Promise<void>;
  /** the module leaves the chain; the scheduler waits briefly for the promise */
  shutdown?(): void | Promise<void>;
};

export type Module = PolicyModule | ServiceModule;

/** The input for making a service module, or a site's module of either kind. */
export type ModuleWorld = {
  /** the module's name */
  readonly name: string;
  readonly options: Options;
  /** the scheduler's name */
  readonly sched: string;
  sched_priv(): string;
  sched_log(): string;
  /** one line of the scheduler's log; event: default SCHED (0x40) */
  log(text: string, event?: number): void;
  /** a problem for the administrator, in the scheduler's comment and log until null removes it */
  problem(text: string | null): void;
  /** asks the server for a cycle */
  wake(): void;
  now_ms(): number;
  readonly log_file: {
    /** the file that is written now */
    path(): string;
    /** -L: one file that is never replaced */
    readonly fixed: boolean;
    /** closes the file and opens one with that name */
    reopen(): void;
  };
};

/** A job that was taken off its vnodes. methods: letters of preempt_order, in the order in which they are tried (`SCR`) */
export type Away = { readonly job: SchedJob; readonly methods: string };

export type Room = {
  /** jobs that were taken away, in that order */
  readonly away: ReadonlyMap<string, Away>;
  mark(): number;
  rollBack(mark: number): void;
  vacate(job: SchedJob, methods: string): void;
  /** why a job could not start at present; null: it could */
  couldStart(candidate: Candidate): Why | null;
  /** places the job that room is made for; null: there is no place */
  occupy(candidate: Candidate): Placed | null;
  /** its place */
  readonly occupied: Placed | null;
  /** false: another job needs its former amounts */
  putBack(id: string): boolean;
  /** changes since the last mark stay; the cycle now starts the job that was placed */
  keep(candidate: Candidate): void;
  /** all jobs are back where they were, except hosts: the cycle moves those */
  close(): void;
};

// What server and scheduler say to one another (ARCHITECTURE.md). Frames as in messages.ts.
//
// A local scheduler connects to the server's socket and says sched-hello; the server answers with sched-welcome or sched-refused and a snapshot;
// deltas follow in order. I1. revision grows by one with every delta; a gap means the link is broken: the scheduler reconnects.
// I2. A cycle frame is sent only when the scheduler is idle; triggers meanwhile are folded into one more.
// I3. Every decision gets exactly one verdict, in the order of the decisions frame. A refusal is a normal answer.
// I4. A scheduler may send the decisions of a cycle in several frames while it goes on deciding; until the last of them it hears of no changes.
// I5. A scheduler that said so in its hello answers each sched-ping with a sched-pong, also between the parts of a cycle (src/server/scheds/heartbeat.ts).

/** What a job asks for and is, as far as a scheduler needs it. Attribute values as src/model represents them (sizes as text, durations in seconds). */
export type SchedJob = {
  readonly id: string;
  readonly state: string;
  readonly substate: number;
  readonly queue: string;
  /** queue_rank: order of submission, changed by qorder */
  readonly rank: number;
  /** euser, egroup: execution user and group */
  readonly user: string;
  readonly group: string;
  readonly project: string;
  readonly account?: string;
  readonly name: string;
  readonly priority: number;
  /** schedselect: normalised select */
  readonly schedselect: string;
  readonly place: string;
  /** Resource_List without select and place: job-wide amounts */
  readonly resources: { readonly [resource: string]: string | number | boolean };
  readonly ctime_s: number;
  readonly qtime_s: number;
  readonly etime_s?: number;
  readonly stime_s?: number;
  readonly exec_vnode?: string;
  readonly resources_used?: { readonly [resource: string]: string | number };
  /** while the job has a clock: what to add to what the clock shows (may be negative) */
  readonly eligible_time_s?: number;
  readonly accrue_type?: number;
  /** the clock of the job's eligible time, while it is queued and eligible_time_enable is set */
  readonly clock?: string;
  readonly run_count: number;
  readonly rerunable: boolean;
  readonly comment?: string;
  readonly resv?: string;
  readonly topjob?: boolean;
  readonly topjob_ineligible?: boolean;
  readonly sched_preempted_s?: number;
  /** how long its run has stood still before it went on: its walltime did not go on meanwhile */
  readonly paused_s?: number;
  /** a suspended job: what it released, by vnode, where that is not all it has */
  readonly released?: string;
  readonly no_checkpoint?: true;
  readonly estimated?: { readonly start_time?: number; readonly exec_vnode?: string; readonly soft_walltime?: number };
  /** of an array: the subjobs that wait (`3-9,12`, `-` for none), how many run */
  readonly array?: { readonly indices_remaining: string; readonly max_run_subjobs?: number; readonly running: number };
  /** how long the longest chain of jobs takes that waits behind it, with it; only where a formula names it */
  readonly pressure_s?: number;
  /** of a subjob that runs */
  readonly array_id?: string;
  /** kill_delay of its queue, where the scheduler sees the job for its vnodes and does not see the queue */
  readonly kill_delay_s?: number;
};

/** Attribute records keep PBS names and the value representation of src/model (typed values, not text). */
export type AttrRecord = { readonly [name: string]: unknown };

export type SchedQueue = {
  readonly name: string /** order of creation; absent: as listed */;
  readonly order?: number;
  readonly attrs: AttrRecord;
};
export type SchedNode = {
  readonly name: string;
  /** definition order: the order of creation */
  readonly order: number;
  readonly attrs: AttrRecord;
  /** resources_assigned as numbers (sizes in kb) */
  readonly assigned: { readonly [resource: string]: number };
  /** ids of jobs that run here, in slot order; suspended ones are not among them */
  readonly jobs: readonly string[];
  /** vnodes of its host that the scheduler does not see, being in another's partition, are in use: nobody can have the host alone */
  readonly crowded?: true;
};
export type SchedResource = { readonly name: string; readonly type: string; readonly flags: string };
/** first second that belongs to it, and first that does not */
export type Occurrence = { readonly start_s: number; readonly end_s: number };
/**
 * A reservation. `assigned` of vnodes and server counts a running one as a whole, whatever runs in it; of its jobs it counts only what the reservation
 * does not hold (mem of a job in a reservation of ncpus).
 */
export type SchedResv = {
  readonly id: string;
  /** as they are shown; of one that is being altered: as they shall be. partition: the one it has, or the one it was asked for (pbs_rsub -p) */
  readonly attrs: AttrRecord;
  /** its period has begun: its queue is started, its jobs may run */
  readonly running: boolean;
  /**
   * What was promised: confirmed occurrences that are not over, in order, the present one first. One that is being altered or degraded still holds what
   * it held. place: index into places, so that occurrences in one place share its text.
   */
  readonly held: readonly (Occurrence & { readonly place: number })[];
  /** exec_vnode texts */
  readonly places: readonly string[];
  /** what this scheduler is asked for and has not yet answered */
  readonly ask?: ResvAsk;
};
/**
 * confirm: a new one. alter: held is what it was, occurrences what it shall be. reconfirm: a degraded one, occurrences are those that need another place.
 * Each ask is answered with confirm-resv or deny-resv; afterwards it is gone from the mirror. Maintenance is placed by the server, nobody is asked.
 */
export type ResvAsk = {
  readonly kind: "confirm" | "alter" | "reconfirm";
  /** when it was asked: alterations first, then the older request */
  readonly asked_s: number;
  /** those that need a place; empty: one, as soon as possible */
  readonly occurrences: readonly Occurrence[];
  /** as soon as possible: how long */
  readonly duration_s?: number;
};

/** Eligible time of all jobs that stand behind the same limits: it showed value_s at a time, and goes on since or stands. */
export type SchedClock = { readonly id: string; readonly value_s: number; readonly at_s: number; readonly goes: boolean };

/** The part of the universe that one scheduler sees: its partitions' queues, their jobs, its nodes, and all global objects. */
export type Snapshot = {
  readonly revision: number;
  readonly server: { readonly name: string; readonly attrs: AttrRecord; readonly assigned: { readonly [resource: string]: number } };
  readonly sched: { readonly name: string; readonly attrs: AttrRecord };
  readonly resources: readonly SchedResource[];
  readonly queues: readonly SchedQueue[];
  readonly nodes: readonly SchedNode[];
  readonly jobs: readonly SchedJob[];
  readonly resvs: readonly SchedResv[];
  readonly clocks?: readonly SchedClock[];
};
export type Change =
  | { readonly put: "server"; readonly value: Snapshot["server"] }
  | { readonly put: "sched"; readonly value: Snapshot["sched"] }
  | { readonly put: "resource"; readonly value: SchedResource }
  | { readonly put: "queue"; readonly value: SchedQueue }
  | { readonly put: "node"; readonly value: SchedNode }
  | { readonly put: "job"; readonly value: SchedJob }
  | { readonly put: "resv"; readonly value: SchedResv }
  | { readonly put: "clock"; readonly value: SchedClock }
  | { readonly drop: "resource" | "queue" | "node" | "resv" | "clock"; readonly id: string }
  /** resources_used: what it had used in the end, if it ran. untold: a subjob that began and ended while nothing was told */
  | {
      readonly drop: "job";
      readonly id: string;
      readonly resources_used?: NonNullable<SchedJob["resources_used"]>;
      readonly untold?: SchedJob;
    };
export type Delta = { readonly revision: number; readonly changes: readonly Change[] };

/** Command numbers of docs/reference/scheduler.md 1. */
export const SCHED_COMMAND = {
  NEW: 1,
  TERM: 2,
  TIME: 3,
  CMD: 5,
  CONFIGURE: 6,
  QUIT: 7,
  FIRST: 9,
  JOBRESV: 10,
  AJOB: 11,
  STARTQ: 12,
  MVLOCAL: 13,
  ETE_ON: 14,
  RESV_RECONFIRM: 15,
} as const;
export type SchedCommand = (typeof SCHED_COMMAND)[keyof typeof SCHED_COMMAND];

/** Comments of a scheduler whose directory fails its check. */
export const PRIV_FAULT = "PBS failed validation checks for sched_priv directory";
export const LOG_FAULT = "Unable to change the sched_log directory";
/** The comment of one that cannot take over what the server tells it of itself. */
export const ATTRS_FAULT = "Unable to retrieve the scheduler attributes from server";
/** What is said in sched_logs and as the comment of one that is to run and has no partition. */
export const NO_PARTITION = "Scheduler does not contain a partition";

/** Environment variables by which the server tells a scheduler that it starts where its directories are; say: it only writes this into its log. */
export const SCHED_ENV = { priv: "PARTITA_SCHED_PRIV", log: "PARTITA_SCHED_LOG", say: "PARTITA_SCHED_SAY" } as const;

/** Ends a scheduler whose module does not come to its end (pbs_sched's watch over modules): whoever started it knows by it why. */
export const WATCH_SIGNAL = "SIGALRM";

/** Why a job does not run, as data. code names a row of the reason table in src/sched/shapes/reasons.ts. */
export type Why = {
  readonly code: string;
  readonly module?: string;
  readonly resource?: string;
  /** texts ready for the (R: A: T:) form or the a != b form */
  readonly want?: string;
  readonly have?: string;
  readonly total?: string;
  /** queue, host, state or other object concerned */
  readonly where?: string;
  /** user, group or project named by a limit */
  readonly entity?: string;
  /** never runnable with the present configuration */
  readonly never?: boolean;
};

export type Decision =
  | { readonly kind: "run"; readonly job: string; readonly exec_vnode: string /** shrink-to-fit */; readonly walltime_s?: number }
  | { readonly kind: "comment"; readonly job: string; readonly comment: string; readonly why: Why }
  | {
      readonly kind: "estimate";
      readonly job: string;
      readonly start_s: number | null;
      readonly exec_vnode: string | null;
      readonly topjob: boolean;
    }
  /** a running job has outlived its soft_walltime: how long it is expected to take now, from its start (estimated.soft_walltime) */
  | { readonly kind: "extend"; readonly job: string; readonly soft_walltime_s: number }
  /** methods: of S C R D, tried in this order. The decisions behind it wait until it has worked or failed, so that a run may count on its room */
  | { readonly kind: "preempt"; readonly job: string; readonly methods: string; readonly for: string }
  | {
      readonly kind: "confirm-resv";
      readonly resv: string;
      /** `pbs-default` or a partition of this scheduler */
      readonly partition: string;
      /** the occurrences asked for, in that order, each with its place; asked for as soon as possible: one */
      readonly occurrences: readonly (Occurrence & { readonly place: number })[];
      /** exec_vnode texts */
      readonly places: readonly string[];
    }
  | { readonly kind: "deny-resv"; readonly resv: string; readonly why: Why }
  | { readonly kind: "qrun-refused"; readonly job: string; readonly text: string };
/** How a job was preempted: suspended, checkpointed, requeued, deleted. */
export type PreemptMethod = "S" | "C" | "R" | "D";
/** method: of a preempt decision, unless the job was out of the way by itself. */
export type Verdict =
  | { readonly ok: true; readonly method?: PreemptMethod }
  | { readonly ok: false; readonly code: number; readonly text: string };

// --- frames, by type
/** scheduler -> server */
/** pongs: it answers sched-ping; a scheduler of an earlier release does not know that frame */
export type SchedHello = { readonly name: string; readonly pid: number; readonly version: string; readonly pongs?: true };
/** more: further frames of the same pass follow; the server tells what has changed only with the verdicts on the last one. */
export type SchedDecisions = { readonly cycle: number; readonly decisions: readonly Decision[]; readonly more?: true };
export type SchedCycleEnd = { readonly cycle: number; readonly jobs_considered: number; readonly cycle_ms: number };
/** A directory or configuration failed: the server sets the comment and switches scheduling off (fault), or takes the comment back (fault null). */
export type SchedFault = { readonly fault: string | null };
/** Something an administrator should see in the comment; scheduling goes on. null: no longer. */
/** What a client asks a scheduler through the server. sees_others: ids of all jobs may be told. */
export type SchedQuestion =
  | { readonly kind: "explain"; readonly job: string; readonly sees_others: boolean }
  | { readonly kind: "view"; readonly sees_others: boolean };
/** token: chosen by the server. Answered at any time, also during a cycle. */
export type SchedAsk = { readonly token: number; readonly question: SchedQuestion };
/** value: an Explanation or a SchedView; null: the scheduler does not know what it was asked about */
export type SchedAnswer = { readonly token: number; readonly value: unknown };
/** number: chosen by the server, returned in the answer */
export type SchedPing = { readonly number: number };
export type SchedProblem = { readonly problem: string | null };
/** server -> scheduler */
export type SchedRefused = { readonly code: number; readonly text: string };
export type SchedCycle = { readonly cycle: number; readonly command: SchedCommand; readonly job?: string };
export type SchedVerdicts = { readonly cycle: number; readonly verdicts: readonly Verdict[] };

export type SchedToServer = {
  "sched-hello": SchedHello;
  "sched-decisions": SchedDecisions;
  "sched-cycle-end": SchedCycleEnd;
  "sched-fault": SchedFault;
  /** it ends by its own will (SIGTERM, SIGINT): not a crash, it is not started again until scheduling is set True */
  "sched-leaving": Record<string, never>;
  "sched-problem": SchedProblem;
  /** it wants a cycle: what it waits for has come by the clock */
  "sched-wake": Record<string, never>;
  "sched-answer": SchedAnswer;
  "sched-pong": SchedPing;
};
export type ServerToSched = {
  "sched-refused": SchedRefused;
  "sched-snapshot": Snapshot;
  "sched-delta": Delta;
  "sched-cycle": SchedCycle;
  /** any attribute of the sched object but scheduling changed, or SIGHUP-like: reread files, check directories; the new attrs came as a delta before */
  "sched-configure": Record<string, never>;
  "sched-verdicts": SchedVerdicts;
  "sched-quit": Record<string, never>;
  "sched-ask": SchedAsk;
  "sched-ping": SchedPing;
};

// Messages between server and scheduler (ARCHITECTURE.md), in frames like those of messages.ts.
//
// A scheduler on the server's host connects to the server's socket; the server dials a scheduler on another host. In both cases
// the scheduler sends sched-hello first. The server answers with a snapshot, or with sched-refused. Then follow deltas, each with
// a change of the snapshot, in order.
// I1. revision increases by one with every delta. A gap means that the link is broken: the scheduler reconnects.
// I2. The server sends a cycle frame only when the scheduler is idle. Triggers that arrive meanwhile are merged into one
//     further cycle.
// I3. Every decision gets exactly one verdict, in the order of the decisions frame. A refusal is a normal answer.
// I4. A scheduler may send the decisions of a cycle in several frames while it continues to decide. The server sends no deltas
//     before the last of these frames.
// I5. A scheduler that has announced `pongs` in its hello answers each sched-ping with a sched-pong, also while a cycle runs
//     (between its parts) (src/server/scheds/heartbeat.ts).

/** The attributes and requested resources of a job that a scheduler needs. Attribute values are as in src/model (sizes as text, durations in seconds). */
export type SchedJob = {
  readonly id: string;
  readonly state: string;
  readonly substate: number;
  readonly queue: string;
  /** queue_rank: order of submission, changed by qorder */
  readonly rank: number;
  /** euser, egroup: the execution user and group */
  readonly user: string;
  readonly group: string;
  readonly project: string;
  readonly account?: string;
  readonly name: string;
  readonly priority: number;
  /** schedselect: the normalised select statement */
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
  /** eligible time in seconds; for a job with a clock: the seconds to add to the clock's value, possibly negative */
  readonly eligible_time_s?: number;
  readonly accrue_type?: number;
  /** id of the clock of the job's eligible time, while the job is queued and eligible_time_enable is set */
  readonly clock?: string;
  readonly run_count: number;
  readonly rerunable: boolean;
  readonly comment?: string;
  readonly resv?: string;
  readonly topjob?: boolean;
  readonly topjob_ineligible?: boolean;
  readonly sched_preempted_s?: number;
  /** number of seconds during which the job was suspended in this run; its walltime did not advance then */
  readonly paused_s?: number;
  /** for a suspended job: the resources that it released, by vnode, if it did not release everything */
  readonly released?: string;
  readonly no_checkpoint?: true;
  readonly estimated?: { readonly start_time?: number; readonly exec_vnode?: string; readonly soft_walltime?: number };
  /** for an array: the waiting subjobs (`3-9,12`, or `-` for none) and the number of running ones */
  readonly array?: { readonly indices_remaining: string; readonly max_run_subjobs?: number; readonly running: number };
  /** run time of the longest chain of jobs that depend on this job, including the job itself; present only if a formula uses it */
  readonly pressure_s?: number;
  /** for a running subjob: the id of its array */
  readonly array_id?: string;
  /** options for the backend of its runner, which are part of its bucket */
  readonly backend_opts?: string;
  /** kill_delay of the job's queue; present if the scheduler sees the job because of its vnodes but does not see that queue */
  readonly kill_delay_s?: number;
};

/** Attributes by PBS name, with values as in src/model (typed values, not text). */
export type AttrRecord = { readonly [name: string]: unknown };

export type SchedQueue = {
  readonly name: string /** order of creation; absent: as listed */;
  readonly order?: number;
  readonly attrs: AttrRecord;
};
export type SchedNode = {
  readonly name: string;
  /** number in the order of creation */
  readonly order: number;
  readonly attrs: AttrRecord;
  /** resources_assigned as numbers (sizes in kb) */
  readonly assigned: { readonly [resource: string]: number };
  /** ids of the jobs on this vnode, in the order of its slots; suspended jobs are not included */
  readonly jobs: readonly string[];
  /** vnodes of the same host belong to another partition, so that the scheduler does not see them, and are in use: no job can have the host exclusively */
  readonly crowded?: true;
};
export type SchedResource = { readonly name: string; readonly type: string; readonly flags: string };
/** start_s is the first second of the occurrence; end_s is the first second after it */
export type Occurrence = { readonly start_s: number; readonly end_s: number };
/**
 * A reservation. A running reservation counts as a whole in `assigned` of vnodes and server, whatever its jobs use. Of its
 * jobs only resources count that the reservation does not hold (for example mem of a job in a reservation of ncpus).
 */
export type SchedResv = {
  readonly id: string;
  /**
   * the attributes as shown; the requested ones for a reservation that is being altered. `partition` is the partition of the
   * reservation, or the requested one (pbs_rsub -p)
   */
  readonly attrs: AttrRecord;
  /** the present occurrence has begun: the reservation's queue is started, and its jobs may run */
  readonly running: boolean;
  /**
   * The confirmed occurrences that have not ended, in order; the present one is the first. A reservation that is being altered
   * or is degraded keeps its former occurrences here. place: the index of its exec_vnode in places. Occurrences with the same
   * exec_vnode thus share one text.
   */
  readonly held: readonly (Occurrence & { readonly place: number })[];
  /** the exec_vnode texts to which `place` refers */
  readonly places: readonly string[];
  /** what the server asks this scheduler about the reservation; absent: nothing, or it has been answered */
  readonly ask?: ResvAsk;
};
/**
 * What the server asks about a reservation. confirm: a new reservation. alter: held has the former occurrences, occurrences
 * the requested ones. reconfirm: a degraded reservation; occurrences are those that need other vnodes. The scheduler answers
 * with confirm-resv or deny-resv, and the ask then disappears from its snapshot. The server itself places maintenance
 * reservations and asks no scheduler about them.
 */
export type ResvAsk = {
  readonly kind: "confirm" | "alter" | "reconfirm";
  /** time of the request; the scheduler answers alterations first, then older requests before newer ones */
  readonly asked_s: number;
  /** the occurrences that need vnodes; empty: one occurrence that begins as soon as possible */
  readonly occurrences: readonly Occurrence[];
  /** length in seconds of an occurrence that begins as soon as possible */
  readonly duration_s?: number;
};

/**
 * The eligible time that all jobs behind the same limits have in common. Its value was value_s at the time at_s. Since then
 * it has advanced (goes) or stood still.
 */
export type SchedClock = { readonly id: string; readonly value_s: number; readonly at_s: number; readonly goes: boolean };

/** What one scheduler sees of the complex: the queues and vnodes of its partitions, the jobs of these queues, and all global objects. */
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
  /** resources_used: the final use, if the job ran. untold: a subjob that started and ended between two deltas, so that the scheduler was not told of it */
  | {
      readonly drop: "job";
      readonly id: string;
      readonly resources_used?: NonNullable<SchedJob["resources_used"]>;
      readonly untold?: SchedJob;
    };
export type Delta = { readonly revision: number; readonly changes: readonly Change[] };

/** The command numbers of a cycle (docs/reference/scheduler.md 1). */
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

/** The comments of a scheduler object in the server whose sched_priv or sched_log directory fails its check. */
export const PRIV_FAULT = "PBS failed validation checks for sched_priv directory";
export const LOG_FAULT = "Unable to change the sched_log directory";
/** The comment of a scheduler object whose scheduler cannot apply the attributes that the server sends. */
export const ATTRS_FAULT = "Unable to retrieve the scheduler attributes from server";
/** Beginning of the comment of a scheduler object whose scheduler is on another host and cannot be reached. */
export const NOT_REACHED = "Not reached: ";
/** Text for sched_logs, and the comment of a scheduler object that is to run but has no partition. */
export const NO_PARTITION = "Scheduler does not contain a partition";

/**
 * The environment variables that the server sets when it starts a scheduler. priv and log: its directories. say: a text that
 * the scheduler only writes into its log.
 */
export const SCHED_ENV = { priv: "PARTITA_SCHED_PRIV", log: "PARTITA_SCHED_LOG", say: "PARTITA_SCHED_SAY" } as const;

/** The lock of a scheduler's keeper (src/sched/shell/keeper.ts), in sched_priv or, if the scheduler runs as another user than its keeper, in schedPlaceOfRoot. */
export const KEEPER_LOCK = "keeper.lock";
/** The directory of what root's processes keep of a scheduler that runs as another user (src/sched/shell/relay.ts). home: PBS_HOME */
export const schedPlaceOfRoot = (home: string, name: string): string => `${home}/identity/${PLACE_OF_ROOT}${name}`;
export const PLACE_OF_ROOT = "sched_";

/** The signal with which the watch over modules ends a scheduler whose module does not return. It tells the parent process why the scheduler ended. */
export const WATCH_SIGNAL = "SIGALRM";

/** The reason why a job does not run, as data. code: a row of the reason table in src/sched/shapes/reasons.ts. */
export type Why = {
  readonly code: string;
  readonly module?: string;
  readonly resource?: string;
  /** requested, available and total amount as texts; the message shows them as (R: A: T:) or as a != b */
  readonly want?: string;
  readonly have?: string;
  readonly total?: string;
  /** the queue, host, state or other object to which the reason refers */
  readonly where?: string;
  /** the user, group or project to which the limit applies */
  readonly entity?: string;
  /** true: the job can never run with the present configuration */
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
  /** a running job has exceeded its soft_walltime. soft_walltime_s: its new expected run time, counted from its start */
  | { readonly kind: "extend"; readonly job: string; readonly soft_walltime_s: number }
  /**
   * preempts a job. methods: letters of S C R D, tried in this order. The server carries out the following decisions only
   * after the preemption has succeeded or failed, so that `run` may use the freed resources
   */
  | { readonly kind: "preempt"; readonly job: string; readonly methods: string; readonly for: string }
  | {
      readonly kind: "confirm-resv";
      readonly resv: string;
      /** `pbs-default` or a partition of this scheduler */
      readonly partition: string;
      /**
       * the requested occurrences in their order, each with the index of its exec_vnode in places; exactly one if the
       * reservation shall begin as soon as possible
       */
      readonly occurrences: readonly (Occurrence & { readonly place: number })[];
      /** the exec_vnode texts to which `place` refers */
      readonly places: readonly string[];
    }
  | { readonly kind: "deny-resv"; readonly resv: string; readonly why: Why }
  | { readonly kind: "qrun-refused"; readonly job: string; readonly text: string };
/** How a job was preempted: S suspended, C checkpointed, R requeued, D deleted. */
export type PreemptMethod = "S" | "C" | "R" | "D";
/** The server's answer to a decision. method: only for a preempt decision; absent if the job ended or left its vnodes by itself. */
export type Verdict =
  | { readonly ok: true; readonly method?: PreemptMethod }
  | { readonly ok: false; readonly code: number; readonly text: string };

// --- data of the frames between scheduler and server
/** pongs: the scheduler answers sched-ping. A scheduler of an earlier release does not know that frame. */
/** user: the user as whom a scheduler on another host runs; schedulers of earlier releases do not send this field */
export type SchedHello = {
  readonly name: string;
  readonly pid: number;
  readonly version: string;
  readonly pongs?: true;
  readonly user?: string;
};
/** more: further frames of the same cycle follow. The server sends changes only with the verdicts on the last frame. */
export type SchedDecisions = { readonly cycle: number; readonly decisions: readonly Decision[]; readonly more?: true };
export type SchedCycleEnd = {
  readonly cycle: number;
  readonly jobs_considered: number;
  readonly cycle_ms: number;
  /** replaces all former lists of this scheduler; absent: none */
  readonly hand_outs?: readonly HandOut[];
};
/** Waiting jobs in the order in which runners of a bucket get them when their jobs end (src/sched/cycle/hand-out.ts). bucket: its key. jobs: ids, also of subjobs. */
export type HandOut = { readonly bucket: string; readonly jobs: readonly string[] };
/**
 * A directory or configuration file of the scheduler has a fault: the server sets the comment of the scheduler object and
 * switches its scheduling off. fault null: there is no fault any more, and the server removes the comment.
 */
export type SchedFault = { readonly fault: string | null };
/** A client's question to a scheduler, passed on by the server. sees_others: the answer may contain the ids of other users' jobs. */
export type SchedQuestion =
  | { readonly kind: "explain"; readonly job: string; readonly sees_others: boolean }
  | { readonly kind: "view"; readonly sees_others: boolean };
/** token: chosen by the server. The scheduler answers at any time, also during a cycle. */
export type SchedAsk = { readonly token: number; readonly question: SchedQuestion };
/** The answer to sched-ask. value: an Explanation or a SchedView; null: the scheduler does not know the object that was asked for. */
export type SchedAnswer = { readonly token: number; readonly value: unknown };
/** number: chosen by the server; sched-pong repeats it. */
export type SchedPing = { readonly number: number };
/** A text for the administrator, which the server shows in the comment of the scheduler object while scheduling continues. null: the text no longer applies. */
export type SchedProblem = { readonly problem: string | null };
export type SchedRefused = { readonly code: number; readonly text: string };
export type SchedCycle = { readonly cycle: number; readonly command: SchedCommand; readonly job?: string };
export type SchedVerdicts = { readonly cycle: number; readonly verdicts: readonly Verdict[] };

export type SchedToServer = {
  "sched-hello": SchedHello;
  "sched-decisions": SchedDecisions;
  "sched-cycle-end": SchedCycleEnd;
  "sched-fault": SchedFault;
  /**
   * the scheduler ends because it was asked to (SIGTERM, SIGINT). The server does not start it again, as it would after a
   * crash, until scheduling is set to True
   */
  "sched-leaving": Record<string, never>;
  "sched-problem": SchedProblem;
  /** the scheduler asks for a cycle, because a time that it waited for has come */
  "sched-wake": Record<string, never>;
  "sched-answer": SchedAnswer;
  "sched-pong": SchedPing;
};
export type ServerToSched = {
  "sched-refused": SchedRefused;
  "sched-snapshot": Snapshot;
  "sched-delta": Delta;
  "sched-cycle": SchedCycle;
  /**
   * an attribute of the sched object other than scheduling has changed, or a reload was requested. The scheduler reads its
   * files again and checks its directories. A delta before this frame has the new attributes
   */
  "sched-configure": Record<string, never>;
  "sched-verdicts": SchedVerdicts;
  "sched-quit": Record<string, never>;
  "sched-ask": SchedAsk;
  "sched-ping": SchedPing;
};

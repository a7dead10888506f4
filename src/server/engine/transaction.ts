// The input and output of a request handler: the state to read, events to apply, effects to request. Handlers are deterministic functions of
// (state, request, identity, now). The shell commits their changes, and only then lets replies leave and actions run (group commit, ARCHITECTURE.md).
//
// I1. A handler checks everything before its first apply: after an apply it must not throw Reject or ask the history.
// I2. Effects (reply, part, act, log, account) leave only after the commit of the batch to which the transaction belongs.

import type { HookChanges, HookInput } from "#hooks/run/hook-input.ts";
import type { TimeZone } from "#model/civil-time.ts";
import type { Reject } from "#model/pbse.ts";
import type { HookEvent } from "#model/tables/hook.ts";
import type { PairRole } from "#protocol/failover/pair-role.ts";
import type { StandbyView } from "#protocol/hosts-view.ts";
import type { IdentityAsk } from "#protocol/identity-link.ts";
import type { Request } from "#protocol/messages.ts";
import type { Demand } from "#protocol/runner-link.ts";
import type { SchedQuestion } from "#protocol/sched-link.ts";
import type { LogRecord } from "#support/log-event.ts";
import type { Event } from "../state/event.ts";
import type { Attrs, Job, Queue, ServerState } from "../state/state.ts";
import type { ConnectedMom } from "./mom-runtime.ts";

/**
 * The user who makes a request, from the peer credentials of the socket. level: the rights of the user, computed from the
 * attributes managers and operators when the request begins.
 */
export type Identity = {
  readonly user: string;
  readonly uid: number;
  readonly groups: readonly string[];
  /** the host that the request comes from */
  readonly host: string;
  readonly level: "user" | "operator" | "manager";
  /** whether the user is root on the server's host; in user mode also the user of the complex */
  readonly root: boolean;
};

/** Properties of the server apart from its state; they are fixed while it runs. */
export type ServerConfig = {
  /** the short host name. It is the name of the server and the host in the names of its users */
  readonly host: string;
  /** the operating system's name of the machine, if the server has another name */
  readonly machine?: string;
  readonly home: string;
  /**
   * in a complex with two servers: the role of this server, the name of its host, the host of the other server, and what is known of servers that wait;
   * absent: the complex has one server
   */
  readonly pair?: {
    readonly role: PairRole;
    readonly host: string;
    readonly other: string;
    standbys(): readonly StandbyView[];
  };
  readonly pbs_version: string;
  /** user mode: all jobs run as this user, who is a manager; null: system mode */
  readonly own_user: string | null;
  /** epoch seconds as local time: `Fri Nov 20 09:26:28 2026` */
  ctime(epoch_s: number): string;
  /** a time zone of the tz database; null: there is none with that name */
  timeZone(name: string): TimeZone | null;
  /** whether the system knows a user of this name */
  userExists(name: string): boolean;
};

/** Why no scheduler looks at the jobs of a queue (scheds/unserved.ts). */
export type UnservedCode =
  | "NO_SCHEDULER"
  | "SCHEDULING_OFF"
  | "SCHED_FAULT"
  | "SCHED_UNREACHED"
  | "SCHED_CRASHED"
  | "SCHED_STARTING"
  | "SCHED_SILENT"
  | "SCHED_DOWN"
  | "NO_VNODES"
  | "NO_RUNNERS"
  | "BACKEND_FAILS";

export type Unserved = {
  readonly code: UnservedCode;
  /** "": the partition has no scheduler */
  readonly sched: string;
  readonly partition: string;
  /** one sentence without its full stop */
  readonly text: string;
  /** advice for the administrator */
  readonly remedy: string;
  /** time since which a starting scheduler has been away, epoch milliseconds */
  readonly since_ms?: number;
};

/** The outcome of a reservation request, as pbs_rsub and pbs_ralter print it. */
export type ResvWord = "CONFIRMED" | "DENIED" | "UNCONFIRMED" | "ALTER REQUESTED" | "delete, wait period expired";

/** How the server ends (qterm). scheds, moms: whether they end with the server */
export type ShutdownManner = { readonly manner: "immediate" | "delay" | "quick"; readonly scheds: boolean; readonly moms: boolean };

/** Work to do after the commit. Repeating it does no harm. */
export type Action =
  | { readonly kind: "trigger-sched"; readonly sched: string; readonly command: number }
  | { readonly kind: "configure-sched"; readonly sched: string }
  | { readonly kind: "start-sched"; readonly sched: string }
  | { readonly kind: "stop-sched"; readonly sched: string }
  | { readonly kind: "start-job"; readonly job: string }
  /** ends a run. force: without kill_delay. over: the server treats the run as ended and does not wait for the mom */
  | {
      readonly kind: "terminate-job";
      readonly job: string;
      readonly why: "delete" | "rerun";
      readonly force?: boolean;
      readonly over?: boolean;
    }
  /** the sisters on these hosts end their part of the run; the job continues */
  | { readonly kind: "release-sisters"; readonly job: string; readonly hosts: readonly string[] }
  | { readonly kind: "signal-job"; readonly job: string; readonly signal: string; readonly token: number }
  | { readonly kind: "message-job"; readonly job: string; readonly files: string; readonly message: string; readonly token: number }
  | { readonly kind: "modify-job-on-mom"; readonly job: string; readonly attrs: { readonly [name: string]: unknown } }
  /**
   * lets the job's scheduler decide about a qrun without vnodes; the scheduler's text is the reply. token null: no client
   * waits. Refused with 15099 if the scheduler cannot be reached
   */
  | { readonly kind: "run-by-sched"; readonly sched: string; readonly job: string; readonly token: number | null }
  /** asks a scheduler, whose answer becomes the reply; refused with 15099 if the scheduler cannot be reached */
  | { readonly kind: "ask-sched"; readonly sched: string; readonly question: SchedQuestion; readonly user: string; readonly token: number }
  /** the request is answered when the mom has accepted the job or sent it back (jobs/start-wait.ts) */
  | { readonly kind: "await-start"; readonly job: string; readonly token: number }
  /** the request is answered when the job has ended or is queued again */
  | { readonly kind: "await-end" | "await-rerun"; readonly job: string; readonly token: number }
  /** the request is answered with the outcome of a reservation, at the latest at until_s (epoch seconds) */
  | { readonly kind: "await-resv"; readonly resv: string; readonly token: number; readonly until_s: number }
  | { readonly kind: "answer-resv"; readonly resv: string; readonly word: ResvWord }
  | { readonly kind: "discard-on-host"; readonly job: string; readonly host: string }
  | { readonly kind: "mail"; readonly job: string; readonly point: string; readonly text: string }
  | { readonly kind: "mail-resv"; readonly resv: string; readonly point: string; readonly text: string }
  | { readonly kind: "backup"; readonly file: string; readonly token: number }
  /** a person says that a runner does not exist any more */
  | { readonly kind: "runner-dead"; readonly runner: string; readonly by: string }
  | { readonly kind: "ask-authority"; readonly ask: IdentityAsk; readonly token: number }
  | ({ readonly kind: "shutdown" } & ShutdownManner)
  /** gives the other server of the complex an order; then this one begins to end, and the request is answered. Without the order, this server goes on */
  | { readonly kind: "order-other"; readonly order: "stop" | "idle"; readonly how: ShutdownManner; readonly token: number }
  /** tells the secondary server, which waits, to end; the request is answered when the secondary has the order */
  | { readonly kind: "stop-secondary"; readonly token: number }
  | {
      readonly kind: "reply";
      readonly token: number;
      readonly ok: boolean;
      readonly value?: unknown;
      readonly code?: number;
      readonly text?: string | null;
    };

/**
 * The question to the hooks of an event. key: identifies this question within the request. input: makes the input of the hooks;
 * called only if they run.
 */
export type HookAsk = { readonly key: string; readonly event: HookEvent; readonly input: () => HookInput };

/** The answer of an event's hooks. by: the last hook that rejected or changed something. */
export type HookVerdict = { readonly changes: HookChanges; readonly by: string } & (
  | { readonly kind: "accept" }
  | { readonly kind: "reject"; readonly reject: Reject }
);

export type AccountingRecord = { readonly type: string; readonly id: string; readonly text: string };

export type Transaction = {
  readonly state: ServerState;
  readonly config: ServerConfig;
  /** the server is ending: no job is started */
  readonly stopping: boolean;
  /** epoch seconds, whole */
  readonly now_s: number;
  readonly who: Identity;
  /** identifies this request. A handler whose answer comes later passes the token to the action that will bring the answer */
  readonly token: number;
  /** changes the state. Also sets mtime of a changed job */
  apply(event: Event): void;
  act(action: Action): void;
  log(record: LogRecord): void;
  account(record: AccountingRecord): void;
  /**
   * splits the request into parts and returns their tokens. The request is answered when actions with these tokens
   * have answered all parts (joint-answers.ts)
   */
  split(count: number): readonly number[];
  /** sends items of a status reply; may be called many times */
  part(items: readonly unknown[]): void;
  /**
   * A finished job by its full id; undefined: the history has no such job. Reading the store takes time: the first call for
   * an id ends the handler by an exception of the core, and the handler is called again when the record was read. So call it
   * before the first apply, and never catch unknown exceptions.
   */
  history(id: string): Job | undefined;
  /** reads the records of all these ids at once, so that history() then answers without further waiting */
  historyOf(ids: readonly string[]): void;
  /**
   * The answers of the hooks of these events; null: the event has no hooks. Like history(), it must be called before the
   * first apply. A request should ask all its hooks in one call, so that they run at the same time.
   */
  hooks(asks: readonly HookAsk[]): (HookVerdict | null)[];
  /** whether the mom of a host is connected */
  hasMom(host: string): boolean;
  /** all connected moms */
  moms(): readonly ConnectedMom[];
  /**
   * The name of a host: `host` itself if it is a name that has an address; if `host` is an address, the name of its host; null: unknown. Like
   * history(), it must be called before the first apply.
   */
  resolved(host: string): string | null;
  /** what the backend says about a runner that waits; "": nothing */
  runnerReason(name: string): string;
  /** the jobs that waited for runners when they were last counted */
  demands(): readonly Demand[];
  /** why no scheduler looks at the jobs of an execution queue; null: a scheduler does */
  unserved(queue: Queue): Unserved | null;
  /** returns a function that replaces the comment in a job's attributes if no scheduler looks at the job */
  commentNow(): (attrs: Attrs) => Attrs;
};

/** Iterates over the history in order of seq, page by page. Subjobs follow their array in order of index. */
export type HistoryStream = {
  readonly queue?: string;
  /** only jobs of these numbers */
  readonly seqs?: readonly number[];
  /** subjobs included */
  readonly subjobs?: boolean;
  /** called with each page (the last page may be empty). The parts of the answer that it sends are sent in the order of the pages. A Reject ends the walk and is the answer */
  page(tx: Transaction, jobs: readonly Job[], last: boolean): void;
  /** the stream that follows this one; called after the last page */
  next?(): Stream | null;
  /** the value of the reply; called when no stream follows */
  value?(): unknown;
};

/** Long work that is done in slices, with other requests served between them. */
export type Slices = {
  /**
   * Does the next slice and returns whether more slices follow. It may use only records of the history that were read
   * before. A Reject ends the work and is the answer.
   */
  slice(tx: Transaction): boolean;
  next?(): Stream | null;
  value?(): unknown;
};

/** The source of an answer that is made in pieces; the reply leaves after the last piece. */
export type Stream = HistoryStream | Slices;

/** The result of a handler: a value for the reply (with an optional warning text), a stream, or `deferred` if a reply action follows later. */
export type Answer = { readonly value?: unknown; readonly text?: string } | { readonly stream: Stream } | "deferred";
/** Handles one kind of request; each file in server/requests/ has one handler. Throws Reject (src/model/pbse.ts) to refuse. */
export type RequestHandler<K extends Request["kind"]> = (tx: Transaction, request: Extract<Request, { kind: K }>) => Answer;

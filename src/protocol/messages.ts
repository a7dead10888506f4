// What a client says to the server and what the server answers. Types only: protocol/schema.ts checks them at the trust boundary,
// server/requests/ serves them (one file a kind), protocol/client.ts sends them.
//
// A frame is JSON followed by a form feed, as node-ipc writes it: {"type": T, "data": D}\f.
//   client -> server   {"type":"request","data":{"id":7,"kind":"delete-job",...}}      id: chosen by the client, unique among its open requests
//   server -> client   {"type":"reply","data":{"id":7,"ok":true,"value":...}}          exactly one per request, in any order
//                      {"type":"reply","data":{"id":7,"ok":false,"code":15001,"text":"Unknown Job Id"}}
//                      {"type":"part","data":{"id":7,"items":[...]}}                   any number before the reply (status requests)
// I1. Nobody says who he is: the server takes user and groups from the socket's peer credentials.
// I2. Attribute values travel as the text the user typed; only the server parses them.

import type { TerminalTicket } from "./terminal/link.ts";

/** One attribute operation as typed by the user. */
export type AttrOp = {
  readonly name: string;
  readonly resource?: string;
  readonly op: "=" | "+=" | "-=" | "unset";
  readonly value: string;
};

/** An attribute of a submission: no operator, it is always set. */
export type AttrValueText = { readonly name: string; readonly resource?: string; readonly value: string };

export type ManagedObject = "server" | "queue" | "node" | "resource" | "sched" | "hook" | "pbshook";
export type StatusObject = ManagedObject | "job" | "resv";

/** qmgr create|delete|set|unset. name "" means all objects of the type (server: the server; sched: see docs/reference/qmgr.md 3). */
export type ManagerRequest = {
  readonly kind: "manager";
  readonly verb: "create" | "delete" | "set" | "unset";
  readonly object: ManagedObject;
  readonly name: string;
  readonly attrs: readonly AttrOp[];
};

/**
 * qmgr import: the file of a hook. content: base64 of the file with encoding default, the file's own text (base64) with encoding base64.
 * suffix: of the file's name (configuration files only), "" none.
 */
export type ImportHookRequest = {
  readonly kind: "import-hook";
  readonly object: "hook" | "pbshook";
  readonly hook: string;
  readonly content_type: string;
  readonly encoding: string;
  readonly content: string;
  readonly suffix: string;
};
/** qmgr export. Reply value: {content}, base64 of the file. */
export type ExportHookRequest = {
  readonly kind: "export-hook";
  readonly object: "hook" | "pbshook";
  readonly hook: string;
  readonly content_type: string;
};

/**
 * Status of objects. ids empty: all of the type. For jobs an id may be a job id (`12`, `12.svr`, `12[3].svr`, `12[].svr`) ; `queue` restricts
 * to one queue. attrs: only these attributes (names, case-insensitive), absent: all the caller may read.
 * Items come in `part` frames in the order of ids (all: of creation; jobs: of queue rank); an unknown id is an item with code and text.
 */
export type StatusRequest = {
  readonly kind: "status";
  readonly object: StatusObject;
  readonly ids: readonly string[];
  readonly attrs?: readonly string[];
  readonly queue?: string;
  /** jobs: also finished and moved ones (qstat -x), or only those (qstat -H). Default: neither */
  readonly history?: "with" | "only";
  /** jobs: expand arrays into their subjobs (qstat -t) */
  readonly subjobs?: boolean;
  /** jobs: items say only what is different from the one before (brief-items.ts) */
  readonly brief?: boolean;
};

/** Attributes in definition order: text; resource lists as objects resource -> text; entity limits as one string an entry. Times are epoch seconds as text. */
export type WireAttrs = {
  readonly [name: string]: string | readonly string[] | { readonly [resource: string]: string | readonly string[] };
};
export type StatusItem =
  | { readonly id: string; readonly attrs: WireAttrs }
  | { readonly id: string; readonly code: number; readonly text: string | null };

/** qselect. Criteria are joined by and. Reply value: ids in queue-rank order. */
export type SelectJobsRequest = {
  readonly kind: "select-jobs";
  readonly criteria: readonly {
    readonly name: string;
    readonly resource?: string;
    readonly op: "eq" | "ne" | "ge" | "gt" | "le" | "lt";
    readonly value: string;
  }[];
  /** letters of job states, e.g. "QR" */
  readonly states?: string;
  /** `queue`, `@server` or `queue@server` */
  readonly destination?: string;
  readonly history?: "with" | "only";
  readonly subjobs?: boolean;
  readonly arraysOnly?: boolean;
};

/** One submission. script null: `qsub -- exe args` (executable and argument_list are in attrs). Reply value: {id}. */
export type QueueJobRequest = {
  readonly kind: "queue-job";
  /** "" = the server's default queue; `queue`, `@server`, `queue@server` */
  readonly destination: string;
  readonly attrs: readonly AttrValueText[];
  readonly script: string | null;
  /** of an interactive job: where qsub waits for it */
  readonly terminal?: TerminalTicket;
};
/** Bulk submission: reply value {results: ({id} | {code, text})[]} in the order of jobs. At most limits.jobs_per_frame_max jobs. */
export type QueueJobsRequest = { readonly kind: "queue-jobs"; readonly jobs: readonly Omit<QueueJobRequest, "kind">[] };

export type DeleteJobRequest = {
  readonly kind: "delete-job";
  readonly job: string;
  /** -W force */
  readonly force?: boolean;
  /** -x: also removes the history record */
  readonly history?: boolean;
  /** no mail about it */
  readonly suppressMail?: boolean;
};
export type ModifyJobRequest = { readonly kind: "modify-job"; readonly job: string; readonly attrs: readonly AttrOp[] };
/** holds: letters of uosp */
export type HoldJobRequest = { readonly kind: "hold-job"; readonly job: string; readonly holds: string };
export type ReleaseJobRequest = { readonly kind: "release-job"; readonly job: string; readonly holds: string };
export type MoveJobRequest = { readonly kind: "move-job"; readonly job: string; readonly destination: string };
export type OrderJobRequest = { readonly kind: "order-job"; readonly job: string; readonly other: string };
/** files: o = stdout, e = stderr of the job */
export type MessageJobRequest = { readonly kind: "message-job"; readonly job: string; readonly files: string; readonly message: string };
/** signal: a name with or without SIG, a number, suspend, resume, admin-suspend, admin-resume */
export type SignalJobRequest = { readonly kind: "signal-job"; readonly job: string; readonly signal: string };
/** pbs_release_nodes: hosts or vnodes; all: every one beyond the first host; keep: but so many hosts, or but chunks of `select=...`. */
export type ReleaseNodesRequest = {
  readonly kind: "release-nodes";
  readonly job: string;
  readonly nodes: readonly string[];
  readonly all?: boolean;
  readonly keep?: string;
};
export type RerunJobRequest = { readonly kind: "rerun-job"; readonly job: string; readonly force?: boolean };
/** exec_vnode absent: the job's scheduler runs a one-job cycle; "-": the resources assigned before; else a vnode specification. async: -a, no answer awaited */
export type RunJobRequest = { readonly kind: "run-job"; readonly job: string; readonly exec_vnode?: string; readonly async?: boolean };
/** Reply value {server}: where the job is. */
export type LocateJobRequest = { readonly kind: "locate-job"; readonly job: string };
/** Why a job waits, from its scheduler. Reply value: an Explanation (explanation.ts). */
export type ExplainJobRequest = { readonly kind: "explain-job"; readonly job: string };
/** What a scheduler is doing. Reply value: a SchedView (sched-view.ts). */
export type ViewSchedRequest = { readonly kind: "view-sched"; readonly sched: string };
/** Which jobs wait while no scheduler looks at them, and why. Reply value: UnservedView[] (sched-view.ts). */
export type ViewUnservedRequest = { readonly kind: "view-unserved" };
/** Answered when the job ends (qsub -W block=true). Reply value: {exit_status?: number, message?: string}. */
export type WaitJobRequest = { readonly kind: "wait-job"; readonly job: string };
/** qterm. manner as -t. */
export type ShutdownRequest = {
  readonly kind: "shutdown";
  readonly manner: "immediate" | "delay" | "quick";
  readonly scheds: boolean;
  readonly moms: boolean;
};
/** A consistent copy of the store into FILE (absolute path on the server host; must not exist). Managers only. */
export type BackupRequest = { readonly kind: "backup"; readonly file: string };
/**
 * pbs_rsub. reserve_start, reserve_end in epoch seconds, the duration as Resource_List.walltime; `partition` for -p; reserve_rrule with reserve_timezone; reserve_job
 * or qmove for a reservation made from a job; hosts: for their maintenance. interactive other than 0: answered when it is decided, or after that many seconds.
 * Reply value {id, word}: word as printed, UNCONFIRMED, CONFIRMED, DENIED or `delete, wait period expired`.
 */
export type SubmitResvRequest = {
  readonly kind: "submit-resv";
  readonly attrs: readonly AttrValueText[];
  readonly hosts?: readonly string[];
};
export type DeleteResvRequest = { readonly kind: "delete-resv"; readonly resv: string };
/** pbs_ralter; the duration as reserve_duration. Reply value as of submit-resv; word may be `ALTER REQUESTED`. force: without asking a scheduler */
export type ModifyResvRequest = {
  readonly kind: "modify-resv";
  readonly resv: string;
  readonly attrs: readonly AttrValueText[];
  readonly force?: boolean;
};

export type Request =
  | ManagerRequest
  | StatusRequest
  | SelectJobsRequest
  | QueueJobRequest
  | QueueJobsRequest
  | ImportHookRequest
  | ExportHookRequest
  | DeleteJobRequest
  | ModifyJobRequest
  | HoldJobRequest
  | ReleaseJobRequest
  | MoveJobRequest
  | OrderJobRequest
  | MessageJobRequest
  | SignalJobRequest
  | RerunJobRequest
  | ReleaseNodesRequest
  | RunJobRequest
  | LocateJobRequest
  | WaitJobRequest
  | ExplainJobRequest
  | ViewSchedRequest
  | ViewUnservedRequest
  | ShutdownRequest
  | BackupRequest
  | SubmitResvRequest
  | DeleteResvRequest
  | ModifyResvRequest;

export type RequestKind = Request["kind"];

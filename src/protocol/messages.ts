// Requests of clients and replies of the server. This file contains types only: protocol/schema.ts checks requests at the trust
// boundary, server/requests/ serves them (one file for each kind), protocol/client.ts sends them.
//
// A frame is JSON followed by a form feed, as node-ipc writes it: {"type": T, "data": D}\f.
//   client -> server   {"type":"request","data":{"id":7,"kind":"delete-job",...}}   id: unique among the client's open requests
//   server -> client   {"type":"reply","data":{"id":7,"ok":true,"value":...}}       exactly one per request, in any order
//                      {"type":"reply","data":{"id":7,"ok":false,"code":15001,"text":"Unknown Job Id"}}
//                      {"type":"part","data":{"id":7,"items":[...]}}                any number before the reply (status requests)
// I1. No request names its user: the server takes user and groups from the peer credentials of the socket, or from the proof of a user on another host (proof/).
// I2. Attribute values are sent as the text that the user typed; only the server parses them.

import type { IdentityAsk } from "./identity-link.ts";
import type { TerminalTicket } from "./terminal/link.ts";

/** One attribute operation as typed by the user. */
export type AttrOp = {
  readonly name: string;
  readonly resource?: string;
  readonly op: "=" | "+=" | "-=" | "unset";
  readonly value: string;
};

/** An attribute of a submission. It has no operator, because it is always set. */
export type AttrValueText = { readonly name: string; readonly resource?: string; readonly value: string };

export type ManagedObject = "server" | "queue" | "node" | "resource" | "sched" | "hook" | "pbshook" | "backend";
export type StatusObject = ManagedObject | "job" | "resv";

/** qmgr create|delete|set|unset. An empty name means all objects of the type. For `server` it means the server; for `sched` see docs/reference/qmgr.md 3. */
export type ManagerRequest = {
  readonly kind: "manager";
  readonly verb: "create" | "delete" | "set" | "unset";
  readonly object: ManagedObject;
  readonly name: string;
  readonly attrs: readonly AttrOp[];
};

/**
 * qmgr import: the file of a hook. content: the base64 of the file for encoding `default`; the text of the file, which is
 * itself base64, for encoding `base64`. suffix: the suffix of the file's name (configuration files only), or "".
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
/** qmgr export. The reply value is {content}, the base64 of the file. */
export type ExportHookRequest = {
  readonly kind: "export-hook";
  readonly object: "hook" | "pbshook";
  readonly hook: string;
  readonly content_type: string;
};

/**
 * Asks for the status of objects. ids: the objects; empty: all objects of the type. The id of a job may be `12`, `12.svr`,
 * `12[3].svr` or `12[].svr`. `queue` restricts the request to one queue. attrs: the names of the wanted attributes, in upper
 * or lower case; absent: all that the caller may read. Items arrive in `part` frames in the order of ids. Without ids they
 * arrive in the order of creation, and jobs in the order of queue_rank. An unknown id gives an item with code and text.
 */
export type StatusRequest = {
  readonly kind: "status";
  readonly object: StatusObject;
  readonly ids: readonly string[];
  readonly attrs?: readonly string[];
  readonly queue?: string;
  /** jobs: `with` also returns finished and moved jobs (qstat -x); `only` returns nothing else (qstat -H). Absent: no such jobs */
  readonly history?: "with" | "only";
  /** jobs: true expands arrays into their subjobs (qstat -t) */
  readonly subjobs?: boolean;
  /** jobs: true lets each item contain only the differences from the item before it (brief-items.ts) */
  readonly brief?: boolean;
};

/**
 * Attributes in the order of their definitions. A value is a text; a resource list is an object resource -> text; entity limits
 * are one string for each entry. Times are epoch seconds as text.
 */
export type WireAttrs = {
  readonly [name: string]: string | readonly string[] | { readonly [resource: string]: string | readonly string[] };
};
export type StatusItem =
  | { readonly id: string; readonly attrs: WireAttrs }
  | { readonly id: string; readonly code: number; readonly text: string | null };

/** qselect. A job must meet all criteria. The reply value has the ids in the order of queue_rank. */
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

/** One submission. script: null for `qsub -- exe args` (executable and argument_list are in attrs). The reply value is {id}. */
export type QueueJobRequest = {
  readonly kind: "queue-job";
  /** "" = the server's default queue; `queue`, `@server`, `queue@server` */
  readonly destination: string;
  readonly attrs: readonly AttrValueText[];
  readonly script: string | null;
  /** for an interactive job: the data with which its terminal relay reaches qsub */
  readonly terminal?: TerminalTicket;
};
/** Bulk submission of at most limits.jobs_per_frame_max jobs. The reply value is {results: ({id} | {code, text})[]} in the order of jobs. */
export type QueueJobsRequest = { readonly kind: "queue-jobs"; readonly jobs: readonly Omit<QueueJobRequest, "kind">[] };

export type DeleteJobRequest = {
  readonly kind: "delete-job";
  readonly job: string;
  /** qdel -W force */
  readonly force?: boolean;
  /** qdel -x: also removes the history record */
  readonly history?: boolean;
  /** true: no mail is sent about the deletion */
  readonly suppressMail?: boolean;
};
export type ModifyJobRequest = { readonly kind: "modify-job"; readonly job: string; readonly attrs: readonly AttrOp[] };
/** Sets holds of a job (qhold). holds: letters of u, o, s and p. */
export type HoldJobRequest = { readonly kind: "hold-job"; readonly job: string; readonly holds: string };
export type ReleaseJobRequest = { readonly kind: "release-job"; readonly job: string; readonly holds: string };
export type MoveJobRequest = { readonly kind: "move-job"; readonly job: string; readonly destination: string };
export type OrderJobRequest = { readonly kind: "order-job"; readonly job: string; readonly other: string };
/** Writes a message into files of a running job (qmsg). files: o = stdout, e = stderr of the job. */
export type MessageJobRequest = { readonly kind: "message-job"; readonly job: string; readonly files: string; readonly message: string };
/** qsig. signal: a name with or without SIG, a number, suspend, resume, admin-suspend or admin-resume. */
export type SignalJobRequest = { readonly kind: "signal-job"; readonly job: string; readonly signal: string };
/**
 * pbs_release_nodes. nodes: names of hosts or vnodes. all: releases every host except the first. keep: keeps only that many
 * hosts, or only the chunks of `select=...`.
 */
export type ReleaseNodesRequest = {
  readonly kind: "release-nodes";
  readonly job: string;
  readonly nodes: readonly string[];
  readonly all?: boolean;
  readonly keep?: string;
};
export type RerunJobRequest = { readonly kind: "rerun-job"; readonly job: string; readonly force?: boolean };
/**
 * qrun. exec_vnode: a vnode specification; "-" stands for the vnodes assigned before; absent: the job's scheduler runs a
 * cycle for this job alone. async (-a): the reply does not wait for the start.
 */
export type RunJobRequest = { readonly kind: "run-job"; readonly job: string; readonly exec_vnode?: string; readonly async?: boolean };
/** Asks where a job is. The reply value is {server}: the server that has the job. */
export type LocateJobRequest = { readonly kind: "locate-job"; readonly job: string };
/** Asks the job's scheduler why the job waits. The reply value is an Explanation (explanation.ts). */
export type ExplainJobRequest = { readonly kind: "explain-job"; readonly job: string };
/** Asks what a scheduler is doing. The reply value is a SchedView (sched-view.ts). */
export type ViewSchedRequest = { readonly kind: "view-sched"; readonly sched: string };
/** Asks which waiting jobs are served by no scheduler, and why. The reply value is UnservedView[] (sched-view.ts). */
export type ViewUnservedRequest = { readonly kind: "view-unserved" };
/** Asks for the hosts of the complex (`partita hosts`). The reply value is { hosts: HostView[] } (hosts-view.ts). */
export type ViewHostsRequest = { readonly kind: "view-hosts" };
/** Returns backends and their runners (`partita runners`); the answer is a RunnersView. */
export type ViewRunnersRequest = { readonly kind: "view-runners" };
/**
 * `partita confirm-dead`: makes lost runners count as dead. names: names of runners, or ids of jobs on them; empty: all lost runners. age_s: only runners that
 * have been lost for so many seconds
 */
export type ConfirmDeadRequest = { readonly kind: "confirm-dead"; readonly names: readonly string[]; readonly age_s: number };
/** Waits for the end of a job (qsub -W block=true): the reply comes when it ends. The reply value is {exit_status?: number, message?: string}. */
export type WaitJobRequest = { readonly kind: "wait-job"; readonly job: string };
/** qterm. manner: the value of option -t. */
export type ShutdownRequest = {
  readonly kind: "shutdown";
  readonly manner: "immediate" | "delay" | "quick";
  readonly scheds: boolean;
  readonly moms: boolean;
  /** what the other server of the complex does (-f, -F: stop; -i: idle); absent: it takes over */
  readonly other?: "stop" | "idle";
  /** only the secondary server ends (-F) */
  readonly secondary_only?: true;
};
/** Writes a consistent copy of the store into a file. file: an absolute path on the server host; nothing may exist there yet. Managers only. */
export type BackupRequest = { readonly kind: "backup"; readonly file: string };
/**
 * `partita cert`: a question or an order to the certificate authority. Only root may send it. The reply value is that of the
 * verb in IdentityAnswers (identity-link.ts).
 */
export type IdentityRequest = { readonly kind: "identity"; readonly ask: IdentityAsk };
/**
 * pbs_rsub. reserve_start and reserve_end are epoch seconds; the duration is Resource_List.walltime; `partition` is option -p;
 * reserve_rrule comes with reserve_timezone; reserve_job or qmove make a reservation from a job. hosts: the hosts of a
 * maintenance reservation. interactive: if it is not 0, the reply comes when the reservation is decided, or after that many
 * seconds. The reply value is {id, word}. word is what the command prints: UNCONFIRMED, CONFIRMED, DENIED or `delete, wait
 * period expired`.
 */
export type SubmitResvRequest = {
  readonly kind: "submit-resv";
  readonly attrs: readonly AttrValueText[];
  readonly hosts?: readonly string[];
};
export type DeleteResvRequest = { readonly kind: "delete-resv"; readonly resv: string };
/**
 * pbs_ralter. The duration is reserve_duration. The reply value has the form of the reply to submit-resv; word may also be `ALTER REQUESTED`.
 * force: the server alters the reservation without asking a scheduler.
 */
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
  | ViewHostsRequest
  | ViewRunnersRequest
  | ConfirmDeadRequest
  | ShutdownRequest
  | BackupRequest
  | IdentityRequest
  | SubmitResvRequest
  | DeleteResvRequest
  | ModifyResvRequest;

export type RequestKind = Request["kind"];

// Messages between server and mom, in frames like those of messages.ts. The mom connects to the server and sends
// mom-hello, over the server's socket on the same host, over TLS from another one.
//
// I1. A start request carries run_count. A mom refuses a run_count that is not larger than the last one it saw for that job.
// I2. A mom repeats an obit at every reconnect until the server acknowledges it. To acknowledge an unknown obit is harmless.
// I3. mom-hello lists every job that the mom has. The server answers which jobs the mom must keep and which it must kill.
// I4. A mom confirms the start of a job before it starts any process of the job, and it starts nothing before it is welcomed. A
//     mom that was silent for too long ends the connection and sends hello again, because a start that it had not confirmed may
//     have been given to other hosts by then (src/server/moms/heartbeat.ts, src/mom/driver/stall.ts).
// I5. The server answers the confirmation of a mom on another host (mom-confirmed). Such a mom starts no process of the job before
//     this answer, because a network can fail in one direction only.
// I6. A mom on another host reports usage and other values that change by datagrams, and over the connection while datagrams are
//     not answered (src/mom/driver/status-reports.ts).
// I7. When the server has lost a mom, it does not start the mom's rerunnable jobs anywhere else before the mom's grace is over,
//     counted from the mom's last message. The mom ends these jobs before its grace is over, counted from its latest message
//     that the server has answered, which is never later. So a job does not run twice, although the two cannot speak.
// I8. Commands to many moms may come by multicast. Each has a position among the frames of the connection, and is carried out once,
//     at this position (multicast/stream.ts).

import type { GroupOrder } from "./multicast/group-desk.ts";
import type { GroupType } from "./multicast/stream.ts";

export type MomVnode = {
  readonly name: string;
  /** reported attributes: resources_available.*, sharing, pcpus ...; values have the types of src/model */
  readonly attrs: { readonly [name: string]: unknown };
};
/**
 * How many seconds a job on several hosts waits for its hosts, from the configuration of its mother superior. An absent field
 * means the default (src/server/moms/patience.ts).
 */
export type MomPatience = {
  /** $sister_join_job_alarm */
  readonly join_s?: number;
  /** $job_launch_delay */
  readonly launch_s?: number;
  /** $max_poll_downtime */
  readonly downtime_s?: number;
};
/**
 * How many seconds the server waits for a mom that it has lost, before it starts the jobs again that the mom had (I7). number:
 * counts the changes on one connection; 0 is what the mom has from an earlier connection. requeue_s: for jobs of which the host
 * is the first; 0: for ever. sister_s: for jobs of which it is another one.
 */
export type MomGrace = { readonly number: number; readonly requeue_s: number; readonly sister_s: number };
export type MomHello = {
  readonly host: string;
  /** address of the socket on which the mom accepts requests of tasks (task-link.ts) */
  readonly tasks?: string;
  /** the address from which the mom on another host has connected; the server adds it, and no mom sends it */
  readonly address?: string;
  /** TCP port on which the mom accepts requests of the moms of other hosts */
  readonly port: number;
  readonly pid: number;
  /** the version of PBS */
  readonly version: string;
  /** the version of Partita; absent: a mom of an earlier release */
  readonly release?: string;
  readonly vnodes: readonly MomVnode[];
  readonly patience?: MomPatience;
  readonly jobs: readonly {
    readonly job: string;
    readonly run_count: number;
    readonly state: "starting" | "running" | "suspended" | "ended";
    readonly session_id?: number;
  }[];
  /** digest of the hooks that the mom has; absent: the mom has none */
  readonly hooks?: string;
  /** jobs of which the mom has a checkpoint; the server discards checkpoints that no job needs */
  readonly checkpoints?: readonly string[];
  /** jobs whose output the mom keeps for their next run; the server discards output that no job needs */
  readonly outputs?: readonly string[];
  /**
   * the mom answers mom-ping and confirms starts; a mom of an earlier release, which keeps running because of its jobs, does
   * not know these frames
   */
  readonly pongs?: true;
  /**
   * the mom is a runner of a backend (docs/runners.md). token: proves that it is the runner with the name `host`; the gate checks it and passes on an empty text. age_s: how
   * long ago the backend started the runner
   */
  readonly runner?: { readonly token: string; readonly age_s: number };
  /** the mom is on another host (I5, I6). every_s: how often it reports */
  readonly reports?: { readonly every_s: number };
  /** the grace that the mom knows; null: it knows none yet; absent: a mom of an earlier release, which does not heed I7 */
  readonly grace?: MomGrace | null;
  /** the mom counts the positions of frames and can receive commands by multicast (multicast/stream.ts) */
  readonly multicast?: true;
};
/**
 * What a mom on another host reports repeatedly (I6). Each report has a larger number than the one before. A report is also how
 * any mom asks whether the server still hears it (I7).
 */
export type MomReport = {
  readonly number: number;
  /** the number of the newest grace that the mom knows */
  readonly grace?: number;
  /** the mom's clock, epoch milliseconds; absent in a report that only asks (I7) */
  readonly clock_ms?: number;
  /** only in a report over the connection: number of successive datagrams without an answer */
  readonly unheard?: number;
  /** the reason why the mom cannot start jobs */
  readonly ill?: string;
  /** usage of runs that is not in an answered report; one report may contain only a part of it */
  readonly jobs?: MomToServer["mom-usage"]["jobs"];
  /** the resources of mom-site, if they have changed since the last answered report */
  readonly site?: { readonly [name: string]: string };
};
/**
 * Everything that a mom needs to run a job. The mom of the first host in exec_host (the mother superior) runs the job. The
 * other moms (sisters) receive the same record, prepare their host for tasks of the job and report that with mom-started. A
 * mom-terminate or an obit ends their part (src/server/moms/sisters.ts). attrs: the job's attributes by PBS name, with typed
 * values (src/model).
 */
export type MomJob = {
  readonly id: string;
  readonly run_count: number;
  readonly user: string;
  readonly group: string;
  readonly queue: string;
  readonly exec_host: string;
  readonly exec_vnode: string;
  readonly attrs: { readonly [name: string]: unknown };
  /** null: attrs contains executable and argument_list */
  readonly script: string | null;
  readonly kill_delay_s: number;
  /** the job continues from the checkpoint on this host */
  readonly restart?: true;
  /** secret of this run: PBS_JOBCOOKIE */
  readonly cookie: string;
  /**
   * socket addresses for requests of tasks, of those hosts of the job whose moms run on the same machine as this mom; absent: the
   * job has only one host
   */
  readonly tasks?: { readonly [host: string]: string };
  /** the hosts of the job that are reached by TCP; absent: there are none */
  readonly sisters?: MomSisters;
};
/** secret: known only to the moms of this run. hosts: the places of these moms, by host. */
export type MomSisters = { readonly secret: string; readonly hosts: { readonly [host: string]: MomPlace } };
/**
 * Where the mom of a host accepts requests by TCP. address null: it is on the server's host, which each mom reaches as it reaches
 * the server, and it shows the server's certificate; otherwise it shows the certificate of the host of that name.
 */
export type MomPlace = { readonly address: string | null; readonly port: number };
/** A hook of execution hosts. content: the text of the hook in base64. */
export type MomHook = {
  readonly name: string;
  readonly type: string;
  readonly event: readonly string[];
  readonly user: string;
  readonly alarm: number;
  readonly freq: number;
  readonly order: number;
  readonly debug: boolean;
  readonly fail_action: readonly string[];
  readonly script: { readonly language: "python" | "javascript"; readonly content: string };
  readonly config: { readonly suffix: string; readonly content: string } | null;
};
/** All hooks that a mom runs, in their order. digest: identifies this set of hooks. resources: the type of each resource, by its name. */
export type MomHooks = {
  readonly digest: string;
  readonly hooks: readonly MomHook[];
  readonly resources: { readonly [name: string]: string };
};

export type Usage = { readonly [resource: string]: string | number };

/** The effects of a hook on a host that the server must know. actions: those actions of fail_action that the server must take now. */
export type MomHookReport = {
  readonly hook: string;
  readonly event: string;
  readonly actions: readonly string[];
  readonly restart_cycle: boolean;
  /** values that the hook gave to vnode attributes, by vnode name, as texts */
  readonly vnodes: { readonly [vnode: string]: unknown };
  readonly job?: { readonly job: string; readonly run_count: number; readonly changes: { readonly [name: string]: unknown } };
};

export type MomToServer = {
  "mom-hello": MomHello;
  /** sent after SIGHUP or a change of definition files */
  "mom-vnodes": { readonly vnodes: readonly MomVnode[]; readonly patience?: MomPatience };
  /**
   * a sister has created the job's files, and its execjob_begin hooks have accepted the job; mom-started follows when its
   * execjob_prologue hooks have accepted it too
   */
  "mom-joined": { readonly job: string; readonly run_count: number };
  "mom-started": {
    readonly job: string;
    readonly run_count: number;
    readonly session_id: number;
    readonly jobdir: string;
    /** the run was restarted from a checkpoint */
    readonly restarted?: true;
  };
  /** resources that the site defined in the mom's configuration, as texts, for schedulers that ask for them (sched_config mom_resources) */
  "mom-site": { readonly resources: { readonly [name: string]: string } };
  /** whether other users use the host ($max_load, $kbd_idle); the state is then busy. After a mom-hello, busy counts as false */
  "mom-busy": { readonly busy: boolean };
  /** idled true: the job was stopped because the host is in use (state U); false: the job continues */
  "mom-idled": { readonly job: string; readonly run_count: number; readonly idled: boolean };
  "mom-usage": { readonly jobs: readonly { readonly job: string; readonly run_count: number; readonly used: Usage }[] };
  /** a report that comes over the connection (I6) */
  "mom-report": MomReport;
  "mom-obit": {
    readonly job: string;
    readonly run_count: number;
    /** Exit_status as in docs/reference/execution.md 6 */
    readonly exit_status: number;
    readonly used: Usage;
    /** 1: the files were delivered; 0: that failed; absent: there was nothing to deliver */
    readonly stageout_status?: 0 | 1;
    /** the job did not run, because files could not be copied to the host. message: which file, and why */
    readonly stagein_failed?: true;
    /** the mom keeps output of the job for its next run */
    readonly kept?: true;
    readonly message?: string;
  };
  /**
   * the job's script has ended and its files are being copied. The job no longer needs its other hosts
   * (release_nodes_on_stageout)
   */
  "mom-staging-out": { readonly job: string; readonly run_count: number };
  "mom-hook": MomHookReport;
  /** the job continues although its end was requested: an execjob_preterm hook did not allow it, or (why) no checkpoint could be made */
  "mom-kept": { readonly job: string; readonly run_count: number; readonly why?: "checkpoint"; readonly text: string };
  /** the jobs of a mom-start that the mom has accepted; sent before any process of them starts */
  "mom-accepted": { readonly runs: readonly { readonly job: string; readonly run_count: number }[] };
  /** answer to mom-ping. ill: the reason why the mom cannot start jobs although it answers */
  "mom-pong": { readonly number: number; readonly clock_ms?: number; readonly ill?: string };
  /** the mom has got everything before this position of the stream from the server (multicast/stream.ts); datagrams have the same content */
  "mom-got": { readonly position: number };
  /** the answer to a mom-signal, or to a mom-start that the mom refuses at once */
  "mom-result": { readonly token: number; readonly ok: boolean; readonly code?: number; readonly text?: string };
};
/**
 * The server's answer to the report with this number; 0: no answer, but the news of a grace, which a mom of an earlier release ignores. grace: the mom's present
 * one; absent: a mom of an earlier release does not know it
 */
export type MomHeard = { readonly number: number; readonly grace?: MomGrace };
export type ServerToMom = {
  "mom-welcome": {
    /** the leader that sends this (failover/leader.ts); absent: the complex has one server */
    readonly leader?: string;
    readonly keep: readonly string[];
    readonly kill: readonly string[];
    readonly acknowledged: readonly { readonly job: string; readonly run_count: number }[];
    /** the server answers confirmed starts (I5) */
    readonly confirms?: true;
    readonly grace?: MomGrace;
  };
  /** answer to mom-accepted: these runs may start (I5) */
  "mom-confirmed": { readonly runs: readonly { readonly job: string; readonly run_count: number }[] };
  /** the key for the mom's reports from now on (I6). channel: hexadecimal digits; key: base64; boot: identifies the start of the server */
  "mom-keys": { readonly channel: string; readonly key: string; readonly boot: string };
  /** the key of the group of moms that get commands by multicast, from now on */
  "mom-group": GroupOrder;
  /** a command that was sent to the group before. position: its position in the stream; the mom may have carried it out already */
  "mom-command": { readonly position: number; readonly type: GroupType; readonly data: { readonly [name: string]: unknown } };
  /** answer to a report, or a new grace; datagrams of the server have the same content */
  "mom-heard": MomHeard;
  "mom-refused": { readonly code: number; readonly text: string };
  /** several jobs in one frame; the mom answers for each with mom-started or mom-obit */
  "mom-start": { readonly jobs: readonly MomJob[] };
  /**
   * signal: a name without SIG, a number as text, suspend, resume, or checkpoint. For checkpoint the mom saves the job and ends
   * it; it answers ok before that is done
   */
  "mom-signal": { readonly token: number; readonly job: string; readonly signal: string };
  /** ends a job: sends TERM, and KILL after kill_delay_s. why: after `delete` the obit has the job's own exit status, after `rerun` the exit status -11 */
  "mom-terminate": { readonly job: string; readonly run_count: number; readonly why: "delete" | "rerun"; readonly kill_delay_s: number };
  /** attributes that have changed while the job runs: walltime, cput, Output_Path, Error_Path, Job_Name, ... */
  "mom-modify": { readonly job: string; readonly attrs: { readonly [name: string]: unknown } };
  /** total use of the job on its sisters, for the mother superior, which enforces the limits */
  "mom-sisters": {
    readonly job: string;
    readonly run_count: number;
    readonly cput_s: number;
    readonly mem_kb: number;
    readonly vmem_kb: number;
  };
  "mom-message": { readonly token: number; readonly job: string; readonly files: string; readonly message: string };
  "mom-obit-ack": { readonly jobs: readonly { readonly job: string; readonly run_count: number }[] };
  /** output and checkpoints of earlier runs of the job are no longer needed; a run in progress is not affected */
  "mom-discard": { readonly job: string };
  /** the hooks of execution hosts; sent after the welcome and when a hook changes, if the mom has a different set */
  "mom-hooks": MomHooks;
  /**
   * asks whether the mom answers; sent every few seconds. silence_s: a mom that does not answer for that many seconds counts
   * as silent; 0: the server sends this mom no further ping
   */
  "mom-ping": { readonly number: number; readonly silence_s: number };
  "mom-quit": Record<string, never>;
};

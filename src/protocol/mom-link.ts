// What server and mom say to one another on one host (frames as in messages.ts): the mom connects to the server's socket and says mom-hello.
// Remote moms speak the same messages over TCP+TLS in a later release.
//
// I1. A start request carries run_count; a mom refuses one not larger than the last it saw for that job.
// I2. An obit is repeated at every reconnect until it is acknowledged; acknowledging an unknown one is harmless.
// I3. mom-hello lists every job the mom holds; the server answers with what to keep and what to kill.
// I4. A mom says that it has taken a start before it starts anything of it, and starts nothing while it is not welcomed. It ends a connection on which it
//     was silent for too long and says hello: a start that it had not taken may be elsewhere by then (src/server/moms/heartbeat.ts, src/mom/shell/stall.ts).

export type MomVnode = {
  readonly name: string;
  /** attributes reported: resources_available.*, sharing, pcpus ..., values as src/model represents them */
  readonly attrs: { readonly [name: string]: unknown };
};
/** How long a run over several hosts waits for them, in seconds, as its mother superior is configured; what is absent is as usual (src/server/moms/patience.ts). */
export type MomPatience = {
  /** $sister_join_job_alarm */
  readonly join_s?: number;
  /** $job_launch_delay */
  readonly launch_s?: number;
  /** $max_poll_downtime */
  readonly downtime_s?: number;
};
export type MomHello = {
  readonly host: string;
  /** where she takes what tasks ask (task-link.ts) */
  readonly tasks?: string;
  readonly port: number;
  readonly pid: number;
  readonly version: string;
  readonly vnodes: readonly MomVnode[];
  readonly patience?: MomPatience;
  readonly jobs: readonly {
    readonly job: string;
    readonly run_count: number;
    readonly state: "starting" | "running" | "suspended" | "ended";
    readonly session_id?: number;
  }[];
  /** digest of the hooks it has; absent: it has none */
  readonly hooks?: string;
  /** jobs of which it has a checkpoint; the server discards those that nobody waits for */
  readonly checkpoints?: readonly string[];
  /** jobs whose output waits with it for their next run; likewise */
  readonly outputs?: readonly string[];
  /** it answers mom-ping and says which starts it takes; a mom of an earlier release, which goes on for the sake of its jobs, knows no such frames */
  readonly pongs?: true;
};
/**
 * All a mom needs to run a job. The first host of exec_host runs it; the others get the same and hold a place for its tasks, which they tell by mom-started;
 * their end is a mom-terminate and an obit (src/server/moms/sisters.ts). attrs are the job's attributes by PBS name with typed values (src/model). */
export type MomJob = {
  readonly id: string;
  readonly run_count: number;
  readonly user: string;
  readonly group: string;
  readonly queue: string;
  readonly exec_host: string;
  readonly exec_vnode: string;
  readonly attrs: { readonly [name: string]: unknown };
  /** null: executable and argument_list in attrs */
  readonly script: string | null;
  readonly kill_delay_s: number;
  /** it is to go on from the checkpoint on this host */
  readonly restart?: true;
  /** secret of this run: PBS_JOBCOOKIE */
  readonly cookie: string;
  /** where the moms of its hosts take what tasks ask, by host; absent: it is on one host */
  readonly tasks?: { readonly [host: string]: string };
};
/** A hook of execution hosts. content: base64. */
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
/** All hooks a mom runs, in their order. digest: names this very set. resources: types of all resources by name. */
export type MomHooks = {
  readonly digest: string;
  readonly hooks: readonly MomHook[];
  readonly resources: { readonly [name: string]: string };
};

export type Usage = { readonly [resource: string]: string | number };

/** What a hook on a host did that the server must know. actions: of fail_action, to be taken now. */
export type MomHookReport = {
  readonly hook: string;
  readonly event: string;
  readonly actions: readonly string[];
  readonly restart_cycle: boolean;
  /** attributes set by vnode: texts */
  readonly vnodes: { readonly [vnode: string]: unknown };
  readonly job?: { readonly job: string; readonly run_count: number; readonly changes: { readonly [name: string]: unknown } };
};

export type MomToServer = {
  "mom-hello": MomHello;
  /** after SIGHUP or a change of definition files */
  "mom-vnodes": { readonly vnodes: readonly MomVnode[]; readonly patience?: MomPatience };
  /** a sister has made the job's files, and her execjob_begin hooks have accepted it; mom-started follows when her execjob_prologue hooks have, too */
  "mom-joined": { readonly job: string; readonly run_count: number };
  "mom-started": {
    readonly job: string;
    readonly run_count: number;
    readonly session_id: number;
    readonly jobdir: string;
    /** from a checkpoint */
    readonly restarted?: true;
  };
  /** resources of the site in the mom's configuration, as texts: for schedulers that ask for them (sched_config mom_resources) */
  "mom-site": { readonly resources: { readonly [name: string]: string } };
  /** others use the host ($max_load, $kbd_idle): state busy, or no longer; free is not said at a hello */
  "mom-busy": { readonly busy: boolean };
  /** the job stands still meanwhile (state U), or goes on */
  "mom-idled": { readonly job: string; readonly run_count: number; readonly idled: boolean };
  "mom-usage": { readonly jobs: readonly { readonly job: string; readonly run_count: number; readonly used: Usage }[] };
  "mom-obit": {
    readonly job: string;
    readonly run_count: number;
    /** Exit_status of docs/reference/execution.md 6 */
    readonly exit_status: number;
    readonly used: Usage;
    /** 1 ok, 0 failed, absent: there was nothing to deliver */
    readonly stageout_status?: 0 | 1;
    /** it did not run: files could not be copied to the host. message: which, and why */
    readonly stagein_failed?: true;
    /** output of the job waits here for its next run */
    readonly kept?: true;
    readonly message?: string;
  };
  /** its script is over and its files are being copied: what else it has on other hosts is not needed (release_nodes_on_stageout) */
  "mom-staging-out": { readonly job: string; readonly run_count: number };
  "mom-hook": MomHookReport;
  /** it goes on: an execjob_preterm hook did not let it be ended, or (why) it could not be checkpointed */
  "mom-kept": { readonly job: string; readonly run_count: number; readonly why?: "checkpoint"; readonly text: string };
  /** the runs of a mom-start that the mom has taken: said before anything of them is started */
  "mom-accepted": { readonly runs: readonly { readonly job: string; readonly run_count: number }[] };
  /** answer to mom-ping. ill: why nothing can be started here although the mom answers */
  "mom-pong": { readonly number: number; readonly ill?: string };
  /** answer to mom-start refused at once, or to a signal */
  "mom-result": { readonly token: number; readonly ok: boolean; readonly code?: number; readonly text?: string };
};
export type ServerToMom = {
  "mom-welcome": {
    readonly keep: readonly string[];
    readonly kill: readonly string[];
    readonly acknowledged: readonly { readonly job: string; readonly run_count: number }[];
  };
  "mom-refused": { readonly code: number; readonly text: string };
  /** several starts in one frame; the mom answers each with mom-started or mom-obit */
  "mom-start": { readonly jobs: readonly MomJob[] };
  /** signal: name without SIG, number as text, suspend, resume; checkpoint: save it and end it, ok is said before that is done */
  "mom-signal": { readonly token: number; readonly job: string; readonly signal: string };
  /** end a job: TERM, after kill_delay_s KILL. why: delete keeps the exit status, rerun makes the obit -11 */
  "mom-terminate": { readonly job: string; readonly run_count: number; readonly why: "delete" | "rerun"; readonly kill_delay_s: number };
  /** changed while running: walltime, cput, Output_Path, Error_Path, Job_Name, ... */
  "mom-modify": { readonly job: string; readonly attrs: { readonly [name: string]: unknown } };
  /** what the sisters of a run have used together: for the mother superior, who keeps its limits */
  "mom-sisters": {
    readonly job: string;
    readonly run_count: number;
    readonly cput_s: number;
    readonly mem_kb: number;
    readonly vmem_kb: number;
  };
  "mom-message": { readonly token: number; readonly job: string; readonly files: string; readonly message: string };
  "mom-obit-ack": { readonly jobs: readonly { readonly job: string; readonly run_count: number }[] };
  /** what runs of the job that are over have left (output, a checkpoint) is for nobody; it ends no run that is under way */
  "mom-discard": { readonly job: string };
  /** after the welcome, and when one changes: if the mom has others */
  "mom-hooks": MomHooks;
  /** every few seconds. silence_s: a mom that does not answer for so long counts as silent; 0: it is not asked again */
  "mom-ping": { readonly number: number; readonly silence_s: number };
  "mom-quit": Record<string, never>;
};

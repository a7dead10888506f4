// What a mom knows about its jobs. Only core.ts and the files it imports from this folder change it. README.md has the drawing of the phases.

import type { HookInput } from "#hooks/run/hook-input.ts";
import type { MomHook, MomHooks, MomJob, MomToServer, MomVnode, Usage } from "#protocol/mom-link.ts";
import type { Actions } from "../config/action-script.ts";
import type { Busyness, KeyboardLimits, LoadLimits } from "../config/node-load.ts";
import type { FilePlan, FinishRequest, PrepareRequest } from "../job/agent-link.ts";
import type { CgroupSettings } from "../job/cgroup-limits.ts";
import type { Breach, Enforcement } from "../job/limits.ts";
import type { ScriptName } from "../job/pelog.ts";
import type { Owner } from "../job/plan.ts";
import type { PlanFacts } from "../job/plan-facts.ts";
import type { FileIdentity } from "../job/process.ts";
import type { TaskPlace } from "../job/sister.ts";
import type { ExitedRun, RunKey, ServerContact, StartSpec } from "../job/starter-link.ts";
import type { CpuWeights, Sample } from "../job/usage.ts";
import type { ResourceTypes } from "./hook-view.ts";
import type { TaskAnswer, TaskWanted } from "./task-question.ts";

export type OutputFiles = { readonly stdout: string; readonly stderr: string };
export type Obit = MomToServer["mom-obit"];

export type Phase =
  /** the execjob_begin hooks run */
  | { readonly name: "beginning" }
  /** the files of the run exist; the prologue, execjob_prologue hooks or execjob_launch hooks run */
  | { readonly name: "admitting"; readonly files: OutputFiles }
  /** the file agent makes the files of the run */
  | { readonly name: "preparing" }
  /** the starter was asked to start the run */
  | { readonly name: "starting"; readonly files: OutputFiles }
  | {
      readonly name: "running";
      readonly files: OutputFiles;
      readonly pid: number;
      readonly started_ms: number /** null: the run is not suspended */;
      suspended_ms: number | null;
    }
  /** the run has no process left; the epilogue or execjob_epilogue hooks run */
  | {
      readonly name: "epilogue";
      readonly exit_status: number;
      readonly walltime_s: number;
      readonly session: number;
      readonly message?: string;
    }
  /** the epilogue is over; the file agent delivers the output */
  | {
      readonly name: "finishing";
      readonly exit_status: number;
      readonly used: Obit["used"];
      /** what the file agent was asked to do with the output */
      readonly output: FinishRequest["output"];
      readonly message?: string;
    }
  /** the server has not yet acknowledged the obit */
  | { readonly name: "ended"; readonly obit: Obit }
  /** the obit was acknowledged; execjob_end hooks run */
  | { readonly name: "leaving" }
  /** the run was read back from its record after a restart; the starter will report its state */
  | { readonly name: "recovered"; readonly suspended_ms: number | null };

/** The state of a run's checkpoints. asked: the script that is running now, if any. */
export type Checkpointing = {
  readonly asked: "no" | "checkpoint" | "checkpoint_abort";
  /** an earlier mom started the script, so its answer will not come */
  readonly unheard?: true;
  /** cput and walltime at the last checkpoint */
  readonly cput_s: number;
  readonly walltime_s: number;
};

/**
 * A later run of a job whose earlier run is still here. doomed: the server has already ended this later run, either for good (delete) or to start the job again
 * (rerun).
 */
export type NextRun = { readonly job: MomJob; readonly owner: Owner | null; readonly doomed: "delete" | "rerun" | null };

export type Run = {
  job: MomJob;
  readonly owner: Owner;
  plan: FilePlan;
  phase: Phase;
  /** identifier of the machine's boot during which the record was written */
  readonly boot: string;
  sample: Sample;
  /** cpus that the job has exclusively ($cgroups cpuset); null: any */
  cpus: readonly number[] | null;
  /** total time of finished suspensions, in ms */
  suspended_total_ms: number;
  /** why the run is being ended. kill_at_ms: the time for SIGKILL; null: SIGKILL was sent. ending null: the run is not being ended */
  ending: {
    readonly why: "delete" | "rerun" | "limit" | "discard" | "hang-up" | "checkpoint" | "cut-off";
    kill_at_ms: number | null;
  } | null;
  breach: Breach | null;
  /** time at which the mom began to write the limit message to the job's terminal; the run is ended after the text has been written (watch.ts) */
  telling_since_ms: number | null;
  /** the run is suspended because its host is in use (busy.ts) */
  idled: boolean;
  checkpointing: Checkpointing;
  /** the exit of a run that ended while a script saved it; reported when the script has answered */
  withheld: ExitedRun | null;
  /** everything is ready, but the server has not welcomed the mom or not confirmed the run: the run starts after that (core.ts C5, C6) */
  awaits_word: boolean;
  /** this run continues from a checkpoint */
  restart: boolean;
  /** the changes of execjob_launch hooks to the program that is started */
  launch: LaunchChange | null;
  /** resources_used as hooks have set it */
  used_by_hooks: Usage;
  /** running tasks besides the top process, by number */
  tasks: Map<number, Task>;
  next_task: number;
  /** length of the text of the tasks that are being started (task-bounds.ts) */
  starting_chars: number;
  /** tasks that moms of other hosts have requested, by the name of the request (named-tasks.ts) */
  named_tasks: Map<string, NamedTask>;
  /** true: some of these names have been forgotten */
  names_lost: boolean;
  /** number of bytes of the output of tasks that were added here, by host and letter (tasks.ts T4) */
  taken_output: Map<string, number>;
  /** cpu seconds of finished tasks and adopted sessions */
  tasks_cput_s: number;
  /** sessions that pbs_attach added to the job, by number */
  adopted: Map<number, Adopted>;
  /** total usage on the job's other hosts, if this is the mother superior */
  sisters: { readonly cput_s: number; readonly mem_kb: number; readonly vmem_kb: number };
  /** a later run of the same job that may start when this one is gone */
  next: NextRun | null;
};

/** A session that pbs_attach added to a job. owner: only processes of this user in the session belong to the job. cput_s: cpu time at the last sample. */
export type Adopted = { readonly owner: number; cput_s: number };

/**
 * A running task. asked: number of the request that started it (tasks.ts); null: no client waits for its end. pid 0: the
 * task is being started. name: its key in named_tasks. chars: length of its text (task-bounds.ts).
 */
export type Task = { asked: number | null; pid: number; readonly name?: string; readonly chars?: number };

/** A task that was requested with a name. end: how it ended; null: it has not ended. */
export type NamedTask = { readonly task: number; end: TaskAnswer | null };

export type LaunchChange = {
  readonly progname?: string;
  readonly argv?: readonly string[];
  readonly env?: { readonly [name: string]: string };
};

/** What an answer of hooks or of a script is for. `steps` of MomState keeps one for each number of a request without an answer (hook-steps.ts). */
export type Step =
  | { readonly kind: "begin" | "prologue" | "launch" | "epilogue" | "end"; readonly run: RunKey }
  | { readonly kind: "preterm"; readonly run: RunKey; readonly kill_delay_s: number }
  | { readonly kind: "preresume"; readonly run: RunKey; readonly token: number }
  /** a `$action` script that saves the job, or ends it */
  | { readonly kind: "checkpoint" | "terminate"; readonly run: RunKey }
  /** nothing waits for the answer: execjob_abort, execjob_postsuspend */
  | { readonly kind: "after"; readonly run: RunKey }
  | { readonly kind: "host"; readonly hook: string };

export type MomConfig = {
  readonly host: string;
  readonly boot: string;
  readonly facts: PlanFacts;
  readonly enforce: Enforcement;
  readonly cgroups: CgroupSettings;
  /** cpus of this host that jobs may use */
  readonly cpus: readonly number[];
  readonly weights: CpuWeights;
  /** $suspendsig: signal numbers for suspend and resume */
  readonly suspend_signal: number;
  readonly resume_signal: number;
  /** $ideal_load, $max_load, $kbd_idle, and what $action multinodebusy says */
  readonly node: {
    readonly load: LoadLimits;
    readonly suspend_on_load: boolean;
    readonly kbd_idle: KeyboardLimits | null;
    readonly multinode_requeue: boolean;
  };
  /** $action */
  readonly actions: Actions;
  /** $restart_transmogrify: the exit status of a restart script is always the exit status of its job, and never means that the restart failed */
  readonly restart_transmogrify: boolean;
  /** directory of checkpoints */
  readonly checkpoint_path: string;
  /** the mom's own user */
  readonly own: { readonly uid: number; readonly gid: number };
  /** $prologalarm */
  readonly prologalarm_s: number;
  /** $reject_root_scripts: hooks of the server are refused */
  readonly reject_root_scripts: boolean;
  /** $tasks_max */
  readonly tasks_max: number;
  /** $task_text_max */
  readonly task_text_max: number;
  /** name of the server */
  readonly server: string;
  /** pbs_mom -r: jobs that are running when the mom starts are killed */
  readonly kill_found: boolean;
};

export type MomState = {
  config: MomConfig;
  readonly runs: Map<string, Run>;
  /** last run count of each job that is gone (mom-link.ts I1) */
  readonly last: Map<string, number>;
  /** the server has welcomed the mom: messages may be sent to it */
  welcomed: boolean;
  /** the server answers accepted starts (core.ts C6) */
  confirms: boolean;
  /** the last answer of the server, and how long the mom's jobs may go on without another (cut-off.ts); null: not known */
  contact: ServerContact | null;
  /** run counts of the jobs whose accepted starts the server has not answered */
  readonly unconfirmed: Map<string, number>;
  /** runs that the starter knows but that have no record: they are killed, then forgotten */
  readonly strays: Map<string, number>;
  /** hooks that the server has sent */
  hooks: MomHooks;
  /** requests to hooks and scripts that have no answer yet, by number */
  readonly steps: Map<number, { readonly event: string; readonly step: Step }>;
  next_step: number;
  /** reports about hooks that are sent when the server is connected */
  readonly reports: MomToServer["mom-hook"][];
  /** jobs with a checkpoint here */
  readonly checkpoints: Set<string>;
  /** jobs whose output waits in spool for their next run (kept-output.ts) */
  readonly kept: Set<string>;
  /** resources of the site in the configuration */
  site: { readonly [name: string]: string };
  /** why the host counts as in use by others, if it does */
  busy: Busyness;
  /** the vnodes as last reported to the server; hooks see these */
  vnodes: readonly MomVnode[];
  /** the time of the last start of each exechost_periodic hook, by name */
  readonly periodic: Map<string, number>;
  /** the mom is stopping. kill: it ends all jobs first. leave: jobs continue. null: it is not stopping */
  stopping: "kill" | "leave" | null;
};

/** The part of a run that is kept on the disk (driver/record-log.ts). */
export type SavedRun = {
  readonly version: 1;
  readonly boot: string;
  readonly job: MomJob;
  readonly owner: Owner;
  readonly plan: FilePlan;
  readonly cpus: readonly number[] | null;
  readonly suspended_ms: number | null;
  readonly suspended_total_ms: number;
  readonly ending: Run["ending"];
  readonly breach: Breach | null;
  readonly used_by_hooks?: Usage;
  readonly idled?: true;
  /** a script was saving the run in order to end it */
  readonly leaving?: true;
  readonly restart?: true;
  readonly tasks?: SavedTasks;
};

/** What the record keeps about tasks: the number of the next task, and the cpu time of finished tasks and adopted sessions. */
export type SavedTasks = { readonly next_task: number; readonly cput_s: number };

export type MomAction =
  | { readonly kind: "hello" }
  | { [T in keyof MomToServer]: { readonly kind: "send"; readonly type: T; readonly data: MomToServer[T] } }[Exclude<
      keyof MomToServer,
      "mom-hello" | "mom-vnodes"
    >]
  | { readonly kind: "prepare"; readonly request: PrepareRequest }
  /** runs hooks one after the other; answered by the event hooked. owner: the identity for hooks whose user is pbsuser */
  | {
      readonly kind: "run-hooks";
      readonly step: number;
      readonly hooks: readonly MomHook[];
      readonly input: HookInput;
      readonly resources: ResourceTypes;
      readonly owner: FileIdentity | null;
    }
  /** runs a prologue or epilogue; answered by the event scripted. files: the job's output, opened with the owner's rights */
  | {
      readonly kind: "run-script";
      readonly step: number;
      readonly script: ScriptName;
      readonly args: readonly string[];
      readonly env: { readonly [name: string]: string };
      readonly files: OutputFiles;
      readonly owner: FileIdentity | null;
      readonly alarm_s: number;
    }
  /**
   * runs a script of $action with the mom's identity; answered by the event acted. checkpoint: the directory of the checkpoint. The script writes into a new
   * directory `<path>.new`, which replaces that directory if the script ends with 0
   */
  | {
      readonly kind: "run-action";
      readonly step: number;
      readonly job: string;
      readonly argv: readonly string[];
      readonly env: { readonly [name: string]: string };
      readonly alarm_s: number;
      readonly checkpoint: string | null;
    }
  /** removes a checkpoint that is no longer needed */
  | { readonly kind: "drop-checkpoint"; readonly path: string }
  /** keeps hooks on the disk for the next start */
  | { readonly kind: "keep-hooks"; readonly hooks: MomHooks }
  /** reboots the host (pbs.reboot()). command "": the reboot command of the system */
  | { readonly kind: "reboot"; readonly hook: string; readonly command: string }
  | { readonly kind: "start"; readonly spec: StartSpec }
  | { readonly kind: "signal"; readonly run: RunKey; readonly signal: number }
  /** sends an answer to the client. drained: only after the output of this job's tasks here has reached the mother superior */
  | { readonly kind: "task-say"; readonly asked: number; readonly answer: TaskAnswer; readonly drained?: RunKey }
  /** passes a request on to another mom of this run. most: number of tasks of the run that may run on that host at a time */
  | {
      readonly kind: "task-forward";
      readonly asked: number;
      readonly place: TaskPlace;
      readonly run: RunKey;
      readonly wanted: TaskWanted;
      /** uid of the job's owner */
      readonly owner: number;
      readonly most: number;
      readonly text_max: number;
    }
  /** makes the processes of a session part of the job */
  | { readonly kind: "adopt"; readonly run: RunKey; readonly pid: number }
  /** lets the starter forget the run */
  | { readonly kind: "forget-task"; readonly run: RunKey }
  | { readonly kind: "finish"; readonly request: FinishRequest }
  | {
      readonly kind: "append";
      readonly owner: FileIdentity | null;
      readonly path: string;
      readonly text: string;
      readonly base64?: true;
      /** the event `told` follows when the text has been written, or cannot be written */
      readonly for?: RunKey;
      /** the request that is answered by task-done when the text has been written, or cannot be written */
      readonly asked?: number;
    }
  | { readonly kind: "save"; readonly record: SavedRun }
  /** writes a note about tasks to the record of the run */
  | { readonly kind: "save-tasks"; readonly run: RunKey; readonly tasks: SavedTasks }
  /** removes the record of the run; afterwards the starter may forget the run */
  | { readonly kind: "drop"; readonly run: RunKey }
  /** writes or removes the note on the disk that the job's output waits in spool */
  | { readonly kind: "note-kept"; readonly job: string; readonly kept: boolean }
  /** removes output in spool that is no longer needed; answered by the event purged */
  | { readonly kind: "purge"; readonly job: string; readonly paths: readonly string[] }
  | {
      readonly kind: "log";
      readonly event: number;
      readonly object: string;
      readonly text: string;
      readonly class?: "Job" | "Svr" | "Hook";
    }
  /** ends the mom: its end was requested, and no job is left */
  | { readonly kind: "exit" };

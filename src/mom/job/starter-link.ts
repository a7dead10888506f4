// Messages between mom and starter over PBS_HOME/mom_priv/starter.sock (frames of src/protocol/wire/frame.ts).
//
// S1. The starter reports an exit only after its journal has it on the disk.
// S2. At every connect, the starter reports all runs that it knows. It forgets a run only when the mom requests that.
// S3. `exited` means that nothing of the job's session is left.
// S4. The lease states a time for each of its runs. The starter kills the run at that time, and does not start it later. The mom extends the lease whenever its
//     server has answered, so that the run also ends if the mom itself is stopped or dead (../run/cut-off.ts).

import type { TerminalTicket } from "#protocol/terminal/link.ts";
import type { JobLimits } from "./cgroup-limits.ts";
import type { FileIdentity, GroupUsage, WaitStatus } from "./process.ts";

export const STARTER_SOCKET = "starter.sock";

/**
 * Returns the name of a task. A task of a job besides its top process is a run of its own, named `JOB#NUMBER`, in the control group of the job. The task is
 * over when its own process ends. Processes that it leaves, and tasks still running, end with the job's top process (S3).
 */
export const taskName = (job: string, task: number): string => `${job}#${task}`;
/** Splits the name of a task. Returns null if the name belongs to a job. */
export function taskOf(name: string): { readonly job: string; readonly task: number } | null {
  const hash = name.lastIndexOf("#");
  return hash < 0 ? null : { job: name.slice(0, hash), task: Number(name.slice(hash + 1)) };
}
/** Returns the job to which a run (top process or task) belongs. */
export const jobOfName = (name: string): string => taskOf(name)?.job ?? name;

/** Everything the starter needs to start a job's top process or a task. */
export type StartSpec = {
  readonly job: string;
  readonly run_count: number;
  /** absolute path of the program to execute, and its arguments with argv[0] */
  readonly path: string;
  readonly argv: readonly string[];
  /** the program is a login shell: its argv[0] gets a dash, or it gets -l if another program (nice, prlimit, ...) executes it */
  readonly login: boolean;
  readonly env: readonly string[];
  readonly cwd: string;
  /** text that the program reads from its stdin; null: stdin is /dev/null */
  readonly stdin: string | null;
  /** existing files to which the output is appended; if both paths are equal, both streams share one descriptor */
  readonly stdout: string;
  readonly stderr: string;
  readonly umask: number;
  /** null: the starter's own identity (user mode) */
  readonly owner: FileIdentity | null;
  /**
   * the program is the site's restart script. It runs with the starter's identity, and only if no other user could have changed it. Its output files belong to
   * the owner
   */
  readonly by_mom?: true;
  /** prlimit's name of a limit -> amount (bytes, seconds) */
  readonly limits: { readonly [name: string]: number };
  readonly nice: number | null;
  /** limits of the job's control group; null: the job gets no group */
  readonly cgroup: JobLimits | null;
  /** the run must not be started after this time (S4); absent: it may be started at any time */
  readonly until_ms?: number;
  /** of an interactive job: the address of its qsub. stdin, stdout and stderr of the job are then a pseudo terminal */
  readonly terminal: TerminalTicket | null;
};

export type RunKey = { readonly job: string; readonly run_count: number };
/** A run that was started. terminal: path of its pseudo terminal, if it has one. */
export type StartedRun = RunKey & { readonly pid: number; readonly at_ms: number; readonly terminal?: string };
/**
 * The end of a top process or task. cput_s: cpu time of the process and of the children that it waited for. group: what the job's control group recorded about
 * all its processes.
 */
export type ExitedRun = RunKey & {
  readonly status: WaitStatus;
  readonly cput_s: number;
  /** the largest memory that one of these processes had; absent: not known */
  readonly peak_kb?: number;
  readonly at_ms: number;
  readonly group?: GroupUsage;
  /** the restart script failed before it executed the program that it restores */
  readonly restart_failed?: true;
  /** the starter killed the run because its lease was over */
  readonly cut_off?: true;
};

/**
 * When the server last answered the mom, and how long the mom may go on without an answer (protocol/mom-link.ts MomGrace). answered_ms: the time at which the
 * mom sent the message that the server answered.
 */
export type ServerContact = { readonly answered_ms: number; readonly requeue_s: number; readonly sister_s: number };
/** The runs that the starter kills, each at its time (S4). contact: the starter only keeps it, for a mom that is started again */
export type Lease = { readonly contact: ServerContact; readonly runs: readonly (RunKey & { readonly until_ms: number })[] };

/** A session that was added to a job. owner: only the processes of this uid in the session belong to the job. */
export type AdoptedSession = { readonly session: number; readonly owner: number };

export type StarterRun = StartedRun &
  (
    | {
        readonly state: "running";
        /** the terminal of the run is gone */
        readonly hung_up?: true;
        readonly adopted?: readonly AdoptedSession[];
      }
    | { readonly state: "ended"; readonly exit: ExitedRun }
    | { /** an earlier starter died during the run: no process is left, and the status is unknown */ readonly state: "lost" }
  );

export type MomToStarter = {
  "starter-hello": Record<string, never>;
  "starter-start": { readonly runs: readonly StartSpec[] };
  /** signals every process of the job's session; signal 9 (kill) is repeated until no process is left */
  "starter-signal": { readonly runs: readonly (RunKey & { readonly signal: number })[] };
  /** takes the session of the process `pid` into the job, as far as its processes belong to the job's owner */
  "starter-adopt": { readonly runs: readonly (RunKey & { readonly pid: number })[] };
  "starter-forget": { readonly runs: readonly RunKey[] };
  /** replaces the lease (S4). Sent only to a starter that announced `leases` */
  "starter-lease": Lease;
  /** asks the starter for a starter-pong. Sent only to a starter that announced `pongs` */
  "starter-ping": Record<string, never>;
  /** ends the starter if it has no running job */
  "starter-quit": Record<string, never>;
};
export type StarterToMom = {
  "starter-state": {
    readonly pid: number;
    readonly runs: readonly StarterRun[] /** the last run count of each job that was forgotten, oldest first */;
    readonly last: readonly RunKey[];
    /** the starter answers starter-ping; a starter of an earlier release may not */
    readonly pongs?: true;
    /** the starter keeps leases */
    readonly leases?: true;
    /** the present lease; absent: it has none */
    readonly lease?: Lease;
  };
  "starter-pong": Record<string, never>;
  "starter-started": { readonly runs: readonly StartedRun[] };
  /**
   * the program could not be executed (exit status 254, reported on the job's stderr), or the job could not be set up (a code of docs/reference/execution.md 6)
   */
  "starter-failed": {
    readonly runs: readonly (RunKey & { readonly exit_status: number; readonly text: string; readonly at_ms: number })[];
  };
  "starter-adopted": { readonly runs: readonly (RunKey & AdoptedSession)[] };
  /** the terminals of these runs are gone: their users cannot type or read any more */
  "starter-hung-up": { readonly runs: readonly RunKey[] };
  "starter-exited": { readonly runs: readonly ExitedRun[] };
};

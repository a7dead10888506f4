// Messages between mom and starter over PBS_HOME/mom_priv/starter.sock (frames of src/protocol/wire/frame.ts).
//
// S1. The starter reports an exit only after its journal has it on the disk.
// S2. The starter repeats its whole knowledge at every connect, and forgets a run only when the mom requests it.
// S3. `exited` means that nothing of the job's session is left.

import type { TerminalTicket } from "#protocol/terminal/link.ts";
import type { JobLimits } from "./cgroup-limits.ts";
import type { FileIdentity, GroupUsage, WaitStatus } from "./process.ts";

export const STARTER_SOCKET = "starter.sock";

/**
 * A task of a job besides its top process is a run of its own with the name `JOB#NUMBER`, in the job's control group. It is over when its own process ends;
 * processes that it leaves, and the task itself, end with the job's top process (S3).
 */
export const taskName = (job: string, task: number): string => `${job}#${task}`;
/** null: the name of a job. */
export function taskOf(name: string): { readonly job: string; readonly task: number } | null {
  const hash = name.lastIndexOf("#");
  return hash < 0 ? null : { job: name.slice(0, hash), task: Number(name.slice(hash + 1)) };
}
/** The job of a run, whether top process or task. */
export const jobOfName = (name: string): string => taskOf(name)?.job ?? name;

/** Everything needed to start a job's top process. */
export type StartSpec = {
  readonly job: string;
  readonly run_count: number;
  /** absolute path of the program to execute, and its arguments with argv[0] */
  readonly path: string;
  readonly argv: readonly string[];
  /** for a login shell: argv[0] gets a dash, or -l if a wrapper stands before it */
  readonly login: boolean;
  readonly env: readonly string[];
  readonly cwd: string;
  /** text the program finds on its stdin; null: /dev/null */
  readonly stdin: string | null;
  /** existing files, appended to; the same path twice is one descriptor */
  readonly stdout: string;
  readonly stderr: string;
  readonly umask: number;
  /** null: the starter's own identity (user mode) */
  readonly owner: FileIdentity | null;
  /** the site's restart script: executed with the starter's identity, if no other user could have changed it; its files belong to the owner */
  readonly by_mom?: true;
  /** prlimit's name of a limit -> amount (bytes, seconds) */
  readonly limits: { readonly [name: string]: number };
  readonly nice: number | null;
  /** limits of its control group; null: it is in none */
  readonly cgroup: JobLimits | null;
  /** of an interactive job: the address of its qsub; stdin, stdout and stderr are then a pseudo terminal */
  readonly terminal: TerminalTicket | null;
};

export type RunKey = { readonly job: string; readonly run_count: number };
/** terminal: path of the pseudo terminal it runs on. */
export type StartedRun = RunKey & { readonly pid: number; readonly at_ms: number; readonly terminal?: string };
/**
 * The end of the top process. cput_s: cpu time of the process and of the children that it waited for. group: the data
 * of its control group about all its processes.
 */
export type ExitedRun = RunKey & {
  readonly status: WaitStatus;
  readonly cput_s: number;
  /** the most memory that one of these processes had, where it is known */
  readonly peak_kb?: number;
  readonly at_ms: number;
  readonly group?: GroupUsage;
  /** a restart script failed before it became the program to restore */
  readonly restart_failed?: true;
};

/** owner: uid whose processes in it now belong to the job. */
export type AdoptedSession = { readonly session: number; readonly owner: number };

export type StarterRun = StartedRun &
  (
    | {
        readonly state: "running";
        /** its terminal has gone */
        readonly hung_up?: true;
        readonly adopted?: readonly AdoptedSession[];
      }
    | { readonly state: "ended"; readonly exit: ExitedRun }
    | { /** a starter died during the run: no process of the run is left, and its status is unknown */ readonly state: "lost" }
  );

export type MomToStarter = {
  "starter-hello": Record<string, never>;
  "starter-start": { readonly runs: readonly StartSpec[] };
  /** signals every process of the job's session; signal 9 (kill) is repeated until none is left */
  "starter-signal": { readonly runs: readonly (RunKey & { readonly signal: number })[] };
  /** the processes of the session of pid that belong to the job's owner become part of the job */
  "starter-adopt": { readonly runs: readonly (RunKey & { readonly pid: number })[] };
  "starter-forget": { readonly runs: readonly RunKey[] };
  /** sent only to a starter that announced that it answers */
  "starter-ping": Record<string, never>;
  /** ends the starter when it has no job running */
  "starter-quit": Record<string, never>;
};
export type StarterToMom = {
  "starter-state": {
    readonly pid: number;
    readonly runs: readonly StarterRun[] /** last run counts of jobs forgotten, oldest first */;
    readonly last: readonly RunKey[];
    /** the starter answers starter-ping; a starter of an earlier release may not */
    readonly pongs?: true;
  };
  "starter-pong": Record<string, never>;
  "starter-started": { readonly runs: readonly StartedRun[] };
  /** the program could not be executed (254, reported on the job's stderr) or the job could not be set up (code of docs/reference/execution.md 6) */
  "starter-failed": {
    readonly runs: readonly (RunKey & { readonly exit_status: number; readonly text: string; readonly at_ms: number })[];
  };
  "starter-adopted": { readonly runs: readonly (RunKey & AdoptedSession)[] };
  /** the terminals of these runs are gone: their users cannot type or read any more */
  "starter-hung-up": { readonly runs: readonly RunKey[] };
  "starter-exited": { readonly runs: readonly ExitedRun[] };
};

// What mom and starter say to one another over PBS_HOME/mom_priv/starter.sock (frames of src/protocol/wire/frame.ts).
//
// S1. The starter tells of an exit only after its journal holds it on the disk.
// S2. It repeats everything it knows at every connect and forgets a run only when told so.
// S3. `exited` means that nothing of the job's session is left.

import type { TerminalTicket } from "#protocol/terminal/link.ts";
import type { JobLimits } from "./cgroup-limits.ts";
import type { FileIdentity, GroupUsage, WaitStatus } from "./process.ts";

export const STARTER_SOCKET = "starter.sock";

/**
 * A task of a job beside its top process is a run of its own under the name `JOB#NUMBER`, in the job's control group. It is over when its own process is;
 * what it leaves ends with the job's top process (S3), and it too.
 */
export const taskName = (job: string, task: number): string => `${job}#${task}`;
/** null: the name of a job. */
export function taskOf(name: string): { readonly job: string; readonly task: number } | null {
  const hash = name.lastIndexOf("#");
  return hash < 0 ? null : { job: name.slice(0, hash), task: Number(name.slice(hash + 1)) };
}
/** The job of a run, whether top process or task. */
export const jobOfName = (name: string): string => taskOf(name)?.job ?? name;

/** All it takes to start a job's top process. */
export type StartSpec = {
  readonly job: string;
  readonly run_count: number;
  /** program to execute, absolute, and its arguments with argv[0] */
  readonly path: string;
  readonly argv: readonly string[];
  /** wanted as a login shell: argv[0] gets a dash, or -l where a wrapper stands before it */
  readonly login: boolean;
  readonly env: readonly string[];
  readonly cwd: string;
  /** text the program finds on its stdin; null: /dev/null */
  readonly stdin: string | null;
  /** existing files, appended to; the same path twice is one descriptor */
  readonly stdout: string;
  readonly stderr: string;
  readonly umask: number;
  /** null: as ourselves (user mode) */
  readonly owner: FileIdentity | null;
  /** the site's restart script: executed as ourselves, if it is ours and nobody else's to change; its files are the owner's all the same */
  readonly by_mom?: true;
  /** prlimit's name of a limit -> amount (bytes, seconds) */
  readonly limits: { readonly [name: string]: number };
  readonly nice: number | null;
  /** limits of its control group; null: it is in none */
  readonly cgroup: JobLimits | null;
  /** of an interactive job: where its qsub is; stdin, stdout and stderr are then a pseudo terminal */
  readonly terminal: TerminalTicket | null;
};

export type RunKey = { readonly job: string; readonly run_count: number };
/** terminal: path of the pseudo terminal it runs on. */
export type StartedRun = RunKey & { readonly pid: number; readonly at_ms: number; readonly terminal?: string };
/** How the top process ended. cput_s: of it and the children it waited for. group: what its control group knew of all its processes. */
export type ExitedRun = RunKey & {
  readonly status: WaitStatus;
  readonly cput_s: number;
  /** the most memory that one of these processes had, where it is known */
  readonly peak_kb?: number;
  readonly at_ms: number;
  readonly group?: GroupUsage;
  /** a restart script ended as itself, with an error: it never became the program it was to restore */
  readonly restart_failed?: true;
};

/** owner: uid whose processes in it became the job's. */
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
    | { /** a starter died with it: nothing of it runs, its status is unknown */ readonly state: "lost" }
  );

export type MomToStarter = {
  "starter-hello": Record<string, never>;
  "starter-start": { readonly runs: readonly StartSpec[] };
  /** to every process of the job's session; kill (9) until none is left. */
  "starter-signal": { readonly runs: readonly (RunKey & { readonly signal: number })[] };
  /** the processes of the session of pid become the job's, if they are of its owner */
  "starter-adopt": { readonly runs: readonly (RunKey & { readonly pid: number })[] };
  "starter-forget": { readonly runs: readonly RunKey[] };
  /** only to a starter that says that it answers */
  "starter-ping": Record<string, never>;
  /** ends the starter when it has no job running */
  "starter-quit": Record<string, never>;
};
export type StarterToMom = {
  "starter-state": {
    readonly pid: number;
    readonly runs: readonly StarterRun[] /** last run counts of jobs forgotten, oldest first */;
    readonly last: readonly RunKey[];
    /** it answers starter-ping; one that was started by an earlier release may not */
    readonly pongs?: true;
  };
  "starter-pong": Record<string, never>;
  "starter-started": { readonly runs: readonly StartedRun[] };
  /** the program could not be executed (254, told on the job's stderr) or the job could not be set up (code of docs/reference/execution.md 6) */
  "starter-failed": {
    readonly runs: readonly (RunKey & { readonly exit_status: number; readonly text: string; readonly at_ms: number })[];
  };
  "starter-adopted": { readonly runs: readonly (RunKey & AdoptedSession)[] };
  /** the terminals of these runs have gone: nobody can type or read any more */
  "starter-hung-up": { readonly runs: readonly RunKey[] };
  "starter-exited": { readonly runs: readonly ExitedRun[] };
};

// Tasks of a job that runs (PBS' task management interface, docs/reference/execution.md 3): what pbsdsh, pbs_tmrsh and pbs_attach say to the mom of their host, and what moms of
// one job say to one another, over the unix socket MOM_HOME/sock/mom.sock.
//
// K1. Who asks is told by the kernel: the job's owner, who also shows the secret of the run on this host (PBS_JOBCOOKIE), or the moms' own user, who names
//     the run. A mom acts only for a run that the server gave her.

// K2. To have a process of his own taken into his job the owner shows no secret: he may come from outside of it (ssh HOST pbs_attach -j JOB prog).

/** A run on the mom's host. cookie null: a mom speaks (or K2). */
export type TaskRun = { readonly job: string; readonly run_count: number | null; readonly cookie: string | null };

export type TaskToMom = {
  /** the lines of the job's node file, its node numbers' hosts */
  "task-nodes": TaskRun;
  /** token: the asker's own number for it. argv[0]: found in the job's PATH. shell: argv is one text for the owner's shell. env: `NAME=value`, beside the job's */
  "task-spawn": TaskRun & {
    readonly token: number;
    readonly host: string;
    readonly argv: readonly string[];
    readonly env: readonly string[];
    readonly shell: boolean;
  };
  /** to all processes of a task that this connection asked for */
  "task-signal": { readonly token: number; readonly signal: number };
  /** a process of the owner's becomes the job's, with all of its session */
  "task-attach": TaskRun & { readonly token: number; readonly pid: number };
  /** what tasks on a sister have written, for the job's own output on the mother superior: base64, in order */
  "task-output": TaskRun & { readonly token: number; readonly letter: "o" | "e"; readonly content: string };
};

export type MomToTask = {
  "task-hosts": { readonly lines: readonly string[]; readonly hosts: readonly string[] };
  "task-started": { readonly token: number; readonly task: number };
  /** status: exit value, or 256 and the signal's number */
  "task-exited": { readonly token: number; readonly status: number };
  /** attached, or the output was taken */
  "task-done": { readonly token: number };
  /** token null: of task-nodes */
  "task-refused": { readonly token: number | null; readonly text: string };
};

export const taskSocketPath = (mom_home: string): string => `${mom_home}/sock/mom.sock`;

// Tasks of a running job (the task management interface of PBS, docs/reference/execution.md 3): messages of pbsdsh, pbs_tmrsh
// and pbs_attach to the mom of their host, and messages between the moms of one job, over the unix socket
// MOM_HOME/sock/mom.sock.
//
// K1. The kernel tells the mom who is calling. The caller is either the owner of the job, who must also present the secret of
//     the run on this host (PBS_JOBCOOKIE), or the user of the moms, who names the run. A mom acts only for a run that the
//     server gave it.

// K2. The owner needs no secret to attach one of the owner's processes to the job, because the process may come from outside
//     the job (ssh HOST pbs_attach -j JOB prog).

/** A run on the mom's host. cookie null: the caller is a mom, or K2 applies. */
export type TaskRun = { readonly job: string; readonly run_count: number | null; readonly cookie: string | null };

export type TaskToMom = {
  /** the lines of the job's node file; a node number is the position of a host in it */
  "task-nodes": TaskRun;
  /**
   * token: the caller's own number for the task. argv[0] is searched in the job's PATH. shell: argv is one text for the owner's
   * shell. env: further variables `NAME=value` besides those of the job
   */
  "task-spawn": TaskRun & {
    readonly token: number;
    readonly host: string;
    readonly argv: readonly string[];
    readonly env: readonly string[];
    readonly shell: boolean;
  };
  /** sends a signal to all processes of a task that this connection started */
  "task-signal": { readonly token: number; readonly signal: number };
  /** attaches a process of the owner, with its whole session, to the job */
  "task-attach": TaskRun & { readonly token: number; readonly pid: number };
  /** output of tasks on a sister, for the output of the job on the mother superior: base64, in order */
  "task-output": TaskRun & { readonly token: number; readonly letter: "o" | "e"; readonly content: string };
};

export type MomToTask = {
  "task-hosts": { readonly lines: readonly string[]; readonly hosts: readonly string[] };
  "task-started": { readonly token: number; readonly task: number };
  /** status: the exit value, or 256 plus the number of the signal */
  "task-exited": { readonly token: number; readonly status: number };
  /** the process is attached, or the output is stored */
  "task-done": { readonly token: number };
  /** token null: answer to task-nodes */
  "task-refused": { readonly token: number | null; readonly text: string };
};

export const taskSocketPath = (mom_home: string): string => `${mom_home}/sock/mom.sock`;

// Tasks of a running job (the task management interface of PBS, docs/reference/execution.md 3): messages of pbsdsh, pbs_tmrsh
// and pbs_attach to the mom of their host, and messages between the moms of one job. On one host they use the unix socket
// MOM_HOME/sock/mom.sock, between hosts TLS on the mom's port.
//
// K1. The kernel tells the mom which user is calling. This is either the owner of the job, who must also present the secret
//     of the job's present run on this host (PBS_JOBCOOKIE), or the user of the moms, who gives the number of that run. A mom
//     acts only for jobs that the server sent to it.
// K2. The owner needs no secret to attach one of the owner's processes to the job, because the process may come from outside
//     the job (ssh HOST pbs_attach -j JOB prog).
// K3. Between hosts, a certificate names the host of the calling mom. The server has told both moms that this host belongs
//     to the run, and has given both the same secret of the run (MomJob.sisters). The mom of a host may start tasks on the
//     host that it calls, and send the output of its own tasks to the mother superior; it may do nothing else.
// K4. A mom that loses the connection to another mom connects again and repeats its requests. The name of a task
//     (task-spawn) and the position of a piece of output (task-output) ensure that nothing is done twice.

/** The present run of a job on the mom's host. cookie null: the caller is a mom, or K2 applies. */
export type TaskRun = { readonly job: string; readonly run_count: number | null; readonly cookie: string | null };

export type TaskToMom = {
  /** asks for the lines of the job's node file; the node number of a host is its position in that file */
  "task-nodes": TaskRun;
  /**
   * starts a task. token: a number that the caller chooses for the task. argv[0] is searched in the job's PATH. shell: argv is
   * one text for the owner's shell. env: variables `NAME=value` in addition to the job's variables. name: sent by moms only; a
   * request with the name of an earlier one asks for the answers about the task of that request. again: the request may have
   * arrived before
   */
  "task-spawn": TaskRun & {
    readonly token: number;
    readonly host: string;
    readonly argv: readonly string[];
    readonly env: readonly string[];
    readonly shell: boolean;
    readonly name?: string;
    readonly again?: true;
  };
  /** sends a signal to all processes of a task that this connection started */
  "task-signal": { readonly token: number; readonly signal: number };
  /** attaches a process of the owner, with its whole session, to the job */
  "task-attach": TaskRun & { readonly token: number; readonly pid: number };
  /**
   * output of tasks on a sister, which the mother superior adds to the output of the job: base64, in order. from: the host of the
   * sister. offset: number of bytes of this output before the content
   */
  "task-output": TaskRun & {
    readonly token: number;
    readonly letter: "o" | "e";
    readonly from: string;
    readonly offset: number;
    readonly content: string;
  };
};

export type MomToTask = {
  "task-hosts": { readonly lines: readonly string[]; readonly hosts: readonly string[] };
  "task-started": { readonly token: number; readonly task: number };
  /** status: the exit value, or 256 plus the number of the signal */
  "task-exited": { readonly token: number; readonly status: number };
  /** the answer to task-attach and task-output: the process is attached, or the output is stored */
  "task-done": { readonly token: number };
  /** token null: the answer to task-nodes */
  "task-refused": { readonly token: number | null; readonly text: string };
};

export const taskSocketPath = (mom_home: string): string => `${mom_home}/sock/mom.sock`;

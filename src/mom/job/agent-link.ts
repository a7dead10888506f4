// Requests of the mom to its file agent (frames over the agent's stdin and stdout). The mom plans all work; the agent carries it out with the owner's rights.
// Every request may be sent again, because an agent may die before it answers.

import type { FarFacts } from "./plan-facts.ts";
import type { FileIdentity } from "./process.ts";
import type { Place, StageItem } from "./stage-list.ts";

/** Where one output stream of a job goes. */
export type OutputPlan = {
  /** `o` or `e`, as in -k and -R */
  readonly letter: "o" | "e";
  /**
   * spool: written in HOME/spool and delivered when the job ends. direct: written at its final place (-k). null: /dev/null. joined: the job writes it to the
   * file of the other stream.
   */
  readonly how: "spool" | "direct" | "null" | "joined";
  /** how spool: the file in spool. how direct: the final place; if that is a directory, the file in it gets the name `name` */
  readonly path: string;
  /** the final place of a file in spool */
  readonly target: Place | null;
  /** name of the file in a directory: `<jobid>.OU` */
  readonly name: string;
  /** -R: removed when the job ends with exit status 0 */
  readonly remove: boolean;
};

export type FilePlan = {
  readonly job: string;
  readonly run_count: number;
  /** null: the mom's own identity (user mode) */
  readonly owner: FileIdentity | null;
  readonly umask: number;
  /** mom_priv/jobs/<jobid>.SC; null: no script */
  readonly script: string | null;
  readonly nodefile: string;
  readonly tmpdir: string;
  /** directory made for the job (sandbox=PRIVATE); null: none */
  readonly sandbox: string | null;
  readonly stdout: OutputPlan;
  readonly stderr: OutputPlan;
  readonly undelivered: string;
  /** copied to this host before the job starts; removed after all of stageout has been copied */
  readonly stagein: readonly StageItem[];
  readonly stageout: readonly StageItem[];
  /** mom_priv/jobs/<jobid>.SI: the list of files that were staged in */
  readonly staged: string;
  /** for copies to and from other hosts: the user, the user's home, and the copy program with its first arguments; source and destination follow them */
  readonly user: string;
  readonly home: string;
  readonly scp: readonly string[];
  /** for copies to and from other hosts of the complex over its own channel; absent: the site has named a copy program */
  readonly far?: FarFacts;
};

/** The directories that are made for a job, and the paths of staged files in them. */
export type JobDirectories = Pick<FilePlan, "tmpdir" | "sandbox" | "stagein" | "stageout">;

export type PrepareRequest = {
  readonly plan: FilePlan;
  readonly script_text: string | null;
  readonly nodefile_text: string;
  /** output of an earlier run exists: it stays even if the files of this run cannot be made */
  readonly kept?: true;
};
export type FinishRequest = {
  readonly plan: FilePlan /** Exit_status was 0 */;
  readonly success: boolean /** keep: the job is rerun, and the output stays for the next run. drop: the output is not needed */;
  readonly output: "deliver" | "keep" | "drop";
};
export type DropRequest = { readonly job: string; readonly paths: readonly string[] };

export type Prepared = { readonly job: string; readonly run_count: number } & (
  | {
      readonly ok: true;
      /** the files to open as the job's output */
      readonly stdout: string;
      readonly stderr: string;
      /** the directories that were made, if the planned names were taken by another user */
      readonly places?: JobDirectories;
    }
  | {
      readonly ok: false /** one of the codes in docs/reference/execution.md 6 */;
      readonly exit_status: number;
      readonly text: string /** the step that failed was the copying of files to this host */;
      readonly stagein?: true;
    }
);
/** What became of a run's output and stageout. delivered: how many of the `total` outputs reached their place. failures: one sentence for each. */
export type Finished = {
  readonly job: string;
  readonly run_count: number;
  readonly delivered: number;
  readonly total: number;
  readonly failures: readonly string[];
};

export type MomToAgent = {
  "agent-prepare": { readonly jobs: readonly PrepareRequest[] };
  "agent-finish": { readonly jobs: readonly FinishRequest[] };
  /** adds a text at the end of a file that exists */
  "agent-append": {
    readonly files: readonly {
      readonly owner: FileIdentity | null;
      readonly path: string;
      readonly text: string;
      /** the text is base64 of the bytes to add */
      readonly base64?: true;
      /** the run that waits for the answer `agent-appended` */
      readonly for?: { readonly job: string; readonly run_count: number };
      /** the request of a sister that waits for the same answer */
      readonly asked?: number;
    }[];
  };
  /** removes files in spool that are no longer needed */
  "agent-drop": { readonly jobs: readonly DropRequest[] };
};
export type AgentToMom = {
  "agent-prepared": { readonly jobs: readonly Prepared[] };
  "agent-finished": { readonly jobs: readonly Finished[] };
  /** the text for these runs and requests was written, or cannot be written */
  "agent-appended": { readonly runs: readonly { readonly job: string; readonly run_count: number }[]; readonly asked: readonly number[] };
  /** the jobs whose files were removed */
  "agent-dropped": { readonly jobs: readonly string[] };
  /**
   * these requests were not begun: so much would be copied or removed that other jobs would have to wait. The mom gives them to a second agent, which does only
   * such work
   */
  "agent-bulky": { readonly jobs: readonly { readonly job: string; readonly run_count: number }[] };
  /** a message for the log */
  "agent-complaint": { readonly job: string; readonly text: string };
};

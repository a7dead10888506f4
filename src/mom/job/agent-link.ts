// Requests of the mom to its file agent (frames over the agent's stdin and stdout). The mom plans all work; the agent carries it out with the
// owner's rights. Every request may be repeated, because the agent may have died during the first one.

import type { FileIdentity } from "./process.ts";
import type { Place, StageItem } from "./stage-list.ts";

/** The destination of one output stream of a job. */
export type OutputPlan = {
  /** `o` or `e` of -k and -R */
  readonly letter: "o" | "e";
  /**
   * spool: written in HOME/spool, delivered at the end · direct: written at its final place (-k) · null: /dev/null joined: the other stream's file takes it
   */
  readonly how: "spool" | "direct" | "null" | "joined";
  /** the file in spool (how spool), or the final place (how direct; in a directory the file gets the name `name`) */
  readonly path: string;
  /** final place of a spool file */
  readonly target: Place | null;
  /** name in a directory: `<jobid>.OU` */
  readonly name: string;
  /** -R: removed when the job ends with 0 */
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
  /** copied before the job starts; removed when everything that is to be copied after it has been copied */
  readonly stagein: readonly StageItem[];
  readonly stageout: readonly StageItem[];
  /** mom_priv/jobs/<jobid>.SI: the record of staged-in files */
  readonly staged: string;
  /** the user, the directory and the program of copies to and from other hosts: the words before the two places */
  readonly user: string;
  readonly home: string;
  readonly scp: readonly string[];
};

/** The directories that are made for a job, and the paths of files in them. */
export type JobDirectories = Pick<FilePlan, "tmpdir" | "sandbox" | "stagein" | "stageout">;

export type PrepareRequest = {
  readonly plan: FilePlan;
  readonly script_text: string | null;
  readonly nodefile_text: string;
  /** output of an earlier run exists; it stays even if the files cannot be made */
  readonly kept?: true;
};
export type FinishRequest = {
  readonly plan: FilePlan /** Exit_status was 0 */;
  readonly success: boolean /** keep: the job is rerun, and the output waits for the next run; drop: the output is not needed */;
  readonly output: "deliver" | "keep" | "drop";
};
export type DropRequest = { readonly job: string; readonly paths: readonly string[] };

export type Prepared = { readonly job: string; readonly run_count: number } & (
  | {
      readonly ok: true;
      /** files to open for the job */
      readonly stdout: string;
      readonly stderr: string;
      /** a foreign entry was in the way of the plan's directories: these were made instead */
      readonly places?: JobDirectories;
    }
  | {
      readonly ok: false /** a code of docs/reference/execution.md 6 */;
      readonly exit_status: number;
      readonly text: string /** the failed step was the copying of files to this host */;
      readonly stagein?: true;
    }
);
/** delivered: number of the total outputs; failures: a sentence each. */
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
  /** text at the end of a file that exists */
  "agent-append": {
    readonly files: readonly {
      readonly owner: FileIdentity | null;
      readonly path: string;
      readonly text: string;
      /** text is bytes in base64 */
      readonly base64?: true;
      /** the run that waits for `agent-appended` */
      readonly for?: { readonly job: string; readonly run_count: number };
    }[];
  };
  /** files in spool that are no longer needed */
  "agent-drop": { readonly jobs: readonly DropRequest[] };
};
export type AgentToMom = {
  "agent-prepared": { readonly jobs: readonly Prepared[] };
  "agent-finished": { readonly jobs: readonly Finished[] };
  /** the text is written, or cannot be */
  "agent-appended": { readonly runs: readonly { readonly job: string; readonly run_count: number }[] };
  /** names of the jobs */
  "agent-dropped": { readonly jobs: readonly string[] };
  /**
   * the request was not begun, because it would copy or remove so much that other jobs would wait; the mom gives
   * it to a second agent, which does only such work
   */
  "agent-bulky": { readonly jobs: readonly { readonly job: string; readonly run_count: number }[] };
  /** for the log */
  "agent-complaint": { readonly job: string; readonly text: string };
};

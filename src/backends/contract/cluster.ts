// The interface between the grid (src/grid) and a cluster on which jobs of campaigns run. Each type of cluster is implemented in the folder of the backend of runners that
// has the same batch system, because both call the same programs and meet the same faults. Pure: types only.
//
// C1. Exactly once: a batch is submitted held. The grid records the ids of the jobs, and only then releases them. If a submission ended without a clear answer, the
//     grid calls submit again with isFirst = false; the adapter then looks for the tag before it submits anything. Of two submissions with one tag, only the one
//     whose ids were recorded is ever released, and the other is deleted while it is held.
// C2. list() is complete or fails: an acknowledged job that a later list() does not show has ended. outcomes() then says how.
// C3. No call waits longer than the cluster's time limit for each program or request that it needs.
// C4. A credential never appears in a command line, an environment variable, a log or an error.
// C5. Every error is a BackendError (fault.ts).

import type { Owner } from "./backend.ts";
import type { Fault } from "./fault.ts";

export const CLUSTER_TYPES = ["partita", "pbs", "slurm", "gridengine", "oar"] as const;
export type ClusterType = (typeof CLUSTER_TYPES)[number];

export type ClusterSettings = {
  readonly name: string;
  readonly type: ClusterType;
  /** the grid's key in tags (tag.ts) */
  readonly grid: string;
  /** the options of `gridclusters --add`, such as conf, partition, queue, bin, url, credentials, timeout. Each adapter names those that it takes */
  readonly options: Readonly<Record<string, string>>;
  /** user mode: the name of the user of the grid, to whom all jobs belong; null: system mode */
  readonly user: string | null;
  /** a directory for this cluster alone, which exists and which only the daemon's user can write */
  readonly state_dir: string;
};

/** The request of the jobs of one batch, in the form that the cluster understands. cpus: the number for one job. */
export type JobResources =
  | { readonly kind: "select"; readonly select: string; readonly place: string | null; readonly cpus: number }
  | { readonly kind: "hierarchy"; readonly resources: string; readonly cpus: number };

/** Jobs of one campaign that are submitted together, as an array where the cluster has arrays. */
export type JobBatch = {
  readonly tag: string;
  /** true only if no submission of this tag was ever begun; false: look for the tag first */
  readonly isFirst: boolean;
  /** system mode: the user there to whom the jobs belong; null: user mode */
  readonly owner: Owner | null;
  readonly jobs: readonly JobText[];
  readonly resources: JobResources;
  readonly walltime_s: number;
  readonly best_effort: boolean;
  readonly project: string | null;
  readonly queue: string | null;
  /** the value of OAR's -t */
  readonly job_type: string | null;
  /** the value of OAR's -p */
  readonly properties: string | null;
};

/** The program of one job and its environment. job-script.ts makes one script for a whole batch. */
export type JobText = {
  /** `~` at the beginning of a word and `{HOME}` anywhere in it are the home directory there */
  readonly exec: readonly string[];
  /** words that follow the words of exec; they are passed to the program unchanged */
  readonly parameters: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** where the job runs, with `~` and `{HOME}` as in exec */
  readonly directory: string;
  /** files for the output of the job, relative to the directory; null: the files that the cluster uses by default */
  readonly output: { readonly out: string; readonly err: string } | null;
};

/** The names by which a job can be found again. */
export type JobRef = { readonly tag: string; readonly index: number; readonly id: string; readonly user: string | null };

export type JobSighting = JobRef & {
  /** queued: also a job that is held. unknown: a state that fits none of the others */
  readonly state: "queued" | "running" | "ended" | "unknown";
  /** the cluster's own words for the state or for why the job waits; "": none */
  readonly reason: string;
  readonly host: string | null;
  /** ended: the exit code of the program, 0 to 255; null: not known, or the program did not exit by itself */
  readonly exit_code: number | null;
  /**
   * how an ended job ended. exit: the program exited by itself. walltime: the job was killed at the limit. killed: a person or the cluster ended the job (preemption, a
   * failed node, a deletion). lost: the cluster no longer knows how. null: the cluster does not know it yet, or does not show it in a list; outcomes() can tell
   */
  readonly ending: "exit" | "walltime" | "killed" | "lost" | null;
  /** how long the job has run; null: not known, or it has not started */
  readonly run_s: number | null;
  /** peak memory, if the cluster says it */
  readonly mem_kb: number | null;
  /** set if a waiting job will not start as things are */
  readonly fault: Fault | null;
};

/** The number of units of the cluster (cpus, or resources of OAR) that campaigns may use. free: the number that no job uses now. */
export type Capacity = { readonly total: number; readonly free: number };

export type ClusterAdapter = {
  readonly type: ClusterType;
  /** Asks whether the cluster answers. jobs_max: jobs that it takes in one batch. Throws a BackendError that says what is wrong. */
  probe(): Promise<{ readonly text: string; readonly jobs_max: number }>;
  /** Submits a batch of held jobs (C1). Returns all jobs of the batch. If the batch had been submitted before, jobs that have vanished since are missing. */
  submit(batch: JobBatch): Promise<readonly JobSighting[]>;
  /** Lets jobs start. It is not an error if a job was released before or has ended. */
  release(jobs: readonly JobRef[]): Promise<void>;
  /** Returns all jobs of this grid on this cluster that have not ended, and also jobs that have ended if the cluster still shows them. */
  list(): Promise<readonly JobSighting[]>;
  /** Returns how jobs have ended that list() does not show any more. A job that the cluster does not know any more has the ending `lost`. */
  outcomes(jobs: readonly JobRef[]): Promise<readonly JobSighting[]>;
  /**
   * Ends jobs. It is not an error if a job no longer exists. queued_only: a job that has started continues, even if it starts during the call; its task would otherwise be
   * run a second time. If the cluster has no command that spares such jobs, the adapter first holds the jobs and then reads their states again
   */
  cancel(jobs: readonly JobRef[], options?: { readonly queued_only?: boolean }): Promise<void>;
  capacity(): Promise<Capacity>;
  /** Ends the use of the cluster. Jobs continue. */
  close(): Promise<void>;
};

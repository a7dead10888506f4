// What every backend can do. A backend is a cluster manager, a cloud or this machine; runners are started on it. Each folder beside this one implements `Backend`
// for one kind of cluster manager. The controller (src/runner) is the only caller. Pure: types only.
//
// B1. Exactly once: the runners of one tag are submitted at most once. The caller records the tag before it calls submit. If a submission ended without a
//     clear answer (a crash, or an error with `uncertain`), the caller calls submit again with the same tag and isFirst = false. The backend then looks for the
//     tag before it submits anything.
// B2. list() is complete or fails: a runner whose submission was acknowledged, and that a later list() does not show, has ended.
// B3. No call waits longer than the backend's command_timeout for each program or request that it needs.
// B4. A token never stands in a command line, an environment variable, a log or an error.
// B5. Every error is a BackendError (fault.ts), in the backend's own words.

import type { Fault } from "./fault.ts";

/** The kinds of backends: the values of the attribute type of a backend object. */
export type BackendType = "local" | "slurm" | "gridengine" | "lsf" | "openstack" | "pbs";

export type Backend = {
  readonly type: BackendType;
  /**
   * Asks for the runners of an order. Returns the runners that exist for its tag afterwards. Their number is order.count, or smaller if the order was submitted
   * before and some of its runners have ended since, or if the backend took only the first ones (openstack: as many as the quota has room for).
   * Throws `impossible` if the backend can never run such a runner, `limit` if it takes no more at present.
   */
  submit(order: RunnerOrder): Promise<readonly RunnerSighting[]>;
  /** Returns all runners of this complex and this backend object that have not ended, and those that ended lately if the backend still shows them. */
  list(): Promise<readonly RunnerSighting[]>;
  /**
   * Ends runners. Runners that no longer exist are no error. queued_only: a runner that has started meanwhile continues; if the cluster manager cannot spare
   * such runners itself, the adapter asks for the states of the runners immediately before.
   */
  cancel(runners: readonly RunnerSighting[], options?: { readonly queued_only?: boolean }): Promise<void>;
  /** Asks whether the backend answers at all. Throws a BackendError that says what is wrong. */
  probe(): Promise<Probe>;
  /** Removes what was kept for an order, such as files with tokens. Called when the runners of the order have ended and it will not be submitted again. */
  release(tag: string): Promise<void>;
  /**
   * Returns the tags of orders for which something is kept, so that it is also removed if the caller has forgotten the order. Tags of others may be among them.
   * Absent: list() shows all such orders.
   */
  kept?(): readonly string[];
  /** Tells the backend that waiting runners are wanted earlier or later than before. Absent: the backend cannot change this. */
  reschedule?(runners: readonly RunnerSighting[], wish: Wish): Promise<void>;
  /** Ends the use of the backend. Runners continue. */
  close(): Promise<void>;
};

/** When a runner is wanted, for backends that can order their waiting jobs by it. */
export type Wish = {
  /** when the runner should start (epoch seconds): ETA minus pressure; null: unknown. Used with use_nice */
  readonly start_s: number | null;
  /** -1024 to 1023 as in qsub -p; 0: no preference */
  readonly priority: number;
};

export type RunnerOrder = {
  readonly tag: string;
  /** true only if no submission of this tag was ever begun; false: look for the tag first */
  readonly isFirst: boolean;
  /** 1 to ORDER_COUNT_MAX */
  readonly count: number;
  /** system mode: the user to whom the runners belong; null: user mode, everything runs as the user of the complex */
  readonly owner: Owner | null;
  /** the program of a runner with its arguments, by its absolute path */
  readonly argv: readonly string[];
  /** environment of the program, beside what the backend sets. No secrets */
  readonly env: Readonly<Record<string, string>>;
  /** one secret for each runner, in the order of their indices. The runner finds it in the file PARTITA_RUNNER_TOKEN_FILE (mode 0600) */
  readonly tokens: readonly string[];
  readonly request: RunnerRequest;
  readonly wish: Wish;
};

export const ORDER_COUNT_MAX = 10_000;

export type Owner = { readonly name: string; readonly uid: number; readonly gid: number; readonly groups: readonly number[] };

/** What one runner needs: the rounded amounts of its bucket. */
export type RunnerRequest = {
  readonly ncpus: number;
  /** physical memory; null: not asked for */
  readonly mem_kb: number | null;
  /** temporary disk space; null: not asked for */
  readonly tmp_kb: number | null;
  /** the longest time that the runner lives */
  readonly walltime_s: number;
  /** other resources: numbers (also GPUs: ngpus) and texts; sizes as canonical text. The backend's attributes say how they are named there */
  readonly resources: Readonly<Record<string, number | string>>;
  /** options of the job for this backend (-W backend_opts), as parseBackendOptions returned them */
  readonly options: Readonly<Record<string, string>>;
  /**
   * only `local`: the request was meant for another backend that does not work. Amounts beyond the capacity of this machine are reduced to the capacity, and
   * other resources and options that this machine does not have are ignored. Of the runners with such an amount, resource or option, only one runs at a time
   */
  readonly diverted: boolean;
};

/** One runner as the backend sees it. */
export type RunnerSighting = {
  readonly tag: string;
  /** 0 to count - 1 */
  readonly index: number;
  /** the backend's own name of the runner: qstat -f shows it as backend_id */
  readonly id: string;
  /** unknown: the backend shows the runner in a state that fits none of the others (for example a host that does not answer) */
  readonly state: "queued" | "running" | "ended" | "unknown";
  /** the backend's own words for the state or for why the runner waits; "": none */
  readonly reason: string;
  /**
   * to whom the runner belongs there; null: the backend does not tell users apart. A job of another user than the order's owner is no runner of the order,
   * whatever its name
   */
  readonly user: string | null;
  /** where it runs, if the backend says so */
  readonly host: string | null;
  /** for an ended runner, if the backend shows how: done; retry: preempted, node failed, cancelled; error: failed by itself or killed at a limit */
  readonly ending: "done" | "retry" | "error" | null;
  /** set if a queued runner will not start as things are (unknown partition, limit of walltime, ...) */
  readonly fault: Fault | null;
};

/** The answer of probe(). */
export type Probe = {
  /** version and other facts in the backend's words, on one line */
  readonly text: string;
  /** runners that the backend takes in one submission */
  readonly array_max: number;
};

/** Names of environment variables that a runner gets from its backend. The runner removes them before it starts jobs. */
export const RUNNER_ENV = {
  TAG: "PARTITA_RUNNER_TAG",
  INDEX: "PARTITA_RUNNER_INDEX",
  TOKEN_FILE: "PARTITA_RUNNER_TOKEN_FILE",
} as const;

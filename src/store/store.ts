// The interface between the server and its store: load everything, commit batches, read the history, make backups. The rows
// contain the same records as the server's memory (src/server/state/state.ts); the store does not know what they mean.
// sqlite/, postgres/ and memory-store.ts implement the interface.
//
// R1. commit() writes all of a batch or nothing. When it resolves, the batch is durable.
// R2. Commits take effect in the order of the calls.
// R3. After a failed commit, load() returns the state before that commit, and the store can still be used. Only the fault
//     `away` leaves open whether the commit was written; load() then returns the rows that really are in the database.

/** A record as JSON can represent it. */
export type Data = { readonly [name: string]: unknown };

/** The tables of objects with names. The table server has one row with the name of the server. */
export const OBJECT_TABLES = [
  "server",
  "resources",
  "queues",
  "vnodes",
  "scheds",
  "resvs",
  "hooks",
  "run_times",
  "backends",
  "runners",
] as const;
export type ObjectTable = (typeof OBJECT_TABLES)[number];

export type ObjectRow = { readonly name: string; readonly data: Data };
/** A job that is not finished. seq: the number in its id. */
export type JobRow = { readonly id: string; readonly seq: number; readonly data: Data };
/** A second, small row of a job. It has the data that change while the job runs, and is written much more often than the first. */
export type RunRow = { readonly id: string; readonly data: Data };
/** The idx of a history row that is not for a subjob. */
export const WHOLE_JOB = -1;

/**
 * A finished or moved job. idx: the index of a subjob, otherwise WHOLE_JOB. state: the letter of its job_state. ended_s:
 * history_timestamp. owner: the user name without the host.
 */
export type HistoryRow = {
  readonly id: string;
  readonly seq: number;
  readonly idx: number;
  readonly owner: string;
  readonly queue: string;
  readonly state: string;
  readonly ended_s: number;
  readonly data: Data;
};

/**
 * All rows that change together. A field that is absent changes nothing. If a row is both in a field that removes rows and
 * in one that writes rows, it is removed first and then written.
 */
export type Batch = {
  readonly put?: readonly { readonly table: ObjectTable; readonly name: string; readonly data: Data }[];
  readonly drop?: readonly { readonly table: ObjectTable; readonly name: string }[];
  /** new or changed jobs */
  readonly jobs?: readonly JobRow[];
  /** ids of jobs that are no longer live; their rows, second rows and scripts are removed */
  readonly jobs_gone?: readonly string[];
  readonly runs?: readonly RunRow[];
  /** jobs whose second row is removed */
  readonly runs_gone?: readonly string[];
  readonly scripts?: readonly { readonly id: string; readonly text: string }[];
  readonly history?: readonly HistoryRow[];
  readonly history_gone?: readonly string[];
  /** numbers of arrays; all history rows of their subjobs are removed */
  readonly history_gone_arrays?: readonly number[];
  /** numbers by name: next_seq, next_order, ... */
  readonly counters?: { readonly [name: string]: number };
};

export type Loaded = {
  readonly objects: { readonly [T in ObjectTable]: readonly ObjectRow[] };
  /** the live jobs in the order of seq. run: the second row of a job */
  readonly jobs: readonly (JobRow & { readonly run?: Data })[];
  readonly counters: { readonly [name: string]: number };
  /** whether nothing was ever committed to this store */
  readonly fresh: boolean;
};

export type HistoryFilter = {
  readonly ids?: readonly string[];
  readonly owner?: string;
  readonly queue?: string;
  /** only jobs that ended at or after since_s, and before before_s */
  readonly since_s?: number;
  readonly before_s?: number;
  /** only jobs and subjobs with these numbers */
  readonly seqs?: readonly number[];
  /** false: without records of subjobs */
  readonly subjobs?: boolean;
};

export type History = {
  /** reads one job; null: it is not in the history */
  get(id: string): Promise<HistoryRow | null>;
  /**
   * reads jobs page by page in the order of seq. Subjobs follow their array in the order of idx. Ask for the next page only
   * when the previous one is no longer needed
   */
  pages(filter: HistoryFilter, page_rows?: number): AsyncGenerator<readonly HistoryRow[], void, void>;
  /** number of records */
  count(): Promise<number>;
  /** whether the Resource_List of a finished job contains the resource (a resource in use cannot be deleted) */
  usesResource(resource: string): Promise<boolean>;
  /**
   * removes records of jobs that ended before before_s, the oldest first, at most `rows` (default 10,000). Returns the ids,
   * queues and states of the removed records
   */
  purge(before_s: number, rows?: number): Promise<readonly { readonly id: string; readonly queue: string; readonly state: string }[]>;
};

/**
 * Chooses what is stored in memory for a value that was read: the value itself, or an equal one that other rows share. The
 * result must never be changed in place.
 */
export type Keep = (name: string, value: unknown) => unknown;
export const asItIs: Keep = (_, value) => value;

/** What two servers of one complex share in their database, besides the rows of the state. */
export type SharedStore = {
  /** the store and the present term of its leader, which is this server */
  leader(): { readonly store: number; readonly term: number };
  /** whether the term was confirmed so recently that no other server can lead */
  isConfirmed(): boolean;
  /** Resolves when isConfirmed() is true. Rejects with StoreError: `away` after a time, or `deposed`. */
  confirm(): Promise<void>;
  /** Gives the servers that wait an order. role: only servers of that role; null: all */
  order(order: "stop" | "idle", role: "primary" | "secondary" | null): Promise<void>;
  /** reads all files */
  files(): Promise<ReadonlyMap<string, string>>;
  /** writes files in one transaction of the leader; null: removes the file */
  putFiles(files: ReadonlyMap<string, string | null>): Promise<void>;
};

export type Store = {
  /** loads all live rows. keep: applied to the attributes of jobs, so that jobs can share values */
  load(keep?: Keep): Promise<Loaded>;
  /** Writes a batch. Rejects with StoreError; nothing of the batch is then written (with `away`: perhaps all of it, R3). */
  commit(batch: Batch): Promise<void>;
  /** reads the scripts of jobs; a job without a script is absent from the result */
  scripts(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  readonly history: History;
  /** writes a consistent copy into a new file (absolute path) while the server works */
  backup(file: string): Promise<void>;
  /**
   * checks the structure of the whole file. Returns null, or the faults that it found. This is slow for large stores, but
   * does not delay commits
   */
  check(): Promise<string | null>;
  /** what two servers of one complex share; absent: the store can have one server only */
  readonly shared?: SharedStore;
  /** makes operations that wait for a database fail soon with the fault `away`, because the server is about to close the store */
  hurry?(): void;
  close(): Promise<void>;
};

/**
 * away: the database cannot be reached. A commit that fails with it may have been written: the next load() shows whether it
 * was. deposed: another server has taken the database, and this one can write nothing more. dismissed: the server that leads has told this one, which
 * stood by, to end.
 */
export type StoreFault =
  | "disk-full"
  | "corrupt"
  | "newer"
  | "lost"
  | "locked"
  | "permission"
  | "io"
  | "exists"
  | "away"
  | "deposed"
  | "dismissed";

/** The error of an operation of the store that has failed. The message names the file, the fault and the remedy. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly fault: StoreFault;
  constructor(fault: StoreFault, message: string, cause?: unknown) {
    super(message, { cause });
    this.fault = fault;
  }
}

/** Whether an error is a StoreError. The name is compared, because the store and its user may be in two bundles, each with its own class. */
export const isStoreError = (error: unknown): error is StoreError => error instanceof Error && error.name === "StoreError";

// The interface between the server and its store: load everything, commit batches, query the history, back up. The rows hold
// the same records as the server's memory (src/server/state/state.ts); the store does not know their meaning. sqlite-store.ts
// and memory-store.ts implement the interface.
//
// R1. commit() is all or nothing, and durable when it resolves.
// R2. Commits take effect in the order of the calls.
// R3. After a failed commit, load() returns the state before it, and the store remains usable.

/** Attributes as JSON holds them. */
export type Data = { readonly [name: string]: unknown };

/** Tables of named objects. server has one row, named after the server. */
export type ObjectTable = "server" | "resources" | "queues" | "vnodes" | "scheds" | "resvs" | "hooks" | "run_times";

export type ObjectRow = { readonly name: string; readonly data: Data };
/** A job that is not finished. seq: the number in its id. */
export type JobRow = { readonly id: string; readonly seq: number; readonly data: Data };
/** A second, small row beside that of a job. It holds the data that changes while the job runs, and is written much more often. */
export type RunRow = { readonly id: string; readonly data: Data };
/** The idx of a row that is not a subjob. */
export const WHOLE_JOB = -1;

/**
 * A finished or moved job. idx: index of a subjob, otherwise WHOLE_JOB. state: its letter. ended_s: history_timestamp. owner:
 * user name without host.
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
 * All rows that change together. Absent parts do not change. If a row is in a removing and a writing part, the removal is done
 * first.
 */
export type Batch = {
  readonly put?: readonly { readonly table: ObjectTable; readonly name: string; readonly data: Data }[];
  readonly drop?: readonly { readonly table: ObjectTable; readonly name: string }[];
  /** new or changed jobs */
  readonly jobs?: readonly JobRow[];
  /** jobs that are no longer live; their second rows and scripts are removed with them */
  readonly jobs_gone?: readonly string[];
  readonly runs?: readonly RunRow[];
  /** jobs whose second row is removed */
  readonly runs_gone?: readonly string[];
  readonly scripts?: readonly { readonly id: string; readonly text: string }[];
  readonly history?: readonly HistoryRow[];
  readonly history_gone?: readonly string[];
  /** numbers of arrays; all rows of their subjobs are removed */
  readonly history_gone_arrays?: readonly number[];
  /** numbers by name: next_seq, next_order, ... */
  readonly counters?: { readonly [name: string]: number };
};

export type Loaded = {
  readonly objects: { readonly [T in ObjectTable]: readonly ObjectRow[] };
  /** in the order of seq. run: the second row */
  readonly jobs: readonly (JobRow & { readonly run?: Data })[];
  readonly counters: { readonly [name: string]: number };
  /** true: nothing was ever committed */
  readonly fresh: boolean;
};

export type HistoryFilter = {
  readonly ids?: readonly string[];
  readonly owner?: string;
  readonly queue?: string;
  /** finished at or after since_s, and before before_s */
  readonly since_s?: number;
  readonly before_s?: number;
  /** only jobs and subjobs with these numbers */
  readonly seqs?: readonly number[];
  /** false: without subjobs */
  readonly subjobs?: boolean;
};

export type History = {
  /** one job, or null if it is not in the history */
  get(id: string): Promise<HistoryRow | null>;
  /**
   * pages in the order of seq; subjobs follow their array in the order of idx. Ask for the next page after the last one is used
   * up
   */
  pages(filter: HistoryFilter, page_rows?: number): AsyncGenerator<readonly HistoryRow[], void, void>;
  /** number of records */
  count(): Promise<number>;
  /** whether the Resource_List of a finished job contains the resource (a resource in use cannot be deleted) */
  usesResource(resource: string): Promise<boolean>;
  /**
   * removes records that ended before before_s, oldest first, at most `rows` (default 10,000). Returns their ids, queues and
   * states
   */
  purge(before_s: number, rows?: number): Promise<readonly { readonly id: string; readonly queue: string; readonly state: string }[]>;
};

/**
 * Chooses the value to keep for a value that was read: the value itself, or an equal one that other rows share. The result is
 * never changed in place.
 */
export type Keep = (name: string, value: unknown) => unknown;
export const asItIs: Keep = (_, value) => value;

export type Store = {
  /** keep: applied to the attributes of jobs, so that jobs may share values */
  load(keep?: Keep): Promise<Loaded>;
  /** Throws StoreError; no part of the batch is then kept. */
  commit(batch: Batch): Promise<void>;
  /** texts of jobs' scripts; ids without a script are absent */
  scripts(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  readonly history: History;
  /** writes a consistent copy into a new file (absolute path) while the server works */
  backup(file: string): Promise<void>;
  /**
   * checks the structure of the whole file. Returns null, or the faults found. The check is slow for large stores but does not
   * delay commits
   */
  check(): Promise<string | null>;
  close(): Promise<void>;
};

export type StoreFault = "disk-full" | "corrupt" | "newer" | "lost" | "locked" | "permission" | "io" | "exists";

/** An operation of the store failed. The message names the file, the fault and the remedy. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly fault: StoreFault;
  constructor(fault: StoreFault, message: string, cause?: unknown) {
    super(message, { cause });
    this.fault = fault;
  }
}

/** Compares by name, because the store and its user may come from two bundles with a class each. */
export const isStoreError = (error: unknown): error is StoreError => error instanceof Error && error.name === "StoreError";

// What the server needs of a place that keeps its rows: load everything, commit batches, ask the history, back up. The rows hold the same records as the
// server's memory (src/server/state/state.ts); what they mean is not known here. sqlite-store.ts and memory-store.ts implement it.
//
// R1. commit() is all or nothing, and durable when it resolves.
// R2. Commits take effect in the order of the calls.
// R3. After a failed commit, load() gives what was committed before it, and the store can be used on.

/** Attributes as JSON holds them. */
export type Data = { readonly [name: string]: unknown };

/** Objects with a name each. server: one row, named after the server. */
export type ObjectTable = "server" | "resources" | "queues" | "vnodes" | "scheds" | "resvs" | "hooks" | "run_times";

export type ObjectRow = { readonly name: string; readonly data: Data };
/** A job that is not finished. seq: the number in its id. */
export type JobRow = { readonly id: string; readonly seq: number; readonly data: Data };
/** A second, small row beside that of a job, written much more often: what of it changes as it runs. */
export type RunRow = { readonly id: string; readonly data: Data };
/** idx of what is no subjob. */
export const WHOLE_JOB = -1;

/** A finished or moved job. idx: index of a subjob, else WHOLE_JOB. state: its letter. ended_s: history_timestamp. owner: user name without host. */
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

/** Everything that changes together. Absent parts do not change. A row in two parts: gone first, then put. */
export type Batch = {
  readonly put?: readonly { readonly table: ObjectTable; readonly name: string; readonly data: Data }[];
  readonly drop?: readonly { readonly table: ObjectTable; readonly name: string }[];
  /** jobs new or changed */
  readonly jobs?: readonly JobRow[];
  /** jobs no longer live; their second rows and scripts go with them */
  readonly jobs_gone?: readonly string[];
  readonly runs?: readonly RunRow[];
  /** jobs that have no second row any more */
  readonly runs_gone?: readonly string[];
  readonly scripts?: readonly { readonly id: string; readonly text: string }[];
  readonly history?: readonly HistoryRow[];
  readonly history_gone?: readonly string[];
  /** numbers of arrays: all rows of their subjobs go */
  readonly history_gone_arrays?: readonly number[];
  /** numbers by name: next_seq, next_order, ... */
  readonly counters?: { readonly [name: string]: number };
};

export type Loaded = {
  readonly objects: { readonly [T in ObjectTable]: readonly ObjectRow[] };
  /** in the order of seq. run: the second row */
  readonly jobs: readonly (JobRow & { readonly run?: Data })[];
  readonly counters: { readonly [name: string]: number };
  /** nothing was ever committed */
  readonly fresh: boolean;
};

export type HistoryFilter = {
  readonly ids?: readonly string[];
  readonly owner?: string;
  readonly queue?: string;
  /** finished at or after, before */
  readonly since_s?: number;
  readonly before_s?: number;
  /** only jobs and subjobs of these numbers */
  readonly seqs?: readonly number[];
  /** false: no subjobs */
  readonly subjobs?: boolean;
};

export type History = {
  /** one job, or null */
  get(id: string): Promise<HistoryRow | null>;
  /** pages in the order of seq, subjobs behind their array in that of idx; ask for the next when the last is used up */
  pages(filter: HistoryFilter, page_rows?: number): AsyncGenerator<readonly HistoryRow[], void, void>;
  /** how many records there are */
  count(): Promise<number>;
  /** is the resource in some finished job's Resource_List? (a resource in use cannot be deleted) */
  usesResource(resource: string): Promise<boolean>;
  /** removes what ended before T, oldest first, at most `rows` (default 10,000): the rows' ids, queues and states */
  purge(before_s: number, rows?: number): Promise<readonly { readonly id: string; readonly queue: string; readonly state: string }[]>;
};

/** What to keep for a value that was read: itself, or an equal one that others have. It is never changed in place. */
export type Keep = (name: string, value: unknown) => unknown;
export const asItIs: Keep = (_, value) => value;

export type Store = {
  /** keep: for the attributes of jobs; jobs may share values */
  load(keep?: Keep): Promise<Loaded>;
  /** Throws StoreError; then nothing of the batch was kept. */
  commit(batch: Batch): Promise<void>;
  /** texts of jobs' scripts; ids without one are absent */
  scripts(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  readonly history: History;
  /** a consistent copy into a new file (absolute path) while the server works */
  backup(file: string): Promise<void>;
  /** a full check of the file's structure: null, or what is wrong. Slow for big stores; does not hold up commits */
  check(): Promise<string | null>;
  close(): Promise<void>;
};

export type StoreFault = "disk-full" | "corrupt" | "newer" | "lost" | "locked" | "permission" | "io" | "exists";

/** The store cannot do it. The message names the file, what is wrong and what helps. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly fault: StoreFault;
  constructor(fault: StoreFault, message: string, cause?: unknown) {
    super(message, { cause });
    this.fault = fault;
  }
}

/** By its name: the store and who uses it may come from two bundles, with a class each. */
export const isStoreError = (error: unknown): error is StoreError => error instanceof Error && error.name === "StoreError";

// The ports: everything outside of the core that its driver uses. The daemon provides sockets, SQLite, clocks and child
// processes (../shell/service.ts); the simulator, what-if and the tests provide virtual ones.
//
// P1. A callback is called once, either before the function that received it returns, or later. If the process ends, it may
//     never be called.

import type { HookOutcome, HookRun } from "#hooks/run/hook-input.ts";
import type { ResourceDef } from "#model/resource-table.ts";
import type { Hook } from "#model/tables/hook.ts";
import type { IdentityAsk } from "#protocol/identity-link.ts";
import type { Batch as Rows } from "#store/store.ts";
import type { AccountingLog } from "#support/accounting-log.ts";
import type { LogRecord } from "#support/log-event.ts";
import type { Core } from "../core/core.ts";
import type { Batch, ClientFrame, HistoryWalk, MomFrame, RunnersFrame, SchedFrame } from "../engine/batch.ts";
import type { Mail } from "../engine/mail.ts";
import type { SchedSight } from "../scheds/heartbeat.ts";
import type { DueRecord } from "../state/rows.ts";
import type { Job, ServerState } from "../state/state.ts";

export type Result<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: Error };
export type Done<T> = (result: Result<T>) => void;

export type ClockPort = {
  /** epoch milliseconds, whole; this clock may be set */
  wall_ms(): number;
  /** milliseconds since an arbitrary start; this clock is never set */
  steady_ms(): number;
  /** Does work once after a delay. Returns a function that cancels it. */
  after(delay_ms: number, work: () => void): () => void;
  /** Does work as soon as everything that has already arrived has been processed. */
  soon(work: () => void): void;
};

/** due: the accounting records of the last batch that had any, which may be missing in the accounting file (accounting-recovery.ts) */
export type LoadedState = { readonly state: ServerState; readonly due: readonly DueRecord[] };

export type StorePort = {
  /** Writes all rows or none. fault: the reason why the store could not write. Only such faults are passed to done; any other error ends the program. */
  commit(rows: Rows, done: (fault: Error | null) => void): void;
  /**
   * Loads the state from the stored rows. Only temporary faults are given to done; any other error, and a store that is
   * damaged, newer, without acknowledged commits or taken by another server, ends the program.
   */
  load(done: Done<LoadedState>): void;
  readonly history: HistoryPort;
  /** present if another server may take over (docs/standby.md); absent: this server leads as long as it lives */
  readonly lease?: LeasePort;
  /** makes a copy of the store in a new file */
  backup(file: string, done: Done<void>): void;
  /** makes a write that waits for a database fail soon, because the server is about to end */
  hurry?(): void;
  close(done: () => void): void;
};

/** Whether this server leads, in a complex with two servers. */
export type LeasePort = {
  /** whether it is certain that no other server leads now */
  holds(): boolean;
  /** Calls done when holds() is true; fault: the server cannot find this out, or another server leads. */
  confirm(done: (fault: Error | null) => void): void;
  /** gives the servers that wait an order (qterm -f, -F, -i). role: only servers of that role; null: all */
  order(order: "stop" | "idle", role: "secondary" | null, done: (fault: Error | null) => void): void;
};

export type HistoryPort = {
  /** Reads jobs by id; null: the history has no such job. page_rows: number of records that are read at once. */
  read(ids: readonly string[], page_rows: number, done: Done<ReadonlyMap<string, Job | null>>): void;
  pages(walk: HistoryWalk, page_rows: number): HistoryPages;
  /** Deletes jobs that ended before that time, perhaps not all at once. done gets the number of deleted jobs; 0: none is left. */
  purge(before_s: number, done: Done<number>): void;
  count(done: Done<number>): void;
};
/** The pages of a walk through the history. null: there is no further page. */
export type HistoryPages = { next(done: Done<readonly Job[] | null>): void };

/** Connections of schedulers and moms, by number. Frames to a link that is gone are dropped. */
export type LinksPort = {
  toSched(frame: SchedFrame): void;
  /** sends frames in their order. Frames with the same record that follow one another may go out as one */
  toMoms(frames: readonly MomFrame[]): void;
  /** absent: no pbs_runners can connect */
  toRunners?(frame: RunnersFrame): void;
  /** ends a link after everything sent has left; the driver is informed of it as of any other loss of a link */
  end(link: number): void;
  /** ends all links of schedulers and moms at once */
  dropDaemons(): void;
  /** called when attributes of the server have changed, because they set the limits of links */
  setLimits(state: ServerState): void;
  /** ends all links, including those of clients, after everything sent has left */
  close(done: () => void): void;
};

/** The user who waits for the answer to a request. uid, link: used to choose whose turn it is (turns.ts) */
export type Asker = { readonly uid: number; readonly link: number };

export type ClientsPort = {
  /** sends answers; drops those for which nobody waits any more */
  answer(frames: readonly ClientFrame[]): void;
  /** calls `then` when the client has received all parts of the answer so far */
  taken(token: number, then: () => void): void;
  /** the user who waits for the answer; undefined: nobody does any more */
  of(token: number): Asker | undefined;
  /** tokens of the requests that wait for an answer */
  open(): readonly number[];
};

/** Processes of schedulers. Schedulers of this host are started here. Schedulers of other hosts are dialled. */
export type ProcessesPort = {
  /** does nothing if there is a process already, or if the scheduler is dialled already */
  start(sched: string): void;
  /** makes the directories of a scheduler that does not run */
  prepare(sched: string): void;
  /** writes a line into the log of a scheduler that does not run */
  say(sched: string, text: string): void;
  /**
   * ends the process of a scheduler. pid: the connected process, which need not be a child of the server; 0: it is not
   * connected. For a scheduler on another host: it has been told to end, and is not dialled again
   */
  stop(sched: string, pid: number): void;
  /**
   * finds out whether the process of a scheduler is suspended (SIGSTOP). pid: the connected process; 0: look for a process that has not connected yet. For a scheduler on
   * another host: finds out whether that host answers
   */
  look(sched: string, pid: number, done: (sight: SchedSight) => void): void;
  /** sends SIGKILL if the process with that pid is still the scheduler; the driver is informed when the process has ended */
  kill(sched: string, pid: number): void;
  /** ends these schedulers; done: called when none of them is left */
  stopAll(scheds: readonly { readonly name: string; readonly pid: number }[], done: () => void): void;
  /** whether the process was started here, so that the driver is informed of its end */
  isChild(pid: number): boolean;
  isAlive(pid: number): boolean;
};

/** The process of pbs_runners. */
export type RunnersPort = {
  /** starts the process unless it runs. exited: called when it has ended. why null: there is no fault, for example because another such process runs */
  start(exited: (why: string | null) => void): void;
  /** kills the process if it has this pid */
  kill(pid: number): void;
};

export type HooksPort = {
  run(hook: HookRun, done: (outcome: HookOutcome) => void): void;
  close(): void;
};

/** Writes copies of data into files, for people and site tools. Only the store is authoritative. */
export type FilesPort = {
  /** hook undefined: the hook was deleted */
  hook(name: string, hook: Hook | undefined): void;
  resources(defs: Iterable<ResourceDef>): void;
  /** text: the value of job_sort_formula; null: there is none */
  formula(text: string | null): void;
};

export type LogPort = {
  /** logs a text about the server itself. event: a LOG_EVENT value */
  note(event: number, text: string): void;
  records(list: readonly LogRecord[]): void;
  setMask(mask: number): void;
};

/** The certificate authority of the complex. */
export type IdentityPort = {
  /** Carries out an order. The value has the type that IdentityAnswers gives for the verb. An error says in words for the caller why the order was refused. */
  ask(ask: IdentityAsk, done: Done<unknown>): void;
};

export type AccountingPort = Pick<AccountingLog, "record" | "flush" | "lost" | "line" | "tail">;

/** Observes the core between its calls: checks of the simulator and of tests. */
export type Watch = {
  /** called after each call of the core; none of the resulting changes is committed yet */
  stepped?(core: Core): void;
  /** called when a batch was taken from the core */
  taken?(core: Core, batch: Batch): void;
  /** called when a batch is committed, just before its effects leave */
  delivered?(batch: Batch): void;
  /** called when a new core begins to work */
  began?(core: Core): void;
};

export type ServerPorts = {
  readonly store: StorePort;
  readonly clock: ClockPort;
  readonly links: LinksPort;
  readonly clients: ClientsPort;
  readonly processes: ProcessesPort;
  readonly hooks: HooksPort;
  /** absent: there is no pbs_runners */
  readonly runners?: RunnersPort;
  readonly files: FilesPort;
  readonly log: LogPort;
  readonly accounting: AccountingPort;
  readonly mail: { send(mail: Mail): void };
  readonly identity: IdentityPort;
  /** Finds the host that a text means. name: the text itself if it is a name that has an address; the name of the host if it is an address; null: unknown. */
  resolve(host: string, done: (name: string | null) => void): void;
  /** called for a program error inside the core; afterwards uncommitted changes are dropped */
  onBug(error: unknown): void;
  /** called when everything is closed */
  ended(): void;
  readonly watch?: Watch;
};

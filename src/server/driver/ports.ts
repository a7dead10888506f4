// The ports through which the driver of the core uses the world. The daemon gives it sockets, SQLite, clocks and child
// processes (../shell/service.ts); the simulator, what-if and the tests give it virtual ones.
//
// P1. A callback is called once: before the call that was given it returns, or later. When the process is over it may never be called.

import type { HookOutcome, HookRun } from "#hooks/run/hook-input.ts";
import type { ResourceDef } from "#model/resource-table.ts";
import type { Hook } from "#model/tables/hook.ts";
import type { Batch as Rows } from "#store/store.ts";
import type { AccountingLog } from "#support/accounting-log.ts";
import type { LogRecord } from "#support/log-event.ts";
import type { Core } from "../core/core.ts";
import type { Batch, ClientFrame, HistoryWalk, MomFrame, SchedFrame } from "../engine/batch.ts";
import type { Mail } from "../engine/mail.ts";
import type { SchedSight } from "../scheds/heartbeat.ts";
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

export type StorePort = {
  /** Writes all rows or none. fault: the reason why the store could not write. Any other error must not be returned; it ends the program. */
  commit(rows: Rows, done: (fault: Error | null) => void): void;
  /** loads the state from the rows */
  load(done: (state: ServerState) => void): void;
  readonly history: HistoryPort;
  /** makes a copy of the store in a new file */
  backup(file: string, done: Done<void>): void;
  close(done: () => void): void;
};

export type HistoryPort = {
  /** null: the history has no such job. page_rows: records read at once */
  read(ids: readonly string[], page_rows: number, done: Done<ReadonlyMap<string, Job | null>>): void;
  pages(walk: HistoryWalk, page_rows: number): HistoryPages;
  /** forgets jobs that ended before that time. Passes on their number; 0: none is left */
  purge(before_s: number, done: Done<number>): void;
  count(done: Done<number>): void;
};
/** null: there is no further page. */
export type HistoryPages = { next(done: Done<readonly Job[] | null>): void };

/** Connections of schedulers and moms, by number. Frames to a link that is gone are dropped. */
export type LinksPort = {
  toSched(frame: SchedFrame): void;
  toMom(frame: MomFrame): void;
  /** ends a link after everything sent has left; the driver is informed as of any other loss */
  end(link: number): void;
  /** ends all links of schedulers and moms at once */
  dropDaemons(): void;
  /** called when attributes of the server have changed, and with them the limits of links */
  setLimits(state: ServerState): void;
  /** ends all links, including those of clients, after everything sent has left */
  close(done: () => void): void;
};

/** The user who waits for the answer to a request. uid, link: used to choose whose turn it is (turns.ts) */
export type Asker = { readonly uid: number; readonly link: number };

export type ClientsPort = {
  /** frames for requests that nobody waits for are dropped */
  answer(frames: readonly ClientFrame[]): void;
  /** calls `then` when the reader has received all parts of the answer so far */
  taken(token: number, then: () => void): void;
  /** undefined: nobody waits for the answer any more */
  of(token: number): Asker | undefined;
  /** the requests that wait */
  open(): readonly number[];
};

/** Processes of local schedulers. */
export type ProcessesPort = {
  start(sched: string): void;
  /** makes the directories of a scheduler that does not run */
  prepare(sched: string): void;
  /** writes a line into the log of a scheduler that does not run */
  say(sched: string, text: string): void;
  /** pid: of a process that is not a child; 0: it is not connected */
  stop(sched: string, pid: number): void;
  /** whether its process is stopped. pid: of the connected scheduler; 0: of the process that is to connect, if there is one */
  look(sched: string, pid: number): SchedSight;
  /** sends SIGKILL if that process is still the scheduler; the driver is informed of its end */
  kill(sched: string, pid: number): void;
  /** stops these schedulers; done: called when none of them is left */
  stopAll(scheds: readonly { readonly name: string; readonly pid: number }[], done: () => void): void;
  /** whether the process was started here, so that the driver is informed of its end */
  isChild(pid: number): boolean;
  isAlive(pid: number): boolean;
};

export type HooksPort = {
  run(hook: HookRun, done: (outcome: HookOutcome) => void): void;
  close(): void;
};

/** Copies in files for people and site tools: the store is the truth. */
export type FilesPort = {
  /** hook undefined: the hook was deleted */
  hook(name: string, hook: Hook | undefined): void;
  resources(defs: Iterable<ResourceDef>): void;
  /** null: there is no formula */
  formula(text: string | null): void;
};

export type LogPort = {
  /** a record of the server's own. event: a LOG_EVENT value */
  note(event: number, text: string): void;
  records(list: readonly LogRecord[]): void;
  setMask(mask: number): void;
};

/** Observes the core between its calls: checks of the simulator and of tests. */
export type Watch = {
  /** the core was called; none of the resulting changes are committed yet */
  stepped?(core: Core): void;
  /** a batch has left the core */
  taken?(core: Core, batch: Batch): void;
  /** a batch is committed, and its effects leave now */
  delivered?(batch: Batch): void;
  /** a new core begins to work */
  began?(core: Core): void;
};

export type ServerPorts = {
  readonly store: StorePort;
  readonly clock: ClockPort;
  readonly links: LinksPort;
  readonly clients: ClientsPort;
  readonly processes: ProcessesPort;
  readonly hooks: HooksPort;
  readonly files: FilesPort;
  readonly log: LogPort;
  readonly accounting: Pick<AccountingLog, "record" | "flush" | "lost">;
  readonly mail: { send(mail: Mail): void };
  /** whether a host name has an address */
  resolve(host: string, done: (found: boolean) => void): void;
  /** a program error inside the core; afterwards uncommitted changes are dropped */
  onBug(error: unknown): void;
  /** called when everything is closed */
  ended(): void;
  readonly watch?: Watch;
};

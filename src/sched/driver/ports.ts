// The ports through which the driver of a scheduler reaches everything outside it. The daemon gives the driver a socket, clocks, files
// and programs (../shell/scheduler.ts); the simulator and what-if give it virtual ones.
//
// P1. A callback is called once, either before the function to which it was passed returns, or later. When the process ends, it may
//     never be called.

import type { SchedToServer } from "#protocol/sched-link.ts";
import type { Settings } from "../policy/settings-text.ts";
import type { DynProgram } from "../shapes/dyn-res.ts";
import type { LocalTime } from "../shapes/local-time.ts";
import type { CycleReport, PolicyModule } from "../shapes/module.ts";
import type { ResourceSpace } from "../shapes/resource-space.ts";

export type ClockPort = {
  /** Returns the time in epoch milliseconds, from a clock that may be set. */
  wall_ms(): number;
  /** Returns the milliseconds since an arbitrary start, from a clock that is never set. */
  steady_ms(): number;
  /** Calls `work` once, after a delay. Returns a function that cancels this. */
  after(delay_ms: number, work: () => void): () => void;
  /** Calls `work` as soon as everything that has already arrived has been processed. */
  soon(work: () => void): void;
};

/** The link to the server, which connects again by itself. What is sent while there is no connection is dropped. */
export type LinkPort = {
  send<T extends keyof SchedToServer>(type: T, data: SchedToServer[T]): void;
  /**
   * Ends the connection. The driver is then told in the same way as when the connection is lost. why: "refused": the server refused the scheduler; "broken": a
   * frame or the universe is broken.
   */
  reconnect(why: "refused" | "broken"): void;
  /** Ends the connection for ever, after everything sent has left. */
  close(): void;
};

/** The directories that the attributes of the scheduler object name. */
export type DirectoriesPort = {
  readonly sched_priv: string;
  /**
   * Uses the directories that the attributes of the scheduler object name. fault: the text for the server; null: none.
   * moved: sched_priv is another directory than before.
   */
  follow(attrs: { readonly [name: string]: unknown }): { readonly fault: string | null; readonly moved: boolean };
  /** Releases the lock of sched_priv. */
  release(): void;
};

/** The configuration files of a sched_priv. */
export type SettingsPort = {
  /** Reads the files. Never throws: a file that cannot be read counts as empty, and a message reports it. */
  read(sched_priv: string): Settings;
  /** Returns a text that changes whenever one of the files changes. */
  version(sched_priv: string): string;
};

/** The file `usage` of a sched_priv. Every function may throw; the message then goes into the log. */
export type UsagePort = {
  /** Returns the text of the file; null: there is no such file. */
  read(sched_priv: string): string | null;
  /** Writes the file. Whoever reads it at any moment finds either the old or the new text, complete. */
  write(sched_priv: string, text: string): void;
  /** Renames the file to usage.bad. */
  setAside(sched_priv: string): void;
  /** Returns whether pbsfs has written the file (it then leaves usage.touch). */
  isTouched(sched_priv: string): boolean;
  clearTouch(sched_priv: string): void;
};

/** The amounts of the server's resources that the programs of server_dyn_res report, by resource name. */
export type DynValues = ReadonlyMap<string, number | string | boolean>;
export type ProgramsPort = {
  /** Runs the programs and passes on what they report. alarm_s: their time limit; 0: none. */
  ask(programs: readonly DynProgram[], space: ResourceSpace, alarm_s: number, done: (values: DynValues) => void): void;
  /** Kills the programs that are running. */
  stop(): void;
};

/** Service modules and the site's own modules. */
export type ModulesPort = {
  /** Creates the chain of modules of a configuration; unchanged modules stay loaded. Chains are created one after the other. */
  load(chain: Settings["chain"], done: () => void): void;
  /** Returns the site's policy modules that are in the chain. */
  policies(): ReadonlyMap<string, PolicyModule>;
  /** Allows modules to be tried again that were left out because a call did not return. They are tried when the chain is created next. */
  forgive(): void;
  /** Reports a finished cycle to the service modules. */
  cycleOver(report: CycleReport): void;
  /** Returns all problems of modules in one text; null: there are none. */
  problem(): string | null;
  shutdown(done: () => void): void;
};

export type LogPort = {
  /** Writes a record. event: a LOG_EVENT value. at_ms: the time of the event in epoch milliseconds; undefined: now. */
  record(event: number, log_class: string, object: string, text: string, at_ms?: number): void;
  setMask(mask: number): void;
  flush(): void;
  /** Opens the log file again, because it may have been moved away. */
  reopen(): void;
};

export type SchedPorts = {
  readonly clock: ClockPort;
  readonly link: LinkPort;
  readonly directories: DirectoriesPort;
  readonly settings: SettingsPort;
  readonly usage: UsagePort;
  readonly programs: ProgramsPort;
  readonly modules: ModulesPort;
  readonly log: LogPort;
  readonly local: LocalTime;
  /** Called with true before the code of a cycle runs (with the site's modules), and with false after it has run. The thread does nothing else in between. */
  busy(is_busy: boolean): void;
  /** Called when the server has sent quit. The program must then call leave() of the scheduler. */
  quit(): void;
};

// The ports through which the driver of a scheduler uses the world. The daemon gives it a socket, clocks, files and
// programs (../shell/scheduler.ts); the simulator and what-if give it virtual ones.
//
// P1. A callback is called once: before the call that was given it returns, or later. When the process is over it may never be called.

import type { SchedToServer } from "#protocol/sched-link.ts";
import type { Settings } from "../policy/settings-text.ts";
import type { DynProgram } from "../shapes/dyn-res.ts";
import type { LocalTime } from "../shapes/local-time.ts";
import type { CycleReport, PolicyModule } from "../shapes/module.ts";
import type { ResourceSpace } from "../shapes/resource-space.ts";

export type ClockPort = {
  /** epoch milliseconds; this clock may be set */
  wall_ms(): number;
  /** milliseconds since an arbitrary start; this clock is never set */
  steady_ms(): number;
  /** Does work once after a delay. Returns a function that cancels it. */
  after(delay_ms: number, work: () => void): () => void;
  /** Does work as soon as everything that has already arrived has been processed. */
  soon(work: () => void): void;
};

/** The link to the server, which connects again by itself. What is sent without a connection is dropped. */
export type LinkPort = {
  send<T extends keyof SchedToServer>(type: T, data: SchedToServer[T]): void;
  /**
   * Ends the connection; the driver is informed as of any other loss. why: the server refused the scheduler, or a frame or the mirror
   * is broken
   */
  reconnect(why: "refused" | "broken"): void;
  /** ends the connection permanently, after everything sent has left */
  close(): void;
};

/** The directories that the attributes of the scheduler's object name. */
export type DirectoriesPort = {
  readonly sched_priv: string;
  /** Follows the attributes of the scheduler's object. fault: the text for the server; moved: sched_priv is another directory now. */
  follow(attrs: { readonly [name: string]: unknown }): { readonly fault: string | null; readonly moved: boolean };
  /** releases the lock of sched_priv */
  release(): void;
};

/** The files of a sched_priv. */
export type SettingsPort = {
  /** Never throws: a file that cannot be read counts as empty, with a message. */
  read(sched_priv: string): Settings;
  /** changes whenever one of the files does */
  version(sched_priv: string): string;
};

/** The file `usage` of a sched_priv. Everything may throw; the message goes into the log. */
export type UsagePort = {
  /** null: there is no such file */
  read(sched_priv: string): string | null;
  /** the file is whole at every moment */
  write(sched_priv: string, text: string): void;
  /** keeps the file as usage.bad */
  setAside(sched_priv: string): void;
  /** pbsfs has written the file (usage.touch) */
  isTouched(sched_priv: string): boolean;
  clearTouch(sched_priv: string): void;
};

/** The amounts of the server's resources that the programs of server_dyn_res report, by resource. */
export type DynValues = ReadonlyMap<string, number | string | boolean>;
export type ProgramsPort = {
  /** Runs the programs. alarm_s: their time limit; 0: none. */
  ask(programs: readonly DynProgram[], space: ResourceSpace, alarm_s: number, done: (values: DynValues) => void): void;
  /** kills running programs */
  stop(): void;
};

/** Service modules and the site's own modules. */
export type ModulesPort = {
  /** Creates the chain of a configuration; unchanged modules stay. Chains are created one after the other. */
  load(chain: Settings["chain"], done: () => void): void;
  /** the site's policy modules that are in the chain */
  policies(): ReadonlyMap<string, PolicyModule>;
  /** allows modules that were ended because they stood still to be tried again when the chain is made next */
  forgive(): void;
  /** reports a finished cycle to the service modules */
  cycleOver(report: CycleReport): void;
  /** all problems in one text; null: there are none */
  problem(): string | null;
  shutdown(done: () => void): void;
};

export type LogPort = {
  /** event: a LOG_EVENT value. at_ms: time of the event in epoch milliseconds; undefined: now */
  record(event: number, log_class: string, object: string, text: string, at_ms?: number): void;
  setMask(mask: number): void;
  flush(): void;
  /** the file may have been moved away */
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
  /** Called when the code of a cycle, and of the site's modules with it, begins and ends to run. Nothing else is done in between. */
  busy(is_busy: boolean): void;
  /** the server has sent quit: leave() must be called */
  quit(): void;
};

// The ports of the driver of the mom's core. The daemon implements them with sockets, files, clocks and child processes (../shell/mom.ts); the simulator
// implements them with virtual ones (src/sim).
//
// P1. A callback is called once: before the call that was given it returns, or later. When the process is over it may never be called.

import type { SequenceEnd } from "#hooks/run/hook-sequence.ts";
import type { MomHooks, MomJob, MomVnode } from "#protocol/mom-link.ts";
import type { FrameOf } from "#protocol/schema-link.ts";
import type { MomSettings } from "../config/config.ts";
import type { Measure } from "../config/node-load.ts";
import type { AgentToMom, MomToAgent } from "../job/agent-link.ts";
import type { ScriptEnd } from "../job/pelog.ts";
import type { Owner } from "../job/plan.ts";
import type { MomToStarter, StarterToMom } from "../job/starter-link.ts";
import type { Seen } from "../job/usage.ts";
import type { MomEvent } from "../run/event.ts";
import type { MomAction, MomConfig, MomState } from "../run/state.ts";
import type { TaskAnswer } from "../run/task-question.ts";

export type ClockPort = {
  /** epoch milliseconds; this clock may be set */
  wall_ms(): number;
  /** whole milliseconds since an arbitrary start that all processes of the host share; this clock is never set */
  steady_ms(): number;
  /** Does work once after a delay. Returns a function that cancels it. */
  after(delay_ms: number, work: () => void): () => void;
  /** Does work as soon as everything that has already arrived has been processed. */
  soon(work: () => void): void;
  /** Does work at the end of this turn: before the next event is processed, in the order of the calls. */
  atEnd(work: () => void): void;
};

type Messages = { readonly [type: string]: unknown };

/** Sends messages over a connection. Messages to a lost connection are dropped. */
export type Sender<Out extends Messages> = {
  send<T extends keyof Out & string>(type: T, data: Out[T]): void;
  close(): void;
};
/** A function for each type of message that arrives. */
export type Hearer<In extends Messages> = { readonly [T in keyof In]: (data: In[T]) => void };

export type ServerLink = {
  readonly connected: boolean;
  /** Drops the frame if there is no connection: after every hello the mom reports everything again. */
  send(frame: FrameOf<"mom-to-server">): void;
  close(): void;
  /** Ends this connection and makes a new one. */
  reconnect(): void;
};
export type ServerEnd = {
  /** never before dial() has returned */
  opened(): void;
  /** not checked yet. type "refused": the server accepts no connection */
  frame(type: string, data: unknown): void;
  closed(why: string): void;
};
/** Connects to the server and stays connected: a connection that is lost is made again. */
export type ServerPort = { dial(end: ServerEnd): ServerLink };

export type StarterEnd = {
  readonly heard: Hearer<StarterToMom>;
  connected(link: Sender<MomToStarter>): void;
  /** no starter listens */
  absent(): void;
  /** a process that is not the mom's starter listens. text: for the log */
  foreign(text: string): void;
  /** the connection has ended */
  lost(): void;
};
export type StarterPort = {
  /** Tries once to connect to the starter. */
  connect(end: StarterEnd): void;
  /** Starts a starter that outlives the mom. fault null: a starter listens */
  launch(done: (fault: string | null) => void): void;
};

export type AgentLane = "main" | "bulk";
export type AgentLink = Sender<MomToAgent> & {
  /** Sends nothing more. The process ends when it has done its requests. */
  finish(): void;
};
export type AgentPort = {
  /** Starts a process. closed: called when it has ended, for any reason */
  launch(lane: AgentLane, heard: Hearer<AgentToMom>, closed: () => void): AgentLink;
};

/** The file of the records of runs. */
export type RecordFile = {
  /** in messages */
  readonly name: string;
  /** its text; "" if there is none */
  read(): string;
  /** renames it, because its text cannot be used */
  putAside(): void;
  /** Writes a new file, which takes the place of the old one. Throws the error of the disk; the old file is then unchanged. */
  replace(text: string): void;
  /** Throws the error of the disk; a part of the text may be written. */
  append(text: string): void;
  close(): void;
};

export type DiskPort = {
  readonly records: RecordFile;
  /** jobs with a checkpoint in the directory */
  foundCheckpoints(directory: string): readonly string[];
  /** fault null: the checkpoint is removed */
  removeCheckpoint(path: string, done: (fault: string | null) => void): void;
  /** jobs whose output waits in spool */
  foundKept(): readonly string[];
  /** Throws the error of the disk. */
  noteKept(job: string, kept: boolean): void;
};

type ActionOf<K extends MomAction["kind"]> = Extract<MomAction, { readonly kind: K }>;

export type ScriptsPort = {
  /** prologue or epilogue. running: called if the script exists */
  run(action: ActionOf<"run-script">, running: () => void, done: (end: ScriptEnd) => void): void;
  /** a script of `$action` */
  act(action: ActionOf<"run-action">, done: (end: ScriptEnd) => void): void;
};

export type HooksPort = {
  /** the hooks that were last kept; null: none, or unreadable */
  kept(): MomHooks | null;
  keep(hooks: MomHooks): void;
  run(action: ActionOf<"run-hooks">, done: (end: SequenceEnd) => void): void;
  reboot(hook: string, command: string): void;
  close(): void;
};

/** Requests of tasks and their answers, and the output of tasks on sisters. */
export type TaskLinks = {
  /** of the socket */
  readonly path: string;
  say(asked: number, answer: TaskAnswer): void;
  forward(action: ActionOf<"task-forward">): void;
  /** Calls `then` when the mother superior has received the output of the job's tasks on this host, or cannot receive it now. */
  drain(job: string, then: () => void): void;
  /** looks at the output of all sisters */
  tick(): void;
  close(): void;
};
export type TasksPort = { open(state: MomState, happen: (event: MomEvent) => void): TaskLinks };

/** The host and its processes. */
export type HostPort = {
  /** with_keyboard false: the time of the last input is not needed */
  measure(with_keyboard: boolean): Measure;
  /**
   * Measures the usage of the sessions of these leaders. owners: sessions in which only the processes of one user count. A leader
   * that is gone is not in the answer.
   */
  look(leaders: ReadonlySet<number>, owners: ReadonlyMap<number, number>): ReadonlyMap<number, Seen>;
  processes(): readonly { readonly pid: number; readonly uid: number }[];
  /** null: no such user */
  uidOf(user: string): number | null;
  /** SIGKILL; false: there is no such process */
  kill(pid: number): boolean;
  /** values of the site's resources (`name value`, `name !program` of mom_priv/config) */
  readSite(site: MomSettings["site"], alarm_s: number, done: (values: MomSettings["site"]) => void): void;
  /** null: the user does not exist here */
  ownerOf(job: MomJob): Owner | null;
};

export type SetupPort = {
  /** Reads mom_priv/config. note: called about each line that has no effect. Throws if the file is unusable. */
  settings(note: (text: string) => void): MomSettings;
  config(settings: MomSettings): MomConfig;
  /** the present vnodes of this host */
  vnodes(settings: MomSettings): readonly MomVnode[];
};

export type LogPort = {
  record(event: number, kind: string, object: string, text: string): void;
  setMask(mask: number): void;
  reopen(): void;
  close(): void;
};

export type MomPorts = {
  readonly clock: ClockPort;
  readonly server: ServerPort;
  readonly starter: StarterPort;
  readonly agent: AgentPort;
  readonly disk: DiskPort;
  readonly scripts: ScriptsPort;
  readonly hooks: HooksPort;
  readonly tasks: TasksPort;
  readonly host: HostPort;
  readonly setup: SetupPort;
  readonly log: LogPort;
  /** called when the jobs are known and the server is being dialled */
  ready(): void;
  /** called when everything is closed */
  ended(): void;
};

/** The data about itself that the mom sends to its server. */
export type MomIdentity = {
  readonly host: string;
  readonly port: number;
  readonly pid: number;
  /** system mode: jobs run as their owners */
  readonly is_system: boolean;
  /** -a: how long a program of a site's resource may take */
  readonly alarm_s: number;
};

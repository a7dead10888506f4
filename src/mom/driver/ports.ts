// The ports of the driver of the mom's core. The daemon implements them with sockets, files, clocks and child processes (../shell/mom.ts); the simulator
// implements them with virtual ones (src/sim).
//
// P1. A function that is passed to a port is called once, either before the call of the port returns or later. If the process ends, it may never be called.

import type { SequenceEnd } from "#hooks/run/hook-sequence.ts";
import type { Cipher } from "#protocol/datagram/packet.ts";
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
  /** whole milliseconds since a start that is arbitrary, but the same for all processes of the host. This clock is never set */
  steady_ms(): number;
  /** Calls `work` once after a delay. Returns a function that cancels this. */
  after(delay_ms: number, work: () => void): () => void;
  /** Calls `work` as soon as everything that has arrived already has been processed. */
  soon(work: () => void): void;
  /** Calls `work` at the end of this turn, before the next event is processed. Several such calls are made in the order in which they were requested. */
  atEnd(work: () => void): void;
};

type Messages = { readonly [type: string]: unknown };

/** Sends messages over a connection. If the connection is lost, they are dropped. */
export type Sender<Out extends Messages> = {
  send<T extends keyof Out & string>(type: T, data: Out[T]): void;
  close(): void;
};
/** A function for each type of message that arrives. */
export type Hearer<In extends Messages> = { readonly [T in keyof In]: (data: In[T]) => void };

export type ServerLink = {
  readonly connected: boolean;
  /** Sends a frame, or drops it if there is no connection: the mom reports everything again after every hello. */
  send(frame: FrameOf<"mom-to-server">): void;
  close(): void;
  /** Ends this connection and makes a new one. */
  reconnect(): void;
};
export type ServerEnd = {
  /** called when the connection is made, and never before dial() has returned */
  opened(): void;
  /** called with the type and the data of a frame, which are not checked yet. type "refused": the server does not accept the connection */
  frame(type: string, data: unknown): void;
  closed(why: string): void;
  /** called when nobody listens at the server's address, which proves that no server runs (../run/cut-off.ts Z1) */
  absent(): void;
};
/** Connects to the server and stays connected: a connection that is lost is made again. */
export type ServerPort = { dial(end: ServerEnd): ServerLink };

/** Datagrams to and from the server's port. */
export type ReportsPort = {
  readonly cipher: Cipher;
  /** begins to receive. heard: called with each datagram that arrives */
  open(heard: (bytes: Uint8Array) => void): { send(bytes: Uint8Array): void; close(): void };
};

/** Datagrams from the server to a group of moms. */
export type GroupPort = {
  readonly cipher: Cipher;
  /** whether a signature was made with the key to this public key */
  verify(public_key: string, bytes: Uint8Array, signature: Uint8Array): boolean;
  now_ms(): number;
  /**
   * heard: called with each datagram that arrives. Returns a function that chooses the group; null: none. net: the network
   * interface that the site has stated, or null
   */
  open(heard: (bytes: Uint8Array) => void): (group: { readonly address: string; readonly port: number } | null, net: string | null) => void;
};

export type StarterEnd = {
  readonly heard: Hearer<StarterToMom>;
  connected(link: Sender<MomToStarter>): void;
  /** called if no starter listens */
  absent(): void;
  /** called if the process that listens is not the mom's starter. text: for the log */
  foreign(text: string): void;
  /** called when the connection has ended */
  lost(): void;
};
export type StarterPort = {
  /** Tries once to connect to the starter. */
  connect(end: StarterEnd): void;
  /** Starts a starter that outlives the mom. fault null: the new starter listens */
  launch(done: (fault: string | null) => void): void;
};

export type AgentLane = "main" | "bulk";
export type AgentLink = Sender<MomToAgent> & {
  /** Sends nothing more. The process ends when it has answered its requests. */
  finish(): void;
};
export type AgentPort = {
  /** Starts an agent process. closed: called when the process has ended, for any reason */
  launch(lane: AgentLane, heard: Hearer<AgentToMom>, closed: () => void): AgentLink;
};

/** The file with the records of runs. */
export type RecordFile = {
  /** the name to use in messages */
  readonly name: string;
  /** returns the text of the file; "": there is no file */
  read(): string;
  /** renames the file, because its text cannot be used */
  putAside(): void;
  /** Writes a new file, which replaces the old one. On an error of the disk it throws, and the old file is unchanged. */
  replace(text: string): void;
  /** Adds text to the file. On an error of the disk it throws; some of the text may have been written. */
  append(text: string): void;
  close(): void;
};

export type DiskPort = {
  readonly records: RecordFile;
  /** returns the jobs with a checkpoint in the directory */
  foundCheckpoints(directory: string): readonly string[];
  /** Removes a checkpoint. fault null: it was removed */
  removeCheckpoint(path: string, done: (fault: string | null) => void): void;
  /** returns the jobs whose output waits in spool */
  foundKept(): readonly string[];
  /** Writes or removes the note that a job's output waits in spool. Throws the error of the disk. */
  noteKept(job: string, kept: boolean): void;
};

type ActionOf<K extends MomAction["kind"]> = Extract<MomAction, { readonly kind: K }>;

export type ScriptsPort = {
  /** runs a prologue or epilogue. running: called if the script exists */
  run(action: ActionOf<"run-script">, running: () => void, done: (end: ScriptEnd) => void): void;
  /** runs a script of `$action` */
  act(action: ActionOf<"run-action">, done: (end: ScriptEnd) => void): void;
};

export type HooksPort = {
  /** returns the hooks that were kept last; null: there are none, or they cannot be read */
  kept(): MomHooks | null;
  keep(hooks: MomHooks): void;
  run(action: ActionOf<"run-hooks">, done: (end: SequenceEnd) => void): void;
  reboot(hook: string, command: string): void;
  close(): void;
};

/** Requests of tasks and their answers, and the output of tasks on sisters. */
export type TaskLinks = {
  /** path of the socket for requests of tasks */
  readonly path: string;
  say(asked: number, answer: TaskAnswer): void;
  forward(action: ActionOf<"task-forward">): void;
  /** Calls `then` when the mother superior has received the output of the job's tasks on this host. If it cannot receive it now, calls `then` at once. */
  drain(job: string, then: () => void): void;
  /**
   * does the same as drain when the run ends here. all false: the mother superior cannot be reached, and some output has not
   * been sent. The files with this output must then be kept here.
   */
  drainLast(job: string, then: (all: boolean) => void): void;
  /** looks for new output of tasks in all runs for which this mom is a sister */
  tick(): void;
  close(): void;
};
export type TasksPort = { open(state: MomState, happen: (event: MomEvent) => void): TaskLinks };

/** The host and its processes. */
export type HostPort = {
  /** measures how the host is used (load, last input). with_keyboard false: the time of the last input is not needed */
  measure(with_keyboard: boolean): Measure;
  /**
   * Measures the usage of the sessions of these leaders. owners: sessions in which only the processes of this user count. A leader that no longer exists is not
   * in the result.
   */
  look(leaders: ReadonlySet<number>, owners: ReadonlyMap<number, number>): ReadonlyMap<number, Seen>;
  processes(): readonly { readonly pid: number; readonly uid: number }[];
  /** returns the uid of a user; null: there is no such user */
  uidOf(user: string): number | null;
  /** sends SIGKILL. false: the process does not exist */
  kill(pid: number): boolean;
  /** reads the values of the site's resources (`name value`, `name !program` in mom_priv/config) */
  readSite(site: MomSettings["site"], alarm_s: number, done: (values: MomSettings["site"]) => void): void;
  /** returns the user that a job runs as; null: the user does not exist here */
  ownerOf(job: MomJob): Owner | null;
};

export type SetupPort = {
  /** Reads mom_priv/config. note: called about each line without effect. Throws if the file cannot be used. */
  settings(note: (text: string) => void): MomSettings;
  config(settings: MomSettings): MomConfig;
  /** returns the present vnodes of this host */
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
  /** null: the server is on this host */
  readonly reports: ReportsPort | null;
  /** null: the server is on this host */
  readonly group: GroupPort | null;
  readonly starter: StarterPort;
  readonly agent: AgentPort;
  readonly disk: DiskPort;
  readonly scripts: ScriptsPort;
  readonly hooks: HooksPort;
  readonly tasks: TasksPort;
  readonly host: HostPort;
  readonly setup: SetupPort;
  readonly log: LogPort;
  /** called when the jobs are known and the mom begins to connect to the server */
  ready(): void;
  /** called when everything is closed */
  ended(): void;
};

/** What the mom knows about itself. Some of it goes to the server. */
export type MomIdentity = {
  readonly host: string;
  readonly port: number;
  readonly pid: number;
  /** system mode: jobs run as their owners */
  readonly is_system: boolean;
  /** -a: the longest time for a program that gives the value of a site's resource */
  readonly alarm_s: number;
  /** the mom is a runner of a backend; null: it is a mom of the complex */
  readonly runner: RunnerIdentity | null;
};

/** token: proves to the server that this is the runner of that name. age_s: how long ago the backend started it. */
export type RunnerIdentity = { readonly token: string; age_s(): number };

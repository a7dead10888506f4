// The server's knowledge about one mom and about the runs it takes part in. It is lost when the server ends; the mom says hello again.

import type { MomHello, MomJob, MomPatience, MomToServer, MomVnode, Usage } from "#protocol/mom-link.ts";
import { hostOfJob } from "../state/job-hosts.ts";
import type { ServerState } from "../state/state.ts";

/** A connected mom. */
export type MomRuntime = {
  readonly host: string;
  link: number;
  hello: MomHello;
  vnodes: readonly MomVnode[];
  patience: MomPatience;
  /** digest of the hooks that the mom has */
  hooks: string;
  /** digests of the files of those hooks, by name; empty if the mom came with hooks whose files are unknown */
  hook_files: ReadonlyMap<string, string>;
  /** its host has other users */
  busy: boolean;
  /** time of its last message; steady as timers are (core/clock-jump.ts) */
  heard_ms: number;
  /** the reason why the mom cannot start jobs; null: it can */
  ill: string | null;
  /** runs that were sent on this connection and that the mom has not accepted yet, by job */
  readonly sent: Map<string, number>;
};

/** A signal or message on its way to a mom. */
export type MomQuestion = { readonly token: number; readonly job: string; readonly signal: string | null };

/** Whether a mom takes part in the heartbeat (moms/heartbeat.ts H5). */
export const isAsked = ({ hello }: MomRuntime): boolean => hello.pongs === true;

/** unknown: the sister has not said hello since the server's start. asked: the run was sent. ready: everything but its execjob_prologue hooks is done. */
export type Sister = {
  readonly host: string;
  state: "unknown" | "asked" | "ready" | "joined" | "gone";
  /** time since which its mom is not connected; null: it is connected */
  away_since_ms: number | null;
  /** the sister has stopped the run's processes, or has been asked to */
  stands: boolean;
  /** the loss of this sister was handled. After that, only its state is taken from the hello that the crew was made from */
  missed: boolean;
  used: Usage;
};

/** The work that follows when no host holds a run any more (moms/run-end.ts). */
export type AfterRun =
  | { readonly kind: "start-taken-back" }
  | { readonly kind: "mother-silent" }
  /** the server gives the run up */
  | { readonly kind: "lost"; readonly exit_status: number; readonly used: Usage; readonly message?: string }
  | { readonly kind: "obit"; readonly obit: MomToServer["mom-obit"] };

/** The server's knowledge about the sisters of a run. */
export type Crew = {
  readonly run_count: number;
  /** by host, in lower case */
  readonly sisters: Map<string, Sister>;
  /** the mother superior has been asked to start the run, or already has it */
  begun: boolean;
  /** the state that all sisters must reach before the run begins */
  awaited: "join" | "prologue";
  /** usage of the mother superior alone */
  own: Usage;
  /** the run failed because of a sister */
  failed: boolean;
  /** the work that follows once every sister has released the run, which is over; null: the run is not over */
  over: AfterRun | null;
};

/** All moms, the runs over several hosts, and the questions to moms. */
export type Moms = {
  /** by host name, in lower case */
  readonly by_host: Map<string, MomRuntime>;
  /** by connection: the mom that last said hello on it */
  readonly by_link: Map<number, MomRuntime>;
  /** when the next heartbeat is due (moms/heartbeat.ts) */
  heartbeat_ms: number;
  /** number of the last mom-ping */
  pings: number;
  /** jobs to start, by connection: the lists of the mom-start frames of this batch */
  readonly starts: Map<number, MomJob[]>;
  readonly questions: Map<number, MomQuestion>;
  next_question: number;
  /** runs over several hosts, by job */
  readonly crews: Map<string, Crew>;
  /** the vnodes of a mom's report are being entered, so new vnodes among them do not count as made by an administrator */
  reporting: boolean;
};

export const noMoms = (now_ms: number): Moms => ({
  by_host: new Map(),
  by_link: new Map(),
  heartbeat_ms: now_ms,
  pings: 0,
  starts: new Map(),
  questions: new Map(),
  next_question: 1,
  crews: new Map(),
  reporting: false,
});

/** The part of the kernel that holds moms. */
type Hosts = { readonly state: ServerState; readonly moms: Pick<Moms, "by_host"> };

/** The connected mom of a job. */
export const momOfJob = (kernel: Hosts, id: string): MomRuntime | undefined =>
  kernel.moms.by_host.get(hostOfJob(kernel.state.jobs.get(id)).toLowerCase());

// What the server knows about one mom and about the runs it takes part in. It is lost when the server ends; the mom says hello again.

import type { MomHello, MomPatience, MomVnode, Usage } from "#protocol/mom-link.ts";
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
  /** why the mom can start nothing; null: it can */
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
  /** since when its mom is not connected; null: it is connected */
  away_since_ms: number | null;
  /** the sister has stopped the run's processes, or was told to */
  stands: boolean;
  /** its loss was handled: only its state may come from the hello that the crew was made from */
  missed: boolean;
  used: Usage;
};

/** What the server knows about the sisters of a run. */
export type Crew = {
  readonly run_count: number;
  /** by host, in lower case */
  readonly sisters: Map<string, Sister>;
  /** the mother superior has been asked to start the run, or already has it */
  begun: boolean;
  /** state for which sisters are waited for while the run has not begun */
  awaited: "join" | "prologue";
  /** usage of the mother superior alone */
  own: Usage;
  /** the run failed because of a sister */
  failed: boolean;
  /** the run is over, and this must be done once every sister has released it; null: it is not over */
  over: (() => void) | null;
};

/** The part of the kernel that holds moms. */
type Hosts = { readonly state: ServerState; readonly moms: ReadonlyMap<string, MomRuntime> };

/** The connected mom of a job. */
export const momOfJob = (kernel: Hosts, id: string): MomRuntime | undefined =>
  kernel.moms.get(hostOfJob(kernel.state.jobs.get(id)).toLowerCase());

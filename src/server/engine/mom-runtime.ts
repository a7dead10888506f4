// What is known of one mom, and of the runs it takes part in, while the server runs. Gone with the server; the mom says hello again.

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
  /** digest of the hooks it has */
  hooks: string;
  /** digests of the files those hooks are made of, by name; unknown for what a mom brings along: empty */
  hook_files: ReadonlyMap<string, string>;
  /** others use its host */
  busy: boolean;
  /** when it last said a word; steady as timers are (core/clock-jump.ts) */
  heard_ms: number;
  /** why it can start nothing; null: it is well */
  ill: string | null;
  /** runs that were sent on this connection and that it has not taken yet, by job */
  readonly sent: Map<string, number>;
};

/** A signal or message on its way to a mom. */
export type MomQuestion = { readonly token: number; readonly job: string; readonly signal: string | null };

/** Whether a mom takes part in the heartbeat (moms/heartbeat.ts H5). */
export const isAsked = ({ hello }: MomRuntime): boolean => hello.pongs === true;

/** unknown: she has not said hello since we can know. asked: the run was sent. ready: she has all but asked her execjob_prologue hooks. */
export type Sister = {
  readonly host: string;
  state: "unknown" | "asked" | "ready" | "joined" | "gone";
  /** since when her mom is not connected; null: she is */
  away_since_ms: number | null;
  /** she has stopped the run's processes, or was told to */
  stands: boolean;
  /** that she is gone was seen to: her state alone may come from the hello that the crew was made from */
  missed: boolean;
  used: Usage;
};

/** What is known of a run's sisters. */
export type Crew = {
  readonly run_count: number;
  /** by host, in lower case */
  readonly sisters: Map<string, Sister>;
  /** the mother superior has been asked to start, or has it already */
  begun: boolean;
  /** what sisters are waited for while it is not begun */
  awaited: "join" | "prologue";
  /** usage of the mother superior alone */
  own: Usage;
  /** the run failed because of a sister */
  failed: boolean;
  /** the run is over, this is to be done once every sister has let it go; null: it is not over */
  over: (() => void) | null;
};

/** Where moms are kept: the kernel. */
type Hosts = { readonly state: ServerState; readonly moms: ReadonlyMap<string, MomRuntime> };

/** The connected mom of a job. */
export const momOfJob = (kernel: Hosts, id: string): MomRuntime | undefined =>
  kernel.moms.get(hostOfJob(kernel.state.jobs.get(id)).toLowerCase());

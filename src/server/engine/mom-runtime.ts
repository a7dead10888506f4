// What the server knows about moms, and about runs on several hosts. It is lost when the server ends; moms then say hello again.

import type { Datagrams, HostView } from "#protocol/hosts-view.ts";
import type { MomGrace, MomHello, MomJob, MomPatience, MomToServer, MomVnode, Usage } from "#protocol/mom-link.ts";
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
  /** digests of the files of those hooks, by name; empty until the server has sent hooks on this connection, because the hello has no digests of files */
  hook_files: ReadonlyMap<string, string>;
  /** someone uses the host, so that its vnodes are busy */
  busy: boolean;
  /** time of the mom's last message. It moves with the timers when the clock is set (core/clock-jump.ts) */
  heard_ms: number;
  /** interval at which a mom on another host reports; null: a mom on the server's host, which is pinged instead */
  readonly every_ms: number | null;
  /** time at which the mom was pinged because its reports are missing; null: they are not missing */
  asked_ms: number | null;
  /** number of the mom's last report on this connection, and of its last report that had the site's resources */
  report: number;
  site_report: number;
  /** time of the mom's hello on this connection, epoch seconds */
  readonly since_s: number;
  /** pinged: the latest mom-ping that has no answer yet; latency_ms: the time that the mom took for its latest answer */
  pinged: { readonly number: number; readonly at_ms: number } | null;
  latency_ms: number | null;
  /** by how much the mom's clock is ahead of the server's; null: unknown */
  ahead_ms: number | null;
  /** times of the mom's last report by datagram, and of its last report over the connection, which is used when datagrams are not answered */
  reported_ms: { datagram: number | null; connection: number | null };
  /** the reason why the mom cannot start jobs; null: it can */
  ill: string | null;
  /** runs that were sent on this connection and that the mom has not accepted yet, by job */
  readonly sent: Map<string, number>;
  /** time since which the mom has accepted none of the runs in `sent` */
  sent_ms: number;
  /** every grace that the mom may use, oldest first (moms/grace.ts); null: the mom is of an earlier release, which ignores graces */
  graces: readonly MomGrace[] | null;
};

/** The graces that a mom may use while it is not connected. heard_ms: time of the mom's last message. requeue_s, sister_s: the longest grace */
export type LostMom = { readonly heard_ms: number } & Pick<MomGrace, "requeue_s" | "sister_s">;

/** What other parts of the server may read of a connected mom. */
export type ConnectedMom = Pick<MomRuntime, "host" | "since_s" | "latency_ms" | "ahead_ms"> &
  Pick<HostView, "datagrams" | "place"> & { readonly release: string | null };

/** Number of successive reports that may be missing before a mom is pinged, and before its datagrams count as lost. */
export const MISSED_REPORTS = 3;

export function connectedMom(now_ms: number, mom: MomRuntime): ConnectedMom {
  const { host, since_s, latency_ms, ahead_ms, hello } = mom;
  const { address, port, release = null } = hello;
  const place = address === undefined || address === "" ? null : { address, port };
  return { host, since_s, latency_ms, ahead_ms, release, place, datagrams: datagramsOf(now_ms, mom) };
}

/** Whether datagrams pass between a mom and the server, as its latest reports show. */
function datagramsOf(now_ms: number, { every_ms, reported_ms }: MomRuntime): Datagrams | null {
  if (every_ms === null) return null;
  const isRecent = (at_ms: number | null): boolean => at_ms !== null && now_ms - at_ms < MISSED_REPORTS * every_ms;
  const arrive = isRecent(reported_ms.datagram);
  if (isRecent(reported_ms.connection)) return arrive ? "there" : "none";
  return arrive ? "both" : null;
}

/** A signal or message that was sent to the mom of a host and has not been answered. token: of the request to answer. */
export type MomQuestion = { readonly token: number; readonly job: string; readonly host: string; readonly signal: string | null };

/** Whether a mom answers pings and confirms starts (moms/heartbeat.ts H5). */
export const isAsked = ({ hello }: MomRuntime): boolean => hello.pongs === true;

/**
 * A sister of a run. unknown: the sister has not said hello since the server's start. asked: the run was sent to the sister.
 * ready: everything except its execjob_prologue hooks is done.
 */
export type Sister = {
  readonly host: string;
  state: "unknown" | "asked" | "ready" | "joined" | "gone";
  /** time since which the mom of the sister is not connected; null: the mom is connected */
  away_since_ms: number | null;
  /** the sister has suspended the processes of the run, or has been asked to do so */
  stands: boolean;
  /** the server has handled the loss of this sister */
  missed: boolean;
  used: Usage;
};

/** What the server does when a run has ended on all its hosts (moms/run-end.ts). */
export type AfterRun =
  | { readonly kind: "start-taken-back" }
  /** runner: the host was a runner, which its backend does not show (gone), has preempted, or a person says is dead */
  | { readonly kind: "mother-silent"; readonly runner?: "gone" | "preempted" | "dead" }
  /** the run counts as lost */
  | { readonly kind: "lost"; readonly exit_status: number; readonly used: Usage; readonly message?: string }
  | { readonly kind: "obit"; readonly obit: MomToServer["mom-obit"] };

/** What the server knows about the sisters of a run. */
export type Crew = {
  readonly run_count: number;
  /** by host, in lower case */
  readonly sisters: Map<string, Sister>;
  /** the mother superior has been asked to start the run, or already has it */
  begun: boolean;
  /** the state that all sisters must reach before the run begins */
  awaited: "join" | "prologue";
  /** the resources used on the host of the mother superior alone */
  own: Usage;
  /** the run failed because of a sister */
  failed: boolean;
  /** what the server does when every sister has released the run; null: the run has not ended on the mother superior */
  over: AfterRun | null;
};

/** All connected moms, the runs over several hosts, and the signals and messages that moms have not answered. */
export type Moms = {
  /** by host name, in lower case */
  readonly by_host: Map<string, MomRuntime>;
  /** by connection: the mom that last said hello on that connection */
  readonly by_link: Map<number, MomRuntime>;
  /** when the next heartbeat is due (moms/heartbeat.ts) */
  heartbeat_ms: number;
  /** when missing reports are searched for next (moms/missed-reports.ts) */
  reports_ms: number;
  /** time of the last message of each silent mom that is not connected, by host name in lower case */
  readonly silent_since: Map<string, number>;
  /** moms that are not connected, by host name in lower case; a mom of an earlier release is not here */
  readonly lost: Map<string, LostMom>;
  /** number of the last mom-ping */
  pings: number;
  /** jobs to start, by connection: the lists of the mom-start frames of this batch */
  readonly starts: Map<number, MomJob[]>;
  readonly questions: Map<number, MomQuestion>;
  next_question: number;
  /** runs over several hosts, by job */
  readonly crews: Map<string, Crew>;
  /** true while the server enters the vnodes of a mom's report: vnodes created then do not count as made by an administrator */
  reporting: boolean;
};

export const noMoms = (now_ms: number): Moms => ({
  by_host: new Map(),
  by_link: new Map(),
  heartbeat_ms: now_ms,
  reports_ms: now_ms,
  silent_since: new Map(),
  lost: new Map(),
  pings: 0,
  starts: new Map(),
  questions: new Map(),
  next_question: 1,
  crews: new Map(),
  reporting: false,
});

/** The fields of the kernel that lookups of moms need. */
type Hosts = { readonly state: ServerState; readonly moms: Pick<Moms, "by_host"> };

/** The mom of a job's first host, if it is connected. */
export const momOfJob = (kernel: Hosts, id: string): MomRuntime | undefined =>
  kernel.moms.by_host.get(hostOfJob(kernel.state.jobs.get(id)).toLowerCase());

// The server's knowledge about one scheduler: its connection, mirror, cycle and crashes. It is lost when the server
// ends; the scheduler says hello again.

import type { Reject } from "#model/pbse.ts";
import type { Decision, SchedCommand, SchedJob, SchedQuestion, Verdict } from "#protocol/sched-link.ts";
import type { Changes } from "../state/changes.ts";
import type { SchedFrame } from "./batch.ts";

/** A frame of decisions that is being examined. preempting: decisions just before `at` whose verdicts the later ones wait for. */
export type Deciding = {
  readonly cycle: number;
  readonly decisions: readonly Decision[];
  at: number;
  /** by decision; with gaps where hooks or preemptions are under way */
  readonly verdicts: Verdict[];
  /** number of verdicts that are missing */
  left: number;
  readonly preempting: (readonly [at: number, preemption: { readonly verdict: Verdict | null }])[];
};

/** The verdict of a decision of the frame. */
export function giveVerdict(frame: Deciding, at: number, verdict: Verdict): void {
  frame.verdicts[at] = verdict;
  frame.left--;
}

/** Gives a verdict later. The rest of the scheduler's decisions is examined afterwards. The verdict has no effect if the link broke meanwhile. */
export function giveLater({ scheds }: { readonly scheds: Scheds }, sched: string, frame: Deciding, at: number, verdict: Verdict): void {
  if (scheds.by_name.get(sched)?.deciding.includes(frame) !== true) return;
  giveVerdict(frame, at, verdict);
  scheds.settled.add(sched);
}

/** heard_ms: time of its last message, epoch milliseconds; stopped: its process was found stopped, and is not only slow */
export type Silence = { readonly pid: number; readonly heard_ms: number; readonly stopped: boolean };

export type SchedRuntime = {
  readonly name: string;
  /** null: not connected */
  link: number | null;
  pid: number;
  /** the process was started, and the server does not know of its end */
  started: boolean;
  /** the next frame must be a snapshot */
  needs_snapshot: boolean;
  revision: number;
  /** names that the mirror holds; only these must be dropped explicitly */
  readonly known: { readonly queues: Set<string>; readonly nodes: Set<string>; readonly jobs: Set<string> };
  /** jobs whose only change is a comment that this scheduler sent itself */
  readonly own_comments: Set<string>;
  /** number of the last cycle */
  cycle: number;
  /** a cycle is running */
  busy: boolean;
  /** the command of a cycle whose frame has not left yet: the deltas before it include all of this batch, so no further cycle is needed */
  unsent: SchedCommand | null;
  /** more of its decisions will follow */
  more: boolean;
  /** changes that are kept back until they have come */
  untold: Changes | null;
  /** frames that wait until the scheduler has got the changes, in the next batch; null: none (scheds/mirror.ts I3) */
  held: SchedFrame[] | null;
  /** subjobs that began meanwhile: their usage is sent, even if they are over before the scheduler gets the changes */
  readonly begun: Map<string, SchedJob>;
  /** decisions without an answer yet: the first frame waits for preemptions, the others wait for it */
  deciding: Deciding[];
  /** jobs that were started without waiting for their runjob hooks, which are under way */
  readonly asking: Set<string>;
  /** a trigger that came during the cycle */
  pending: SchedCommand | null;
  /** jobs to run by hand, in order; if `running` names the first one, it is in the present cycle */
  readonly qruns: string[];
  running: string | null;
  /** the reason why the server refused to start the job `running` at its scheduler's last attempt */
  refusal: Reject | null;
  /** times of crashes in the last hour, epoch milliseconds */
  crashes: number[];
  /** number of cycles since it connected */
  cycles: number;
  /** the last fault that it reported */
  fault: string | null;
  /** its last message for the administrator */
  problem: string | null;
  /** it ended by itself too often and has completed no cycle since */
  attention: boolean;
  /** time since which it has been starting, epoch milliseconds; if it is connected: when it was started */
  away_ms: number;
  /** it answers sched-ping */
  pongs: boolean;
  /** time of its last message, start or loss of connection; steady as timers are (clock-jump.ts) */
  heard_ms: number;
  /** the way in which it counts as down because it does not answer (scheds/heartbeat.ts); null: it does not */
  silent: Silence | null;
  /** it will be started again when it has ended */
  again: boolean;
  /** it was asked to end, or ended by itself without a fault */
  leaving: boolean;
};

/** All schedulers, and the requests that they must answer. */
export type Scheds = {
  readonly by_name: Map<string, SchedRuntime>;
  /** when the next heartbeat is due (scheds/heartbeat.ts) */
  heartbeat_ms: number;
  /** number of the last sched-ping */
  pings: number;
  /** job id -> tokens of qruns that its scheduler must decide */
  readonly qruns: Map<string, number[]>;
  /** tokens of requests that a scheduler must answer: the scheduler, and the question */
  readonly asked: Map<number, { readonly sched: string; readonly question: SchedQuestion; readonly user: string }>;
  /** schedulers whose preemptions have settled: the rest of their decisions is examined before the batch leaves */
  readonly settled: Set<string>;
  /** a value is being copied between the server and the default scheduler */
  mirroring: boolean;
};

export const noScheds = (now_ms: number): Scheds => ({
  by_name: new Map(),
  heartbeat_ms: now_ms,
  pings: 0,
  qruns: new Map(),
  asked: new Map(),
  settled: new Set(),
  mirroring: false,
});

/** The part of the kernel that holds runtimes. */
type SchedTable = { readonly scheds: Pick<Scheds, "by_name"> };

export function runtimeOf(kernel: SchedTable, name: string): SchedRuntime {
  let runtime = kernel.scheds.by_name.get(name);
  if (runtime === undefined) {
    runtime = {
      name,
      link: null,
      pid: 0,
      started: false,
      needs_snapshot: false,
      revision: 0,
      known: { queues: new Set(), nodes: new Set(), jobs: new Set() },
      own_comments: new Set(),
      cycle: 0,
      ...noCycle(),
      begun: new Map(),
      asking: new Set(),
      qruns: [],
      crashes: [],
      cycles: 0,
      fault: null,
      problem: null,
      attention: false,
      away_ms: 0,
      pongs: false,
      heard_ms: 0,
      silent: null,
      again: false,
      leaving: false,
    };
    kernel.scheds.by_name.set(name, runtime);
  }
  return runtime;
}

/** The cycle part of a runtime without a running or pending cycle: at a hello, and when the connection is lost. */
export function noCycle(): Pick<SchedRuntime, OfCycles> {
  return {
    busy: false,
    unsent: null,
    more: false,
    untold: null,
    held: null,
    deciding: [],
    pending: null,
    running: null,
    refusal: null,
  };
}
type OfCycles = "busy" | "unsent" | "more" | "untold" | "held" | "deciding" | "pending" | "running" | "refusal";

/** The runtime of a connection. */
export function runtimeOfLink(kernel: SchedTable, link: number): SchedRuntime | undefined {
  for (const runtime of kernel.scheds.by_name.values()) if (runtime.link === link) return runtime;
  return undefined;
}

/** The log line about a job whose scheduler is not connected. */
export const unreachableText = (job: string): string => `Unable to reach scheduler associated with job ${job}`;

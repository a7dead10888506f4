// What the server knows about one scheduler: its connection, what it has been sent, its cycle and its crashes. It is lost
// when the server ends; the scheduler then says hello again.

import type { Reject } from "#model/pbse.ts";
import type { Decision, SchedCommand, SchedJob, SchedQuestion, Verdict } from "#protocol/sched-link.ts";
import type { Changes } from "../state/changes.ts";
import type { SchedFrame } from "./batch.ts";

/**
 * A frame of decisions that is being examined. at: the index of the next decision. preempting: the preemptions just before
 * it, for which all later decisions wait.
 */
export type Deciding = {
  readonly cycle: number;
  readonly decisions: readonly Decision[];
  at: number;
  /** verdicts by index of the decision; there are gaps while hooks or preemptions are under way */
  readonly verdicts: Verdict[];
  /** number of verdicts that are missing */
  left: number;
  readonly preempting: (readonly [at: number, preemption: { readonly verdict: Verdict | null }])[];
};

/** Sets the verdict of a decision of the frame. */
export function giveVerdict(frame: Deciding, at: number, verdict: Verdict): void {
  frame.verdicts[at] = verdict;
  frame.left--;
}

/**
 * Sets a verdict that was not available at once. Afterwards the scheduler's further decisions are examined. The verdict has
 * no effect if the link has broken meanwhile.
 */
export function giveLater({ scheds }: { readonly scheds: Scheds }, sched: string, frame: Deciding, at: number, verdict: Verdict): void {
  if (scheds.by_name.get(sched)?.deciding.includes(frame) !== true) return;
  giveVerdict(frame, at, verdict);
  scheds.settled.add(sched);
}

/** A scheduler that does not answer. heard_ms: time of its last message, epoch milliseconds; stopped: the process is suspended (SIGSTOP) and not only slow. */
export type Silence = { readonly pid: number; readonly heard_ms: number; readonly stopped: boolean };

export type SchedRuntime = {
  readonly name: string;
  /** null: not connected */
  link: number | null;
  /** 0: the scheduler is not connected, or is on another host */
  pid: number;
  /** the host of a connected scheduler; null: this host */
  host: string | null;
  /** the user as whom a scheduler on another host says that it runs; null: it has not said so */
  user: string | null;
  /** the scheduler has been connected to this server */
  met: boolean;
  /** the process was started, and the server has not learned of its end; for a scheduler on another host: the server dials it or is connected to it */
  started: boolean;
  /** why the scheduler on another host could not be reached at the last attempt; null: it is connected or on this host, or no attempt has ended yet */
  unreached: string | null;
  /** the next frame must be a snapshot */
  needs_snapshot: boolean;
  revision: number;
  /** names of the objects that the scheduler has been sent; it must be told when one of them disappears */
  readonly known: { readonly queues: Set<string>; readonly nodes: Set<string>; readonly jobs: Set<string> };
  /** jobs whose only change is a comment that this scheduler sent itself */
  readonly own_comments: Set<string>;
  /** number of the last cycle */
  cycle: number;
  /** a cycle is running */
  busy: boolean;
  /** command of a cycle that begins with the present batch. The scheduler gets all deltas of the batch first, so a trigger needs no further cycle */
  unsent: SchedCommand | null;
  /** more decisions of the present cycle will follow */
  more: boolean;
  /** changes that the scheduler is not told until these decisions have come; null: none are kept back */
  untold: Changes | null;
  /** frames that are sent in the next batch, after the changes that were kept back; null: none (scheds/mirror.ts I3) */
  held: SchedFrame[] | null;
  /** subjobs that began while changes were kept back: their usage is sent even if they have ended before the scheduler gets the changes */
  readonly begun: Map<string, SchedJob>;
  /** frames of decisions that have not been answered: the first may wait for preemptions, the others wait for the first */
  deciding: Deciding[];
  /** jobs whose runjob hooks still run, although the scheduler has got the verdict about the job already */
  readonly asking: Set<string>;
  /** a trigger that came during the cycle */
  pending: SchedCommand | null;
  /** jobs for which qrun was requested, in order. running: the first of them, if the present cycle is for that job */
  readonly qruns: string[];
  running: string | null;
  /** token of the client's question that was sent to the scheduler and is not answered yet; null: none */
  question: number | null;
  /** by user: the number of the user's last question that was sent to the scheduler (scheds/questions.ts I2). Emptied when no question waits */
  readonly turns: Map<string, number>;
  /** the reason why the server refused the scheduler's last attempt to start the job `running` */
  refusal: Reject | null;
  /** times of crashes in the last hour, epoch milliseconds */
  crashes: number[];
  /** number of cycles since the scheduler connected */
  cycles: number;
  /** the last fault that the scheduler reported */
  fault: string | null;
  /** the last problem that the scheduler reported for the administrator */
  problem: string | null;
  /** the scheduler ended by itself too often and has completed no cycle since then */
  attention: boolean;
  /** time since which the scheduler has been starting, epoch milliseconds; if it is connected: when it was started */
  away_ms: number;
  /** the scheduler answers sched-ping */
  pongs: boolean;
  /** time of the latest of these events: the scheduler sent a message, was started, or lost its connection. It moves with the timers when the clock is set (clock-jump.ts) */
  heard_ms: number;
  /** set if the scheduler counts as down because it does not answer (scheds/heartbeat.ts); else null */
  silent: Silence | null;
  /** the process will be started again when it has ended */
  again: boolean;
  /** the process was asked to end, or ended by itself without a fault */
  leaving: boolean;
};

/** All schedulers, and the requests that they must answer. */
export type Scheds = {
  readonly by_name: Map<string, SchedRuntime>;
  /** when the next heartbeat is due (scheds/heartbeat.ts) */
  heartbeat_ms: number;
  /** number of the last sched-ping */
  pings: number;
  /** job id -> tokens of qrun requests that the job's scheduler must decide */
  readonly qruns: Map<string, number[]>;
  /** tokens of requests that a scheduler must answer: the scheduler, and the question. In the order of their arrival */
  readonly asked: Map<number, { readonly sched: string; readonly question: SchedQuestion; readonly user: string }>;
  /** number of the last question that was sent to a scheduler */
  questions_sent: number;
  /** schedulers with preemptions that have succeeded or failed: their further decisions are examined before the batch leaves */
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
  questions_sent: 0,
  settled: new Set(),
  mirroring: false,
});

/** The field of the kernel that has the runtime records of schedulers. */
type SchedTable = { readonly scheds: Pick<Scheds, "by_name"> };

export function runtimeOf(kernel: SchedTable, name: string): SchedRuntime {
  let runtime = kernel.scheds.by_name.get(name);
  if (runtime === undefined) {
    runtime = {
      name,
      link: null,
      pid: 0,
      host: null,
      met: false,
      started: false,
      unreached: null,
      needs_snapshot: false,
      revision: 0,
      known: { queues: new Set(), nodes: new Set(), jobs: new Set() },
      own_comments: new Set(),
      cycle: 0,
      ...noCycle(),
      begun: new Map(),
      asking: new Set(),
      qruns: [],
      question: null,
      turns: new Map(),
      crashes: [],
      cycles: 0,
      fault: null,
      problem: null,
      attention: false,
      away_ms: 0,
      pongs: false,
      user: null,
      heard_ms: 0,
      silent: null,
      again: false,
      leaving: false,
    };
    kernel.scheds.by_name.set(name, runtime);
  }
  return runtime;
}

/** The fields about cycles, with their values for a scheduler that has no running or pending cycle. Used at a hello and when the connection is lost. */
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

/** The runtime record of the scheduler on a connection. */
export function runtimeOfLink(kernel: SchedTable, link: number): SchedRuntime | undefined {
  for (const runtime of kernel.scheds.by_name.values()) if (runtime.link === link) return runtime;
  return undefined;
}

/** The log line about a job whose scheduler is not connected. */
export const unreachableText = (job: string): string => `Unable to reach scheduler associated with job ${job}`;

// What is known of one scheduler while the server runs: its connection, its mirror, its cycle, its crashes. Gone with the server; the scheduler says hello again.

import type { Reject } from "#model/pbse.ts";
import type { Decision, SchedCommand, SchedJob, Verdict } from "#protocol/sched-link.ts";
import type { Changes } from "../state/changes.ts";
import type { SchedFrame } from "./batch.ts";

/** A frame of decisions being looked at. preempting: those just before `at` whose verdicts the ones from `at` on wait for. */
export type Deciding = {
  readonly cycle: number;
  readonly decisions: readonly Decision[];
  at: number;
  /** by decision; with holes where hooks or preemptions are under way */
  readonly verdicts: Verdict[];
  /** how many verdicts are missing */
  left: number;
  readonly preempting: (readonly [at: number, preemption: { readonly verdict: Verdict | null }])[];
};

/** heard_ms: its last word, epoch milliseconds; stopped: its process was found stopped, and does not only take too long */
export type Silence = { readonly pid: number; readonly heard_ms: number; readonly stopped: boolean };

export type SchedRuntime = {
  readonly name: string;
  /** null: not connected */
  link: number | null;
  pid: number;
  /** the process was started and is not known to have ended */
  started: boolean;
  /** the next frame must be a snapshot */
  needs_snapshot: boolean;
  revision: number;
  /** names the mirror holds: what it need not be told to drop it never had */
  readonly known: { readonly queues: Set<string>; readonly nodes: Set<string>; readonly jobs: Set<string> };
  /** jobs whose only news is a comment this scheduler sent itself */
  readonly own_comments: Set<string>;
  /** number of the last cycle */
  cycle: number;
  /** a cycle runs */
  busy: boolean;
  /** the command of a cycle whose frame has not left yet: all of this batch is in the deltas before it, and needs no further cycle */
  unsent: SchedCommand | null;
  /** more of its decisions are to come */
  more: boolean;
  /** what it is not told until they have */
  untold: Changes | null;
  /** frames that wait until it is told, in the next batch; null: none do (scheds/mirror.ts I3) */
  held: SchedFrame[] | null;
  /** subjobs that have begun meanwhile: what they use counts, though they may be over before it hears of them */
  readonly begun: Map<string, SchedJob>;
  /** decisions that are not answered yet: the first frame waits for preemptions, the others for it */
  deciding: Deciding[];
  /** jobs it started without waiting for their runjob hooks, which are under way */
  readonly asking: Set<string>;
  /** a trigger that came meanwhile */
  pending: SchedCommand | null;
  /** jobs to be run by hand, in order; the first is in the present cycle when `running` names it */
  readonly qruns: string[];
  running: string | null;
  /** why the server refused to start that job when its scheduler last tried */
  refusal: Reject | null;
  /** times of crashes within the window, epoch milliseconds */
  crashes: number[];
  /** cycles ended since it connected */
  cycles: number;
  /** what it complained of last */
  fault: string | null;
  /** what it said last that the administrator should see */
  problem: string | null;
  /** it ended by itself too often, and has completed no cycle since */
  attention: boolean;
  /** since when it has been on its way up, epoch milliseconds; of one that is connected: when it was */
  away_ms: number;
  /** it answers sched-ping */
  pongs: boolean;
  /** when it last said a word, or was started, or lost its connection; steady as timers are (clock-jump.ts) */
  heard_ms: number;
  /** it counts as down because it does not answer (scheds/heartbeat.ts); null: it does */
  silent: Silence | null;
  /** it is started again when it has ended */
  again: boolean;
  /** it was told to end, or ended by itself in good order */
  leaving: boolean;
};

/** Where runtimes are kept: the kernel. */
type SchedTable = { readonly scheds: Map<string, SchedRuntime> };

export function runtimeOf(kernel: SchedTable, name: string): SchedRuntime {
  let runtime = kernel.scheds.get(name);
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
    kernel.scheds.set(name, runtime);
  }
  return runtime;
}

/** What a runtime has of its cycles while no cycle runs and none is to come: at a hello, and when the connection is lost. */
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
  for (const runtime of kernel.scheds.values()) if (runtime.link === link) return runtime;
  return undefined;
}

/** The log line about a job whose scheduler is not there. */
export const unreachableText = (job: string): string => `Unable to reach scheduler associated with job ${job}`;

// What the server knows about pbs_runners and the runners and does not store. It is lost when the server ends; the controller and the runners then say hello again.

import type { Bucket } from "#model/request/bucket.ts";
import type { Demand } from "#protocol/runner-link.ts";
import type { JobAttrs } from "../state/state.ts";

export type RunnersRuntime = {
  /** the connection of pbs_runners; null: it is not connected */
  link: number | null;
  /** the process that is connected, or was last; whether it answers runners-ping; when it last sent a message */
  pid: number;
  pongs: boolean;
  heard_ms: number;
  /** when the next ping is due, and the number of the last one (runners/heartbeat.ts) */
  heartbeat_ms: number;
  pings: number;
  /** the process was started, and the server has not learned of its end */
  started: boolean;
  /** times at which the process of pbs_runners crashed */
  crashes: number[];
  /** the last picture that was sent, as text, so that an equal one is not sent again */
  sent: string;
  sent_ms: number;
  /** the buckets of the jobs that waited in the last pass, by key: runners are recorded for these only */
  wanted: ReadonlyMap<string, Bucket>;
  /** the jobs that waited in the last pass, by bucket */
  demands: readonly Demand[];
  /** time of the last pass */
  passed_ms: number;
  /** by idle runner: the time since which it has had no job */
  readonly idle: Map<string, number>;
  /** runners that take no further job */
  readonly draining: Set<string>;
  /** kinds of jobs (jobs/learning.ts) whose waiting jobs may ask for other amounts now */
  readonly relearn: Set<string>;
  /** what backends say about runners that wait */
  readonly reasons: Map<string, string>;
  /** by key of a bucket: the jobs that its runners get next, the last one first (runners/hand-out.ts), and the scheduler that says so. length: that of the whole list */
  readonly hand_outs: Map<string, { readonly sched: string; readonly jobs: string[]; readonly length: number }>;
  /** jobs that have ended on runners in this batch, with the scheduler of their queue; these runners get their next jobs before the batch leaves */
  readonly freed: { readonly sched: string; readonly ended: JobAttrs }[];
};

export const noRunners = (): RunnersRuntime => ({
  link: null,
  pid: 0,
  pongs: false,
  heard_ms: 0,
  heartbeat_ms: 0,
  pings: 0,
  started: false,
  crashes: [],
  sent: "",
  sent_ms: 0,
  wanted: new Map(),
  demands: [],
  passed_ms: 0,
  idle: new Map(),
  draining: new Set(),
  relearn: new Set(),
  reasons: new Map(),
  hand_outs: new Map(),
  freed: [],
});

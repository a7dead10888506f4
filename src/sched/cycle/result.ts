// The input of a cycle besides universe and policy, and its result.

import type { Fairshare } from "#model/fairshare.ts";
import type { Decision, HandOut, SchedCommand } from "#protocol/sched-link.ts";
import type { CycleLog } from "../shapes/log-record.ts";
import type { Probe } from "./probe.ts";

/** What a cycle remembers for the next one. */
export type Memory = {
  /** smp_cluster_dist round_robin: the position of the host used last, for each node set */
  readonly last_host: ReadonlyMap<string, number>;
  /** when jobs last got comments; needed for attr_update_period */
  readonly told_s: number;
  /** jobs whose preemption failed, each with the time until which they are spared */
  readonly failed_victims: ReadonlyMap<string, number>;
};
export const NO_MEMORY: Memory = { last_host: new Map(), told_s: 0, failed_victims: new Map() };

export type CycleInput = {
  readonly now_s: number;
  readonly command: SchedCommand;
  /** for a qrun: the job */
  readonly job?: string;
  readonly memory?: Memory;
  /** returns the seconds since the cycle began, for sched_cycle_length; absent: the cycle has no time limit */
  readonly elapsed_s?: () => number;
  /** returns the seconds since the cycle began, for the times of log records; absent: all records get the time of the beginning */
  readonly dated_s?: () => number;
  /** the usage that fairshare uses; absent: none */
  readonly fairshare?: Fairshare;
  /** a further pass of the same cycle: only these jobs are tried, in this order (preempt/failed-victims.ts) */
  readonly again?: readonly string[];
  /** a request to explain one job: the decisions of the cycle are discarded */
  readonly probe?: Probe;
};
export type CycleStats = {
  readonly jobs_considered: number;
  readonly jobs_started: number;
  readonly classes: number;
  readonly node_buckets: number;
};
export type CycleResult = {
  readonly decisions: readonly Decision[];
  readonly log: CycleLog;
  /** for each log record, when it was made, in seconds since the cycle began */
  readonly log_s: readonly number[];
  readonly stats: CycleStats;
  readonly memory: Memory;
  /**
   * the next time at which dedicated or prime time changes, or at which a top job is to start; a cycle may then start
   * waiting jobs. null: never, or no job waits
   */
  readonly bound_s: number | null;
  /** the jobs that runners get next (hand-out.ts) */
  readonly hand_outs: readonly HandOut[];
};

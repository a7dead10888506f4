// The settings of a scheduler that mean the same as an algorithm of a replay: attributes for the cycle engine, and lines for an administrator.

import type { Algorithm, JobOrder } from "./algorithm.ts";

export type SchedSettings = {
  /** attributes of the scheduler, without policy and order if sched_config or the default decides */
  readonly sched: { readonly [name: string]: string };
  readonly backfill_depth: number;
  /** whether sched_config must have strict_ordering: True, because no named policy says so */
  readonly strict: boolean;
};

/** A backfill depth that is larger than any queue. */
const DEPTH_MAX = 1_000_000_000;

/** Returns the settings; null: no settings mean exactly the same (cons follows other rules in the scheduler, see calendar/kept-plans.ts). */
export function settingsOf(algorithm: Algorithm): SchedSettings | null {
  if (algorithm.kind === "cons") return null;
  if (algorithm.kind === "fcfs") return { sched: {}, backfill_depth: 0, strict: true };
  const { order, behind, depth } = algorithm;
  const policy = policyNamed(order, behind);
  const backfill_depth = Math.min(DEPTH_MAX, depth);
  if (policy !== null) return { sched: { policy }, backfill_depth, strict: false };
  if (order.width_s === 0 && order.walltime_s === 3600)
    return { sched: { policy: "log", "backfill.order": behind }, backfill_depth, strict: false };
  if (order.width_s === 0 && order.walltime_s === 0)
    return { sched: { policy: "easy", "backfill.order": behind }, backfill_depth, strict: false };
  return { sched: { job_sort_formula: formulaOf(order), "backfill.order": behind }, backfill_depth, strict: true };
}

function policyNamed({ walltime_s, width_s }: JobOrder, behind: string): string | null {
  if (width_s !== 0) return null;
  if (walltime_s === 0) return behind === "queue" ? "easy" : behind === "shortest" ? "sjbf" : null;
  return walltime_s === 3600 && behind === "shortest" ? "log" : null;
}

/** Returns the formula of an order. Larger values come first. */
function formulaOf({ walltime_s, width_s }: JobOrder): string {
  const width = width_s === 0 ? "" : ` - ${width_s} * log2(max(1, ncpus))`;
  return `-submit_time - ${walltime_s} * log2(max(1, requested_time) / 60)${width}`;
}

/** Returns the requests of qmgr, and the lines of sched_config, that apply the settings to a scheduler. */
export function linesOf({ sched, backfill_depth, strict }: SchedSettings, name: string): string[] {
  const attrs = Object.entries(sched).map(([attr, value]) => `set sched ${name} ${attr}=${/^\w+$/.test(value) ? value : `"${value}"`}`);
  const needed = strict ? ["sched_config: strict_ordering: True ALL"] : [];
  return [...attrs.map((line) => `qmgr -c '${line}'`), `qmgr -c 'set server backfill_depth=${backfill_depth}'`, ...needed];
}

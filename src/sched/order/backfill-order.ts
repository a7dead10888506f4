// The order of the jobs behind the last top job (`backfill.order`, docs/backfill.md). Smaller keys come first; jobs with equal keys keep the order of jobs.
//
// F1. For some orders all jobs of a line have equal keys, because its class contains the request and the walltime. The jobs of a line then keep their
//     order. For the other orders each waiting job is evaluated, once in a cycle that backfills.

import type { BackfillOrder } from "#model/sched-policies.ts";
import type { SchedJob } from "#protocol/sched-link.ts";
import type { RankContext } from "../shapes/universe.ts";
import { cpusOf, expansionOf, timeOf } from "./job-measures.ts";
import { backfillWorth } from "./ranking.ts";

/** The orders in which the jobs of a line may have different keys (F1). */
const BY_JOB: ReadonlySet<BackfillOrder> = new Set(["expansion", "formula"]);

export type BackfillKeys = {
  /** Returns the key of a job. */
  of(job: SchedJob): number;
  /** whether the jobs of a line may have different keys */
  readonly by_job: boolean;
};

/** Returns the keys of an order at this moment. */
export function backfillKeys(ranks: RankContext, order: BackfillOrder): BackfillKeys {
  const { universe, now_s } = ranks;
  const by_job = BY_JOB.has(order);
  switch (order) {
    case "queue":
      return { by_job, of: () => 0 };
    case "shortest":
      return { by_job, of: (job) => timeOf(universe, job) };
    case "smallest_area":
      return { by_job, of: (job) => timeOf(universe, job) * cpusOf(universe, job) };
    case "expansion":
      return { by_job, of: (job) => -expansionOf(universe, job, now_s) };
    case "formula":
      return { by_job, of: (job) => -backfillWorth(ranks, job) };
    default: {
      const unreachable: never = order;
      return unreachable;
    }
  }
}

// Determines the present preemption level of a job (docs/reference/scheduler.md 8). It depends on the queue of the job and on whether its owner exceeds a
// share or soft limits. The numbers are those of shapes/preempt-rules.ts; jobs with larger numbers may preempt jobs with smaller ones.

import { entity, treeUsage } from "#model/fairshare.ts";
import type { SchedJob } from "#protocol/sched-link.ts";
import { shareEntity } from "../order/ranking.ts";
import { looksAt, type Property, priorityOf } from "../shapes/preempt-rules.ts";
import type { LevelOf } from "../shapes/ranking.ts";
import type { RankContext } from "../shapes/universe.ts";
import { hasSoftLimits, overSoftLimit } from "./soft-limits.ts";

/**
 * Returns a function that returns the level of a job at this moment of a cycle. Usage of soft limits is looked up in each call. Values that are the same
 * for all jobs of a queue or of an owner are computed once.
 */
export function createLevels(ranks: RankContext): LevelOf {
  const { universe } = ranks;
  const { preempt } = universe;
  const soft = hasSoftLimits(universe) && (looksAt(preempt, "queue_softlimits") || looksAt(preempt, "server_softlimits"));
  const shares = universe.policy.fair_share && looksAt(preempt, "fairshare");
  const by_queue = new Map<string, number>();

  const compute = (job: SchedJob): number => {
    const priority = universe.queues.get(job.queue)?.priority ?? 0;
    const properties = new Set<Property>();
    if (priority >= preempt.queue_prio) properties.add("express_queue");
    if (shares && isOverShare(ranks, job)) properties.add("fairshare");
    if (soft) {
      const over = overSoftLimit(universe, job);
      if (over.queue) properties.add("queue_softlimits");
      if (over.server) properties.add("server_softlimits");
    }
    if (properties.size === 0) properties.add("normal_jobs");
    return priorityOf(preempt, properties, priority);
  };

  return (job) => {
    if (soft || shares) return compute(job);
    let level = by_queue.get(job.queue);
    if (level === undefined) by_queue.set(job.queue, (level = compute(job)));
    return level;
  };
}

/** Returns whether levels may change while jobs start and are preempted. */
export function levelsMove({ universe }: RankContext): boolean {
  const { preempt } = universe;
  return hasSoftLimits(universe) && (looksAt(preempt, "queue_softlimits") || looksAt(preempt, "server_softlimits"));
}

/** Returns whether the owner of a job has used more than the owner's share. */
function isOverShare({ universe, fairshare }: RankContext, job: SchedJob): boolean {
  const node = entity(fairshare, shareEntity(universe, job));
  return treeUsage(fairshare, node) > node.percentage;
}

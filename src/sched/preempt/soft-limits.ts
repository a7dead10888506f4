// Soft limits (max_run_soft and its relatives): a job whose user, group or project is above a soft limit may run, but may be preempted
// (docs/reference/scheduler.md 8).

import { type LimitTable, limitOf } from "#model/limits/run-limits.ts";
import type { SchedJob } from "#protocol/sched-link.ts";
import type { UsageTable } from "../shapes/limits.ts";
import { amountOf } from "../shapes/resource-space.ts";
import type { Universe } from "../shapes/universe.ts";

/** Returns whether the job's user, group or project is above a soft limit of the job's queue, and whether it is above one of the server. */
export function overSoftLimit(universe: Universe, job: SchedJob): { readonly queue: boolean; readonly server: boolean } {
  const queue = universe.queues.get(job.queue)?.soft_limits;
  return {
    queue: queue !== undefined && isOver(universe, queue, universe.usage.get(job.queue), job),
    server: isOver(universe, universe.soft_limits, universe.usage.get(""), job),
  };
}

/** Returns whether there is any soft limit. */
export function hasSoftLimits({ soft_limits, queues }: Universe): boolean {
  if (isSet(soft_limits)) return true;
  for (const queue of queues.values()) if (isSet(queue.soft_limits)) return true;
  return false;
}

const isSet = ({ run, resources }: LimitTable): boolean => run.size > 0 || resources.size > 0;

/** Returns whether a job is above one of the given soft limits. A job that does not request a resource is not above a limit on it, whatever others use. */
function isOver({ profile, space }: Universe, limits: LimitTable, usage: UsageTable | undefined, job: SchedJob): boolean {
  if (!isSet(limits)) return false;
  for (const [kind, name] of [
    ["u", job.user],
    ["g", job.group],
    ["p", job.project],
    ["o", ""],
  ] as const) {
    const used = usage?.get(`${kind}:${name}`);
    if (used === undefined) continue;
    const most = limitOf(limits.run, kind, name)?.limit ?? null;
    if (most !== null && used.jobs > most) return true;
    for (const [resource, table] of limits.resources) {
      if (amountOf(space.all.get(resource), job.resources[resource]) === null) continue;
      const amount = limitOf(table, kind, name)?.limit ?? null;
      if (amount !== null && (used.amounts[profile.resources.indexOf(resource)] ?? 0) > amount) return true;
    }
  }
  return false;
}

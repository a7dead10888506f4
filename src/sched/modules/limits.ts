// Module `limits`: run limits of queue and server (docs/reference/scheduler.md 2 and 5). A limit counts the jobs that this scheduler sees. Limits of the server
// do not apply to jobs in reservations, because the reservation was granted their resources.

import type { Why } from "#protocol/sched-link.ts";
import { checkLimits } from "../shapes/limits.ts";
import type { Candidate, Cycle, PolicyModule } from "../shapes/module.ts";

export const limits: PolicyModule = {
  name: "limits",
  checks: [
    {
      stage: "limits",
      check({ universe, qrun }, { entry, queue }) {
        if (
          qrun ||
          (universe.limits.run.size === 0 && universe.limits.resources.size === 0 && (queue === undefined || isFree(queue.limits)))
        )
          return null;
        const scopes = entry.job.resv === undefined ? [{ queue: undefined, limits: universe.limits, usage: universe.usage.get("") }] : [];
        const own = queue === undefined ? [] : [{ queue: queue.name, limits: queue.limits, usage: universe.usage.get(queue.name) }];
        return checkLimits(universe.space, universe.profile, [...own, ...scopes], entry.job);
      },
    },
    { stage: "limits", check: checkSubjobs },
  ],
};

/** Checks max_run_subjobs of an array. */
function checkSubjobs({ qrun }: Cycle, { array }: Candidate): Why | null {
  const { max_run_subjobs, running = 0 } = array?.job.array ?? {};
  if (qrun || array === undefined || max_run_subjobs === undefined || running + array.started < max_run_subjobs) return null;
  return { code: "MAX_RUN_SUBJOBS", module: "limits", have: String(running + array.started), total: String(max_run_subjobs) };
}

const isFree = (table: { readonly run: ReadonlyMap<string, number>; readonly resources: ReadonlyMap<string, unknown> }): boolean =>
  table.run.size === 0 && table.resources.size === 0;

// Module `fairshare` (docs/reference/scheduler.md 10): with `fairshare_enforce_no_shares`, jobs of entities without shares run only by qrun. A job that starts counts until the end of the cycle as if
// it had already used what it requests. The order by shares is in order/share-source.ts, the tree in src/model/fairshare.ts.

import { addTemporary, entityOf } from "#model/fairshare.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { percentageOf, usageOf } from "../order/ranking.ts";
import type { PolicyModule } from "../shapes/module.ts";

export const fairshare: PolicyModule = {
  name: "fairshare",
  checks: [
    {
      stage: "fairshare",
      check({ universe, policy, qrun }, { entry }) {
        if (qrun || !policy.fair_share || !policy.fairshare_enforce_no_shares || percentageOf(universe, entry.job) > 0) return null;
        return { code: "NO_FAIRSHARES", module: "fairshare", never: true };
      },
    },
  ],
  /** Counts a top job as if it ran. Otherwise all top jobs could belong to the entity with the least usage. */
  planned(cycle, { entry }) {
    const { universe, policy, fairshare: tree } = cycle;
    if (!policy.fair_share) return;
    const entity = entityOf(entry.job, policy.fairshare_entity);
    addTemporary(tree, entity, usageOf(universe, entry.job.resources));
    const text = `Fairshare usage of entity ${entity} increased due to job becoming a top job.`;
    cycle.log({ event: LOG_EVENT.DEBUG2, class: "Job", object: entry.job.id, text });
  },
  started({ universe, policy, fairshare: tree }, { entry }) {
    if (policy.fair_share) addTemporary(tree, entityOf(entry.job, policy.fairshare_entity), usageOf(universe, entry.job.resources));
  },
};

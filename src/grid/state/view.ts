// Campaigns as a cycle sees them (shapes/universe.ts), from the state. Pure.

import type { CampaignView, LiveJob, PairView } from "../shapes/universe.ts";
import { type CampaignRecord, type GridJob, jobsOf } from "./grid-state.ts";

/** Returns the view of a campaign. A test campaign has one task for each cluster that has neither a job nor a result of this campaign. */
export function viewOf(campaign: CampaignRecord): CampaignView {
  const lives = Map.groupBy(jobsOf(campaign), ({ order }) => order.cluster);
  const pairs = new Map<string, PairView>();
  for (const [cluster, { ratio, batch, tap, results, results_run_s, started, last_order }] of campaign.pairs) {
    const live = (lives.get(cluster) ?? []).filter(({ kill }) => kill === null).sort((a, b) => a.id - b.id);
    const of_batch = live.filter(({ order }) => order.serial === last_order);
    pairs.set(cluster, {
      ratio,
      tap,
      batch,
      waiting: live.filter(({ started_s }) => started_s === null).map(liveJob),
      running: live.filter(({ started_s }) => started_s !== null).map(liveJob),
      batch_running: of_batch.filter(({ started_s }) => started_s !== null).length,
      batch_started: started.size,
      results,
      results_run_s,
    });
  }
  return { campaign: campaign.plan, tasks_left: campaign.bag.size, pairs };
}

const liveJob = ({ id, task, order, started_s }: GridJob): LiveJob => ({ id, task, submitted_s: order.ordered_s, started_s });

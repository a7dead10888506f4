// Requests that show campaigns. Pure.

import type { GridCampaigns, GridCampaignView, GridJobView, GridPairView } from "#protocol/grid-messages.ts";
import type { HistoryRow } from "#store/store.ts";
import { parameterAt } from "../jdl/parameters.ts";
import { endOf, WINDOW_S } from "../plan/forecast.ts";
import type { CampaignRecord, GridJob, GridState } from "../state/grid-state.ts";
import { jobsOf } from "../state/grid-state.ts";
import { readEndedJob } from "../state/rows.ts";
import type { GridCore } from "../work/core.ts";
import type { GridAnswer } from "./answers.ts";
import { type Refused, unknownCampaign } from "./answers.ts";

export function findCampaign(core: GridCore, id: number): CampaignRecord | Refused {
  return core.state.campaigns.get(id) ?? unknownCampaign(id);
}

export function listCampaigns(core: GridCore, { campaigns: ids, user, limit, offset = 0 }: GridCampaigns, now_s: number): GridAnswer {
  const { state } = core;
  for (const id of ids ?? []) if (!state.campaigns.has(id)) return unknownCampaign(id);
  const chosen = ids === undefined ? [...state.campaigns.values()] : ids.flatMap((id) => state.campaigns.get(id) ?? []);
  const all = chosen.filter((campaign) => user === undefined || campaign.user === user);
  const page = all.slice(offset, limit === undefined ? undefined : offset + limit);
  return { ok: true, value: { items: page.map((campaign) => campaignView(state, campaign, now_s)), total: all.length } };
}

function campaignView(state: GridState, campaign: CampaignRecord, now_s: number): GridCampaignView {
  const { id, user, done, tasks, bag, failed, submitted_s, ended_s } = campaign;
  const pairs = [...campaign.pairs.keys()].map((cluster) => pairView(state, campaign, cluster, now_s));
  const sum = (of: (pair: GridPairView) => number): number => pairs.reduce((total, pair) => total + of(pair), 0);
  const results = [...campaign.pairs.values()];
  const counted = results.reduce((total, pair) => total + pair.results, 0);
  const mean_s = counted === 0 ? 0 : results.reduce((total, pair) => total + pair.results_run_s, 0) / counted;
  const ended = results.reduce((total, { ends }) => total + endsWithin(ends, now_s), 0);
  const progress = {
    begun_s: submitted_s,
    now_s,
    remaining: tasks - done,
    running: sum(({ running }) => running),
    mean_s,
    ended_in_window: ended,
  };
  return {
    id,
    name: campaign.jdl.name,
    user,
    type: campaign.plan.kind,
    state: campaign.state,
    submission_time: submitted_s,
    end_time: ended_s,
    total_jobs: tasks,
    finished_jobs: done,
    running_jobs: progress.running,
    waiting_jobs: sum(({ waiting }) => waiting),
    unsubmitted_jobs: bag.size,
    event_jobs: failed,
    open_events: [...state.events.values()].filter((event) => event.campaign === id && event.state === "open").length,
    average_s: counted === 0 ? null : mean_s,
    throughput: sum(({ throughput }) => throughput),
    estimated_end: campaign.state === "in_treatment" ? endOf(progress) : ended_s,
    clusters: pairs,
  };
}

function pairView({ clusters, sights }: GridState, campaign: CampaignRecord, cluster: string, now_s: number): GridPairView {
  const pair = campaign.pairs.get(cluster);
  const live = [...jobsOf(campaign)].filter(({ order }) => order.cluster === cluster);
  const sight = sights.get(cluster);
  const why = pair?.paused ?? (clusters.get(cluster)?.is_enabled === false ? "the cluster is disabled" : null) ?? sight?.fault ?? null;
  const span_h = Math.min(WINDOW_S, Math.max(1, now_s - campaign.submitted_s)) / 3600;
  return {
    cluster,
    waiting: live.filter(({ started_s }) => started_s === null).length,
    running: live.filter(({ started_s }) => started_s !== null).length,
    terminated: pair?.results ?? 0,
    average_s: pair === undefined || pair.results === 0 ? null : pair.results_run_s / pair.results,
    job_ratio: pair?.ratio ?? 0,
    throughput: endsWithin(pair?.ends ?? [], now_s) / span_h,
    state: pair?.paused !== null ? "paused" : sight === undefined ? "unknown" : why === null ? "open" : "down",
    why,
  };
}

/** Returns the number of jobs that ended within the last hour, and removes earlier ends from the list. */
function endsWithin(ends: number[], now_s: number): number {
  const from = ends.findIndex((at_s) => at_s >= now_s - WINDOW_S);
  ends.splice(0, from < 0 ? ends.length : from);
  return ends.length;
}

/** Returns the live jobs of a campaign as gridstat shows them. */
export const liveJobViews = (campaign: CampaignRecord): GridJobView[] =>
  [...jobsOf(campaign)].sort((a, b) => a.id - b.id).map((job) => liveJobView(campaign, job));

function liveJobView(campaign: CampaignRecord, { id, task, order, remote_id, started_s }: GridJob): GridJobView {
  const waiting = { recorded: order.is_begun ? "launching" : "to_launch", acknowledged: "submitted", released: "remote_waiting" } as const;
  return {
    id,
    campaign: campaign.id,
    parameters: parameterAt(campaign.parameters, task),
    state: started_s === null ? waiting[order.state] : "running",
    cluster: order.cluster,
    remote_id,
    submission_time: order.ordered_s,
    start_time: started_s,
    stop_time: null,
    exit_code: null,
    run_s: null,
    message: "",
  };
}

/** Returns an ended job as gridstat shows it. A job whose task ran again is shown as an event. */
export function endedJobView(campaign: CampaignRecord, { id, ended_s, state, data }: HistoryRow): GridJobView {
  const { task, cluster, ordered_s, started_s, remote_id, exit_code, run_s, reason } = readEndedJob(data);
  return {
    id: Number(id),
    campaign: campaign.id,
    parameters: parameterAt(campaign.parameters, task),
    state: state === "terminated" ? "terminated" : "event",
    cluster,
    remote_id,
    submission_time: ordered_s,
    start_time: started_s ?? (run_s === null ? null : ended_s - run_s),
    stop_time: ended_s,
    exit_code,
    run_s,
    message: reason,
  };
}

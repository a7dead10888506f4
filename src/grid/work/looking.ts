// Compares the list of jobs that a cluster has returned with the state. Finds jobs that have started or ended, jobs that have vanished, and jobs of the grid that were never
// recorded. Pure.

import type { JobRef, JobSighting } from "#backends/contract/cluster.ts";
import { fateOf, pauseOf } from "../events/columbo.ts";
import { periodOf } from "../plan/checkpoints.ts";
import { campaignOf, type GridEvent, pairOf } from "../state/event.ts";
import { type GridJob, type GridOrder, type GridState, jobsOf } from "../state/grid-state.ts";

/**
 * What the caller must do after a comparison. vanished: jobs that the list does not have any more; the cluster must be asked how they ended. strangers: jobs of a second
 * submission of an order, which were never released; they must be ended.
 */
export type Look = { readonly vanished: readonly GridJob[]; readonly strangers: readonly JobRef[] };

/** What the functions here need besides the state. resubmissions_max: the limit for campaigns that do not set their own. */
export type LookTools = { readonly apply: (event: GridEvent) => number; readonly resubmissions_max: number };

/** Compares the list of a cluster with the state. began_s: the time at which the list was requested; orders that were acknowledged later are not expected in it. */
export function look(
  state: GridState,
  cluster: string,
  seen: readonly JobSighting[],
  known: ReadonlySet<GridJob>,
  now_s: number,
  tools: LookTools,
): Look {
  const by_id = new Map(seen.map((each) => [each.id, each]));
  const tags = new Map([...state.orders.values()].filter((order) => order.cluster === cluster).map((order) => [order.tag, order]));
  const vanished: GridJob[] = [];
  const expected = new Set<string>();
  for (const order of tags.values())
    for (const job of [...order.jobs.values()]) {
      if (job.remote_id === null) continue;
      expected.add(job.remote_id);
      const sighting = by_id.get(job.remote_id);
      const is_gone = sighting === undefined || (sighting.state === "ended" && sighting.ending === null);
      if (is_gone) {
        if (known.has(job)) vanished.push(job);
      } else if (sighting.state === "ended") endJob(state, job, sighting, now_s, tools);
      else if (sighting.state === "running" && job.started_s === null)
        tools.apply({ kind: "job-started", job, at_s: now_s - (sighting.run_s ?? 0) });
      else if (sighting.state === "queued" && sighting.fault?.kind === "impossible" && order.state === "released")
        giveUpPair(state, order, sighting.fault.text, now_s, tools);
    }
  const strangers = seen.filter(({ id, tag, state: how, user }) => {
    if (how === "ended" || expected.has(id)) return false;
    const order = tags.get(tag);
    // Jobs of an order that is not acknowledged are found by their tag when the order is submitted again.
    return order === undefined || (order.state !== "recorded" && user === order.remote_user);
  });
  return { vanished, strangers };
}

/** Records the end of a job as its cluster reports it. Pauses the campaign of the job on this cluster if the end is a reason for a pause. */
export function endJob(
  state: GridState,
  job: GridJob,
  sighting: JobSighting,
  now_s: number,
  { apply, resubmissions_max }: LookTools,
): void {
  const { exit_code, mem_kb, reason, ending } = sighting;
  const run_s = sighting.run_s ?? (job.started_s === null ? null : now_s - job.started_s);
  const campaign = campaignOf(state, job.order.campaign);
  const { cluster } = job.order;
  const { checkpointing = null } = campaign.jdl.clusters.get(cluster) ?? {};
  const checkpoint = checkpointing === null ? null : { period_s: periodOf(checkpointing.pace), data: checkpointing.data };
  const again = {
    resubmissions: campaign.resubmissions.get(job.task) ?? 0,
    resubmissions_max: campaign.jdl.resubmissions_max ?? resubmissions_max,
  };
  const fate = fateOf({ ending, exit_code, reason, run_s, kill: job.kill, cluster, checkpoint, ...again });
  apply({ kind: "job-ended", end: { job, at_s: now_s, exit_code, run_s, mem_kb, reason, fate } });
  const pair = pairOf(campaign, cluster);
  if (pair.paused !== null) return;
  const elsewhere_s = [...campaign.pairs].flatMap(([name, { runs }]) => (name === cluster ? [] : runs));
  const pause = pauseOf({ results: pair.results, errors: pair.errors, runs_s: pair.runs }, elsewhere_s, campaign.jdl.error_budget);
  if (pause === null) return;
  pausePair(campaign.id, cluster, pause, now_s, apply);
}

/** Pauses a campaign on a cluster, with an event that a person closes. */
export function pausePair(
  id: number,
  cluster: string,
  { code, message }: { readonly code: string; readonly message: string },
  at_s: number,
  apply: LookTools["apply"],
): void {
  apply({ kind: "pair-paused", id, cluster, why: message });
  const event = { class: "campaign", code, campaign: id, cluster, job: null, task: null, at_s, message } as const;
  apply({ kind: "event-opened", event, isOpen: true });
}

/** Called when the cluster reports that a waiting job can never run. The campaign pauses there and takes back all its waiting jobs, which may run on other clusters. */
function giveUpPair(state: GridState, { campaign: id, cluster }: GridOrder, text: string, now_s: number, { apply }: LookTools): void {
  const campaign = campaignOf(state, id);
  for (const job of jobsOf(campaign))
    if (job.order.cluster === cluster && job.started_s === null && job.kill === null) apply({ kind: "job-ending", job, why: "excess" });
  if (pairOf(campaign, cluster).paused !== null) return;
  pausePair(id, cluster, { code: "IMPOSSIBLE", message: `the cluster can never run these jobs: ${text}` }, now_s, apply);
}

/** Returns the acknowledged jobs of a cluster. If the cluster is asked now, its list has all these jobs except those that have ended. */
export function jobsThere(state: GridState, cluster: string): Set<GridJob> {
  const jobs = new Set<GridJob>();
  for (const order of state.orders.values())
    if (order.cluster === cluster) for (const job of order.jobs.values()) if (job.remote_id !== null) jobs.add(job);
  return jobs;
}

// `partita sim --grid`: the cycles of the grid (src/grid/cycle) over simulated clusters with local users, on a virtual clock. With
// the same scenario and policy, everything happens in the same way.
//
// A cycle looks at the clusters, plans, takes jobs back and submits jobs. Between cycles only the clusters act.

import { type GridPolicy, gridCycle } from "#grid/cycle/grid-cycle.ts";
import { endOf, WINDOW_S } from "#grid/plan/forecast.ts";
import type { Launch } from "#grid/plan/launches.ts";
import type { CampaignView, ClusterView } from "#grid/shapes/universe.ts";
import type { TraceJob } from "#replay/trace.ts";
import { nth, present } from "#support/assert.ts";
import { prng } from "#support/prng.ts";
import { CampaignModel } from "./campaign-model.ts";
import { ClusterModel, type GridJob, type GridJobEnd } from "./cluster-model.ts";
import { type CampaignSpec, campaignsOf, type GridScenario } from "./grid-scenario.ts";

/** A moment of a run: slots of all clusters in use. */
export type Sample = { readonly at_s: number; readonly local: number; readonly grid: number };
export type CampaignReport = {
  readonly name: string;
  readonly user: string;
  readonly tasks: number;
  readonly done: number;
  readonly first_result_s: number | null;
  /** time from its submission to its last result; null: the campaign had not ended when the run ended */
  readonly makespan_s: number | null;
  /** mean of |predicted - real| / real remaining time, of predictions made at a quarter, a half and three quarters of the tasks */
  readonly prediction_error: number | null;
};
export type ClusterReport = {
  readonly name: string;
  /** slot seconds */
  readonly local_s: number;
  readonly grid_s: number;
  readonly wasted_s: number;
  readonly kills: number;
  /** mean number of waiting jobs of campaigns at the beginning of a cycle */
  readonly waiting_mean: number;
  readonly local_wait_mean_s: number;
};
export type GridReport = {
  readonly policy: GridPolicy;
  readonly seconds: number;
  readonly cycles: number;
  readonly taken_back: number;
  /** slot seconds that local users left free while campaigns had work, and the share of them that was used by jobs of campaigns that ended well */
  readonly offered_s: number;
  readonly busy_share: number;
  readonly campaigns: readonly CampaignReport[];
  readonly clusters: readonly ClusterReport[];
  readonly samples: readonly Sample[];
};

const SAMPLES = 400;
/** The half-life of usage: after this time it counts half. */
const USAGE_HALF_S = 86_400;

type Forecasts = { readonly at_s: number; readonly end_s: number }[];

/** A run of one scenario under one policy. */
export class GridSim {
  readonly #scenario: GridScenario;
  readonly #policy: GridPolicy;
  readonly #clusters: Map<string, ClusterModel>;
  readonly #campaigns: readonly CampaignModel[];
  readonly #forecasts: readonly Forecasts[];
  readonly #windows: readonly number[][];
  /** slot seconds that count under fairshare, of users and of campaigns */
  readonly #userUsage = new Map<string, number>();
  readonly #campaignUsage = new Map<number, number>();
  #jobs = 0;
  #takenBack = 0;
  #cycles = 0;
  #offered_s = 0;
  #waitingSum = new Map<string, number>();
  readonly #samples: Sample[] = [];

  /** workloads: the local jobs of each cluster by its name, from time 0 on. */
  constructor(scenario: GridScenario, policy: GridPolicy, workloads: ReadonlyMap<string, readonly TraceJob[]>) {
    this.#scenario = scenario;
    this.#policy = policy;
    this.#clusters = new Map(scenario.clusters.map((spec) => [spec.name, new ClusterModel(spec, workloads.get(spec.name) ?? [])]));
    const specs = new Map(scenario.clusters.map((spec) => [spec.name, spec]));
    this.#campaigns = campaignsOf(scenario).map((campaign, at) => {
      const { jobs, submit_s } = nth(scenario.campaigns, at);
      return new CampaignModel(campaign, jobs, submit_s, policy.predictor, specs);
    });
    this.#forecasts = this.#campaigns.map(() => []);
    this.#windows = this.#campaigns.map(() => []);
  }

  run(): GridReport {
    const { days, cycle_s } = this.#scenario;
    const until_s = Math.round(days * 86_400);
    for (let now_s = 0; now_s <= until_s; now_s += cycle_s) this.#cycle(now_s, until_s);
    return this.#report(until_s);
  }

  #cycle(now_s: number, until_s: number): void {
    for (const cluster of this.#clusters.values()) for (const end of cluster.advance(now_s)) this.#ended(end);
    this.#sample(now_s, until_s);
    const live = this.#campaigns.filter(({ submit_s, isOver }) => submit_s <= now_s && !isOver);
    if (live.length === 0) return;
    this.#cycles++;
    const clusters = new Map<string, ClusterView>();
    for (const [name, { free, spec, localSlots }] of this.#clusters) {
      clusters.set(name, { name, resources: spec.resources, free, isOpen: true });
      this.#offered_s += (spec.resources - localSlots) * this.#scenario.cycle_s;
    }
    const campaigns = live.map((model) => model.view());
    this.#use(campaigns);
    for (const { pairs } of campaigns) for (const [name, { waiting }] of pairs) this.#count(name, waiting.length);
    const plan = gridCycle({ now_s, clusters, campaigns }, this.#policy, this.#standing());
    for (const { campaign, cluster, ratio, tap, take_back } of plan.pairs) {
      const model = nth(this.#campaigns, campaign - 1);
      model.predicted(cluster, ratio, tap, present(clusters.get(cluster), cluster).free);
      const gone = new Set(take_back.map(({ id }) => id));
      if (gone.size > 0) this.#takeBack(model, cluster, gone, now_s);
    }
    for (const launch of plan.launches) this.#launch(launch, present(clusters.get(launch.cluster), launch.cluster).free, now_s);
    for (const cluster of this.#clusters.values()) for (const end of cluster.advance(now_s)) this.#ended(end);
    for (const model of live) this.#forecast(model, now_s);
  }

  #takeBack(model: CampaignModel, cluster: string, ids: ReadonlySet<number>, now_s: number): void {
    const machine = present(this.#clusters.get(cluster), cluster);
    for (const job of model.liveOn(cluster)) {
      if (!ids.has(job.id) || !machine.remove(job, now_s)) continue;
      model.lost(job);
      this.#takenBack++;
    }
  }

  #launch({ campaign, cluster, jobs, copies }: Launch, free: number, now_s: number): void {
    const model = nth(this.#campaigns, campaign - 1);
    const spec = nth(this.#scenario.campaigns, campaign - 1);
    const machine = present(this.#clusters.get(cluster), cluster);
    const tasks: number[] = [];
    for (let taken = 0; taken < jobs; taken++) {
      const task = model.bag.take();
      if (task !== null) tasks.push(task);
    }
    const batch = [...tasks, ...copies].map((task): GridJob => {
      const run_s = Math.max(1, Math.round(runOf(spec, task, this.#scenario.seed) / machine.spec.speed));
      const { resources: width, walltime_s } = spec;
      return { id: ++this.#jobs, campaign, task, cluster, width, run_s, walltime_s, submitted_s: now_s, started_s: null };
    });
    for (const job of batch) machine.submit(job);
    model.submitted(cluster, batch, free);
  }

  #ended({ job, at_s, how }: GridJobEnd): void {
    const model = nth(this.#campaigns, job.campaign - 1);
    if (how === "killed") {
      model.lost(job);
      return;
    }
    const others = model.ended(job, at_s);
    nth(this.#windows, job.campaign - 1).push(at_s);
    for (const other of others ?? []) {
      present(this.#clusters.get(other.cluster), other.cluster).remove(other, at_s);
      model.lost(other);
    }
  }

  #standing(): Parameters<typeof gridCycle>[2] {
    const affinity = new Map<string, Set<string>>();
    for (const { name, users } of this.#scenario.clusters) {
      for (const user of users) affinity.set(user, (affinity.get(user) ?? new Set()).add(name));
    }
    return {
      affinity: (user) => affinity.get(user) ?? NOTHING,
      priority: () => 0,
      userUsage: (user) => this.#userUsage.get(user) ?? 0,
      campaignUsage: ({ id }) => this.#campaignUsage.get(id) ?? 0,
      hasResults: ({ id }) => nth(this.#campaigns, id - 1).done > 0,
    };
  }

  /** Reduces the earlier usage by its half-life. Then adds the usage of the jobs that run now, for the length of one cycle. */
  #use(campaigns: readonly CampaignView[]): void {
    const { cycle_s } = this.#scenario;
    const factor = 0.5 ** (cycle_s / USAGE_HALF_S);
    decay(this.#userUsage, factor);
    decay(this.#campaignUsage, factor);
    for (const { campaign, pairs } of campaigns) {
      let slots = 0;
      for (const [name, { running }] of pairs) slots += running.length * (campaign.clusters.get(name)?.resources ?? 0);
      this.#userUsage.set(campaign.user, (this.#userUsage.get(campaign.user) ?? 0) + slots * cycle_s);
      this.#campaignUsage.set(campaign.id, (this.#campaignUsage.get(campaign.id) ?? 0) + slots * cycle_s);
    }
  }

  /** Notes what was predicted at a quarter, a half and three quarters of the tasks. */
  #forecast(model: CampaignModel, now_s: number): void {
    const at = model.campaign.id - 1;
    const window = nth(this.#windows, at);
    const forecasts = nth(this.#forecasts, at);
    while (window.length > 0 && nth(window, 0) < now_s - WINDOW_S) window.shift();
    if (forecasts.length >= 3 || model.done < ((forecasts.length + 1) * model.tasks) / 4) return;
    const { submit_s: begun_s, tasks, done, live: running, mean_s } = model;
    const end_s = endOf({ begun_s, now_s, remaining: tasks - done, running, mean_s, ended_in_window: window.length });
    if (end_s !== null) forecasts.push({ at_s: now_s, end_s });
  }

  #count(cluster: string, waiting: number): void {
    this.#waitingSum.set(cluster, (this.#waitingSum.get(cluster) ?? 0) + waiting);
  }

  #sample(now_s: number, until_s: number): void {
    if (now_s < (this.#samples.length * until_s) / SAMPLES) return;
    const all = [...this.#clusters.values()];
    const sum = (of: (cluster: ClusterModel) => number): number => all.reduce((total, cluster) => total + of(cluster), 0);
    this.#samples.push({ at_s: now_s, local: sum((cluster) => cluster.localSlots), grid: sum((cluster) => cluster.gridSlots) });
  }

  #report(until_s: number): GridReport {
    const clusters = [...this.#clusters].map(([name, { used }]): ClusterReport => {
      const { local_s, grid_s, wasted_s, kills } = used;
      const waiting_mean = (this.#waitingSum.get(name) ?? 0) / Math.max(1, this.#cycles);
      return {
        name,
        local_s,
        grid_s,
        wasted_s,
        kills,
        waiting_mean,
        local_wait_mean_s: used.local_wait_s / Math.max(1, used.local_started),
      };
    });
    const results_s = clusters.reduce((sum, { grid_s }) => sum + grid_s, 0);
    return {
      policy: this.#policy,
      seconds: until_s,
      cycles: this.#cycles,
      taken_back: this.#takenBack,
      offered_s: this.#offered_s,
      busy_share: this.#offered_s === 0 ? 0 : Math.min(1, results_s / this.#offered_s),
      campaigns: this.#campaigns.map((model, at) => this.#campaignReport(model, nth(this.#forecasts, at))),
      clusters,
      samples: this.#samples,
    };
  }

  #campaignReport({ campaign, tasks, done, submit_s, first_result_s, end_s }: CampaignModel, forecasts: Forecasts): CampaignReport {
    const { name, user } = nth(this.#scenario.campaigns, campaign.id - 1);
    const errors = end_s === null ? [] : forecasts.map((one) => Math.abs(one.end_s - end_s) / Math.max(1, end_s - one.at_s));
    return {
      ...{ name, user, tasks, done },
      first_result_s: first_result_s === null ? null : first_result_s - submit_s,
      makespan_s: end_s === null ? null : end_s - submit_s,
      prediction_error: errors.length === 0 ? null : errors.reduce((sum, error) => sum + error, 0) / errors.length,
    };
  }
}

function decay<Key>(usage: Map<Key, number>, factor: number): void {
  for (const [key, used] of usage) usage.set(key, used * factor);
}

const NOTHING: ReadonlySet<string> = new Set();

/** Returns the run time of a task. It depends only on scenario, campaign and task, so that policies are compared on equal work. */
function runOf({ name, run_s }: CampaignSpec, task: number, seed: number | string): number {
  if (typeof run_s === "number") return run_s;
  const [low, high] = run_s;
  return prng(`${seed}/${name}/${task}`).int(low, high);
}

// A campaign in the simulated grid: its bag, its live jobs on each cluster, and what is counted for the report.

import { firstRatio, type PredictorName } from "#grid/plan/prediction.ts";
import { newTap, tapAfterBatch } from "#grid/plan/tap.ts";
import { TaskBag } from "#grid/plan/task-bag.ts";
import type { Campaign } from "#grid/shapes/campaign.ts";
import type { Batch, CampaignView, LiveJob, PairView, Tap } from "#grid/shapes/universe.ts";
import { present } from "#support/assert.ts";
import type { GridJob } from "./cluster-model.ts";
import type { ClusterSpec } from "./grid-scenario.ts";

/** The state of a campaign on a cluster. */
type Pair = {
  ratio: number;
  batch: Batch | null;
  tap: Tap;
  readonly live: Set<GridJob>;
  /** the jobs of the last batch */
  batch_jobs: readonly GridJob[];
  results: number;
  results_run_s: number;
};

export class CampaignModel {
  readonly campaign: Campaign;
  readonly tasks: number;
  readonly submit_s: number;
  readonly bag: TaskBag;
  done = 0;
  first_result_s: number | null = null;
  end_s: number | null = null;
  readonly #pairs = new Map<string, Pair>();
  readonly #isDone: Uint8Array;
  /** the live jobs of each task that has any */
  readonly #lives = new Map<number, Set<GridJob>>();

  constructor(campaign: Campaign, tasks: number, submit_s: number, predictor: PredictorName, clusters: ReadonlyMap<string, ClusterSpec>) {
    this.campaign = campaign;
    // A test campaign has one job for each cluster.
    this.tasks = campaign.kind === "test" ? Math.min(tasks, campaign.clusters.size) : tasks;
    this.submit_s = submit_s;
    this.bag = new TaskBag(this.tasks);
    this.#isDone = new Uint8Array(this.tasks);
    for (const [name, { resources }] of campaign.clusters) {
      const ratio = firstRatio(predictor, present(clusters.get(name), name).resources, resources);
      this.#pairs.set(name, { ratio, batch: null, tap: newTap(), live: new Set(), batch_jobs: [], results: 0, results_run_s: 0 });
    }
  }

  get isOver(): boolean {
    return this.done === this.tasks;
  }

  get live(): number {
    let sum = 0;
    for (const { live } of this.#pairs.values()) sum += live.size;
    return sum;
  }

  /** Returns the mean run time of the jobs that ended well; 0: none has. */
  get mean_s(): number {
    const pairs = [...this.#pairs.values()];
    const results = pairs.reduce((sum, pair) => sum + pair.results, 0);
    return results === 0 ? 0 : pairs.reduce((sum, pair) => sum + pair.results_run_s, 0) / results;
  }

  view(): CampaignView {
    const pairs = new Map<string, PairView>();
    for (const [name, { ratio, batch, tap, live, batch_jobs, results, results_run_s }] of this.#pairs) {
      const waiting: LiveJob[] = [];
      const running: LiveJob[] = [];
      for (const job of live) (job.started_s === null ? waiting : running).push(job);
      const started = batch_jobs.filter(({ started_s }) => started_s !== null);
      const of_batch = { batch_running: started.filter((job) => live.has(job)).length, batch_started: started.length };
      pairs.set(name, { ratio, batch, tap, waiting, running, ...of_batch, results, results_run_s });
    }
    return { campaign: this.campaign, tasks_left: this.bag.size, pairs };
  }

  liveOn(cluster: string): readonly GridJob[] {
    return [...this.#pair(cluster).live];
  }

  /** Sets the ratio and the tap of this cycle. The last batch is then empty until submitted() is called. */
  predicted(cluster: string, ratio: number, tap: Tap, free: number): void {
    const pair = this.#pair(cluster);
    pair.ratio = ratio;
    pair.tap = tap;
    pair.batch = { submitted: 0, free };
    pair.batch_jobs = [];
  }

  submitted(cluster: string, jobs: readonly GridJob[], free: number): void {
    const pair = this.#pair(cluster);
    pair.batch = { submitted: jobs.length, free };
    pair.batch_jobs = jobs;
    pair.tap = tapAfterBatch(pair.tap, jobs.length);
    for (const job of jobs) {
      pair.live.add(job);
      let lives = this.#lives.get(job.task);
      if (lives === undefined) this.#lives.set(job.task, (lives = new Set()));
      lives.add(job);
    }
  }

  /** Called when a job has ended, or was taken back, without a result. Returns its task to the bag unless the task is done or has another job. */
  lost(job: GridJob): void {
    this.#gone(job);
    if (this.#isDone[job.task] === 0 && !this.#lives.has(job.task)) this.bag.giveBack(job.task);
  }

  /** Called when a job has ended well. Returns the other jobs of its task, which must now be ended. null: another job of the task has ended well before. */
  ended(job: GridJob, at_s: number): readonly GridJob[] | null {
    this.#gone(job);
    if (this.#isDone[job.task] === 1) return null;
    this.#isDone[job.task] = 1;
    this.done++;
    this.first_result_s ??= at_s;
    if (this.isOver) this.end_s = at_s;
    const pair = this.#pair(job.cluster);
    pair.results++;
    pair.results_run_s += job.run_s;
    return [...(this.#lives.get(job.task) ?? [])];
  }

  #gone(job: GridJob): void {
    this.#pair(job.cluster).live.delete(job);
    const lives = this.#lives.get(job.task);
    lives?.delete(job);
    if (lives?.size === 0) this.#lives.delete(job.task);
  }

  #pair(cluster: string): Pair {
    return present(this.#pairs.get(cluster), cluster);
  }
}

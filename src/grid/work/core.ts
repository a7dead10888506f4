// The core of pbs_grid: the state, and the work to do on each cluster. The shell (../shell) asks the core for work, does the work, and reports the results to the core. Pure.

import type { Owner } from "#backends/contract/backend.ts";
import type { Capacity, JobBatch, JobRef, JobSighting } from "#backends/contract/cluster.ts";
import { lostJob } from "#backends/contract/cluster-jobs.ts";
import { makeTag } from "#backends/contract/tag.ts";
import type { Batch } from "#store/store.ts";
import { present } from "#support/assert.ts";
import type { GridPolicy } from "../cycle/grid-cycle.ts";
import { type GridSettings, SETTINGS_DEFAULT } from "../shapes/settings.ts";
import { apply, campaignOf, type Dirty, type GridEvent, nothingDirty } from "../state/event.ts";
import { type CampaignRecord, type GridJob, type GridOrder, type GridState, isOpen, jobsOf } from "../state/grid-state.ts";
import { batchOf } from "../state/rows.ts";
import { jobText } from "./job-text.ts";
import { endJob, type Look, type LookTools, look, pausePair } from "./looking.ts";
import { isSettled, planCycle } from "./planning.ts";

export type CoreOptions = {
  readonly state: GridState;
  readonly policy: GridPolicy;
  /** the grid's key in tags */
  readonly key: string;
  /** user mode: the user of the grid; null: system mode */
  readonly user: string | null;
  /** time that released jobs have to start before they count as waiting */
  readonly settle_s: number;
};

/** If a job has not ended this long after it was told to end, it is told again. */
const KILL_AGAIN_S = 30;
/** If a cluster cannot say within this time how a job ended, the job counts as lost. */
const UNKNOWN_S_MAX = 120;

export class GridCore {
  readonly state: GridState;
  readonly user: string | null;
  /** the administrator's settings, which the shell reads again before each request */
  settings: GridSettings = SETTINGS_DEFAULT;
  readonly #options: CoreOptions;
  #dirty: Dirty = nothingDirty();
  #is_dirty = false;
  /** jobs that a cluster takes in one submission */
  readonly #jobs_max = new Map<string, number>();
  readonly #killed = new WeakMap<GridJob, number>();
  /** for jobs that have vanished from the list of their cluster: the time from which on the grid has asked how they ended */
  readonly #vanished = new WeakMap<GridJob, number>();

  constructor(options: CoreOptions) {
    this.#options = options;
    this.state = options.state;
    this.user = options.user;
  }

  /** Changes the state. Returns the number that the event has given (event.ts). */
  readonly apply = (event: GridEvent): number => {
    this.#is_dirty = event.kind !== "cluster-seen" && event.kind !== "order-begun" ? true : this.#is_dirty;
    return apply({ state: this.state, dirty: this.#dirty, predictor: this.#options.policy.predictor }, event);
  };

  /** Returns the rows that have changed since the last call; null: none. */
  takeBatch(): Batch | null {
    if (!this.#is_dirty) return null;
    const batch = batchOf(this.state, this.#dirty);
    this.#dirty = nothingDirty();
    this.#is_dirty = false;
    return batch;
  }

  setJobsMax(cluster: string, jobs: number): void {
    this.#jobs_max.set(cluster, jobs);
  }

  /** Returns the name of a user on a cluster. */
  readonly remoteUser = (user: string, cluster: string): string => this.user ?? this.state.clusters.get(cluster)?.mapping[user] ?? user;

  /** Returns the orders of a cluster that must be submitted, the oldest first. */
  toSubmit(cluster: string): readonly GridOrder[] {
    for (const order of [...this.state.orders.values()]) {
      const is_needless =
        order.cluster === cluster && order.state === "recorded" && !order.is_begun && !isOpen(campaignOf(this.state, order.campaign));
      if (is_needless) this.apply({ kind: "order-refused", serial: order.serial });
    }
    return this.#ordersIn(cluster, "recorded");
  }

  /** Returns the orders of a cluster whose jobs are held and may be released now. */
  toRelease(cluster: string): readonly GridOrder[] {
    return this.#ordersIn(cluster, "acknowledged");
  }

  #ordersIn(cluster: string, state: GridOrder["state"]): GridOrder[] {
    return [...this.state.orders.values()].filter((order) => order.cluster === cluster && order.state === state);
  }

  /** Returns the batch to submit for an order. isFirst: no submission of the order was begun before. owner: the user of the order on the cluster; null: user mode. */
  batchFor(order: GridOrder, isFirst: boolean, owner: Owner | null): JobBatch {
    const campaign = campaignOf(this.state, order.campaign);
    const on = present(campaign.jdl.clusters.get(order.cluster), "cluster of a campaign");
    return {
      tag: order.tag,
      isFirst,
      owner,
      jobs: [...order.jobs.values()].map((job) => jobText(campaign, job, on)),
      resources: on.request,
      walltime_s: on.walltime_s,
      best_effort: on.best_effort,
      project: on.project,
      queue: on.queue,
      job_type: on.job_type,
      properties: on.properties,
    };
  }

  /** Returns the jobs of a cluster that must end. waiting: jobs that must end only if they still wait. all: jobs that must end in any state. */
  toKill(cluster: string, now_s: number): { readonly waiting: readonly JobRef[]; readonly all: readonly JobRef[] } {
    const waiting: JobRef[] = [];
    const all: JobRef[] = [];
    for (const order of this.state.orders.values()) {
      if (order.cluster !== cluster) continue;
      for (const job of order.jobs.values()) {
        const asked_s = this.#killed.get(job);
        if (job.kill === null || job.remote_id === null || (asked_s !== undefined && now_s - asked_s < KILL_AGAIN_S)) continue;
        (job.kill === "excess" ? waiting : all).push(refOf(job, job.remote_id));
        this.#killed.set(job, now_s);
      }
    }
    return { waiting, all };
  }

  /** Updates the state from the answer of a cluster. known: the jobs that were acknowledged when the cluster was asked. */
  seen(
    cluster: string,
    shown: { readonly jobs: readonly JobSighting[]; readonly capacity: Capacity; readonly text: string },
    known: ReadonlySet<GridJob>,
    now_s: number,
  ): Look {
    const { total, free } = shown.capacity;
    this.apply({ kind: "cluster-seen", name: cluster, sight: { seen_s: now_s, total, free, text: shown.text, fault: null } });
    return look(this.state, cluster, shown.jobs, known, now_s, this.#lookTools);
  }

  /** Records that a cluster does not answer, or gives a wrong answer. */
  failed(cluster: string, fault: string, now_s: number): void {
    const before = this.state.sights.get(cluster);
    const sight = { seen_s: now_s, total: before?.total ?? 0, free: 0, text: before?.text ?? "", fault };
    if (before?.fault === null || before === undefined) this.#tellCluster(cluster, fault, now_s);
    this.apply({ kind: "cluster-seen", name: cluster, sight });
  }

  #tellCluster(cluster: string, message: string, at_s: number): void {
    const event = { class: "cluster", code: "CLUSTER_DOWN", campaign: null, cluster, job: null, task: null, at_s, message } as const;
    this.apply({ kind: "event-opened", event, isOpen: false });
  }

  /** Records that a cluster can never run the jobs of an order. The campaign pauses there. */
  refused({ campaign, cluster }: GridOrder, message: string, at_s: number): void {
    pausePair(campaign, cluster, { code: "RUNNER_SUBMIT_ERROR", message }, at_s, this.apply);
  }

  get #lookTools(): LookTools {
    return { apply: this.apply, resubmissions_max: this.settings.resubmissions_max };
  }

  /** Records how jobs ended that had vanished from the list of their cluster. */
  ended(jobs: readonly GridJob[], outcomes: readonly JobSighting[], now_s: number): void {
    const by_id = new Map(outcomes.map((each) => [each.id, each]));
    for (const job of jobs) {
      const sighting = by_id.get(job.remote_id ?? "");
      if (sighting?.state === "ended" && sighting.ending !== null) {
        endJob(this.state, job, sighting, now_s, this.#lookTools);
        continue;
      }
      // The cluster does not know yet how the job ended. It is asked again, for at most UNKNOWN_S_MAX.
      const since_s = this.#vanished.get(job) ?? now_s;
      this.#vanished.set(job, since_s);
      if (now_s - since_s > UNKNOWN_S_MAX && job.remote_id !== null)
        endJob(this.state, job, lostJob(refOf(job, job.remote_id)), now_s, this.#lookTools);
    }
  }

  /** Runs a cycle for a cluster that has just answered, unless orders are being submitted there or released jobs have not had time to start. */
  plan(cluster: string, now_s: number): void {
    if (!isSettled(this.state, cluster, now_s, this.#options.settle_s)) return;
    planCycle(this.state, [cluster], now_s, {
      apply: this.apply,
      policy: this.#options.policy,
      tag: (backend, serial) => makeTag({ complex: this.#options.key, backend, serial }),
      remoteUser: this.remoteUser,
      jobsMax: (name) => this.#jobs_max.get(name) ?? 1,
    });
  }

  /** Ends campaigns that have nothing left to do. */
  finish(now_s: number): void {
    for (const campaign of this.state.campaigns.values())
      if (isOpen(campaign) && campaign.bag.size === 0 && campaign.lives.size === 0 && campaign.failed === 0)
        this.#terminate(campaign, now_s);
  }

  #terminate({ id, tasks }: CampaignRecord, at_s: number): void {
    this.apply({ kind: "campaign-state", id, state: "terminated", at_s });
    const none = { cluster: null, job: null, task: null } as const;
    const message = `all of its ${tasks} tasks are done or given up`;
    this.apply({
      kind: "event-opened",
      event: { class: "notify", code: "CAMPAIGN_TERMINATED", campaign: id, ...none, at_s, message },
      isOpen: false,
    });
  }

  /** Cancels a campaign: nothing more is submitted, and its jobs are ended. */
  cancel(campaign: CampaignRecord, now_s: number): void {
    this.apply({ kind: "campaign-state", id: campaign.id, state: "cancelled", at_s: now_s });
    for (const job of jobsOf(campaign)) this.apply({ kind: "job-ending", job, why: "deleted" });
  }

  /** Whether a cluster has live jobs or could get some, so that it must be asked often. */
  isBusy(cluster: string): boolean {
    for (const order of this.state.orders.values()) if (order.cluster === cluster) return true;
    for (const campaign of this.state.campaigns.values())
      if (campaign.state === "in_treatment" && campaign.bag.size > 0 && campaign.pairs.has(cluster)) return true;
    return false;
  }
}

export const refOf = ({ order, index }: GridJob, id: string): JobRef => ({ tag: order.tag, index, id, user: order.remote_user });

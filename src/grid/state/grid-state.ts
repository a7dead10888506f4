// The state of pbs_grid as data: clusters, campaigns, orders with their live jobs, and events. event.ts changes the state, rows.ts stores it. Pure.
//
// G1. A task is in exactly one of these conditions: in the bag (not taken yet, or returned), the task of one or more live jobs, the task of an open event, or done.
// G2. There is no object for each waiting task: the bag has the number of the first one, and the parameters are one text with positions.

import type { CampaignState } from "#protocol/grid-messages.ts";
import type { ClusterFacts, Jdl } from "../jdl/jdl.ts";
import type { Parameters } from "../jdl/parameters.ts";
import type { TaskBag } from "../plan/task-bag.ts";
import type { Campaign } from "../shapes/campaign.ts";
import type { EventRecord, Subscription } from "../shapes/event-record.ts";
import type { Batch, Tap } from "../shapes/universe.ts";

/** A cluster with the settings that gridclusters has made. */
export type ClusterRecord = ClusterFacts & {
  readonly options: Readonly<Record<string, string>>;
  /** users whose campaigns prefer the cluster */
  readonly users: readonly string[];
  /** names on the cluster of the grid's users; a user without an entry has the same name on both */
  readonly mapping: Readonly<Record<string, string>>;
  readonly is_enabled: boolean;
};

/** What the last query of a cluster has returned. Not stored. */
export type ClusterSight = {
  readonly seen_s: number;
  readonly total: number;
  readonly free: number;
  /** the cluster's version */
  readonly text: string;
  /** what is wrong; null: the cluster has answered */
  readonly fault: string | null;
};

/** A campaign on one of its clusters. */
export type PairRecord = {
  ratio: number;
  tap: Tap;
  batch: Batch | null;
  /** the serial of the last order, whose jobs are the last batch; 0: none */
  last_order: number;
  /** of the last order: jobs that have started (not stored) */
  started: Set<number>;
  results: number;
  results_run_s: number;
  errors: number;
  /** the reason for which the campaign pauses there although the cluster is open; null: it does not pause */
  paused: string | null;
  /** run times of the last results since the campaign began or continued here */
  runs: readonly number[];
  /** times at which jobs ended successfully in the last hour, for the throughput (not stored) */
  ends: number[];
};

export type CampaignRecord = {
  readonly id: number;
  readonly user: string;
  readonly jdl: Jdl;
  readonly jdl_text: string;
  readonly kind_given: "test" | "default" | null;
  /** the facts of the clusters when the campaign was submitted: the JDL is read with them again at every start */
  readonly facts: readonly ClusterFacts[];
  parameters: Parameters;
  readonly plan: Campaign;
  readonly submitted_s: number;
  ended_s: number | null;
  state: CampaignState;
  /** tasks of the campaign: for a test campaign, at most one for each cluster */
  tasks: number;
  bag: TaskBag;
  done: number;
  /** tasks in open events */
  failed: number;
  readonly pairs: Map<string, PairRecord>;
  /** how often tasks that have no result yet ran again on their own; tasks that never did are not in it */
  readonly resubmissions: Map<number, number>;
  /** live jobs by task (copies have the same task); not stored, follows from the orders */
  readonly lives: Map<number, Set<GridJob>>;
};

/** A job that was ordered and has not ended. */
export type GridJob = {
  /** unique in the grid: CIGRI_JOB_ID */
  readonly id: number;
  readonly task: number;
  /** index in the order */
  readonly index: number;
  readonly order: GridOrder;
  /** the cluster's name of the job; null: the submission is not acknowledged */
  remote_id: string | null;
  /** epoch seconds; null: it has not been seen to run. Not stored: after a start of the daemon, the next query of the cluster shows it again */
  started_s: number | null;
  /** the reason for which the job must end; null: it need not end. excess: the job is ended only if it still waits */
  kill: "excess" | "copy" | "deleted" | null;
  /** whether the job was started as a second job of its task */
  readonly is_copy: boolean;
};

/** Jobs that are submitted together. recorded: a submission may have happened. acknowledged: ids are known, jobs are held. released: jobs may start. */
export type GridOrder = {
  readonly serial: number;
  readonly tag: string;
  readonly campaign: number;
  readonly cluster: string;
  /** the name of the campaign's user on the cluster */
  readonly remote_user: string;
  readonly ordered_s: number;
  /** the number of jobs when the order was made */
  readonly size: number;
  state: "recorded" | "acknowledged" | "released";
  /** whether a submission was begun by this process or an earlier one (not stored: true after a start) */
  is_begun: boolean;
  /** the jobs that have not ended, by index */
  readonly jobs: Map<number, GridJob>;
};

export type GridState = {
  readonly clusters: Map<string, ClusterRecord>;
  readonly sights: Map<string, ClusterSight>;
  readonly campaigns: Map<number, CampaignRecord>;
  readonly orders: Map<number, GridOrder>;
  readonly events: Map<number, EventRecord>;
  /** by keyOf() */
  readonly subscriptions: Map<string, Subscription>;
  readonly counters: { campaign: number; job: number; order: number; event: number };
  /** recent usage of users and campaigns, in resource seconds; older usage counts less (not stored) */
  readonly used: { readonly users: Map<string, number>; readonly campaigns: Map<number, number>; at_s: number };
};

export const emptyState = (): GridState => ({
  clusters: new Map(),
  sights: new Map(),
  campaigns: new Map(),
  orders: new Map(),
  events: new Map(),
  subscriptions: new Map(),
  counters: { campaign: 1, job: 1, order: 1, event: 1 },
  used: { users: new Map(), campaigns: new Map(), at_s: 0 },
});

/** Returns the key of a subscription: a user has at most one for each address. */
export const keyOf = ({ user, method, address }: Pick<Subscription, "user" | "method" | "address">): string =>
  `${user} ${method} ${address}`;

/** Whether a campaign still needs cycles. */
export const isOpen = ({ state }: CampaignRecord): boolean => state === "in_treatment" || state === "paused";

/** Returns the live jobs of a campaign. */
export function* jobsOf({ lives }: CampaignRecord): Generator<GridJob> {
  for (const jobs of lives.values()) yield* jobs;
}

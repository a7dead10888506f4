// The requests of the grid's commands to pbs_grid, as types. Their schemas are in schema-grid.ts. Each request is an action on one kind of object, so that a web
// interface can offer the same actions. Pure: types only.

/** Which rows of a list are wanted. */
export type GridPage = { readonly limit?: number; readonly offset?: number };

/** Submits a campaign: the text of its JDL. parameters: the text of the file that param_file names, which the command has read as its user. */
export type GridSubmit = {
  readonly kind: "grid-submit";
  readonly jdl: string;
  readonly type?: "test" | "default";
  readonly parameters?: string;
};
/** Adds parameters to a campaign that has not ended. */
export type GridAddJobs = { readonly kind: "grid-add-jobs"; readonly campaign: number; readonly parameters: string };
/** Lists campaigns. campaigns: only these. */
export type GridCampaigns = { readonly kind: "grid-campaigns"; readonly campaigns?: readonly number[]; readonly user?: string } & GridPage;
/** Lists the jobs of a campaign: those that live, then those that have ended. */
export type GridJobs = { readonly kind: "grid-jobs"; readonly campaign: number } & GridPage;
export type GridJdl = { readonly kind: "grid-jdl"; readonly campaign: number };
/** hold: nothing more is submitted. release: continues. delete: ends the campaign and its jobs. */
export type GridChange = {
  readonly kind: "grid-change";
  readonly campaigns: readonly number[];
  readonly action: "hold" | "release" | "delete";
};
/** Lists events. closed: also those that were fixed. */
export type GridEvents = { readonly kind: "grid-events"; readonly campaign?: number; readonly closed?: boolean } & GridPage;
/** Fixes an event, or all events of a campaign. resubmit: the tasks of these events run again. */
export type GridFix = { readonly kind: "grid-fix"; readonly event?: number; readonly campaign?: number; readonly resubmit: boolean };
export type GridClusters = { readonly kind: "grid-clusters" };
export type GridClusterAdd = {
  readonly kind: "grid-cluster-add";
  readonly name: string;
  readonly type: string;
  readonly options: Readonly<Record<string, string>>;
  /** users whose campaigns prefer the cluster */
  readonly users: readonly string[];
  /** names of the grid's users on the cluster */
  readonly mapping: Readonly<Record<string, string>>;
  readonly resources?: string;
};
/** disable: nothing more is submitted there. */
export type GridClusterChange = {
  readonly kind: "grid-cluster-change";
  readonly name: string;
  readonly action: "remove" | "enable" | "disable";
};

/** Where somebody wants to be told about events, and from which severity on. */
export type GridSubscription = {
  readonly method: "mail" | "webhook";
  /** a mail address, or a URL to which JSON is posted */
  readonly address: string;
  readonly severity: "low" | "medium" | "high";
};
/** Lists the subscriptions of the user; of all users, if a manager asks. */
export type GridSubscriptions = { readonly kind: "grid-subscriptions" };
/** Adds a subscription, or changes its severity. */
export type GridSubscribe = { readonly kind: "grid-subscribe" } & GridSubscription;
export type GridUnsubscribe = { readonly kind: "grid-unsubscribe" } & Omit<GridSubscription, "severity">;

export type GridRequest =
  | GridSubmit
  | GridAddJobs
  | GridCampaigns
  | GridJobs
  | GridJdl
  | GridChange
  | GridEvents
  | GridFix
  | GridClusters
  | GridClusterAdd
  | GridClusterChange
  | GridSubscriptions
  | GridSubscribe
  | GridUnsubscribe;

/** The names of the states of a campaign, and of its jobs. */
export type CampaignState = "in_treatment" | "paused" | "cancelled" | "terminated";
export type GridJobState = "to_launch" | "launching" | "submitted" | "remote_waiting" | "running" | "terminated" | "event";

/** A campaign on one of its clusters, as grid-campaigns shows it. */
export type GridPairView = {
  readonly cluster: string;
  readonly waiting: number;
  readonly running: number;
  readonly terminated: number;
  readonly average_s: number | null;
  readonly job_ratio: number;
  /** jobs an hour, over the last hour */
  readonly throughput: number;
  readonly state: "open" | "paused" | "down" | "unknown";
  /** why nothing is submitted there; null: something may be */
  readonly why: string | null;
};

/** A campaign, as grid-campaigns shows it. Times are epoch seconds. */
export type GridCampaignView = {
  readonly id: number;
  readonly name: string;
  readonly user: string;
  readonly type: "test" | "default";
  readonly state: CampaignState;
  readonly submission_time: number;
  readonly end_time: number | null;
  readonly total_jobs: number;
  readonly finished_jobs: number;
  readonly running_jobs: number;
  readonly waiting_jobs: number;
  readonly unsubmitted_jobs: number;
  readonly event_jobs: number;
  readonly open_events: number;
  readonly average_s: number | null;
  readonly throughput: number;
  /** when the campaign is expected to end; null: unknown */
  readonly estimated_end: number | null;
  readonly clusters: readonly GridPairView[];
};

export type GridJobView = {
  readonly id: number;
  readonly campaign: number;
  readonly parameters: string;
  readonly state: GridJobState;
  readonly cluster: string;
  readonly remote_id: string | null;
  readonly submission_time: number | null;
  readonly start_time: number | null;
  readonly stop_time: number | null;
  readonly exit_code: number | null;
  readonly run_s: number | null;
  /** the cluster's words; "": none */
  readonly message: string;
};

export type GridEventView = {
  readonly id: number;
  readonly class: "cluster" | "job" | "campaign" | "notify" | "log";
  readonly code: string;
  readonly state: "open" | "closed";
  readonly campaign: number | null;
  readonly cluster: string | null;
  readonly job: number | null;
  readonly time: number;
  readonly message: string;
};

export type GridClusterView = {
  readonly name: string;
  readonly type: string;
  readonly state: "up" | "down" | "unknown" | "disabled";
  readonly resources: number | null;
  readonly free: number | null;
  readonly campaigns_running: number;
  readonly campaigns_waiting: number;
  readonly users: readonly string[];
  readonly options: Readonly<Record<string, string>>;
  /** in the cluster's words: its version, or what is wrong */
  readonly text: string;
};

/** A subscription, as grid-subscriptions shows it. The path of another user's webhook is left out, because it is often a secret. */
export type GridSubscriptionView = GridSubscription & { readonly user: string };

// The answers to the requests `view-runners` (`partita runners`) and `confirm-dead`.

/** A backend: what it was asked for, what it gave, and what it said. */
export type BackendView = {
  readonly backend: string;
  readonly type: string;
  readonly partition: string;
  readonly state: string;
  readonly max_runners: number;
  readonly asked: number;
  readonly idle: number;
  readonly busy: number;
  readonly lost: number;
  readonly last_error: string | null;
  /** epoch seconds */
  readonly last_error_s: number | null;
};

/** How many jobs of one bucket wait for a runner and are kept back by no limit. */
export type DemandView = { readonly bucket: string; readonly partition: string; readonly jobs: number };

export type RunnerView = {
  readonly runner: string;
  readonly backend: string;
  /** its id in the backend; null: not known yet */
  readonly backend_id: string | null;
  /** asked, idle, busy or lost */
  readonly state: string;
  /** "": the user may not see it */
  readonly bucket: string;
  /** what the backend says about it while it waits; "": nothing */
  readonly reason: string;
  readonly jobs: readonly string[];
  /** asked_s: when the backend was asked for it. end_s: when its walltime ends; null: it has not connected. Epoch seconds */
  readonly asked_s: number;
  readonly end_s: number | null;
};

export type RunnersView = {
  readonly backends: readonly BackendView[];
  readonly waiting: readonly DemandView[];
  readonly runners: readonly RunnerView[];
};

/** The answer travels in pieces: each item of a part is one of these. The value of the reply is what is left of the view: the backends. */
export type RunnersItem = { readonly waiting: DemandView } | { readonly runner: RunnerView };
export type RunnersRest = Pick<RunnersView, "backends">;

/** confirmed: the runners that count as dead now. */
export type ConfirmedDead = { readonly confirmed: readonly string[] };

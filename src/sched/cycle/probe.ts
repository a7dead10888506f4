// A probe shows the state of a cycle when the turn of a job comes. The cycle runs as usual up to that job, hands over what it knows about the
// job, and ends. Nothing is decided (explain/explain.ts).

import type { Why } from "#protocol/sched-link.ts";
import type { PlaceContext } from "../place/placement.ts";
import type { JobEntry } from "../shapes/job-line.ts";
import type { Candidate, Cycle } from "../shapes/module.ts";

/** The state of a cycle at a job's turn. */
export type Turn = {
  /** the reason, if the job is not tried because a job of its class is blocked, or because some job holds back all jobs behind it; null: the job is tried */
  readonly known: Why | null;
  readonly candidate: Candidate;
  /** the job in its line; for a subjob, its array */
  readonly entry: JobEntry;
  /** the input that placement would get, besides the request and the vnodes */
  readonly context: PlaceContext;
};

export type Probe = {
  readonly job: string;
  look(cycle: Cycle, turn: Turn): void;
};

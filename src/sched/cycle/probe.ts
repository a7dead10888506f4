// A look into a cycle at a job's turn: the cycle runs as usual up to that job and hands over its knowledge about it; then it ends. Nothing is
// decided (explain/explain.ts).

import type { Why } from "#protocol/sched-link.ts";
import type { PlaceContext } from "../place/placement.ts";
import type { JobEntry } from "../shapes/job-line.ts";
import type { Candidate, Cycle } from "../shapes/module.ts";

/** The state of a cycle at a job's turn. */
export type Turn = {
  /** why the job is not tried: equal jobs, or all jobs behind some job, are held back. null: it is tried */
  readonly known: Why | null;
  readonly candidate: Candidate;
  /** the job in its line; for a subjob its array */
  readonly entry: JobEntry;
  /** the context that placement would get */
  readonly context: PlaceContext;
};

export type Probe = {
  readonly job: string;
  look(cycle: Cycle, turn: Turn): void;
};

// A look into a cycle at a job's turn: the cycle runs as ever up to that job and hands over what it would know about it; then it ends. Nothing of it is
// decided (explain.ts).

import type { Why } from "#protocol/sched-link.ts";
import type { Candidate, Cycle } from "./module.ts";
import type { PlaceContext } from "./placement.ts";
import type { JobEntry } from "./universe.ts";

/** What a cycle knows at a job's turn. */
export type Turn = {
  /** why it is not looked at: jobs like it, or all after some job, are held back. null: it is */
  readonly known: Why | null;
  readonly candidate: Candidate;
  /** the job in its line; of a subjob its array */
  readonly entry: JobEntry;
  /** how placement would be asked */
  readonly context: PlaceContext;
};

export type Probe = {
  readonly job: string;
  look(cycle: Cycle, turn: Turn): void;
};

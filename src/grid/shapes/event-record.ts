// Events, and who is told about them, as data. Pure: types only.

import type { GridSubscription } from "#protocol/grid-messages.ts";

/** What went wrong or is worth knowing. open: a person must decide. */
export type EventRecord = {
  readonly id: number;
  readonly class: "cluster" | "job" | "campaign" | "notify" | "log";
  readonly code: string;
  readonly campaign: number | null;
  readonly cluster: string | null;
  readonly job: number | null;
  /** the task that waits for a decision; null: none */
  readonly task: number | null;
  readonly at_s: number;
  readonly message: string;
  state: "open" | "closed";
};

/** What somebody wants to be told (gridnotify). is_manager: also events of clusters. next_event: the first event that was not told yet. */
export type Subscription = GridSubscription & { readonly user: string; readonly is_manager: boolean; readonly next_event: number };

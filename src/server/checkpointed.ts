// Jobs that were saved by their mom and wait for a run that goes on from there (pbs/mom.md 5): which host has the checkpoint.

import type { Job } from "./state.ts";
import type { Transaction } from "./transaction.ts";

/** A checkpoint that waits on its host is of no use any more. */
export function discardCheckpoint(tx: Transaction, job: Job): void {
  const host = checkpointHost(job);
  if (host !== undefined) tx.act({ kind: "discard-checkpoint", job: job.id, host });
}

/** Where the checkpoint is from which the job will go on. */
export const checkpointHost = (job: Job): string | undefined => job.attrs["checkpointed"] as string | undefined;

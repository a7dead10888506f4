// Files that a host keeps for the next run of a job (docs/reference/execution.md 5): the checkpoint from which the job will
// restart, and the output of its previous run.

import type { Transaction } from "../engine/transaction.ts";
import { hostsOfJob } from "../state/job-hosts.ts";
import type { Job } from "../state/state.ts";

/** If a host has a checkpoint of the job, tells the host to delete it. */
export function discardCheckpoint(tx: Transaction, job: Job): void {
  const host = checkpointHost(job);
  if (host !== undefined) tx.act({ kind: "discard-on-host", job: job.id, host });
}

/**
 * If a host keeps output for the next run of the job, tells the host to delete it. Called when there will be no next run, or
 * when another host keeps newer output. The run on that host may also have ended before the mom had confirmed its start.
 */
export function discardOutput(tx: Transaction, job: Job): void {
  const host = job.own.output_on;
  if (host !== undefined) tx.act({ kind: "discard-on-host", job: job.id, host });
}

/**
 * Deletes the job's checkpoint if it is on a host that has no part in the present run. (The run has started from the
 * beginning.) On a host that has a part, the files stay, here and in discardOutputElsewhere, because the order to delete
 * them would end the run there; at its next hello the host reports the files that it still keeps.
 */
export function discardCheckpointElsewhere(tx: Transaction, job: Job): void {
  if (!hasPart(job, checkpointHost(job))) discardCheckpoint(tx, job);
}

/** Deletes output of an earlier run that is kept on a host without a part in the present run. The present run has begun without that output. */
export function discardOutputElsewhere(tx: Transaction, job: Job): void {
  const host = job.own.output_on;
  if (host !== undefined && !hasPart(job, host)) tx.act({ kind: "discard-on-host", job: job.id, host });
}

const hasPart = (job: Job, host: string | undefined): boolean =>
  host !== undefined && hostsOfJob(job).some((each) => isSameHost(host, each));

/** Whether the host keeps files for a later run of the job: a checkpoint or output. */
export const isKeptOn = (job: Job, host: string): boolean => isSameHost(host, checkpointHost(job)) || isSameHost(host, job.own.output_on);

const isSameHost = (host: string, other: unknown): boolean => typeof other === "string" && other.toLowerCase() === host.toLowerCase();

/** The host with the checkpoint from which the job will restart. */
export const checkpointHost = (job: Job): string | undefined => job.own.checkpointed;

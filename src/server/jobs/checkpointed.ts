// Files that a host keeps of a job for its next run (docs/reference/execution.md 5): the checkpoint to restart from, and the output of the previous run.

import type { Transaction } from "../engine/transaction.ts";
import { hostsOfJob } from "../state/job-hosts.ts";
import type { Job } from "../state/state.ts";

/** A checkpoint that waits on its host is no longer needed. */
export function discardCheckpoint(tx: Transaction, job: Job): void {
  const host = checkpointHost(job);
  if (host !== undefined) tx.act({ kind: "discard-on-host", job: job.id, host });
}

/**
 * Discards output that a host keeps for a run that will not use it: the run never happens or has its own output. The host of a
 * run that ended before it was confirmed is included.
 */
export function discardOutput(tx: Transaction, job: Job): void {
  const host = job.own.output_on;
  if (host !== undefined) tx.act({ kind: "discard-on-host", job: job.id, host });
}

/**
 * The run has started from the beginning, so a checkpoint on another host is out of date. Hosts that take part in
 * the run are skipped, here and below. Discarding would end the run there, and at its next hello such a host reports
 * the files that it still keeps.
 */
export function discardCheckpointElsewhere(tx: Transaction, job: Job): void {
  if (!hasPart(job, checkpointHost(job))) discardCheckpoint(tx, job);
}

/** The job runs. Output that another host has kept for this run is no longer needed, because the run has begun without it. */
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

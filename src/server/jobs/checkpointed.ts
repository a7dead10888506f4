// What a host keeps of a job for its next run (docs/reference/execution.md 5): the checkpoint it goes on from, the output of the run before.

import type { Transaction } from "../engine/transaction.ts";
import { hostsOfJob } from "../state/job-hosts.ts";
import type { Job } from "../state/state.ts";

/** A checkpoint that waits on its host is of no use any more. */
export function discardCheckpoint(tx: Transaction, job: Job): void {
  const host = checkpointHost(job);
  if (host !== undefined) tx.act({ kind: "discard-on-host", job: job.id, host });
}

/** Output that a host keeps for a run of the job that will never be, or that keeps output of its own: also where the last run ended before it was confirmed. */
export function discardOutput(tx: Transaction, job: Job): void {
  const host = job.own.output_on;
  if (host !== undefined) tx.act({ kind: "discard-on-host", job: job.id, host });
}

/**
 * The run has begun anew: a checkpoint on another host is out of date. A host that has part in the run is spared, here and below: to discard would end the
 * run there, and what it keeps longer than that it tells at its next hello.
 */
export function discardCheckpointElsewhere(tx: Transaction, job: Job): void {
  if (!hasPart(job, checkpointHost(job))) discardCheckpoint(tx, job);
}

/** The job runs: what another host has kept of its output for this run is of no use (the run has begun without it). */
export function discardOutputElsewhere(tx: Transaction, job: Job): void {
  const host = job.own.output_on;
  if (host !== undefined && !hasPart(job, host)) tx.act({ kind: "discard-on-host", job: job.id, host });
}

const hasPart = (job: Job, host: string | undefined): boolean =>
  host !== undefined && hostsOfJob(job).some((each) => isSameHost(host, each));

/** Whether what the host keeps of a job is for a run to come: a checkpoint, output. */
export const isKeptOn = (job: Job, host: string): boolean => isSameHost(host, checkpointHost(job)) || isSameHost(host, job.own.output_on);

const isSameHost = (host: string, other: unknown): boolean => typeof other === "string" && other.toLowerCase() === host.toLowerCase();

/** Where the checkpoint is from which the job will go on. */
export const checkpointHost = (job: Job): string | undefined => job.own.checkpointed;

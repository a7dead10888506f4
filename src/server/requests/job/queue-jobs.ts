// Bulk submission (`qsub --batch`): the jobs are accepted or refused one by one, in their order.

import { Reject } from "#model/pbse.ts";
import { splitList } from "#model/values/string-array.ts";
import type { QueueJobsRequest } from "#protocol/messages.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { afterQueuejobHooks, type Draft, queuejobAsk } from "../../hooks/submission.ts";
import { recordsOfDependencies } from "../../jobs/dependencies.ts";
import { submitJob } from "./queue-job.ts";

export function queueJobs(tx: Transaction, { jobs }: QueueJobsRequest): Answer {
  // The hooks of all jobs must have answered before the first job is created (I1 of engine/transaction.ts).
  if (tx.state.hooks.size > 0) tx.hooks(jobs.flatMap((job, at) => attempt(() => queuejobAsk(tx, `queuejob ${at}`, job)) ?? []));
  // For the same reason, the records that dependencies need are read first.
  tx.historyOf(jobs.flatMap((job, at) => attempt(() => recordsAsked(tx, job, `queuejob ${at}`)) ?? []));
  const results = jobs.map((job, at) => {
    try {
      return { id: submitJob(tx, job, `queuejob ${at}`) };
    } catch (error) {
      if (!(error instanceof Reject)) throw error;
      return { code: error.code, text: error.text };
    }
  });
  return { value: { results } };
}

function recordsAsked(tx: Transaction, job: Draft, key: string): string[] {
  const depend = afterQueuejobHooks(tx, key, job).draft.attrs.find(({ name }) => name.toLowerCase() === "depend");
  return depend === undefined ? [] : recordsOfDependencies(tx, splitList(depend.value));
}

/** Returns undefined if the work is refused. The refusal is reported later, when the job itself is handled. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof Reject) return undefined;
    throw error;
  }
}

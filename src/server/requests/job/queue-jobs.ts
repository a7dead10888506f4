// Bulk submission (`qsub --batch`): each job for itself, accepted or refused, in the order given.

import { Reject } from "#model/pbse.ts";
import { splitList } from "#model/values/string-array.ts";
import type { QueueJobsRequest } from "#protocol/messages.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { afterQueuejobHooks, type Draft, queuejobAsk } from "../../hooks/submission.ts";
import { recordsOfDependencies } from "../../jobs/dependencies.ts";
import { submitJob } from "./queue-job.ts";

export function queueJobs(tx: Transaction, { jobs }: QueueJobsRequest): Answer {
  // All questions to hooks before the first job is made (I1 of engine/transaction.ts).
  tx.hooks(jobs.flatMap((job, at) => attempt(() => queuejobAsk(tx, `queuejob ${at}`, job)) ?? []));
  // The same holds of records that dependencies ask for.
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

/** undefined: refused; the job's turn will tell. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof Reject) return undefined;
    throw error;
  }
}

// Bulk submission (`qsub --batch`): each job is accepted or refused by itself, in the order given.

import { Reject } from "#model/pbse.ts";
import { splitList } from "#model/values/string-array.ts";
import type { QueueJobsRequest } from "#protocol/messages.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { afterQueuejobHooks, type Draft, queuejobAsk } from "../../hooks/submission.ts";
import { recordsOfDependencies } from "../../jobs/dependencies.ts";
import { submitJob } from "./queue-job.ts";

export function queueJobs(tx: Transaction, { jobs }: QueueJobsRequest): Answer {
  // Hooks must answer all questions before the first job is made (I1 of engine/transaction.ts).
  if (tx.state.hooks.size > 0) tx.hooks(jobs.flatMap((job, at) => attempt(() => queuejobAsk(tx, `queuejob ${at}`, job)) ?? []));
  // The same holds for records that dependencies need.
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

/** undefined: refused; the job's own turn gives the refusal. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof Reject) return undefined;
    throw error;
  }
}

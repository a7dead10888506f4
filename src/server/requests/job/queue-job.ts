// Submission of a job (docs/reference/commands.md 1).
//
// Order of checks: 1. the queue exists  2. attributes, one by one  3. hooks  4. resources together  5. user and group  6. the queue accepts it  7. size of
// the script and of the job's texts  8. dependencies.

import type { QueueJobRequest } from "#protocol/messages.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { afterQueuejobHooks } from "../../hooks/submission.ts";
import { type Asked, askDependencies, enterDependencies, recordsOfDependencies, withAsked } from "../../jobs/dependencies.ts";
import { learnedRequest } from "../../jobs/learning.ts";
import { enqueueJob } from "../../jobs/life.ts";
import { type JobOwn, NOTHING_OWN } from "../../state/job-own.ts";
import { checkJobText } from "../../state/job-text.ts";
import type { JobAttrs, Queue } from "../../state/state.ts";
import { checkEntry, localQueue } from "../../submit/admission.ts";
import { enterTerminal, nextJobNumber } from "../../submit/new-job.ts";
import { checkScriptSize, readSubmission } from "../../submit/submission.ts";

export function queueJob(tx: Transaction, request: Omit<QueueJobRequest, "kind">): Answer {
  return { value: { id: submitJob(tx, request, "queuejob") } };
}

/**
 * Submits a job and returns its id. key: identifies, within the request, the question to the queuejob hooks about this job (HookAsk). Throws Reject, in which
 * case nothing is changed.
 */
export function submitJob(given_tx: Transaction, request: Omit<QueueJobRequest, "kind">, key: string): string {
  // Without hooks, the submission need not be read a second time.
  const { tx, draft } = given_tx.state.hooks.size > 0 ? afterQueuejobHooks(given_tx, key, request) : { tx: given_tx, draft: request };
  const { state, who } = tx;
  const queue = localQueue(tx, draft.destination);
  const seq = nextJobNumber(state);
  const submission = readSubmission(tx, queue, draft.attrs, seq);
  const own = { ...enterTerminal(submission.attrs, request.terminal), ...enterLearned(tx, submission.attrs, queue) };
  checkEntry(tx, submission.attrs, queue, { from_route: false, submitter: who, bounds: submission.bounds });
  checkScriptSize(state, draft.script);
  checkJobText(state, submission.attrs);
  const id = submission.attrs["array"] === true ? `${seq}[].${state.name}` : `${seq}.${state.name}`;
  const asked = dependenciesAsked(tx, id, submission.attrs);
  enqueueJob(tx, id, seq, submission.attrs, draft.script, own);
  if (asked !== null) enterDependencies(tx, id, asked);
  return id;
}

/** Lets the request of a new job follow what was learned from earlier ones. Returns what the job asked for itself, if its request changes. */
function enterLearned({ state }: Transaction, attrs: JobAttrs, queue: Queue): JobOwn {
  // Only jobs with override, and jobs that a backend may run, follow what was learned. All others pay nothing for it.
  if (attrs["override"] === undefined && state.backends.size === 0) return NOTHING_OWN;
  const learned = learnedRequest(state, queue, attrs);
  if (learned === null) return NOTHING_OWN;
  const { asked, ...request } = learned;
  Object.assign(attrs, request);
  return { asked };
}

/** Computes what the dependencies of a new job do, and enters those that are not met yet into its attributes. Returns null if the job has none. */
function dependenciesAsked(tx: Transaction, id: string, attrs: JobAttrs): Asked | null {
  const items = attrs["depend"] as readonly string[] | undefined;
  if (items === undefined) return null;
  tx.historyOf(recordsOfDependencies(tx, items));
  const asked = askDependencies(tx, { id, owner: attrs.Job_Owner }, items);
  const { depend, Hold_Types } = withAsked(asked, attrs.Hold_Types);
  if (depend === undefined) delete attrs["depend"];
  else attrs["depend"] = depend;
  attrs.Hold_Types = Hold_Types;
  return asked;
}

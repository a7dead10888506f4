// Explains why a job waits, as its scheduler sees it (`partita explain`). If no scheduler can be asked, the server answers
// itself. Everybody who may see the job may ask. While query_other_jobs is False, the answer hides the ids of other users'
// jobs from users.

import { PBSE, Reject, reject } from "#model/pbse.ts";
import type { ExplainJobRequest } from "#protocol/messages.ts";
import { seesOthers } from "../../attributes/permission.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { isExecution } from "../../jobs/life.ts";
import { schedOfQueue } from "../../state/partitions.ts";
import { ownedJob, targetOf } from "../job/job-access.ts";
import { withServerFacts } from "./explained-facts.ts";
import { ownExplanation } from "./own-explanation.ts";

export function explainJob(tx: Transaction, request: ExplainJobRequest): Answer {
  const target = targetOf(tx, request.job);
  const owned = ownedJob(target);
  if (target.kind === "range") throw reject(PBSE.IVALREQ);
  if (target.kind === "over") throw reject(PBSE.HISTJOBID);
  const queue = tx.state.queues.get(owned.attrs.queue);
  if (queue === undefined || !isExecution(queue)) throw new Reject(PBSE.NOSCHEDULER, `Job is in routing queue ${owned.attrs.queue}`);
  const sched = schedOfQueue(tx.state, queue);
  const job = target.kind === "waiting" ? target.id : target.job.id;
  const unserved = tx.unserved(queue);
  if (unserved !== null && (sched === undefined || sched.attrs["state"] === "down")) {
    const explanation = ownExplanation(job, owned, unserved, tx.now_s);
    return { value: withServerFacts(tx.state, explanation, tx.now_s) };
  }
  if (sched === undefined) throw reject(PBSE.NOSCHEDULER);
  const question = { kind: "explain", job, sees_others: seesOthers(tx) } as const;
  tx.act({ kind: "ask-sched", sched: sched.name, question, user: tx.who.user, token: tx.token });
  return "deferred";
}

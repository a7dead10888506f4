// qmove: moves a waiting job to another queue of this server (docs/reference/commands.md 3). A destination on another server
// is refused with 15008.

import { PBSE, Reject } from "#model/pbse.ts";
import type { MoveJobRequest } from "#protocol/messages.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { movejobAsk } from "../../hooks/alteration.ts";
import { accountQueued } from "../../jobs/accounting-record.ts";
import { logJob, moveJob, requestor } from "../../jobs/life.ts";
import type { Job, Queue } from "../../state/state.ts";
import { admitJob, localQueue } from "../../submit/admission.ts";
import { checkOwner, checkState, wholeJob } from "./job-access.ts";

export function moveJobRequest(tx: Transaction, request: MoveJobRequest): Answer {
  const job = wholeJob(tx, request.job);
  checkOwner(tx, job);
  checkState(job, "QHW");
  const queue = localQueue(tx, request.destination);
  if (queue.attrs["queue_type"] === undefined) throw new Reject(PBSE.NEEDQUET, `Queue type not set for queue '${queue.name}'`);
  const asked = request.destination;
  const [verdict] = tx.hooks([movejobAsk(tx, job, queue.name)]);
  if (verdict?.kind === "reject") throw verdict.reject;
  const wanted = verdict?.changes.job?.["queue"];
  return typeof wanted === "string" ? moveTo(tx, job, localQueue(tx, wanted), wanted) : moveTo(tx, job, queue, asked);
}

function moveTo(tx: Transaction, job: Job, queue: Queue, destination: string): Answer {
  if (queue.name === job.attrs.queue) return {};
  const set = admitJob(tx, job, queue, { from_route: false });
  moveJob(tx, job, queue, set);
  logJob(tx, LOG_EVENT.JOB, job.id, `Job moved to ${destination} at request of ${requestor(tx)}`);
  const moved = tx.state.jobs.get(job.id);
  if (moved !== undefined && moved.attrs.queue === queue.name) accountQueued(tx, moved);
  return {};
}

// qorder: exchanges the positions of two waiting jobs, in the same queue or in different queues (docs/reference/commands.md 3).

import type { OrderJobRequest } from "#protocol/messages.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { checkOwner, checkState, wholeJob } from "./job-access.ts";

export function orderJob(tx: Transaction, request: OrderJobRequest): Answer {
  const one = wholeJob(tx, request.job);
  const other = wholeJob(tx, request.other);
  for (const job of [one, other]) {
    checkOwner(tx, job);
    checkState(job, "QHWTB");
  }
  if (one === other) return {};
  const [rank, other_rank] = [one.attrs.queue_rank, other.attrs.queue_rank];
  tx.apply({ kind: "job-changed", id: one.id, set: { queue_rank: other_rank }, unset: [] });
  tx.apply({ kind: "job-changed", id: other.id, set: { queue_rank: rank }, unset: [] });
  return {};
}

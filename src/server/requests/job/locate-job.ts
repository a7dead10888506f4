// Answers which server has a job. Commands send this request when a server does not know an id (docs/reference/commands.md 0).

import { PBSE, Reject } from "#model/pbse.ts";
import type { LocateJobRequest } from "#protocol/messages.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { targetOf } from "./job-access.ts";

export function locateJob(tx: Transaction, request: LocateJobRequest): Answer {
  try {
    targetOf(tx, request.job);
  } catch (error) {
    if (!(error instanceof Reject) || error.code !== PBSE.HISTJOBID) throw error;
  }
  return { value: { server: tx.state.name } };
}

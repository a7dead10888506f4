// Shows what a scheduler is doing: its cycles, vnodes and top jobs (`partita top`). Everybody may ask. While
// query_other_jobs is False, the answer to users names no jobs.

import { PBSE, reject } from "#model/pbse.ts";
import type { ViewSchedRequest } from "#protocol/messages.ts";
import { seesOthers } from "../../attributes/permission.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";

export function viewSched(tx: Transaction, request: ViewSchedRequest): Answer {
  const sched = tx.state.scheds.get(request.sched);
  if (sched === undefined) throw reject(PBSE.UNKSCHED);
  const question = { kind: "view", sees_others: seesOthers(tx) } as const;
  tx.act({ kind: "ask-sched", sched: sched.name, question, user: tx.who.user, token: tx.token });
  return "deferred";
}

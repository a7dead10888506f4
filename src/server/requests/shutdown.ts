// qterm (docs/reference/commands.md 3). quick: running jobs continue. delay: jobs that can be saved or rerun are requeued,
// and the server ends when the others have ended. immediate: as delay, but the others are killed. This file records the
// request; ../core/shutdown.ts ends the jobs and the server.

import { PBSE, pbseText, Reject, reject } from "#model/pbse.ts";
import type { ShutdownRequest } from "#protocol/messages.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { checkOperator } from "../attributes/permission.ts";
import type { Answer, Transaction } from "../engine/transaction.ts";
import { requestor } from "../jobs/life.ts";

const NO_SECONDARY = `${pbseText(PBSE.SYSTEM) ?? ""}no secondary server waits: there is none to end`;

export function shutdownRequest(tx: Transaction, request: ShutdownRequest): Answer {
  checkOperator(tx.who);
  tx.log({
    event: LOG_EVENT.SYSTEM | LOG_EVENT.FORCE,
    class: "Svr",
    object: `Server@${tx.config.host}`,
    text: `Shutdown request received from ${requestor(tx)}: ${request.manner}`,
  });
  const { manner, scheds, moms, other } = request;
  const { pair } = tx.config;
  if (pair === undefined && (other !== undefined || request.secondary_only === true)) throw reject(PBSE.NOSUP);
  // qterm -F ends the secondary server. If this server is the secondary server and leads, it ends itself.
  if (request.secondary_only === true && pair?.role === "primary") {
    if (!pair.standbys().some(({ waits }) => waits)) throw new Reject(PBSE.SYSTEM, NO_SECONDARY);
    tx.act({ kind: "stop-secondary", token: tx.token });
    return "deferred";
  }
  if (other !== undefined) {
    tx.act({ kind: "order-other", order: other, how: { manner, scheds, moms }, token: tx.token });
    return "deferred";
  }
  tx.act({ kind: "shutdown", manner, scheds, moms });
  return {};
}

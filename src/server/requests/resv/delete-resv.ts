// pbs_rdel (docs/reference/commands.md 5): deletes a reservation with all its jobs. If the deletion is requested again, moms
// are told again to end the jobs that still run.

import type { DeleteResvRequest } from "#protocol/messages.ts";
import { isOwner } from "../../attributes/permission.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { checkResvOwner, resvNamed } from "../../resv/access.ts";
import { end } from "../../resv/life.ts";

export function deleteResv(tx: Transaction, request: DeleteResvRequest): Answer {
  const resv = resvNamed(tx, request.resv);
  checkResvOwner(tx, resv);
  if (!isOwner(tx, resv.attrs.Reserve_Owner)) tx.act({ kind: "mail-resv", resv: resv.id, point: "a", text: "Reservation removed" });
  end(tx, resv);
  return {};
}

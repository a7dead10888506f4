// A consistent copy of the store into a new file while the server works; the shell answers when it is done. Only root may ask for it (user mode: the complex's own
// user): the copy holds everybody's scripts and environments, and root writes it at a place that the caller chooses.

import { PBSE, Reject, reject } from "#model/pbse.ts";
import type { BackupRequest } from "#protocol/messages.ts";
import type { Answer, Transaction } from "../engine/transaction.ts";

export function backup(tx: Transaction, request: BackupRequest): Answer {
  if (!tx.who.root) throw reject(PBSE.PERM);
  if (!request.file.startsWith("/") || request.file.endsWith("/") || request.file.includes("\0")) {
    throw new Reject(PBSE.BADATVAL, "the file of a backup must be an absolute path");
  }
  tx.act({ kind: "backup", file: request.file, token: tx.token });
  return "deferred";
}

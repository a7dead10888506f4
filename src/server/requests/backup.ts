// Makes a consistent copy of the store in a new file while the server works; the shell answers when the copy is complete.
// Only root may request it (in user mode the user of the complex), because the copy contains everybody's scripts and
// environments, and because root writes it to a path that the caller chooses.

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

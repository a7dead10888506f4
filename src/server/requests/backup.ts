// A consistent copy of the store into a new file while the server works; the shell answers when it is done. Root's only (user mode: the complex's own
// user's): a file of root's at a place the asker chooses, with everybody's scripts and environments in it, is more than a manager may have.

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

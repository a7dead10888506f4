// Error replies to requests of qmgr that were carried out, at least in part: a warning that is sent as an error (15026), and
// a request about all objects that has failed for some of them.

import { pbseText } from "#model/pbse.ts";
import type { Answer, Transaction } from "../engine/transaction.ts";

/** Sends an error reply to a request whose changes have already been applied. At that point a Reject may no longer be thrown. */
export function answerError(tx: Transaction, code: number, text: string | null): Answer {
  tx.act({ kind: "reply", token: tx.token, ok: false, code, text });
  return "deferred";
}

/** Answers with the names of objects that failed: `Cannot delete busy object q1,  q2` (docs/reference/qmgr.md 5). If there are none, answers with success. */
export function answerFailures(tx: Transaction, code: number, names: readonly string[]): Answer {
  if (names.length === 0) return {};
  return answerError(tx, code, `${(pbseText(code) ?? "").trimEnd()} ${names.join(",  ")}`);
}

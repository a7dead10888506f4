// Answers of manager requests that are both carried out and refused: warnings that count as errors (15026), and
// requests about all objects of which some failed.

import { pbseText } from "#model/pbse.ts";
import type { Answer, Transaction } from "../engine/transaction.ts";

/** An error reply after changes were applied, when a refusal may no longer be thrown. */
export function answerError(tx: Transaction, code: number, text: string | null): Answer {
  tx.act({ kind: "reply", token: tx.token, ok: false, code, text });
  return "deferred";
}

/** `Cannot delete busy object q1,  q2` (docs/reference/qmgr.md 5); without failures a plain success. */
export function answerFailures(tx: Transaction, code: number, names: readonly string[]): Answer {
  if (names.length === 0) return {};
  return answerError(tx, code, `${(pbseText(code) ?? "").trimEnd()} ${names.join(",  ")}`);
}

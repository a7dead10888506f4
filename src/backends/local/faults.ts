// What can go wrong on this machine: the system's words for a program that cannot be started. Pure.

import { codeOf, messageOf } from "#support/caught.ts";
import { BackendError, type FaultKind } from "../contract/fault.ts";

/** Errors of the system that pass: too many processes, no memory, a program that is being replaced, too many open files. */
const PASSING = new Set(["EAGAIN", "ENOMEM", "ETXTBSY", "EMFILE", "ENFILE", "ENOSPC", "EDQUOT", "EIO"]);

export function localFault(caught: unknown): BackendError {
  if (caught instanceof BackendError) return caught;
  const kind: FaultKind = PASSING.has(codeOf(caught) ?? "") ? "transient" : "configuration";
  return new BackendError({ kind, text: messageOf(caught) }, { cause: caught });
}

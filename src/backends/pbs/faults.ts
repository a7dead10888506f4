// Tells the kind of an error of another PBS complex by its text. Pure.

import { type FaultKind, type FaultRule, kindOf } from "../contract/fault.ts";

/** Texts of qsub, qstat, qdel and qalter; the first that matches decides. */
const RULES: readonly FaultRule[] = [
  [
    /cannot connect|could not connect|connection (?:refused|timed out|reset)|no connection|server.*(?:shutting down|too busy|not running)/i,
    "transient",
  ],
  [/end of file|premature|time-?out|host is down|unreachable/i, "transient"],
  [/would exceed|maximum number of jobs|limit.*(?:reached|exceeded)|too many jobs/i, "limit"],
  [
    /violates queue and\/or server resource limits|unknown resource|illegal attribute|resource.*not (?:valid|allowed)|not in.*range/i,
    "impossible",
  ],
  [/array|select/i, "impossible"],
  [/unknown queue|queue is not enabled|not enabled|unauthorized|permission|bad uid|access|pbs\.conf|unknown host|route/i, "configuration"],
];

/** Returns the kind of the fault that a program of PBS reported. An unknown text is transient, so that the backend is asked again soon. */
export const pbsKind = (text: string): FaultKind => kindOf(text, RULES, "transient");

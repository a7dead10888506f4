// Tells the kind of an error of OAR by its text or its HTTP status. Pure.

import { type Fault, type FaultRule, kindOf } from "../contract/fault.ts";

/** Texts of OAR's commands and of its API; the first that matches decides. */
const RULES: readonly FaultRule[] = [
  [
    /could not connect|connection refused|Cannot connect to the database|timed? ?out|Connection reset|server closed the connection/i,
    "transient",
  ],
  [/quota|too many|you (?:already )?have|maximum number of/i, "limit"],
  [/not enough resources|Bad resource request|no resource|cannot be satisfied|Bad property request|syntax/i, "impossible"],
  [/ADMISSION RULE\] ERROR|admission rule.*(?:refused|error)|not a valid|queue .*(?:does not exist|unknown)|unknown type/i, "impossible"],
  [/authenticat|Permission denied|Unauthorized|Forbidden|not the right user|oardodo|sudo/i, "configuration"],
];

/** Returns the kind of the fault that OAR reported. An unknown text is transient, so that the cluster is asked again soon. */
export const oarKind = (text: string): Fault["kind"] => kindOf(text, RULES, "transient");

/** Returns the kind of the fault for an answer of the API that reports a failure. */
export function httpKind(status: number, text: string): Fault["kind"] {
  if (status === 401 || status === 403) return "configuration";
  if (status === 404) return "configuration";
  if (status === 429) return "limit";
  return oarKind(text);
}

/** Whether a command for jobs failed only because of jobs that do not exist, have ended or are in the wanted state already. */
export function isOnlyGone(text: string): boolean {
  const lines = text.split("\n").filter((line) => /Cannot|ERROR|error|denied|fail/i.test(line));
  return lines.length > 0 && lines.every((line) => /Cannot (?:resume|hold|frag)|\.\.\.ERROR\.|Oar command exited/i.test(line));
}

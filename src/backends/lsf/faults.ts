// Tells the kind of an error of LSF, or of the reason why a job waits, by its text. Pure.

import { type Fault, type FaultKind, type FaultRule, kindOf } from "../contract/fault.ts";

/** Texts of bsub, bjobs, bqueues and bkill; the first that matches decides. */
const RULES: readonly FaultRule[] = [
  [
    /LSF is down|LIM is down|cannot connect|mbatchd is not responding|Batch system.*(?:not responding|concurrent query)|Communication time out|try later|reconfig/i,
    "transient",
  ],
  [/pending job threshold|limit.*(?:reached|exceeded)|job limit|too many jobs|maximum number of/i, "limit"],
  [
    /Cannot exceed queue's hard limit|Bad resource requirement|RUNLIMIT|MEMLIMIT|Too many processors|not (?:be )?satisf|array.*(?:size|index)|Requested.*limit/i,
    "impossible",
  ],
  [
    /No such queue|User (?:cannot|permission)|not (?:allowed|authorized)|closed|project|Permission denied|lsf\.conf|LSF_ENVDIR|unknown user|Illegal option|Bad /i,
    "configuration",
  ],
];

/** Returns the kind of the fault that a program of LSF reported. An unknown text is transient, so that the backend is asked again soon. */
export const lsfKind = (text: string): FaultKind => kindOf(text, RULES, "transient");

/** Reasons for which a job waits that do not go away by themselves. */
const REASONS: readonly FaultRule[] = [
  [
    /no suitable hosts?|no hosts?\b.*(?:can be used|satisf)|does not (?:satisfy|meet)|never run|Job's requirements for.*not satisfied/i,
    "impossible",
  ],
  [/limit.*reached|job slot limit|exceeds.*limit/i, "limit"],
  [/queue.*(?:closed|inactivated|inactive)|not an eligible|user.*not/i, "configuration"],
];

/** Returns the fault of a waiting job with a reason; null: it waits for its turn. */
export function pendingFault(reason: string): Fault | null {
  const rule = REASONS.find(([says]) => says.test(reason));
  return rule === undefined ? null : { kind: rule[1], text: reason };
}

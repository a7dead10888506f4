// Tells the kind of an error of Grid Engine by its text. Pure.

import { type FaultKind, type FaultRule, kindOf } from "../contract/fault.ts";

/** Texts of qsub, qstat, qdel and qalter; the first that matches decides. */
const RULES: readonly FaultRule[] = [
  [
    /unable to (?:contact|send message to) qmaster|unable to connect to|commlib|got (?:send|read) error|can't connect|timeout|qmaster.*not.*(?:running|up)/i,
    "transient",
  ],
  [
    /only .* jobs are allowed|job rejected: (?:only|you have|the sum)|too many (?:active|jobs)|max_u_jobs|max_jobs|exceeds?.*limit/i,
    "limit",
  ],
  [
    /no suitable queues|unknown resource|cannot run|cannot be satisfied|not requestable|more than \d+ tasks|request slots explicitly/i,
    "impossible",
  ],
  [/not a valid|cannot be requested|is not a consumable|Numerical value|invalid (?:range|value)/i, "impossible"],
  [
    /unknown queue|project.*does not exist|parallel environment.*does not exist|requires operator|minimum user id|not allowed|no access|denied/i,
    "configuration",
  ],
  [/SGE_ROOT|SGE_CELL|critical error|error: (?:cell|commd)|act_qmaster|invalid option|invalid priority|submit host/i, "configuration"],
];

/** Returns the kind of the fault that a program of Grid Engine reported. An unknown text is transient, so that the backend is asked again soon. */
export const gridEngineKind = (text: string): FaultKind => kindOf(text, RULES, "transient");

// Common code of formula tests: names with their kinds and values, reading a text, and its value.

import { compileFormula, type Formula, JOB_FORMULA_NAMES, type NameKind, readFormula } from "#model/formula/formula.ts";

const KINDS: Readonly<Record<string, NameKind>> = { ncpus: "number", walltime: "number", e: "number", arch: "other", flag: "other" };
export const read = (text: string): ReturnType<typeof readFormula> =>
  readFormula(text, (name) => (Object.hasOwn(KINDS, name) ? KINDS[name] : undefined), JOB_FORMULA_NAMES);

export const INPUTS: Readonly<Record<string, number>> = {
  ncpus: 4,
  walltime: 3600,
  e: 2.5,
  eligible_time: 90,
  queue_priority: -3,
  job_priority: 0,
};
export const worth = (formula: Formula): ReturnType<ReturnType<typeof compileFormula>> =>
  compileFormula(formula)(formula.names.map((name) => INPUTS[name] ?? 0));

// Rules for job_sort_formula of the server and of schedulers, and for backfill.formula of schedulers (docs/reference/qmgr.md 5, docs/reference/scheduler.md 4).
//
// I1. A stored formula can be evaluated: its grammar, names and types were checked, and a resource that it names cannot be
//     deleted.
// I2. If the server and a scheduler both have a formula, the two texts are the same (15226).

import { type Formula, JOB_FORMULA_NAMES, readFormula } from "#model/formula/formula.ts";
import { PBSE, reject } from "#model/pbse.ts";
import { isNumeric, type Resources } from "#model/resource-table.ts";
import type { ServerState } from "../state/state.ts";
import type { Changed } from "./change.ts";

/** The attributes whose values are formulas over jobs. Only schedulers have the second one. */
const FORMULAS = ["job_sort_formula", "backfill.formula"] as const;
const FAULTS = { syntax: PBSE.BAD_FORMULA, keyword: PBSE.BAD_FORMULA_KW, type: PBSE.BAD_FORMULA_TYPE } as const;

/**
 * Refuses a formula that cannot be used (15123, 15124, 15125) or that differs from the formula of another object
 * (15226). others: the other objects that may have a formula.
 */
export function checkFormula(
  { after, touched }: Changed,
  resources: Resources,
  others: Iterable<{ readonly [name: string]: unknown }>,
): void {
  for (const name of FORMULAS) {
    const given = after[name];
    if (!touched.has(name) || typeof given !== "string" || given === "") continue;
    const read = parsed(given, resources);
    if ("fault" in read) throw reject(FAULTS[read.fault]);
  }
  const text = after["job_sort_formula"];
  if (!touched.has("job_sort_formula") || typeof text !== "string" || text === "") return;
  for (const other of others) {
    const theirs = other["job_sort_formula"];
    if (theirs !== undefined && theirs !== "" && theirs !== text) throw reject(PBSE.SVR_SCHED_JSF_INCOMPAT);
  }
}

/** The kind of object with a formula that names the resource; null: there is none. */
export function formulaWith(state: ServerState, resource: string): "server" | "sched" | null {
  if (names(state, state.server).includes(resource)) return "server";
  for (const sched of state.scheds.values()) if (names(state, sched.attrs).includes(resource)) return "sched";
  return null;
}

function names(state: ServerState, attrs: { readonly [name: string]: unknown }): readonly string[] {
  return FORMULAS.flatMap((name) => {
    const text = attrs[name];
    if (typeof text !== "string") return [];
    const read = parsed(text, state.resources);
    return "fault" in read ? [] : read.names;
  });
}

function parsed(text: string, resources: Resources): Formula | ReturnType<typeof readFormula> {
  return readFormula(
    text,
    (name) => {
      const def = resources.get(name);
      return def === undefined ? undefined : isNumeric(def.type) ? "number" : "other";
    },
    JOB_FORMULA_NAMES,
  );
}

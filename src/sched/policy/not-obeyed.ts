// Finds attributes that request something that this release cannot do. The log names them, so that no attribute is ignored
// silently.

import type { AttrRecord } from "#protocol/sched-link.ts";
import type { Policy } from "../shapes/policy.ts";
import type { Universe } from "../shapes/universe.ts";
import { overruled, policyUnder } from "./named-policy.ts";

type Row = readonly [attribute: string, what: string];

// biome-ignore format: one row per attribute
const OF_SCHED: readonly Row[] = [
];
// biome-ignore format: one row per attribute
const OF_SERVER: readonly Row[] = [
];

const FORMULA_AND_KEY = "Job sorting formula and job_sort_key are incompatible.  The job sorting formula will be used.";

/** Returns one text for each setting that is not obeyed. asked: the policy of sched_config. */
export function notObeyed(universe: Universe, asked: Policy): string[] {
  const texts = [...told("sched", universe.sched.attrs, OF_SCHED), ...told("server", universe.server.attrs, OF_SERVER)];
  const { fault, formula } = universe.ranking;
  if (fault !== null) texts.push(fault);
  const policy = policyUnder(asked, universe.sched.attrs);
  const asks = universe.sched.attrs["job_sort_formula"] ?? universe.server.attrs["job_sort_formula"];
  if (policy.job_order !== null && typeof asks === "string" && asks !== "")
    texts.push(`job_sort_formula has no effect: the policy is ${policy.named}`);
  texts.push(...overruled(asked, policy));
  if (formula !== null && universe.policy.job_sort_key.length > 0) texts.push(FORMULA_AND_KEY);
  return texts;
}

/**
 * Returns a function that returns the texts of notObeyed, each of them only once. A text is returned again only if its cause had disappeared in the meantime.
 */
export function notObeyedNews(): (universe: Universe, asked: Policy) => string[] {
  let told_texts: readonly string[] = [];
  return (universe, asked) => {
    const texts = notObeyed(universe, asked);
    const news = texts.filter((text) => !told_texts.includes(text));
    told_texts = texts;
    return news;
  };
}

function told(object: string, attrs: AttrRecord, rows: readonly Row[]): string[] {
  return rows.flatMap(([name, what]) => {
    const value = attrs[name];
    return value === undefined || value === false || value === "" ? [] : [`${object}: ${name} is not supported yet: ${what}`];
  });
}

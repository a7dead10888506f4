// Finds attributes that request something that this release cannot do. The log names them, so that no attribute is ignored
// silently.

import type { AttrRecord } from "#protocol/sched-link.ts";
import type { Universe } from "../shapes/universe.ts";

type Row = readonly [attribute: string, what: string];

// biome-ignore format: one row per attribute
const OF_SCHED: readonly Row[] = [
];
// biome-ignore format: one row per attribute
const OF_SERVER: readonly Row[] = [
];

const FORMULA_AND_KEY = "Job sorting formula and job_sort_key are incompatible.  The job sorting formula will be used.";

/** Returns one text for each attribute that is set but not obeyed. */
export function notObeyed(universe: Universe): string[] {
  const texts = [...told("sched", universe.sched.attrs, OF_SCHED), ...told("server", universe.server.attrs, OF_SERVER)];
  const { fault, formula } = universe.ranking;
  if (fault !== null) texts.push(fault);
  if (formula !== null && universe.policy.job_sort_key.length > 0) texts.push(FORMULA_AND_KEY);
  return texts;
}

/**
 * Returns a function that returns the texts of notObeyed, each of them only once. A text is returned again only if its cause had disappeared in the meantime.
 */
export function notObeyedNews(): (universe: Universe) => string[] {
  let told_texts: readonly string[] = [];
  return (universe) => {
    const texts = notObeyed(universe);
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

// Converts the old node specification `-l nodes=SPEC` to select and place (docs/reference/commands.md 1.2):
// SPEC := chunk[+chunk...][#shared|#excl]    chunk := [N|HOST|PROPERTY][:PROPERTY|ppn=P|cpp=C|res=value]... ppn=P gives
// ncpus=P (times C with cpp=C) and, if P is at least 2, mpiprocs=P. The name of a boolean resource is a property; any other
// word is a host. The arrangement is scatter. Amounts that are requested in addition to the specification are totals for the
// whole job and are divided among the chunks: mem in proportion to processors, in kb; ncpus in the same way, if no chunk has
// its own number (cpp or ncpus); other amounts equally.
//
// I1. If the same specification is converted again, and the job-wide sums of the chunks are requested in addition, the
//     chunks are the same.

import type { ResourceValues } from "../attribute.ts";
import { PBSE, reject } from "../pbse.ts";
import { hasFlag, isConsumable, type ResourceDef, type Resources } from "../resource-table.ts";
import { parseInteger } from "../values/integer.ts";
import { byName } from "../values/resource-list.ts";
import { renderResourceValue } from "../values/resource-value.ts";
import { sizeKb } from "../values/size.ts";
import type { Pair } from "./chunk-text.ts";
import { pairOf, type Select, type SelectChunk } from "./select.ts";

export type NodesRequest = { readonly select: Select; readonly place: string };

const WORD = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

/** Converts a specification. Refuses a malformed one with 15089. asked: the job-wide resources that are requested in addition to nodes. */
export function parseNodesSpec(text: string, asked: ResourceValues, resources: Resources): NodesRequest {
  const [spec = "", sharing, ...more] = text.trim().split("#");
  if (more.length > 0 || (sharing !== undefined && sharing !== "shared" && sharing !== "excl")) throw malformed();
  const drafts = spec.split("+").map((chunk) => parseChunk(chunk, resources));
  const shares = sharesOf(asked, drafts, resources);
  const chunks = drafts.map((draft) => finishChunk(draft, shares));
  return { select: { chunks }, place: sharing === undefined ? "scatter" : `scatter:${sharing}` };
}

/** A chunk of the specification. cpus: its number of processors; is_fixed: the chunk itself gives that number, by cpp or ncpus. */
type Draft = {
  readonly count: number;
  readonly pairs: readonly Pair[];
  readonly ppn: number;
  readonly cpus: number;
  readonly is_fixed: boolean;
};

function parseChunk(text: string, resources: Resources): Draft {
  const words = text.split(":");
  const first = words[0] ?? "";
  const hasCount = /^[0-9]{1,9}$/.test(first);
  const count = hasCount ? Number(first) : 1;
  if (count === 0) throw reject(PBSE.BADATVAL);
  const pairs: Pair[] = [];
  let ppn: number | null = null;
  let cpp: number | null = null;
  for (const word of hasCount ? words.slice(1) : words) {
    const [name = "", value] = word.split("=", 2);
    if (value === undefined) pairs.push(propertyOf(name, resources));
    else if (name === "ppn" && ppn === null) ppn = positive(value);
    else if (name === "cpp" && cpp === null) cpp = positive(value);
    else if (resources.has(name)) pairs.push(pairOf(name, value));
    else throw malformed();
  }
  const own = pairs.find(({ name }) => name === "ncpus");
  const cpus = own === undefined ? (ppn ?? 1) * (cpp ?? 1) : positive(own.text);
  return { count, pairs, ppn: ppn ?? 1, cpus, is_fixed: cpp !== null || own !== undefined };
}

function propertyOf(word: string, resources: Resources): Pair {
  if (resources.get(word)?.type === "boolean") return pairOf(word, "True");
  if (!WORD.test(word)) throw malformed();
  return pairOf("host", word);
}

/** Job-wide amounts after their division. *_by_cpu: for each processor; others: for each chunk. */
type Shares = { readonly ncpus_by_cpu: number; readonly mem_kb_by_cpu: number | null; readonly others: readonly Pair[] };

/** Makes the chunk of a select. Its pairs have this order: the pairs of the specification, ncpus, mpiprocs, the shares of job-wide amounts. */
function finishChunk({ count, pairs, ppn, cpus }: Draft, { ncpus_by_cpu, mem_kb_by_cpu, others }: Shares): SelectChunk {
  const all = [...pairs];
  const add = (pair: Pair): void => {
    if (!all.some(({ name }) => name === pair.name)) all.push(pair);
  };
  add(pairOf("ncpus", String(cpus * ncpus_by_cpu)));
  if (ppn > 1) add(pairOf("mpiprocs", String(ppn)));
  if (mem_kb_by_cpu !== null) add(pairOf("mem", `${mem_kb_by_cpu * cpus}KB`));
  for (const pair of others) add(pair);
  return { count, pairs: all };
}

function sharesOf(asked: ResourceValues, drafts: readonly Draft[], resources: Resources): Shares {
  const total_cpus = drafts.reduce((sum, { count, cpus }) => sum + count * cpus, 0);
  const { ncpus, mem } = asked;
  const divides_ncpus = typeof ncpus === "number" && !drafts.some(({ is_fixed }) => is_fixed);
  if (divides_ncpus && (ncpus < total_cpus || ncpus % total_cpus !== 0)) throw malformed();
  return {
    ncpus_by_cpu: divides_ncpus ? ncpus / total_cpus : 1,
    mem_kb_by_cpu: typeof mem === "string" ? Math.ceil(sizeKb(mem) / total_cpus) : null,
    others: evenShares(
      asked,
      drafts.reduce((sum, { count }) => sum + count, 0),
      resources,
    ),
  };
}

/** What each of `total` chunks gets of the job-wide resources other than ncpus and mem. */
function evenShares(asked: ResourceValues, total: number, resources: Resources): Pair[] {
  const shares: Pair[] = [];
  for (const name of Object.keys(asked).sort(byName)) {
    const def = resources.get(name);
    const value = asked[name];
    if (name === "ncpus" || name === "mem" || def === undefined || value === undefined || !hasFlag(def, "h")) continue;
    shares.push(pairOf(name, isConsumable(def) ? shareText(def, value, total) : renderResourceValue(def, value)));
  }
  return shares;
}

/** The amount for one of `total` chunks. A size is in kb and rounded up. A whole number must divide evenly, because rounding would change the total. */
function shareText(def: ResourceDef, value: string | number | boolean, total: number): string {
  if (def.type === "size") return `${Math.ceil(sizeKb(String(value)) / total)}KB`;
  if (typeof value !== "number") return renderResourceValue(def, value);
  if (def.type === "long" && value % total !== 0) throw malformed();
  return renderResourceValue(def, value / total);
}

function positive(text: string): number {
  const value = parseInteger(text);
  if (value === null || value < 1 || value > 1e6) throw malformed();
  return value;
}

function malformed(): Error {
  return reject(PBSE.BADNODESPEC);
}

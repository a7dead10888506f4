// The old node specification `-l nodes=SPEC`, turned into select and place (pbs/commands.md 1.2):
//   SPEC := chunk[+chunk...][#shared|#excl]    chunk := [N|HOST|PROPERTY][:PROPERTY|ppn=P|cpp=C|res=value]...
// ppn=P gives ncpus=P (times C of cpp=C) and mpiprocs=P; a boolean resource is a property; another word is a host; arrangement is scatter.
// Amounts asked beside it (ncpus, mem ...) are meant for the whole job and are divided evenly among the chunks; mem is written in kb.

import type { ResourceValues } from "./attribute.ts";
import type { Pair } from "./chunk-text.ts";
import { PBSE, reject } from "./pbse.ts";
import { hasFlag, isConsumable, type ResourceDef, type Resources } from "./resource-table.ts";
import { pairOf, type Select, type SelectChunk } from "./select.ts";
import { parseInteger } from "./values/integer.ts";
import { byName } from "./values/resource-list.ts";
import { renderResourceValue } from "./values/resource-value.ts";
import { sizeKb } from "./values/size.ts";

export type NodesRequest = { readonly select: Select; readonly place: string };

const WORD = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

/** @param asked resources given job-wide beside nodes. Refuses a malformed specification with 15089. */
export function parseNodesSpec(text: string, asked: ResourceValues, resources: Resources): NodesRequest {
  const [spec = "", sharing, ...more] = text.trim().split("#");
  if (more.length > 0 || (sharing !== undefined && sharing !== "shared" && sharing !== "excl")) throw malformed();
  const drafts = spec.split("+").map((chunk) => parseChunk(chunk, resources));
  const total = drafts.reduce((sum, { count }) => sum + count, 0);
  const shares = sharesOf(asked, total, resources);
  const chunks = drafts.map((draft) => finishChunk(draft, shares));
  return { select: { chunks }, place: sharing === undefined ? "scatter" : `scatter:${sharing}` };
}

type Draft = { readonly count: number; readonly pairs: readonly Pair[]; readonly ppn: number | null; readonly cpp: number | null };

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
  return { count, pairs, ppn, cpp };
}

function propertyOf(word: string, resources: Resources): Pair {
  if (resources.get(word)?.type === "boolean") return pairOf(word, "True");
  if (!WORD.test(word)) throw malformed();
  return pairOf("host", word);
}

/** Properties, then ncpus and mpiprocs, then the shares of what was asked job-wide. */
function finishChunk({ count, pairs, ppn, cpp }: Draft, shares: readonly Pair[]): SelectChunk {
  const all = [...pairs];
  const add = (pair: Pair): void => {
    if (!all.some(({ name }) => name === pair.name)) all.push(pair);
  };
  const share = shares.find(({ name }) => name === "ncpus");
  add(ppn === null && cpp === null ? (share ?? pairOf("ncpus", "1")) : pairOf("ncpus", String((ppn ?? 1) * (cpp ?? 1))));
  if (ppn !== null) add(pairOf("mpiprocs", String(ppn)));
  for (const pair of shares) add(pair);
  return { count, pairs: all };
}

/** What each of `total` chunks gets of resources asked job-wide. */
function sharesOf(asked: ResourceValues, total: number, resources: Resources): Pair[] {
  const shares: Pair[] = [];
  for (const name of Object.keys(asked).sort(byName)) {
    const def = resources.get(name);
    const value = asked[name];
    if (def === undefined || value === undefined || !hasFlag(def, "h")) continue;
    shares.push(pairOf(name, isConsumable(def) ? shareText(def, value, total) : renderResourceValue(def, value)));
  }
  return shares;
}

/** Sizes in kb, rounded up. Whole numbers must divide: half a processor more or less is not what was asked for. */
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

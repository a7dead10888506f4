// What a job asks of vnodes: schedselect and place, parsed once per distinct text. Input is what the server normalised; anything else is an
// unusable request, which never runs and says so.

import type { ResourceSpace } from "./resource-space.ts";
import { amountOf, matchedOf } from "./resource-space.ts";

export type Arrangement = "free" | "pack" | "scatter" | "vscatter";
export type Sharing = "shared" | "excl" | "exclhost";

export type Place = {
  readonly arrangement: Arrangement;
  /** undefined: what the vnode's `sharing` says */
  readonly sharing: Sharing | undefined;
  /** placement set resource */
  readonly group: string | undefined;
};

export type Amount = { readonly index: number; readonly amount: number };
export type Match = { readonly resource: string; readonly value: string | boolean };
/** A resource of a vnode that is compared but not used up. */
export type Level = { readonly resource: string; readonly amount: number };

/** A chunk of a select specification, `count` times. */
export type Chunk = {
  readonly count: number;
  /** what is consumed, in the order asked */
  readonly amounts: readonly Amount[];
  readonly matches: readonly Match[];
  readonly levels: readonly Level[];
  readonly host: string | undefined;
  readonly vnode: string | undefined;
};

export type Request = {
  readonly id: number;
  readonly chunks: readonly Chunk[];
  readonly chunk_count: number;
  readonly place: Place;
  /** amounts over all chunks, in the order asked */
  readonly totals: readonly Amount[];
  /** the texts could not be understood: what is wrong */
  readonly fault: string | undefined;
  /** a suspended job's that has kept its cpus: that a vnode has none left does not keep it away, they may be its own */
  readonly keeps_cpus?: true;
};

/** Parses `2:ncpus=1:mem=1gb+ncpus=4` with `pack:excl`. id: the caller's number for this pair of texts. */
export function parseRequest(space: ResourceSpace, select: string, place: string, id: number): Request {
  const parsed = parsePlace(place);
  const chunks: Chunk[] = [];
  let fault = parsed === null ? `place ${place}` : undefined;
  for (const text of splitOutsideQuotes(select, "+")) {
    const chunk = parseChunk(space, text);
    if (chunk === null) fault ??= `select ${text}`;
    else chunks.push(chunk);
  }
  if (chunks.length === 0) fault ??= "select";
  const totals = new Map<number, number>();
  for (const chunk of chunks)
    for (const { index, amount } of chunk.amounts) totals.set(index, (totals.get(index) ?? 0) + amount * chunk.count);
  return {
    id,
    chunks,
    chunk_count: chunks.reduce((sum, chunk) => sum + chunk.count, 0),
    place: parsed ?? { arrangement: "free", sharing: undefined, group: undefined },
    totals: [...totals].map(([index, amount]) => ({ index, amount })),
    fault,
  };
}

/**
 * The request as far as sched_config's `resources` goes: a resource that is not named there is neither looked at nor assigned (pbs/sched.md 12). Booleans,
 * host and vnode stay.
 */
export function checkedPart(request: Request, checks: ChunkChecks): Request {
  const isLookedAt = ({ index }: Amount): boolean => checks.checked[index] === true;
  const chunks = request.chunks.map((chunk) => ({
    ...chunk,
    amounts: chunk.amounts.filter(isLookedAt),
    matches: chunk.matches.filter(({ resource, value }) => typeof value === "boolean" || checks.policy.resources.has(resource)),
    levels: chunk.levels.filter(({ resource }) => checks.policy.resources.has(resource)),
  }));
  return { ...request, chunks, totals: request.totals.filter(isLookedAt) };
}

/** By resource index, and by name. */
export type ChunkChecks = { readonly checked: readonly boolean[]; readonly policy: { readonly resources: ReadonlySet<string> } };

/** null: not a place specification. */
export function parsePlace(text: string): Place | null {
  let arrangement: Arrangement = "free";
  let sharing: Sharing | undefined;
  let group: string | undefined;
  for (const word of text.split(":").filter((part) => part !== "")) {
    if (word === "free" || word === "pack" || word === "scatter" || word === "vscatter") arrangement = word;
    else if (word === "shared" || word === "excl" || word === "exclhost") sharing = word;
    else if (word.startsWith("group=")) group = word.slice("group=".length);
    else return null;
  }
  return { arrangement, sharing, group };
}

function parseChunk(space: ResourceSpace, text: string): Chunk | null {
  const parts = splitOutsideQuotes(text, ":");
  const count = /^[0-9]+$/.test(parts[0] ?? "") ? Number(parts.shift()) : 1;
  const amounts: Amount[] = [];
  const matches: Match[] = [];
  const levels: Level[] = [];
  let host: string | undefined;
  let vnode: string | undefined;
  for (const part of parts) {
    const equals = part.indexOf("=");
    if (equals <= 0) return null;
    const name = part.slice(0, equals);
    const value = unquote(part.slice(equals + 1));
    const resource = space.all.get(name);
    if (name === "host") host = value;
    else if (name === "vnode") vnode = value;
    else {
      const amount = amountOf(resource, value);
      if (resource !== undefined && resource.index >= 0) {
        if (amount === null) return null;
        amounts.push({ index: resource.index, amount });
      } else if (amount !== null) levels.push({ resource: name, amount });
      else matches.push({ resource: name, value: matchedOf(resource, value) });
    }
  }
  return count > 0 ? { count, amounts, matches, levels, host, vnode } : null;
}

/** Splits at a character that does not stand in quotes. */
export function splitOutsideQuotes(text: string, separator: string): string[] {
  if (!text.includes('"') && !text.includes("'")) return text.split(separator);
  const parts: string[] = [];
  let quote = "";
  let start = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] as string;
    if (quote !== "") {
      if (character === quote) quote = "";
    } else if (character === '"' || character === "'") quote = character;
    else if (character === separator) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}

function unquote(text: string): string {
  const first = text[0];
  return text.length >= 2 && (first === '"' || first === "'") && text.at(-1) === first ? text.slice(1, -1) : text;
}

// Reads JSON texts of similar records, such as jobs: ten thousand jobs of one user differ only in two paths and a few
// numbers. What a text has in common with the previous text is only compared and not parsed again, and its values are used
// again.
//
// A1. The result equals the result of JSON.parse, also in the order of names. Each text gives a new record. Its values may be
//     shared with other records and must not be changed in place.
// A2. A text that JSON.parse refuses is refused here as well.
//
// A pattern describes similar texts as a sequence of runs and holes. A run is a piece of text with members (name and value)
// that were equal in all these texts; it is compared as a whole. A hole is a member whose value differed; it has the value
// of the last text.

import type { Data, Keep } from "./store.ts";

/** A member of a record. text: its name and value, with the comma or brace after them. */
type Member = { readonly name: string; readonly text: string };
type Run = { readonly name: null; readonly text: string };
type Hole = { readonly name: string /** `"NAME":` */; readonly key: string; text: string; value: unknown };
type Pattern = {
  readonly members: readonly Member[];
  readonly holes: ReadonlySet<string>;
  readonly parts: readonly (Run | Hole)[];
  readonly record: Data;
};

/** The number of patterns that are tried for a text. The pattern that fitted last is tried first. */
const PATTERNS_MAX = 4;
/** The reader stops using patterns when it has found this many more texts that fit no pattern than texts that fit one. */
const MISSES_MAX = 200;

/** Returns a reader of records. The reader throws SyntaxError for a text that is not JSON. */
export function alikeReader(keep: Keep): (text: string) => Data {
  let patterns: readonly Pattern[] = [];
  let misses = 0;
  const learn = (text: string): Data => {
    const record = parse(text, keep);
    const members = misses > MISSES_MAX ? null : membersOf(text);
    if (members === null || members.length !== Object.keys(record).length) return record;
    misses++;
    const known = patterns.find((pattern) => isSameSequence(pattern.members, members));
    const others = patterns.filter((pattern) => pattern !== known);
    patterns = misses > MISSES_MAX ? [] : [patternOf(members, known, record), ...others].slice(0, PATTERNS_MAX);
    return { ...record };
  };
  return (text) => {
    for (const pattern of patterns) {
      const record = read(pattern, text, keep);
      if (record === null) continue;
      if (pattern !== patterns[0]) patterns = [pattern, ...patterns.filter((other) => other !== pattern)];
      misses = Math.max(0, misses - 1);
      return record;
    }
    return learn(text);
  };
}

function parse(text: string, keep: Keep): Data {
  const record = JSON.parse(text) as { [name: string]: unknown };
  for (const name in record) record[name] = keep(name, record[name]);
  return record;
}

/** Reads a text with the help of a pattern. Returns null if the text does not fit the pattern. */
function read({ parts, record }: Pattern, text: string, keep: Keep): Data | null {
  const made: { [name: string]: unknown } = { ...record };
  let at = 1;
  for (const part of parts) {
    // A comparison with a slice is many times faster than startsWith.
    if (text.slice(at, at + part.text.length) === part.text) at += part.text.length;
    else if (part.name === null) return null;
    else {
      at = fill(part, text, at, keep);
      if (at < 0) return null;
    }
    if (part.name !== null) made[part.name] = part.value;
  }
  return at === text.length && text[0] === "{" && text.endsWith("}") ? made : null;
}

/** Reads the value of a hole's member from a text. Returns the position after the member, or a negative number if the member is not there. */
function fill(hole: Hole, text: string, at: number, keep: Keep): number {
  const begin = at + hole.key.length;
  if (text.slice(at, begin) !== hole.key) return -1;
  const end = valueEnd(text, begin);
  // The member must be followed by the same character as before: a comma, or at the end of the record a brace.
  if (end < 0 || text.charCodeAt(end) !== hole.text.charCodeAt(hole.text.length - 1)) return -1;
  try {
    hole.value = keep(hole.name, JSON.parse(text.slice(begin, end)));
  } catch {
    return -1;
  }
  hole.text = text.slice(at, end + 1);
  return end + 1;
}

/** Makes a pattern from the members of a text. known: a pattern with the same sequence of names, whose holes remain holes. */
function patternOf(members: readonly Member[], known: Pattern | undefined, record: Data): Pattern {
  const holes = new Set(known?.holes);
  known?.members.forEach(({ name, text }, at) => {
    if (text !== members[at]?.text) holes.add(name);
  });
  const parts: (Run | Hole)[] = [];
  for (const { name, text } of members) {
    const last = parts.at(-1);
    if (holes.has(name)) parts.push({ name, key: text.slice(0, keyEnd(text, 0)), text, value: record[name] });
    else if (last?.name === null) parts[parts.length - 1] = { name: null, text: last.text + text };
    else parts.push({ name: null, text });
  }
  return { members, holes, parts, record };
}

const isSameSequence = (a: readonly Member[], b: readonly Member[]): boolean =>
  a.length === b.length && a.every(({ name }, at) => name === b[at]?.name);

// --- members of JSON texts; only texts without blanks, as JSON.stringify writes them, get a pattern

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [BRACE, CLOSING_BRACE, BRACKET, CLOSING_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d];

/** The members of a record; null: the text is written in another way, or has an unusual name. */
function membersOf(text: string): Member[] | null {
  const members: Member[] = [];
  for (let at = 1; at < text.length; ) {
    const key = keyEnd(text, at);
    const end = key < 0 ? -1 : valueEnd(text, key);
    if (end < 0) return null;
    const name = JSON.parse(text.slice(at, key - 1)) as string;
    if (name === "__proto__") return null;
    members.push({ name, text: text.slice(at, end + 1) });
    at = end + 1;
  }
  return members;
}

/** The position after the colon of a member that begins here, or a negative number if none does. */
function keyEnd(text: string, at: number): number {
  const end = text.charCodeAt(at) === QUOTE ? stringEnd(text, at) : -1;
  return end > 0 && text.charCodeAt(end) === COLON ? end + 1 : -1;
}

/** The position of the comma or brace after a value, or a negative number if there is none. */
function valueEnd(text: string, begin: number): number {
  let depth = 0;
  for (let at = begin; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = stringEnd(text, at) - 1;
        if (at < 0) return -1;
        break;
      case BRACE:
      case BRACKET:
        depth++;
        break;
      case COMMA:
        if (depth === 0) return at;
        break;
      case CLOSING_BRACE:
        if (depth === 0) return at;
        depth--;
        break;
      case CLOSING_BRACKET:
        depth--;
        break;
    }
  }
  return -1;
}

/** The position after the closing quote of a string that begins here, or a negative number if the string does not end. */
function stringEnd(text: string, begin: number): number {
  for (let at = text.indexOf('"', begin + 1); at > 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return at + 1;
  }
  return -1;
}

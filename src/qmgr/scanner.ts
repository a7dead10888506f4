// Cuts one qmgr request into tokens. Where a word ends depends on where it stands (docs/reference/qmgr.md 3): three head words, then attribute terms,
// and a value follows its own quoting rules; so the scanner walks the text once and names each token by its place. The grammar checks their order.
//
// Error columns are the caret positions that PBS users know: a token carries the column an error at it is reported at.

import { parseLimitSyntax } from "#model/values/entity-limit.ts";
import type { ManagedObject } from "#protocol/messages.ts";
import { OBJECT_WORDS, VERBS, type Verb } from "./request.ts";

/** Longest word (verb, name list, attribute, value) that is taken; PBS says `max word length exceeded` above its own bound. */
export const WORD_LENGTH_MAX = 10_240;

export type TokenKind = "Verb" | "ObjectType" | "Names" | "Attribute" | "Operator" | "Value" | "Comma" | "Word" | "Bad";
export type ScannedToken = {
  readonly kind: TokenKind;
  readonly text: string;
  readonly start: number;
  /** where the caret stands when this token is refused */
  readonly column: number;
  /** values: without quotes */
  readonly value?: string;
  readonly too_long?: boolean;
};
export type Scan = {
  readonly tokens: readonly ScannedToken[];
  readonly verb?: Verb;
  readonly object?: ManagedObject;
  readonly end: number;
};

/** What the scanner must know of attributes: whether the third word is one, and whether values follow the entity-limit grammar. */
export type AttributeLookup = {
  isAttribute(object: ManagedObject, name: string): boolean;
  isEntityLimit(object: ManagedObject, name: string): boolean;
};

const OPERATOR = /^(?:=|\+=|-=)/;

export function findVerb(word: string): Verb | undefined {
  return VERBS.find((verb) => verb.startsWith(word));
}
export function findObject(word: string): ManagedObject | undefined {
  return OBJECT_WORDS.find(([name]) => name.startsWith(word))?.[1];
}

/** Scan a request that has at least one word. */
export function scan(line: string, lookup: AttributeLookup): Scan {
  const end = line.trimEnd().length;
  const tokens: ScannedToken[] = [];
  const word = (from: number): ScannedToken | undefined => {
    const start = skipBlanks(line, from);
    const stop = wordEnd(line, start, false);
    return stop > start ? makeToken("Word", line.slice(start, stop), start) : undefined;
  };
  const first = word(0);
  if (first === undefined) return { tokens, end };
  const verb = findVerb(first.text);
  tokens.push({ ...first, kind: "Verb" });
  let at = first.start + first.text.length;
  if (verb === undefined) return { tokens, end };
  if (verb === "help" || verb === "?" || verb === "history" || verb === "quit" || verb === "exit") {
    return { tokens: [...tokens, ...plainWords(line, at)], verb, end };
  }
  const second = word(at);
  if (second === undefined) return { tokens, verb, end };
  const object = findObject(second.text);
  tokens.push({ ...second, kind: "ObjectType" });
  at = second.start + second.text.length;
  if (object === undefined) return { tokens, verb, end };
  const third = word(at);
  const named = object === "hook" || object === "pbshook" || object === "resource";
  if (third !== undefined && (named || !lookup.isAttribute(object, third.text.replace(/[.,].*$/s, "")))) {
    tokens.push({ ...third, kind: "Names" });
    at = third.start + third.text.length;
  }
  const rest = verb === "import" || verb === "export" ? plainWords(line, at) : attributeTokens(line, at, object, lookup);
  return { tokens: [...tokens, ...rest], verb, object, end };
}

function attributeTokens(line: string, from: number, object: ManagedObject, lookup: AttributeLookup): readonly ScannedToken[] {
  const tokens: ScannedToken[] = [];
  let attribute = "";
  for (let at = skipBlanks(line, from); at < line.length; at = skipBlanks(line, at)) {
    const operator = OPERATOR.exec(line.slice(at))?.[0];
    if (line.charAt(at) === ",") {
      tokens.push(makeToken("Comma", ",", at));
      at += 1;
    } else if (operator !== undefined) {
      const after = at + operator.length;
      tokens.push({ kind: "Operator", text: operator, start: at, column: after });
      const start = skipBlanks(line, after);
      if (start >= line.length) break;
      const limit = lookup.isEntityLimit(object, attribute.replace(/\..*$/s, ""));
      const token = scanValue(line, start, limit);
      tokens.push(token);
      if (token.kind === "Bad") break;
      at = start + token.text.length;
    } else {
      const stop = wordEnd(line, at, true);
      attribute = line.slice(at, stop);
      tokens.push(makeToken("Attribute", attribute, at));
      at = stop;
    }
  }
  return tokens;
}

/**
 * One value (docs/reference/qmgr.md 3 "Value quoting"). A plain value ends at a comma or white space. A quoted part may start anywhere in it; the first quote character
 * used is the only one for this value; white space of any kind, line ends included, stands inside quotes. In entity limits blanks belong to the value, a
 * quote opens quoting only as first character, and the text must follow the limit grammar.
 */
function scanValue(line: string, start: number, limit: boolean): ScannedToken {
  let quote = "";
  let open = false;
  let value = "";
  let at = start;
  for (; at < line.length; at++) {
    const char = line.charAt(at);
    if (char === "&" || (isUnprintable(char) && !(open && /\s/.test(char)))) return makeToken("Bad", line.slice(start, at + 1), start);
    if (open) {
      if (char === quote) open = false;
      else value += char;
    } else if (char === "," || (!limit && /\s/.test(char))) {
      break;
    } else if (quote === "" && (char === '"' || char === "'") && (!limit || at === start)) {
      quote = char;
      open = true;
    } else if (quote !== "" && char === quote) {
      open = true;
    } else {
      value += char;
    }
  }
  const text = line.slice(start, at);
  if (open) return makeToken("Bad", text, start);
  if (limit && value.trim() !== "") {
    const syntax = parseLimitSyntax(value.trimEnd());
    if (!syntax.ok) return { kind: "Bad", text, start, column: start + (quote === "" ? 0 : 1) + Math.min(syntax.column, value.length) };
  }
  return { ...makeToken("Value", text, start), value: limit ? value.trim() : value };
}

function plainWords(line: string, from: number): readonly ScannedToken[] {
  const tokens: ScannedToken[] = [];
  for (const match of line.slice(from).matchAll(/\S+/g)) tokens.push(makeToken("Word", match[0], from + match.index));
  return tokens;
}

function makeToken(kind: TokenKind, text: string, start: number): ScannedToken {
  const too_long = text.length > WORD_LENGTH_MAX;
  return too_long ? { kind: "Bad", text, start, column: start, too_long } : { kind, text, start, column: start };
}

/** A word ends at white space or an operator; inside the attribute list at a comma, too. */
function wordEnd(line: string, start: number, inAttributes: boolean): number {
  let at = start;
  while (at < line.length) {
    const char = line.charAt(at);
    if (/\s/.test(char) || (inAttributes && char === ",")) break;
    if (char === "=" || ((char === "+" || char === "-") && line.charAt(at + 1) === "=")) break;
    at++;
  }
  return at;
}

function skipBlanks(line: string, from: number): number {
  let at = from;
  while (at < line.length && /\s/.test(line.charAt(at))) at++;
  return at;
}

function isUnprintable(char: string): boolean {
  const code = char.charCodeAt(0);
  return (code < 0x20 && code !== 0x09) || code === 0x7f;
}

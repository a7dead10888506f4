// Scans what select and exec_vnode have in common: `name=value` pairs joined by colons. A value with blanks, colons, commas
// or plus signs is in quotes, " or ' (docs/reference/commands.md 1.2).
//
// I1. Nothing is lost: if the texts that a scanner returns are joined again, they are the input.

/** One pair. text: the value without quotes. raw: the text `name=value` as it was written, with quotes. */
export type Pair = { readonly name: string; readonly text: string; readonly raw: string };

const NAME = /[A-Za-z][A-Za-z0-9_-]*/y;
const PLAIN = /[^\s"'+:=,()&]+/y;
const NEEDS_QUOTES = /[\s"'+:=,()&]/;

/** A text with the position up to which it has been read. */
export class Scanner {
  readonly text: string;
  at = 0;
  constructor(text: string) {
    this.text = text;
  }
  get done(): boolean {
    return this.at >= this.text.length;
  }
  /** moves past the next character if it is this one; returns whether it was */
  take(character: string): boolean {
    if (this.text[this.at] !== character) return false;
    this.at++;
    return true;
  }
  /** returns the text that a sticky regular expression matches at the position and moves past it; null if it does not match */
  match(sticky: RegExp): string | null {
    sticky.lastIndex = this.at;
    const found = sticky.exec(this.text)?.[0];
    if (found === undefined) return null;
    this.at += found.length;
    return found;
  }
}

/** Scans `name=value` at the position. Returns null if the text there is malformed. */
export function scanPair(scanner: Scanner): Pair | null {
  const start = scanner.at;
  const name = scanner.match(NAME);
  if (name === null || !scanner.take("=")) return null;
  const text = scanValue(scanner);
  return text === null ? null : { name, text, raw: scanner.text.slice(start, scanner.at) };
}

/** Makes a pair, with quotes around the value if needed. Returns null if the value contains both kinds of quotes. */
export function makePair(name: string, text: string): Pair | null {
  const quoted = quoteValue(text);
  return quoted === null ? null : { name, text, raw: `${name}=${quoted}` };
}

/** The text of a value, in quotes if needed. Returns null if the value contains both kinds of quotes. */
export function quoteValue(text: string): string | null {
  if (text !== "" && !NEEDS_QUOTES.test(text)) return text;
  if (!text.includes('"')) return `"${text}"`;
  return text.includes("'") ? null : `'${text}'`;
}

/** Scans a value: plain and quoted parts in any order, at least one part. */
function scanValue(scanner: Scanner): string | null {
  let text: string | null = null;
  for (;;) {
    const quote = scanner.text[scanner.at];
    if (quote === '"' || quote === "'") {
      const end = scanner.text.indexOf(quote, scanner.at + 1);
      if (end < 0) return null;
      text = (text ?? "") + scanner.text.slice(scanner.at + 1, end);
      scanner.at = end + 1;
      continue;
    }
    const plain = scanner.match(PLAIN);
    if (plain === null) return text === "" ? null : text;
    text = (text ?? "") + plain;
  }
}

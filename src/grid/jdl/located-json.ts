// Reads JSON and remembers the position of each value, so that every fault in a campaign file can be reported with its line and column. Pure.
//
// L1. A key that occurs twice in one object is a fault, because one of the two values would be lost silently.
// L2. The depth of nesting is limited, so that no text can exhaust the stack.

/** A value of JSON. at: offset of its first character in the text. */
export type JsonNode =
  | { readonly kind: "text"; readonly at: number; readonly value: string }
  | { readonly kind: "number"; readonly at: number; readonly value: number }
  | { readonly kind: "flag"; readonly at: number; readonly value: boolean }
  | { readonly kind: "null"; readonly at: number }
  | { readonly kind: "list"; readonly at: number; readonly items: readonly JsonNode[] }
  | { readonly kind: "object"; readonly at: number; readonly members: ReadonlyMap<string, Member> };

/** key_at: offset of the key of a value in an object. */
type Member = { readonly key_at: number; readonly value: JsonNode };

/** A text that is not JSON. at: the offset of the fault. */
export class JsonFault extends Error {
  readonly at: number;

  constructor(text: string, at: number) {
    super(text);
    this.at = at;
  }
}

const DEPTH_MAX = 32;

/** Reads a text as JSON. Throws a JsonFault with the position of the first character that is not correct JSON. */
export function parseLocatedJson(text: string): JsonNode {
  const reader = new Reader(text);
  const node = reader.value(0);
  reader.end();
  return node;
}

/** Returns line and column, both from 1, of an offset in a text. A column counts UTF-16 units. */
export function placeOf(text: string, at: number): { readonly line: number; readonly column: number } {
  let line = 1;
  let begin = 0;
  for (let next = text.indexOf("\n"); next >= 0 && next < at; next = text.indexOf("\n", begin)) {
    line++;
    begin = next + 1;
  }
  return { line, column: at - begin + 1 };
}

const BLANK = /[ \t\r\n]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
/** The characters of a quoted text up to the next quote, backslash or control character. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what ends the match
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const WORD = /[A-Za-z_$][A-Za-z0-9_$]*/y;
const ESCAPED: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    if (text.startsWith("\ufeff")) this.#at = 1;
  }

  value(depth: number): JsonNode {
    this.#match(BLANK);
    const at = this.#at;
    const char = this.#text.charAt(at);
    if (depth > DEPTH_MAX) throw new JsonFault(`values are nested more than ${DEPTH_MAX} deep`, at);
    if (char === "{") return this.#object(at, depth);
    if (char === "[") return this.#list(at, depth);
    if (char === '"') return { kind: "text", at, value: this.#string() };
    const number = this.#match(NUMBER);
    if (number !== "") return { kind: "number", at, value: Number(number) };
    return this.#word(at);
  }

  end(): void {
    this.#match(BLANK);
    if (this.#at < this.#text.length) throw new JsonFault(`${this.#shown()} after the end of the object`, this.#at);
  }

  #word(at: number): JsonNode {
    const word = this.#match(WORD);
    if (word === "true" || word === "false") return { kind: "flag", at, value: word === "true" };
    if (word === "null") return { kind: "null", at };
    this.#at = at;
    throw new JsonFault(`a value is expected in place of ${word === "" ? this.#shown() : word}`, at);
  }

  #object(at: number, depth: number): JsonNode {
    const members = new Map<string, Member>();
    this.#at++;
    if (this.#take("}")) return { kind: "object", at, members };
    do {
      this.#match(BLANK);
      const key_at = this.#at;
      if (this.#text.charAt(key_at) !== '"') throw new JsonFault(`a key in double quotes is expected in place of ${this.#shown()}`, key_at);
      const key = this.#string();
      if (members.has(key)) throw new JsonFault(`the key ${JSON.stringify(key)} stands twice in one object`, key_at);
      if (!this.#take(":")) throw new JsonFault(`a colon is expected in place of ${this.#shown()}`, this.#at);
      members.set(key, { key_at, value: this.value(depth + 1) });
    } while (this.#take(","));
    if (!this.#take("}")) throw new JsonFault(`a comma or } is expected in place of ${this.#shown()}`, this.#at);
    return { kind: "object", at, members };
  }

  #list(at: number, depth: number): JsonNode {
    const items: JsonNode[] = [];
    this.#at++;
    if (this.#take("]")) return { kind: "list", at, items };
    do items.push(this.value(depth + 1));
    while (this.#take(","));
    if (!this.#take("]")) throw new JsonFault(`a comma or ] is expected in place of ${this.#shown()}`, this.#at);
    return { kind: "list", at, items };
  }

  #string(): string {
    const begin = this.#at++;
    let value = this.#match(PLAIN);
    while (this.#text.charAt(this.#at) !== '"') {
      const escaped = this.#match(ESCAPE);
      if (escaped === "") {
        if (this.#at >= this.#text.length) throw new JsonFault("a text without its closing double quote", begin);
        throw new JsonFault(`${this.#shown()} may not stand in a text; write it as an escape such as \\n or \\u0000`, this.#at);
      }
      const letter = escaped.charAt(1);
      value += letter === "u" ? String.fromCharCode(Number.parseInt(escaped.slice(2), 16)) : (ESCAPED[letter] ?? letter);
      value += this.#match(PLAIN);
    }
    this.#at++;
    return value;
  }

  /** Skips blanks, then reads the character if it comes next. Returns whether it did. */
  #take(char: string): boolean {
    this.#match(BLANK);
    if (this.#text.charAt(this.#at) !== char) return false;
    this.#at++;
    return true;
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? "";
    this.#at += found.length;
    return found;
  }

  /** Returns a text for messages that shows the character at the present position. */
  #shown(): string {
    return this.#at >= this.#text.length
      ? "the end of the text"
      : JSON.stringify(String.fromCodePoint(this.#text.codePointAt(this.#at) ?? 0));
  }
}

// JSON as PBS prints it (docs/reference/commands.md 2.6): a tab per level, a tab after the colon, and values that are JSON themselves as such. Pure.

/** Text that may stand unquoted: a number, true, false or null as JSON spells them. */
const LITERAL = /^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)$/;

/** Printable ASCII without quote and backslash needs no escapes. */
const PLAIN = /^[ !#-[\]-~]*$/;

export const quote = (text: string): string => (PLAIN.test(text) ? `"${text}"` : JSON.stringify(text));

/** An attribute's text as a JSON value: numbers, literals and objects as such, all else quoted. */
export function jsonValue(text: string, level: number): string {
  const first = text.charCodeAt(0);
  // digit, minus, t, f, n, {
  if ((first >= 48 && first <= 57) || first === 45 || first === 116 || first === 102 || first === 110) {
    return LITERAL.test(text) ? text : quote(text);
  }
  if (first === 123) {
    try {
      return jsonTree(JSON.parse(text), level);
    } catch {
      return quote(text);
    }
  }
  return quote(text);
}

/** Any JSON value, its members one level deeper than `level`. */
function jsonTree(value: unknown, level: number): string {
  if (Array.isArray(value)) return `[${value.map((each) => jsonTree(each, level)).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    return jsonObject(
      Object.entries(value).map(([key, each]) => [key, jsonTree(each, level + 1)] as const),
      level,
    );
  }
  return JSON.stringify(value) ?? "null";
}

/** An object of rendered values; its closing brace stands at `level`. */
export function jsonObject(members: readonly (readonly [string, string])[], level: number): string {
  const object = objectWriter(level);
  for (const [key, value] of members) object.add(key, value);
  return object.end();
}

export type ObjectWriter = { add(key: string, rendered: string): void; end(): string };

const INDENTS = Array.from({ length: 12 }, (_, level) => `\n${"\t".repeat(level)}`);
const indent = (level: number): string => INDENTS[level] ?? `\n${"\t".repeat(level)}`;

/** `"name":` and its tab, for the few names there are: attributes of thousands of objects share them. */
const keys = new Map<string, string>();
const KEYS_MAX = 1000;

function keyText(key: string): string {
  const known = keys.get(key);
  if (known !== undefined) return known;
  const text = `${quote(key)}:\t`;
  if (keys.size < KEYS_MAX) keys.set(key, text);
  return text;
}

/** A member that stands at `level`, from its line end on. */
export const memberText = (key: string, rendered: string, level: number): string => indent(level) + keyText(key) + rendered;

/** An object of such members; its closing brace stands at `level`. */
export const objectText = (members: readonly string[], level: number): string => `{${members.join(",")}${indent(level)}}`;

/** An object whose members come one by one. */
export function objectWriter(level: number): ObjectWriter {
  const members: string[] = [];
  return {
    add: (key, rendered) => void members.push(memberText(key, rendered, level + 1)),
    end: () => objectText(members, level),
  };
}

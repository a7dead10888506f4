// JSON as PBS prints it (docs/reference/commands.md 2.6): one tab for each level, a tab after the colon, and no quotes
// around values that are JSON themselves. Pure.

/** Matches text that is printed without quotes: a number, true, false or null in the spelling of JSON. */
const LITERAL = /^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)$/;

/** Matches text that needs no escapes: printable ASCII without quote and backslash. */
const PLAIN = /^[ !#-[\]-~]*$/;

export const quote = (text: string): string => (PLAIN.test(text) ? `"${text}"` : JSON.stringify(text));

/** Writes the text of an attribute as a JSON value. Numbers, true, false, null and objects are unchanged; everything else gets quotes. */
export function jsonValue(text: string, level: number): string {
  const first = text.charCodeAt(0);
  // characters that can begin a number, true, false or null; the code after this handles `{`, with which an object begins
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

/** Writes any JSON value. The members of an object are indented by one level more than `level`. */
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

/** Writes an object whose values are written already. Its closing brace is indented by `level`. */
export function jsonObject(members: readonly (readonly [string, string])[], level: number): string {
  const object = objectWriter(level);
  for (const [key, value] of members) object.add(key, value);
  return object.end();
}

export type ObjectWriter = { add(key: string, rendered: string): void; end(): string };

const INDENTS = Array.from({ length: 12 }, (_, level) => `\n${"\t".repeat(level)}`);
const indent = (level: number): string => INDENTS[level] ?? `\n${"\t".repeat(level)}`;

/** Cache of `"name":` with the tab after it: the attributes of thousands of objects have few different names. */
const keys = new Map<string, string>();
const KEYS_MAX = 1000;

function keyText(key: string): string {
  const known = keys.get(key);
  if (known !== undefined) return known;
  const text = `${quote(key)}:\t`;
  if (keys.size < KEYS_MAX) keys.set(key, text);
  return text;
}

/** Writes a member of an object, indented by `level`, with the line break before it. */
export const memberText = (key: string, rendered: string, level: number): string => indent(level) + keyText(key) + rendered;

/** Writes an object whose members memberText has written. Its closing brace is indented by `level`. */
export const objectText = (members: readonly string[], level: number): string => `{${members.join(",")}${indent(level)}}`;

/** Collects the members of an object one by one, then writes it. */
export function objectWriter(level: number): ObjectWriter {
  const members: string[] = [];
  return {
    add: (key, rendered) => void members.push(memberText(key, rendered, level + 1)),
    end: () => objectText(members, level),
  };
}

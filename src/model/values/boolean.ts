// Booleans. PBS writes True and False. It accepts, in upper or lower case, True, T, Y, 1, False, F, N and 0
// (docs/reference/qmgr.md 3).

const TRUE_WORDS: ReadonlySet<string> = new Set(["true", "t", "y", "1"]);
const FALSE_WORDS: ReadonlySet<string> = new Set(["false", "f", "n", "0"]);

/** Parses a boolean. Returns null if the text is not one. */
export function parseBoolean(text: string): boolean | null {
  const word = text.toLowerCase();
  if (TRUE_WORDS.has(word)) return true;
  return FALSE_WORDS.has(word) ? false : null;
}

export function renderBoolean(value: boolean): string {
  return value ? "True" : "False";
}

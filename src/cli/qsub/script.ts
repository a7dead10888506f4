// A job script as qsub reads it: the directives in it (docs/reference/commands.md 1.1). Pure.

/** directives: what stands behind the prefix, in order. script: the text that is sent, with each continued directive on one line. */
export type ScriptDirectives = { readonly directives: readonly string[]; readonly script: string };

/**
 * Directives up to the first executable line. Blank lines, comments and lines that begin with `:` are passed over. A directive whose line ends in a
 * backslash goes on in the next one; both become one line of the script, or the shell would carry out the second. A longer word that begins like the
 * prefix (`#PBSPRO`) is a comment, and an empty prefix finds nothing.
 */
export function readDirectives(script: string, prefix: string): ScriptDirectives {
  const directives: string[] = [];
  const joined: string[] = [];
  if (prefix === "") return { directives, script };
  let at = 0;
  while (at < script.length) {
    const first = lineAt(script, at);
    const text = first.text.trimStart();
    if (isDirective(text, prefix)) {
      const { text: line, next } = wholeLine(script, at);
      const words = line.trimStart().slice(prefix.length).trim();
      if (words !== "") directives.push(words);
      joined.push(line, script[next - 1] === "\n" ? "\n" : "");
      at = next;
      continue;
    }
    if (isExecutable(text)) break;
    joined.push(script.slice(at, first.next));
    at = first.next;
  }
  return { directives, script: joined.join("") + script.slice(at) };
}

/** Nothing, a blank or an option follows the prefix. */
const isDirective = (text: string, prefix: string): boolean =>
  text.startsWith(prefix) && /^(?:[\s-]|$)/.test(text.slice(prefix.length, prefix.length + 1));

/** The line from `at` on with those it is continued in, without its end, and where the next one begins. */
function wholeLine(script: string, at: number): { readonly text: string; readonly next: number } {
  const parts: string[] = [];
  let next = at;
  for (;;) {
    const line = lineAt(script, next);
    next = line.next;
    if (!line.text.endsWith("\\")) {
      parts.push(line.text);
      break;
    }
    parts.push(line.text.slice(0, -1));
    if (next >= script.length) break;
  }
  return { text: parts.join(""), next };
}

/** The line from `at` on, and where the next one begins. */
function lineAt(text: string, at: number): { readonly text: string; readonly next: number } {
  const end = text.indexOf("\n", at);
  return end < 0 ? { text: text.slice(at), next: text.length } : { text: text.slice(at, end), next: end + 1 };
}

const isExecutable = (text: string): boolean => text !== "" && !text.startsWith("#") && !text.startsWith(":");

/** Scripts with DOS line ends are refused: their interpreter line names no program. */
export function hasDosLineEnd(script: string): boolean {
  const end = script.indexOf("\n");
  return end > 0 && script[end - 1] === "\r";
}

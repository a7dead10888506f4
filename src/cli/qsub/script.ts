// The directives of a job script, as qsub reads them (docs/reference/commands.md 1.1). Pure.

/** directives: the texts after the prefix, in order. script: the text to send, with each continued directive on one line. */
export type ScriptDirectives = { readonly directives: readonly string[]; readonly script: string };

/**
 * Reads directives up to the first executable line. Blank lines, comments and lines that begin with `:` are skipped. A
 * directive whose line ends in a backslash continues on the next line. The two lines become one line of the script, because the
 * shell would otherwise execute the second. A longer word that begins with the prefix (`#PBSPRO`) is a comment. An empty prefix
 * matches nothing.
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

/** The prefix is followed by nothing, a blank or an option. */
const isDirective = (text: string, prefix: string): boolean =>
  text.startsWith(prefix) && /^(?:[\s-]|$)/.test(text.slice(prefix.length, prefix.length + 1));

/** The line that begins at `at` with its continuation lines, without its end, and the position of the next line. */
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

/** The line that begins at `at`, and the position of the next line. */
function lineAt(text: string, at: number): { readonly text: string; readonly next: number } {
  const end = text.indexOf("\n", at);
  return end < 0 ? { text: text.slice(at), next: text.length } : { text: text.slice(at, end), next: end + 1 };
}

const isExecutable = (text: string): boolean => text !== "" && !text.startsWith("#") && !text.startsWith(":");

/** Scripts with DOS line ends are refused, because their interpreter line does not name an existing program. */
export function hasDosLineEnd(script: string): boolean {
  const end = script.indexOf("\n");
  return end > 0 && script[end - 1] === "\r";
}

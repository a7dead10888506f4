// Reads the directives of a job script as qsub of PBS does (docs/reference/commands.md 1.1). Pure.

/** directives: the texts after the prefix, in order. script: the text to send, in which each continued directive is on one line. */
export type ScriptDirectives = { readonly directives: readonly string[]; readonly script: string };

/**
 * Reads the directives up to the first line that the shell executes. Blank lines, comments and lines that begin with `:` are skipped. If the line of a
 * directive ends in a backslash, the directive continues on the next line. These lines are joined in the script, because the shell would otherwise execute the
 * second one. A line whose first word is longer than the prefix (`#PBSPRO`) is a comment. If the prefix is empty, there are no directives.
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

/** Whether a line is a directive: after the prefix comes a blank, an option or nothing. */
const isDirective = (text: string, prefix: string): boolean =>
  text.startsWith(prefix) && /^(?:[\s-]|$)/.test(text.slice(prefix.length, prefix.length + 1));

/** Returns the line that begins at `at`, without its line end and joined with its continuation lines. next: the position of the line after them. */
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

/** Returns the line that begins at `at`, and the position of the next line. */
function lineAt(text: string, at: number): { readonly text: string; readonly next: number } {
  const end = text.indexOf("\n", at);
  return end < 0 ? { text: text.slice(at), next: text.length } : { text: text.slice(at, end), next: end + 1 };
}

const isExecutable = (text: string): boolean => text !== "" && !text.startsWith("#") && !text.startsWith(":");

/** Whether a script has DOS line ends. Such a script is refused, because its first line would name an interpreter that does not exist. */
export function hasDosLineEnd(script: string): boolean {
  const end = script.indexOf("\n");
  return end > 0 && script[end - 1] === "\r";
}

// A job script as qsub reads it: the directives in it (pbs/commands.md 1.1). Pure.

/**
 * Texts behind the directive prefix, in order, up to the first executable line. Blank lines, comments and lines that begin with `:` are passed over;
 * a directive whose line ends in a backslash goes on in the next one. An empty prefix finds none.
 */
export function findDirectives(script: string, prefix: string): string[] {
  if (prefix === "") return [];
  const directives: string[] = [];
  for (let at = 0; at < script.length; ) {
    let [line, next] = lineAt(script, at);
    const text = line.trimStart();
    if (text.startsWith(prefix)) {
      while (line.endsWith("\\") && next < script.length) {
        const [more, after] = lineAt(script, next);
        line = line.slice(0, -1) + more;
        next = after;
      }
      const words = line.trimStart().slice(prefix.length).trim();
      if (words.startsWith("-")) directives.push(words);
    } else if (isExecutable(text)) break;
    at = next;
  }
  return directives;
}

/** The line from `at` on, and where the next one begins. */
function lineAt(text: string, at: number): [string, number] {
  const end = text.indexOf("\n", at);
  return end < 0 ? [text.slice(at), text.length] : [text.slice(at, end), end + 1];
}

const isExecutable = (text: string): boolean => text !== "" && !text.startsWith("#") && !text.startsWith(":");

/** Scripts with DOS line ends are refused: their interpreter line names no program. */
export function hasDosLineEnd(script: string): boolean {
  const end = script.indexOf("\n");
  return end > 0 && script[end - 1] === "\r";
}

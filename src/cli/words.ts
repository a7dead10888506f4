// Splits text into words as a shell would, for directives, default_qsub_arguments and batch lines: blanks separate words,
// quotes and backslashes protect them. Nothing is expanded. Pure.

/** Returns the words, or null if a quote is not closed. */
export function splitWords(text: string): string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  let quote = "";
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (quote !== "") {
      if (char === quote) quote = "";
      else if (char === "\\" && quote === '"' && '"\\'.includes(text[at + 1] ?? " ")) word = (word ?? "") + text[++at];
      else word = (word ?? "") + char;
    } else if (char === '"' || char === "'") {
      quote = char;
      word ??= "";
    } else if (char === "\\" && at + 1 < text.length) {
      // A backslash before a blank, a quote or a backslash is removed and protects that character. Before any other character it stays (-v A=it\,s).
      const next = text.charAt(at + 1);
      if (/[\s"'\\]/.test(next)) at++;
      word = (word ?? "") + (/[\s"'\\]/.test(next) ? next : char);
    } else if (/\s/.test(char)) {
      if (word !== null) words.push(word);
      word = null;
    } else word = (word ?? "") + char;
  }
  if (quote !== "") return null;
  if (word !== null) words.push(word);
  return words;
}

// Splits text into words as a shell would, for directives, default_qsub_arguments, batch lines and command lines of campaigns:
// blanks separate words, quotes and backslashes protect them. Nothing is expanded. Pure.

/**
 * Returns the words, or null if a quote is not closed. backslash: whether a backslash that protects nothing stays, as in directives (`-v A=it\,s`), or is removed,
 * as a shell does.
 */
export function splitWords(text: string, backslash: "stays" | "removed" = "stays"): string[] | null {
  const protects = (char: string): boolean => backslash === "removed" || /[\s"'\\]/.test(char);
  const inQuotes = backslash === "removed" ? '"\\$`' : '"\\';
  const words: string[] = [];
  let word: string | null = null;
  let quote = "";
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (quote !== "") {
      if (char === quote) quote = "";
      else if (char === "\\" && quote === '"' && inQuotes.includes(text[at + 1] ?? " ")) word = (word ?? "") + text[++at];
      else word = (word ?? "") + char;
    } else if (char === '"' || char === "'") {
      quote = char;
      word ??= "";
    } else if (char === "\\" && at + 1 < text.length) {
      const next = text.charAt(at + 1);
      if (protects(next)) at++;
      word = (word ?? "") + (protects(next) ? next : char);
    } else if (/\s/.test(char)) {
      if (word !== null) words.push(word);
      word = null;
    } else word = (word ?? "") + char;
  }
  if (quote !== "") return null;
  if (word !== null) words.push(word);
  return words;
}

// Reads variables from files of lines `NAME=VALUE`, as the settings files of Grid Engine and LSF have them. Pure.

/** Returns the variables whose names begin with one of the words and `_`. A line may have `export`, quotes and a final `;`; nothing in it is expanded. */
export function readVariables(text: string, words: readonly string[]): Readonly<Record<string, string>> {
  const lines = text.matchAll(/^\s*(?:export\s+)?([A-Z]+_[A-Z_]+)=["']?([^"';\s]*)["']?\s*;?\s*$/gm);
  return Object.fromEntries(
    [...lines]
      .map(([, name = "", value = ""]) => [name, value] as const)
      .filter(([name]) => words.some((word) => name.startsWith(`${word}_`))),
  );
}

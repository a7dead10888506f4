// The file with further variables for the programs of a backend (the attribute config).

import { readFileSync } from "node:fs";
import { messageOf } from "#support/caught.ts";
import { BackendError } from "../contract/fault.ts";
import { readVariables } from "../contract/variables.ts";

/** Returns the variables of a file whose names begin with one of the words; none if there is no file. */
export function variablesOf(path: string | null, words: readonly string[]): Readonly<Record<string, string>> {
  if (path === null) return {};
  try {
    return readVariables(readFileSync(path, "utf8"), words);
  } catch (error) {
    throw new BackendError({ kind: "configuration", text: `config: ${messageOf(error)}` }, { cause: error });
  }
}

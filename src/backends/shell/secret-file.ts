// Reads files with passwords and tokens.

import { lstatSync, readFileSync } from "node:fs";
import { messageOf } from "#support/caught.ts";
import { BackendError } from "../contract/fault.ts";

const OTHERS_READ = 0o077;

/** Returns the text of a file. Throws unless only its owner can read it, and the owner is root or this process's user. */
export function secretFile(path: string): string {
  try {
    const stat = lstatSync(path);
    const uid = process.geteuid?.() ?? 0;
    if (!stat.isFile() || (stat.uid !== uid && stat.uid !== 0) || (stat.mode & OTHERS_READ) !== 0)
      throw new Error("others may read it; its mode must be 0600");
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new BackendError({ kind: "configuration", text: `credentials ${path}: ${messageOf(error)}` }, { cause: error });
  }
}

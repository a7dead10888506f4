// sched_formula (docs/reference/files.md 1): a copy of job_sort_formula in server_priv and in each sched_priv. Tools of sites
// look for it; Partita itself never reads it.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "./caught.ts";
import { removeIfThere, writeWholeFile } from "./whole-file.ts";

const HEAD = "### PBS INTERNAL FILE DO NOT MODIFY ###";

/** Writes the file, or removes it if there is no formula. Returns the text of the fault, or null if there was none. */
export function keepFormulaFile(directory: string, formula: string | null): string | null {
  const path = join(directory, "sched_formula");
  try {
    if (formula === null) removeIfThere(path);
    else if (textOf(path) !== `${HEAD}\n${formula}\n`) writeWholeFile(path, `${HEAD}\n${formula}\n`);
    return null;
  } catch (error) {
    return `sched_formula cannot be kept: ${messageOf(error)}`;
  }
}

function textOf(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

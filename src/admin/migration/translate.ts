// `partita translate`: reads a batch script of Slurm, and shows the script for PBS and what became of each option.

import { readFileSync } from "node:fs";
import { messageOf } from "#support/caught.ts";
import { AdminError } from "../complex/complex-home.ts";
import { table } from "../hosts/table.ts";
import { translateScript } from "./sbatch.ts";

/** A script longer than this is not a batch script. */
const SCRIPT_BYTES_MAX = 16 * 2 ** 20;

/** Returns the text for standard output and the text for standard error. Throws AdminError if the file cannot be read. */
export function translate(path: string, json: boolean): { readonly script: string; readonly explanation: string } {
  const { script, options, notes } = translateScript(textOf(path));
  if (json) return { script: `${JSON.stringify({ script, options, notes }, null, 2)}\n`, explanation: "" };
  const rows = options.map(({ line, option, pbs, says }) => [line === 0 ? "" : String(line), option, pbs || "nothing", says]);
  const lines = [...table(["line", "Slurm", "PBS", ""], rows), ...notes];
  return { script, explanation: `${lines.join("\n")}\n` };
}

function textOf(path: string): string {
  try {
    const text = readFileSync(path === "-" ? 0 : path, "utf8");
    if (text.length > SCRIPT_BYTES_MAX)
      throw new AdminError(`${path}: longer than ${SCRIPT_BYTES_MAX} characters, so this is not a batch script`);
    return text;
  } catch (error) {
    throw error instanceof AdminError ? error : new AdminError(`${path}: ${messageOf(error)}`);
  }
}

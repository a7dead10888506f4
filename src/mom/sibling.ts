// Where the programs are that a mom starts: beside its own source in a checkout that runs sources, beside its own bundle otherwise.

import { fileURLToPath } from "node:url";

/** `starter` -> src/mom/starter-main.ts or dist/pbs_starter.mjs. */
export function siblingProgram(name: "starter" | "file-agent" | "terminal" | "mom", from: string = import.meta.url): string {
  if (from.endsWith(".ts")) return fileURLToPath(new URL(name === "mom" ? "./main.ts" : `./${name}-main.ts`, from));
  return fileURLToPath(new URL(`./pbs_${name.replace("-", "_")}.mjs`, from));
}

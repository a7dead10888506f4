// The programs that a mom starts: beside its own source in a checkout that runs sources, beside its own bundle otherwise.

import { fileURLToPath } from "node:url";

const SOURCES = {
  mom: "../main.ts",
  starter: "../starter/starter-main.ts",
  "file-agent": "../agent/file-agent-main.ts",
  terminal: "../terminal/terminal-main.ts",
} as const;

/** The path of a program of the mom: `starter` -> src/mom/starter/starter-main.ts or dist/pbs_starter.mjs. */
export function siblingProgram(name: keyof typeof SOURCES, from: string = import.meta.url): string {
  if (from.endsWith(".ts")) return fileURLToPath(new URL(SOURCES[name], from));
  return fileURLToPath(new URL(`./pbs_${name.replace("-", "_")}.mjs`, from));
}

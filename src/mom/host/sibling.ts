// Finds the programs that a mom starts: source files if the mom runs from the sources in a checkout, otherwise the bundles beside its own bundle.

import { fileURLToPath } from "node:url";

const SOURCES = {
  mom: "../main.ts",
  starter: "../starter/starter-main.ts",
  "file-agent": "../agent/file-agent-main.ts",
  "file-server": "../files/file-server-main.ts",
  "file-worker": "../files/file-worker-main.ts",
  terminal: "../terminal/terminal-main.ts",
} as const;

/** Returns the path of a program of the mom: `starter` -> src/mom/starter/starter-main.ts or dist/pbs_starter.mjs. */
export function siblingProgram(name: keyof typeof SOURCES, from: string = import.meta.url): string {
  if (from.endsWith(".ts")) return fileURLToPath(new URL(SOURCES[name], from));
  return fileURLToPath(new URL(`./pbs_${name.replace("-", "_")}.mjs`, from));
}

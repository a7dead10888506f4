// The texts of sources, for figures that need no syntax tree.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../lib/paths.mjs";

/** Every TypeScript file of these folders: {path, text}. */
export function sourceTexts(...folders) {
  const paths = execFileSync("git", ["ls-files", ...folders], { cwd: ROOT, encoding: "utf8" }).split("\n");
  return paths.filter((path) => /\.(tsx?|mjs)$/.test(path)).map((path) => ({ path, text: readFileSync(join(ROOT, path), "utf8") }));
}

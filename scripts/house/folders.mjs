// The order of floors that a folder's README draws: a fenced block headed `floors`, one subfolder a line, the highest first; `.` is the folder's own files.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../lib/paths.mjs";

/** Floors by top folder of src/, such as `src/server`; a folder whose README draws none is not in the map. */
export function readFolders() {
  const floors = new Map();
  for (const name of readdirSync(join(ROOT, "src"))) {
    const readme = join(ROOT, "src", name, "README.md");
    const drawn = existsSync(readme) ? floorsOf(readFileSync(readme, "utf8")) : undefined;
    if (drawn !== undefined) floors.set(`src/${name}`, drawn);
  }
  return floors;
}

/** The floors of a README's text: the first word of each line of the block. */
export function floorsOf(text) {
  const block = /^```floors\n([\s\S]*?)^```/m.exec(text)?.[1];
  return block
    ?.split("\n")
    .map((line) => line.trim().split(/\s/)[0].replace(/\/$/, ""))
    .filter(Boolean);
}

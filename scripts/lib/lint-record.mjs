// Which files Biome has found in order: node_modules/.cache/biome.json holds the hash of their contents. None of our rules looks at more than one file, so
// that those of which nothing changed need not be looked at again. Another Biome or configuration makes everything anew.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { MODULES, ROOT } from "./paths.mjs";

const RECORD = join(MODULES, ".cache", "biome.json");
/** Files that affect the result for all files. */
const RULES = ["biome.json", ".gitignore", "node_modules/@biomejs/biome/package.json"];
const NOT_OURS = new Set([".git", "node_modules", "dist"]);

/**
 * The files to look at: those that changed since they were found in order; null: all of them.
 * inOrder: to be called when those were found in order.
 */
export function filesToLint() {
  const rules = hash(...RULES);
  const now = Object.fromEntries(sources().map((path) => [path, hash(path)]));
  const before = readRecord();
  const changed = before?.rules === rules ? Object.keys(now).filter((path) => now[path] !== before.files[path]) : null;
  const inOrder = () => {
    mkdirSync(dirname(RECORD), { recursive: true });
    const half = `${RECORD}.${process.pid}`;
    writeFileSync(half, JSON.stringify({ rules, files: now }));
    renameSync(half, RECORD);
  };
  return { changed, inOrder };
}

function readRecord() {
  try {
    return JSON.parse(readFileSync(RECORD, "utf8"));
  } catch {
    return undefined;
  }
}

/** Every file of the checkout; Biome decides which of them it checks. */
function sources(under = "") {
  return readdirSync(join(ROOT, under), { withFileTypes: true }).flatMap((entry) => {
    const path = under === "" ? entry.name : `${under}/${entry.name}`;
    if (entry.isDirectory()) return under === "" && NOT_OURS.has(entry.name) ? [] : sources(path);
    return entry.isFile() ? [path] : [];
  });
}

function hash(...paths) {
  const sum = createHash("sha1");
  for (const path of paths) if (existsSync(join(ROOT, path))) sum.update(readFileSync(join(ROOT, path))).update("\0");
  return sum.digest("base64");
}

// References in src/ and docs/ to documents that a reader of the repository cannot open.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ROOT } from "../lib/paths.mjs";

const DOCUMENT = /(?<![\w./-])((?:[\w-]+\/)*[\w-]+\.md)\b/g;
/** Places that the documents of another folder are found under: a reference may be written from the root, from its own folder, or from docs/. */
const PLACES = (path) => ["", dirname(path), "docs"];

/** `path:line document` for each. */
export function lostReferences() {
  const files = execFileSync("git", ["ls-files", "src", "docs"], { cwd: ROOT, encoding: "utf8" }).split("\n").filter(Boolean);
  return files.filter((path) => /\.(tsx?|md|mjs)$/.test(path)).flatMap(lostIn);
}

function lostIn(path) {
  const lines = readFileSync(join(ROOT, path), "utf8").split("\n");
  return lines.flatMap((line, at) =>
    [...line.matchAll(DOCUMENT)]
      .map((match) => match[1])
      .filter((document) => !PLACES(path).some((place) => existsSync(join(ROOT, place, document))))
      .map((document) => `${path}:${at + 1} ${document}`),
  );
}

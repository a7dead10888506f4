// References in src/, docs/ and the pages at the root to documents, to sections of docs/reference, or to source files that are not in the repository.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ROOT } from "../lib/paths.mjs";

/** A document, and the numbers of sections behind it: `docs/reference/commands.md 1.2, 3 and 5`. */
const DOCUMENT = /(?<![\w./-])((?:[\w-]+\/)*[\w-]+\.md)\b((?:(?:,| and|-)? ?\d+(?:\.\d+)?(?![\w%]))*)/g;
/** Places that the documents of another folder are found under: a reference may be written from the root, from its own folder, or from docs/. */
const PLACES = (path) => ["", dirname(path), "docs"];
/** A source file by its path from the root. NAME and the like stand for any name. */
const SOURCE = /(?<![\w./-])((?:src|test|bench|scripts|native)\/(?:[a-z][\w-]*\/)*[a-z][\w.-]*\.(?:tsx?|mjs|[ch]))(?!\w)/g;
/** Pages with numbered sections. */
const NUMBERED = "docs/reference/";

/** `path:line document` for each. */
export function lostReferences() {
  const files = execFileSync("git", ["ls-files", "src", "docs", "*.md"], { cwd: ROOT, encoding: "utf8" }).split("\n").filter(Boolean);
  return files.filter((path) => /\.(tsx?|md|mjs)$/.test(path)).flatMap((path) => lostIn(path, readFileSync(join(ROOT, path), "utf8")));
}

/** The same for a text as if it stood at the path. */
export function lostIn(path, text) {
  return text.split("\n").flatMap((line, at) => {
    const sources = [...line.matchAll(SOURCE)].map(([, source]) => source).filter((source) => !existsSync(join(ROOT, source)));
    return [...lostDocuments(path, line), ...sources].map((lost) => `${path}:${at + 1} ${lost}`);
  });
}

function lostDocuments(path, line) {
  return [...line.matchAll(DOCUMENT)].flatMap(([, document, numbers]) => {
    if (!PLACES(path).some((place) => existsSync(join(ROOT, place, document)))) return [document];
    if (!document.startsWith(NUMBERED)) return [];
    const sections = sectionsOf(document);
    const unknown = [...numbers.matchAll(/\d+(?:\.\d+)?/g)].map(([number]) => number).filter((number) => !sections.has(number));
    return unknown.map((number) => `${document} ${number}`);
  });
}

const known = new Map();

/** Numbers of a page's headings. */
function sectionsOf(document) {
  if (!known.has(document)) {
    const headings = readFileSync(join(ROOT, document), "utf8").matchAll(/^#+ (\d+(?:\.\d+)?)\.? /gm);
    known.set(document, new Set([...headings].map(([, number]) => number)));
  }
  return known.get(document);
}

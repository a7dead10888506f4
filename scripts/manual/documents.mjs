// The Markdown pages that manual pages are made from, and how parts of them are found.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../lib/paths.mjs";

/** Text of a page of docs/; empty if there is none. */
export function document(path) {
  const file = join(ROOT, "docs", path);
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

/** The section `## NUMBER.` of a page, without its heading. Empty if there is none: a test names the manual pages without contents. */
export function section(path, number) {
  const parts = document(path).split(/^(?=## )/m);
  const found = parts.find((part) => part.startsWith(`## ${number}. `));
  return found === undefined ? "" : found.slice(found.indexOf("\n") + 1);
}

/** A page without its title. */
export const withoutTitle = (markdown) => markdown.replace(/^# .*\n+/, "");

/** What the rows of the tables in a text say about a name: the last cells of rows whose first cell names the word. */
export function rowsAbout(markdown, name) {
  return markdown.split("\n").flatMap((line) => {
    if (!line.startsWith("|")) return [];
    const cells = line.split(/(?<!\\)\|/).slice(1, -1);
    return words(cells[0]).includes(name) ? [cells.at(-1).trim()] : [];
  });
}

/** The paragraphs and entries of lists that begin with the name in bold, with the entries that follow such a paragraph. */
export function paragraphsAbout(markdown, name) {
  const starts = /^(?:- )?\*\*([\w, ]+)\*\*/;
  const blocks = markdown.split(/\n(?=- \*\*)|\n\n/);
  const kept = [];
  let isAbout = false;
  for (const block of blocks) {
    const named = starts.exec(block)?.[1];
    if (named !== undefined) isAbout = words(named).includes(name);
    // An entry that is one of a list of programs ends with itself.
    if (isAbout) kept.push(block.replace(/^- (?=\*\*)/, ""));
    if (named !== undefined && block.startsWith("- ")) isAbout = false;
  }
  return kept.join("\n\n");
}

const words = (text) => text.match(/[\w-]+/g) ?? [];

// Pages for readers: links have valid targets, every page is in the index, and every program is in the table of features.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";
import { PROGRAMS } from "../../scripts/lib/programs.mjs";
import { allFiles, ROOT } from "./tree.ts";

const pages = allFiles().filter(({ path }) => path.endsWith(".md"));
const textOf = (path: string): string => pages.find((page) => page.path === path)?.text ?? "";

/** Targets of the links of a page, relative to the checkout; links to other sites and within the page are left out. */
function linksOf(page: { readonly path: string; readonly text: string }): readonly string[] {
  const text = page.text.replace(/```[\s\S]*?```|`[^`\n]*`/g, "");
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? "").filter((target) => !/^(\w+:|#)/.test(target));
  return targets.map((target) => normalize(join(dirname(page.path), target.replace(/#.*/, ""))));
}

test("every link of a page leads to a file", () => {
  const dead = pages.flatMap((page) =>
    linksOf(page).flatMap((target) => (existsSync(join(ROOT, target)) ? [] : [`${page.path}: ${target}`])),
  );
  assert.deepEqual(dead, []);
});

test("every page of docs is reached from its index", () => {
  const reached = new Set<string>();
  const visit = (path: string): void => {
    const page = pages.find((each) => each.path === path);
    if (page === undefined || reached.has(path)) return;
    reached.add(path);
    for (const target of linksOf(page)) if (target.startsWith("docs/")) visit(target);
  };
  visit("docs/README.md");
  const lost = pages.map(({ path }) => path).filter((path) => path.startsWith("docs/") && !reached.has(path));
  assert.deepEqual(lost, [], "name the page in docs/README.md");
});

test("the table of features names every command", () => {
  const features = textOf("docs/features.md");
  const commands = PROGRAMS.filter(({ kind, name }) => kind === "command").map(({ name }) => name);
  assert.ok(commands.length > 25);
  assert.deepEqual(
    commands.filter((name) => !new RegExp(`\\b${name}\\b`).test(features)),
    [],
  );
});

// docs/reference: the generated tables are up to date, and every table is on a page.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { FILES, TABLES, tablesOf, withTables } from "../../scripts/reference/tables.mjs";

const FOLDER = "docs/reference";
const pages = readdirSync(FOLDER).map((name) => ({ name, text: readFileSync(`${FOLDER}/${name}`, "utf8") }));

test("the tables in docs/reference are those of the sources", () => {
  const old = pages.filter(({ name, text }) => (FILES.get(name)?.() ?? withTables(text)) !== text).map(({ name }) => name);
  assert.deepEqual(old, [], "run `npm run reference`");
});

test("every table that is made for docs/reference stands on one page", () => {
  assert.deepEqual(pages.flatMap(({ text }) => tablesOf(text)).sort(), [...TABLES.keys()].sort());
});

test("a page that names an unknown table is refused", () => {
  assert.throws(() => withTables("<!-- table: of contents -->\n<!-- end of table -->"), /there is no table "of contents"/);
});

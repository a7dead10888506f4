// `npm run reference`: brings the tables in docs/reference up to date with the tables of the sources that they are made from.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../lib/paths.mjs";
import { FILES, withTables } from "./tables.mjs";

const folder = join(ROOT, "docs", "reference");
for (const name of readdirSync(folder)) {
  const path = join(folder, name);
  const before = readFileSync(path, "utf8");
  const after = FILES.get(name)?.() ?? withTables(before);
  if (after === before) continue;
  writeFileSync(path, after);
  process.stdout.write(`docs/reference/${name}\n`);
}

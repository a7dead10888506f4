// Stores under many random rows.

import { test } from "node:test";
import { withMemory, withSqlite } from "./bed.ts";
import { STORE_PROPERTIES } from "./contract.ts";

for (const [name, check] of STORE_PROPERTIES) {
  test(`memory store: ${name}`, () => check(withMemory));
  test(`sqlite store: ${name}`, () => check(withSqlite));
}

// Limits that pbs.conf sets: which values are taken, and that docs/limits.md names each of them with its default.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { LIMIT_ROWS } from "#model/limits/server-limits.ts";
import { confLimits, defaultOf, LIMIT_KEYS } from "#protocol/wire/limit-keys.ts";
import { LIMITS } from "#protocol/wire/limits.ts";

test("limits in pbs.conf: a value in its bounds is taken in its unit, any other is named", () => {
  assert.deepEqual(confLimits({}), { ok: true, limits: {} });
  const values = { PARTITA_MAX_UNPROVED: "300", PARTITA_PROOF_TIMEOUT: "5", PARTITA_MAX_REPLY_QUEUE: "2048", PBS_HOME: "/x" };
  const limits = { unproved_connections_max: 300, proof_ms_max: 5000, client_queue_chars_max: 2 * 1024 * 1024 };
  assert.deepEqual(confLimits(values), { ok: true, limits });
  for (const { key, limit, unit, min, max } of LIMIT_KEYS) {
    for (const text of [String(min), String(max), String(defaultOf({ key, limit, unit, min, max }))])
      assert.ok(confLimits({ [key]: text }).ok, `${key}=${text}`);
    for (const text of ["", "-1", "many", "1.5", "1e3", " 8", String(min - 1), String(max + 1), "9".repeat(20)]) {
      const fault = `${key}=${text}: it must be a number from ${min} to ${max}`;
      assert.deepEqual(confLimits({ [key]: text }), { ok: false, fault });
    }
    const read = confLimits({ [key]: String(defaultOf({ key, limit, unit, min, max })) });
    assert.deepEqual(read, { ok: true, limits: { [limit]: LIMITS[limit] } }, "the default in the unit of the key");
  }
});

test("docs/limits.md names every limit of the server with its default", () => {
  const rows = readFileSync(join(import.meta.dirname, "../../../docs/limits.md"), "utf8").split("\n");
  const missing = [
    ...LIMIT_KEYS.map((each) => `| ${each.key} | ${defaultOf(each)} |`),
    ...LIMIT_ROWS.map(([name, , , , , facts]) => `| ${name} | ${facts?.assumed} |`),
  ].filter((begin) => !rows.some((line) => line.startsWith(begin)));
  assert.deepEqual(missing, []);
});

// Compares the tables with the reference from which they were made, if it is beside the checkout: names, order, types, levels
// and notes of every attribute and resource, numbers and texts of every error.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { AttributeDef, AttributeType, ObjectType } from "#model/attribute.ts";
import { LIMIT_ROWS } from "#model/limits/server-limits.ts";
import { PBSE, pbseText } from "#model/pbse.ts";
import { BUILTIN_RESOURCES, resourceTypeText } from "#model/resource-table.ts";
import { MULTICAST_ROWS } from "#model/tables/multicast-attributes.ts";
import { ATTRIBUTE_TABLES } from "#model/tables/tables.ts";
import { SHARED, whyNoShared } from "../live/shared.ts";

const skip = whyNoShared() ?? false;
const read = (name: string): string => readFileSync(join(SHARED, "pbs", name), "utf8");
const cells = (line: string): string[] =>
  line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim());
/** Rows of the table of a section: those that begin with a number. */
const rows = (text: string, heading: RegExp): string[][] =>
  (text.split(/^## /m).find((section) => heading.test(section)) ?? "")
    .split("\n")
    .filter((line) => /^\| [0-9]+a? \|/.test(line))
    .map(cells);

const TYPES: { readonly [written: string]: readonly AttributeType[] } = {
  boolean: ["boolean"],
  integer: ["integer", "time", "keyword", "interactive"],
  "integer(64)": ["long64"],
  float: ["float"],
  size: ["size"],
  duration: ["duration"],
  string: ["string", "keyword", "string_array"],
  "string array": ["string_array"],
  list: ["string_array"],
  "resource list": ["resource_list"],
  "ACL list": ["acl_user", "acl_group", "acl_host", "acl_manager"],
  "entity limit": ["entity_limit"],
  "entity limit per resource": ["entity_limit_res"],
  keyword: ["keyword"],
  character: ["char"],
  "name string": ["name"],
  "formula string": ["formula"],
  "hold letters": ["hold"],
  "node state list": ["node_state"],
  "job/resv list": ["string"],
};

const SECTIONS: readonly [ObjectType, RegExp][] = [
  ["server", /^2\. server/],
  ["sched", /^3\. sched/],
  ["queue", /^4\. queue/],
  ["node", /^5\. node/],
  ["job", /^6\. job/],
  ["resv", /^7\. reservation/],
];

/**
 * The reference allows managers to set some of these. An attribute that names a program that root runs, or a file that root
 * writes, is reserved for root (docs/security.md).
 */
const ROOTS_ALONE: { readonly [object: string]: readonly string[] } = {
  server: ["acl_roots", "job_sort_formula", "mailer", "cred_renew_tool"],
  sched: ["sched_priv", "sched_log", "sched_user"],
};

/** Our own attributes of vnodes, schedulers and jobs. */
const OF_OURS: { readonly [object: string]: readonly string[] } = {
  node: ["backend", "backend_id", "requeue_told", "runner_bucket", "runner_end"],
  job: ["backend", "backend_id", "runner", "fail_reason", "lost_since", "backend_opts", "override", "estgroup", "retries"],
  sched: ["policy", "backfill.order", "backfill.formula"],
};

for (const [object, heading] of SECTIONS) {
  test(`the ${object} table has the reference's rows in its order`, { skip }, () => {
    const expected = rows(read("objects.md"), heading).filter((row) => row[1] !== "_other_");
    const table = ATTRIBUTE_TABLES[object];
    // Our own attributes follow those of the reference.
    const own: ReadonlySet<string> = new Set(
      object === "server" ? [...LIMIT_ROWS, ...MULTICAST_ROWS].map(([name]) => name) : OF_OURS[object],
    );
    assert.deepEqual(
      table.rows.filter((def) => !own.has(def.name)).map((def) => def.name),
      expected.map((row) => row[1]),
    );
    for (const [at, [, , type = "", , read_level = "", set = "", notes = ""]] of expected.entries()) {
      const def = table.rows[at] as AttributeDef;
      assert.ok(TYPES[type]?.includes(def.type), `${def.name}: ${type} is ${def.type}`);
      assert.equal(def.read, read_level === "op+mgr" ? "op" : read_level, def.name);
      const rootOnly = ROOTS_ALONE[object]?.includes(def.name) === true;
      assert.equal(def.set, rootOnly ? "root" : set.toLowerCase(), def.name);
      assert.equal(def.runAlterable === true, notes.includes("run-alterable"), def.name);
      assert.equal(def.hidden === true, notes.includes("hidden"), def.name);
      if (object !== "node") assert.equal(def.createOnly === true, notes.includes("create only"), def.name);
    }
  });
}

test("the resource table has the reference's resources, types, flags and levels", { skip }, () => {
  const expected = rows(read("objects.md"), /^8\. built-in/);
  assert.deepEqual(
    BUILTIN_RESOURCES.map((def) => def.name),
    expected.map((row) => row[1]),
  );
  for (const [at, [, name, type, , , set, notes = ""]] of expected.entries()) {
    const def = BUILTIN_RESOURCES[at];
    const words: { readonly [written: string]: string } = { integer: "long", "string array": "string_array" };
    assert.equal(def?.type, words[type ?? ""] ?? type, name);
    assert.equal(def?.set, set, name);
    const flags = [
      ...(/\bh \(in select\)/.test(notes) ? "h" : ""),
      ...(/q consumable/.test(notes) ? "q" : ""),
      ...(/n consumable/.test(notes) ? "n" : ""),
    ];
    assert.equal(def?.flags, [...flags, ...(/(^|; )m\b/.test(notes) ? "m" : "")].join(""), name);
  }
  assert.equal(resourceTypeText("duration"), "long");
});

test("the error table has the reference's numbers, symbols and texts", { skip }, () => {
  const expected = read("errors.md")
    .split("\n")
    .map((line) => /^\| ([0-9]+) \| PBSE_(\w+) \| (.*?) \| .* \| [0-9]+ \|$/.exec(line))
    .filter((match) => match !== null && !String(match[2]).startsWith("DONOTUSE"));
  assert.equal(expected.length, Object.keys(PBSE).length);
  for (const match of expected) {
    const [, number, symbol = "", text = ""] = match ?? [];
    assert.equal((PBSE as { readonly [symbol: string]: number })[symbol], Number(number), symbol);
    assert.equal(pbseText(Number(number)), text === "(no text)" ? null : text.slice(1, -1), symbol);
  }
});

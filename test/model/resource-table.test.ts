import assert from "node:assert/strict";
import { test } from "node:test";
import {
  BUILTIN_RESOURCES,
  checkResourceFlags,
  customResource,
  isConsumable,
  parseResourceFlags,
  parseResourceType,
} from "#model/resource-table.ts";
import { refusal } from "./refusal.ts";

test("there are 49 built-in resources; every one has sound flags", () => {
  assert.equal(new Set(BUILTIN_RESOURCES.map((def) => def.name)).size, 49);
  for (const def of BUILTIN_RESOURCES) {
    assert.equal(parseResourceFlags(def.flags), def.flags, def.name);
    checkResourceFlags(def.name, def.type, def.flags);
  }
  assert.equal(BUILTIN_RESOURCES.find((def) => def.name === "ncpus")?.flags, "hqnm");
  assert.deepEqual(
    BUILTIN_RESOURCES.filter(isConsumable)
      .map((def) => def.name)
      .sort(),
    ["accelerator_memory", "hbmem", "hpm", "mem", "mpiprocs", "naccelerators", "ncpus", "nodect", "vmem"],
  );
});

test("types and flags of custom resources are checked in the reference's words", () => {
  const BAD = "15014 Illegal attribute or resource value";
  const make = (type: string, flags: string): string =>
    refusal(() => {
      const parsed = parseResourceFlags(flags);
      checkResourceFlags("x1", parseResourceType(type), parsed);
      return parsed;
    });
  // biome-ignore format: a table
  const table: readonly (readonly [type: string, flags: string, outcome: string])[] = [
    ["long",         "nh",  'accepted: "hn"'],
    ["string_array", "rh",  'accepted: "hr"'],
    ["float",        "q",   'accepted: "q"'],
    ["boolean",      "h",   'accepted: "h"'],
    ["string",       "",    'accepted: ""'],
    ["long",         "mrnqh", 'accepted: "hqnrm"'],
    ["integer",      "",    BAD],
    ["duration",     "",    BAD],
    ["long",         "z",   BAD],
    ["long",         "hh",  'accepted: "h"'],
    ["string",       "n",   `15014 Erroneous to have flag 'n' without 'h' on resource "x1".`],
    ["long",         "n",   `15014 Erroneous to have flag 'n' without 'h' on resource "x1".`],
    ["long",         "f",   `15014 Erroneous to have flag 'f' without 'h' on resource "x1".`],
    ["long",         "nfh", `15014 Erroneous to have flag 'n' and 'f' on resource "x1".`],
    ["long",         "ir",  `15014 Erroneous to have flag 'i' and 'r' on resource "x1".`],
    ["long",         "nf",  `15014 Erroneous to have flag 'n' without 'h' on resource "x1".`],
    ["boolean",      "hn",  `15014 Erroneous to have flag 'n', 'f', or 'q' on resource "x1" which is type string, string_array, or boolean.`],
    ["string",       "q",   `15014 Erroneous to have flag 'n', 'f', or 'q' on resource "x1" which is type string, string_array, or boolean.`],
    ["string_array", "hf",  `15014 Erroneous to have flag 'n', 'f', or 'q' on resource "x1" which is type string, string_array, or boolean.`],
    ["boolean",      "ir",  `15014 Erroneous to have flag 'i' and 'r' on resource "x1".`],
  ];
  for (const [type, flags, outcome] of table) assert.equal(make(type, flags), outcome, `${type} ${flags}`);
});

test("flags decide who sees and sets a custom resource", () => {
  const levels = (flags: string): string[] => [customResource("x", "long", flags).read, customResource("x", "long", flags).set];
  assert.deepEqual(
    [levels(""), levels("r"), levels("i")],
    [
      ["all", "user"],
      ["all", "op"],
      ["op", "op"],
    ],
  );
});

// Attributes read by kind.

import assert from "node:assert/strict";
import { test } from "node:test";
import { listOf, resourcesOf, textOf } from "#model/attribute-reader.ts";

test("an attribute of another kind counts as unset", () => {
  const attrs = { text: "a", list: ["a", "b"], resources: { ncpus: 2 }, number: 1, nothing: null };
  const seen = Object.keys({ ...attrs, missing: 0 }).map((name) => [textOf(attrs, name), listOf(attrs, name), resourcesOf(attrs, name)]);
  assert.deepEqual(seen, [
    ["a", [], {}],
    [undefined, ["a", "b"], {}],
    [undefined, [], { ncpus: 2 }],
    [undefined, [], {}],
    [undefined, [], {}],
    [undefined, [], {}],
  ]);
});

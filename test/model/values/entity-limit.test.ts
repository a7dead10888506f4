import assert from "node:assert/strict";
import { test } from "node:test";
import { limitFor, parseLimitSyntax, renderEntityLimits } from "#model/values/entity-limit.ts";

test("limit texts: what qmgr takes, and the column of its caret for what it does not", () => {
  const table: [string, string | number][] = [
    ["[u:PBS_GENERIC=10]", "u:PBS_GENERIC=10"],
    ["[g:staff=5],[p:apollo=3]", "g:staff=5 p:apollo=3"],
    [" [ u : a = 3 ] , [o:PBS_ALL=64]", "u:a=3 o:PBS_ALL=64"],
    ["[u:PBS_GENERIC=x]", "u:PBS_GENERIC=x"],
    ['[p:"two words"=1]', "p:two words=1"],
    ["[u:PBS_GENERIC=16gb]", "u:PBS_GENERIC=16gb"],
    ["5", 0],
    ["", 0],
    ["[u:PBS_ALL=5]", 5],
    ["[o:alice=5]", 5],
    ["[x:a=1]", 1],
    ["[u a=1]", 3],
    ["[u:=1]", 3],
    ["[u:a]", 4],
    ["[u:a=]", 5],
    ["[u:a=1", 6],
    ["[u:a=1] [u:b=2]", 8],
    ["[u:a=1],", 8],
    ["[u:a/b=1]", 4],
    ['[u:""=1]', 4],
  ];
  for (const [text, outcome] of table) {
    const parsed = parseLimitSyntax(text);
    assert.deepEqual(parsed.ok ? parsed.entries.map(({ key, amount }) => `${key}=${amount}`).join(" ") : parsed.column, outcome, text);
  }
});

test("entries are shown by key, with quotes where a name needs them", () => {
  assert.deepEqual(renderEntityLimits({ "u:bob": 1, "u:PBS_GENERIC": 2, "g:x": 3, "p:two words": 4, "o:PBS_ALL": 5 }), [
    "[g:x=3]",
    "[o:PBS_ALL=5]",
    '[p:"two words"=4]',
    "[u:PBS_GENERIC=2]",
    "[u:bob=1]",
  ]);
});

test("a named limit goes before the generic one", () => {
  const limits = { "u:alice": 0, "u:PBS_GENERIC": 5, "o:PBS_ALL": 9 };
  assert.deepEqual(limitFor(limits, "u", "alice"), { key: "u:alice", limit: 0 });
  assert.deepEqual(limitFor(limits, "u", "bob"), { key: "u:PBS_GENERIC", limit: 5 });
  assert.deepEqual(limitFor(limits, "o", ""), { key: "o:PBS_ALL", limit: 9 });
  assert.equal(limitFor(limits, "g", "staff"), undefined);
  assert.equal(limitFor(undefined, "u", "alice"), undefined);
});

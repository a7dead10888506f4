// Message, code and name of any thrown value.

import assert from "node:assert/strict";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { codeOf, messageOf, nameOf, stackOf } from "#support/caught.ts";

test("message, code and name of errors, of errors of another realm, and of what is none", () => {
  const missing = Object.assign(new TypeError("no such file"), { code: "ENOENT" });
  const foreign: unknown = runInNewContext("new RangeError('too far')");
  assert.deepEqual([messageOf(missing), codeOf(missing), nameOf(missing)], ["no such file", "ENOENT", "TypeError"]);
  assert.deepEqual([messageOf(foreign), codeOf(foreign), nameOf(foreign)], ["too far", undefined, "RangeError"]);
  assert.deepEqual([messageOf("a text"), codeOf("a text"), nameOf("a text")], ["a text", undefined, ""]);
  assert.deepEqual([messageOf(null), messageOf(undefined), messageOf({ message: 1, code: 2 })], ["null", "undefined", "[object Object]"]);
  assert.equal(codeOf({ code: 2 }), undefined);
  assert.match(stackOf(missing), /^TypeError: no such file\n/);
  assert.equal(stackOf(7), "7");
});

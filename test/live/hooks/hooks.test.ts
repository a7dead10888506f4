import assert from "node:assert/strict";
import { test } from "node:test";
import { hookTests } from "./hook-cases.ts";

hookTests("user", ({ complex }) => {
  test("a hook survives a restart of all daemons", () => {
    complex().qmgr("create hook kept event=queuejob,order=3");
    const before = complex().qmgr("list hook kept");
    complex().halt();
    complex().start();
    assert.equal(complex().qmgr("list hook kept"), before);
    complex().qmgr("delete hook kept");
  });
});

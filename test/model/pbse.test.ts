import assert from "node:assert/strict";
import { test } from "node:test";
import { exitStatus, PBSE, pbseSymbol, pbseText, Reject, reject, rejectNaming } from "#model/pbse.ts";

test("error numbers are unique, give no exit status 0 and lead back to their symbols", () => {
  const codes = Object.values(PBSE);
  assert.equal(new Set(codes).size, codes.length);
  for (const [symbol, code] of Object.entries(PBSE)) {
    assert.equal(pbseSymbol(code), symbol);
    if (code !== 0) assert.notEqual(exitStatus(code), 0, symbol);
  }
  assert.equal(pbseSymbol(15360), null);
});

test("refusals hold number and text as clients print them", () => {
  const table: [Reject, number, string | null, number][] = [
    [reject(PBSE.UNKJOBID), 15001, "Unknown Job Id", 153],
    [reject(PBSE.NOATTR), 15002, "Undefined attribute ", 154],
    [reject(PBSE.ATTRRO, "server_state"), 15003, "Cannot set attribute, read only or insufficient permission  server_state", 155],
    [reject(PBSE.BADATVAL, "max_run"), 15014, "Illegal attribute or resource value max_run", 166],
    [reject(PBSE.BADATLST), 15032, null, 184],
    [rejectNaming(PBSE.DUPRESC, "ncpus"), 15116, "duplicated resource within a section of a select specification, resource is: ncpus", 12],
  ];
  for (const [error, code, text, status] of table) {
    assert.ok(error instanceof Error && error instanceof Reject);
    assert.deepEqual([error.code, error.text, exitStatus(error.code)], [code, text, status]);
  }
  assert.equal(pbseText(99), null);
});

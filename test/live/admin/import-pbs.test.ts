// `partita import-pbs` takes the configuration of another PBS over into a real complex.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, startComplex } from "../complex.ts";

let complex: Complex;
before(async () => {
  complex = await startComplex();
});
after(() => complex.stop());

const SETTINGS = [
  "create resource gpu_type",
  "set resource gpu_type type = string",
  "set resource gpu_type flag = h",
  "create queue night",
  "set queue night queue_type = Execution",
  "set queue night max_run = [u:PBS_GENERIC=4]",
  "set queue night enabled = True",
  "set queue night started = False",
  "set server max_queued = [o:PBS_ALL=1000]",
];

test("what is taken over, the complex prints again", () => {
  const dump = join(complex.work(), "dump");
  writeFileSync(dump, [...SETTINGS, "set queue night colour = red", ""].join("\n"));
  const call = (...args: string[]) => complex.run("partita", ["import-pbs", "--home", complex.home, "--dump", dump, ...args]);
  const tried = call("--check");
  assert.equal(tried.status, 1);
  assert.match(tried.stdout, /^refused 10: set queue night colour = red\n {8}Undefined attribute$/m);
  assert.match(tried.stdout, /^9 requests would be taken as they are, 0 changed, 1 refused\.$/m);
  assert.ok(!complex.qmgr("print server").includes("night"), "--check changes nothing");
  const done = call();
  assert.equal(done.stderr, "");
  assert.match(done.stdout, /^9 requests were taken as they are, 0 changed, 1 refused\.$/m);
  const printed = complex.qmgr("print server").split("\n");
  for (const line of SETTINGS) assert.ok(printed.includes(line), `${line} is not among\n${printed.join("\n")}`);
  const again = call();
  assert.equal(again.status, 1);
  assert.match(again.stderr, /the complex has refused some requests/);
});

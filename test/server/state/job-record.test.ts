// Records of jobs keep V8's compact form, a list of values with a shared shape. A record to which many attributes are added by
// computed names, or from which one is deleted, becomes a hash table, which takes six times the memory and is slow to create
// (state/state.ts, state/apply.ts).

import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { addHost, advance, ask, type Harness, harness, jobAttrs, mom, ROOT, runOn } from "../harness.ts";
import { qalter, qsub } from "../requests/qsub.ts";

setFlagsFromString("--allow-natives-syntax");
const isShaped = runInNewContext("(record) => %HasFastProperties(record)") as (record: object) => boolean;

test("what V8 says of records can be either", () => {
  const record: { [name: string]: number } = { a: 1, b: 2 };
  assert.equal(isShaped(record), true);
  delete record["a"];
  assert.equal(isShaped(record), false);
});

function check(h: Harness, id: string, when: string): void {
  assert.equal(isShaped(jobAttrs(h, id)), true, `${id} ${when}`);
}

test("a job's record stays one of a shared shape from submission through runs, changes and a rerun", async () => {
  const h = harness();
  const link = addHost(h, "n1", { ncpus: 16 });
  const id = await qsub(h, "-N job -l select=1:ncpus=1 -- /bin/true");
  check(h, id, "submitted");
  assert.equal(qalter(h, id, ["Priority=5", "Account_Name=account"]), "ok");
  check(h, id, "altered");
  runOn(h, id, "n1", link);
  check(h, id, "running");
  ask(h, ROOT, { kind: "rerun-job", job: id, force: true });
  advance(h, 30);
  check(h, id, "requeued");
  mom(h, link, "mom-obit", { job: id, run_count: 1, exit_status: -11, used: {}, stageout_status: 1 });
  runOn(h, id, "n1", link);
  check(h, id, "running again");
});

test("so does a subjob's, which begins as a copy of its array's", async () => {
  const h = harness();
  const link = addHost(h, "n1", { ncpus: 16 });
  const array = await qsub(h, "-J 1-3 -- /bin/true");
  check(h, array, "submitted");
  const subjob = array.replace("[]", "[2]");
  runOn(h, subjob, "n1", link);
  check(h, subjob, "running");
  check(h, array, "begun");
});

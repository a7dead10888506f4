// Buckets of jobs: rounding, keys, and requests that no runner can serve.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResourceValue } from "#model/attribute.ts";
import { type Bucket, bucketOf, bucketResources, roundUp } from "#model/request/bucket.ts";
import { builtinResources, customResource } from "#model/resource-table.ts";

const RESOURCES = builtinResources();
RESOURCES.set("ngpus", customResource("ngpus", "long", "nh"));
RESOURCES.set("tmp", customResource("tmp", "size", "nh"));
RESOURCES.set("colour", customResource("colour", "string", "h"));

const of = (schedselect: string, list: { readonly [name: string]: ResourceValue } = {}, owner = "alice") =>
  bucketOf({ owner, queue: "cloud", project: "p", schedselect, list }, RESOURCES);
function bucket(...args: Parameters<typeof of>): Bucket {
  const found = of(...args);
  assert.ok(!("impossible" in found), JSON.stringify(found));
  return found;
}

test("bucket: an amount is rounded up to three binary digits, by less than a quarter", () => {
  assert.deepEqual([0, 1, 7, 8, 9, 10, 11, 13, 15, 17, 21, 1000].map(roundUp), [0, 1, 7, 8, 10, 10, 12, 14, 16, 20, 24, 1024]);
  for (let amount = 1; amount < 100_000; amount += 1 + (amount >> 6)) {
    const rounded = roundUp(amount);
    assert.ok(rounded >= amount && rounded < amount * 1.25, `${amount} became ${rounded}`);
    assert.equal(roundUp(rounded), rounded);
  }
  assert.equal(roundUp(0.5), 1);
});

test("bucket: the chunks of a job are summed, and about equal jobs share a bucket", () => {
  const one = bucket("2:ncpus=2:mem=500mb+1:ncpus=1:mem=1gb:ngpus=1:tmp=10gb", { walltime: 3500 });
  assert.deepEqual([one.ncpus, one.mem_kb, one.tmp_kb, one.walltime_s], [5, 2 * 1024 * 1024, 10 * 1024 * 1024, 3584]);
  assert.deepEqual(bucketResources(one), { ngpus: "1", ncpus: "5", mem: "2097152kb", tmp: "10485760kb" });
  assert.equal(one.key, "alice:cloud:p:ncpus=5:mem=2097152kb:tmp=10485760kb:walltime=00:59:44:ngpus=1");
  assert.equal(bucket("1:ncpus=5:mem=2000mb:ngpus=1:tmp=10000mb", { walltime: 3560 }).key, one.key);
  assert.notEqual(bucket("1:ncpus=5:mem=2000mb:ngpus=1:tmp=10000mb", { walltime: 3560 }, "bob").key, one.key);
  assert.equal(bucket("1:ncpus=1").walltime_s, null);
  assert.equal(bucket("1:ncpus=1", { walltime: 5 }).walltime_s, 64);
  assert.equal(bucket("1:ncpus=1:colour=red").resources["colour"], "red");
});

test("bucket: what no runner can have is impossible, with the reason", () => {
  const why = (select: string, place = "free"): string => {
    const found = of(select, { place });
    return "impossible" in found ? found.impossible : "possible";
  };
  assert.match(why("2:ncpus=1", "scatter"), /several hosts/);
  assert.equal(why("1:ncpus=1", "scatter"), "possible");
  assert.equal(why("2:ncpus=1", "pack"), "possible");
  assert.match(why("1:ncpus=1:host=n1"), /asks for host n1/);
  assert.match(why("1:ncpus=1:vnode=n1"), /asks for vnode n1/);
  assert.match(why("1:ncpus=1:colour=red+1:ncpus=1:colour=blue"), /different values of colour/);
});

test("bucket: options for the backend are part of the key", () => {
  const with_options = bucketOf(
    { owner: "alice", queue: "cloud", project: "p", schedselect: "1:ncpus=1", list: {}, options: "-C fast" },
    RESOURCES,
  );
  assert.ok(!("impossible" in with_options));
  assert.deepEqual([with_options.key, with_options.options], ["alice:cloud:p:ncpus=1:backend_opts=-C fast", "-C fast"]);
  assert.equal("options" in bucket("1:ncpus=1"), false);
});

// Fairshare: sums and claims of the tree, usage counted once, decay, and the file that stores it.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as fairshare from "#model/fairshare.ts";
import { parseResourceGroup } from "#model/resource-group.ts";
import { parseUsage, usageText } from "#model/usage-file.ts";

const GROUPS = "g1 10 root 40\ng2 20 root 60\na 11 g1 50\nb 12 g1 50\nc 21 g2 60\nd 22 g2 40\n";
const { tree } = parseResourceGroup(GROUPS, 0);
const planted = (usage: Record<string, number> = {}): fairshare.Fairshare =>
  fairshare.createFairshare(tree, { last_decay_s: 1000, usage, running: {} }, 1000);
const usages = (of: fairshare.Fairshare, ...names: string[]): number[] => names.map((name) => fairshare.entity(of, name).usage);
const round = (value: number): string => value.toFixed(4);

test("a group has used 1 and what those below have", () => {
  const of = planted({ a: 100, b: 100, d: 1000 });
  assert.deepEqual(usages(of, "TREEROOT", "g1", "g2", "a", "c", "d", "unknown"), [1201, 201, 1001, 100, 1, 1000, 1]);
  fairshare.addUsage(of, "c", 9);
  assert.deepEqual(usages(of, "TREEROOT", "g2", "c"), [1211, 1011, 10]);
  assert.deepEqual(usages(fairshare.replant(of, tree), "TREEROOT", "g2", "c"), [1211, 1011, 10], "as kept and read again");
  fairshare.addUsage(of, "c", 0);
  assert.deepEqual(usages(of, "c"), [10]);
});

test("percentages, tree usage and factor are those of PBS", () => {
  const of = planted({ a: 100, b: 100, d: 1000 });
  const of_each = (compute: (node: fairshare.ShareNode) => number): string[] =>
    ["a", "b", "c", "d"].map((name) => round(compute(fairshare.entity(of, name))));
  assert.deepEqual(
    of_each((node) => node.percentage),
    ["0.2000", "0.2000", "0.3600", "0.2400"],
  );
  assert.deepEqual(
    of_each((node) => fairshare.treeUsage(of, node)),
    ["0.1253", "0.1253", "0.5004", "0.8330"],
  );
  assert.deepEqual(
    of_each((node) => fairshare.shareFactor(of, node)),
    ["0.6477", "0.6477", "0.3816", "0.0902"],
  );
});

test("claims are compared from the root down; who has no share comes last", () => {
  const of = planted({ a: 10, c: 300 });
  const order = (a: string, b: string): number => Math.sign(fairshare.compareShares(fairshare.entity(of, a), fairshare.entity(of, b)));
  assert.deepEqual([order("a", "b"), order("a", "d"), order("d", "c"), order("a", "a")], [1, -1, -1, 0]);
  assert.equal(order("nobody", "c"), 1, "unknown has no shares here");
});

test("names that resource_group lacks share what `unknown` has", () => {
  const of = fairshare.createFairshare(parseResourceGroup(GROUPS, 100).tree, null, 0);
  const [x, y] = [fairshare.entity(of, "x"), fairshare.entity(of, "y")];
  assert.deepEqual([x.percentage, y.percentage], [0.25, 0.25]);
  assert.equal(fairshare.entity(of, "x"), x);
});

test("a run's usage counts once, whoever asks how often; a rerun begins anew", () => {
  const of = planted();
  const run = (run_count: number, amount: number): void => fairshare.countRun(of, "a", { id: "1.svr", run_count }, amount);
  for (const amount of [10, 10, 25, 20]) run(1, amount);
  assert.deepEqual(usages(of, "a"), [26]);
  const again = fairshare.replant(of, tree);
  fairshare.countRun(again, "a", { id: "1.svr", run_count: 1 }, 30);
  assert.deepEqual(usages(again, "a"), [31], "over a restart, too");
  run(2, 4);
  assert.deepEqual(usages(of, "a"), [30]);
  fairshare.forgetRun(of, "1.svr");
  assert.equal(of.counted.size, 0);
});

test("usage decays once for each period that is over, and never below 1", () => {
  const of = planted({ a: 100, b: 1.5 });
  const rule = { time_s: 50, factor: 0.5 };
  assert.equal(fairshare.decayDue(of, rule, 1049), 0);
  assert.equal(fairshare.decayDue(of, rule, 1120), 2);
  assert.deepEqual([of.last_decay_s, ...usages(of, "a", "b", "g1", "TREEROOT")], [1100, 25, 1, 26, 26]);
  assert.equal(fairshare.decayDue(of, { time_s: 0, factor: 0.5 }, 99_999), 0, "0: never");
});

test("temporary usage orders entities until it is forgotten", () => {
  const of = planted();
  const before = of.usage_version;
  fairshare.addTemporary(of, "a", 5);
  assert.ok(fairshare.compareShares(fairshare.entity(of, "a"), fairshare.entity(of, "b")) > 0);
  assert.deepEqual([usages(of, "a", "g1"), of.usage_version], [[1, 1], before]);
  fairshare.forgetTemporary(of);
  assert.equal(fairshare.compareShares(fairshare.entity(of, "a"), fairshare.entity(of, "b")), 0);
});

test("entities of a job", () => {
  const job = { user: "u", group: "g", queue: "q" };
  const of = (kind: fairshare.FairshareEntity, account?: string): string =>
    fairshare.entityOf({ ...job, ...(account === undefined ? {} : { account }) }, kind);
  assert.deepEqual(
    fairshare.FAIRSHARE_ENTITIES.map((kind) => of(kind)),
    ["u", "g", "unknown", "q", "g:u"],
  );
  assert.equal(of("Account_Name", "acct"), "acct");
});

test("the file gives back what was kept; what is no usage is told", () => {
  const stored = { last_decay_s: 5, usage: { a: 1.5, ["__proto__"]: 2 }, running: { "1.svr": { run: 2, amount: 3.25 } } };
  assert.deepEqual(parseUsage(usageText(stored)), stored);
  // biome-ignore format: a table
  const table: readonly (readonly [text: string, fault: string])[] = [
    ["",                                                                    "it is no JSON"],
    ["PBS_MAG!\u0002",                                                      "it was written by another PBS"],
    ["[]",                                                                  "it is no usage of this format"],
    ['{"format":"fairshare usage 1"}',                                      "something is missing in it"],
    ['{"format":"fairshare usage 1","last_decay":1,"usage":{"a":"x"},"running":{}}',   "the usage of a is no amount"],
    ['{"format":"fairshare usage 1","last_decay":1,"usage":{"a":-1},"running":{}}',    "the usage of a is no amount"],
    ['{"format":"fairshare usage 1","last_decay":1,"usage":{},"running":{"1":[1]}}',   "the run of 1 is not two numbers"],
  ];
  for (const [text, fault] of table) assert.equal(parseUsage(text), fault);
});

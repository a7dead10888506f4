import assert from "node:assert/strict";
import { test } from "node:test";
import { countRefusal, type LimitQuestion, mixesLimitStyles, queuableRefusal, resourceRefusal } from "#model/limits/limits.ts";
import { builtinResources } from "#model/resource-table.ts";
import { ATTRIBUTE_TABLES } from "#model/tables/tables.ts";

const who = { user: "alice", group: "staff", project: "apollo" };
const each = (n: number) => ({ all: n, user: n, group: n, project: n });
const use = { all: 3, user: 2, group: 2, project: 2 };
const inQueue: LimitQuestion = { family: "queued", scope: { kind: "queue", name: "workq" }, who, use, added: each(1) };
const inComplex: LimitQuestion = { ...inQueue, scope: { kind: "complex" } };
const waiting = (question: LimitQuestion): LimitQuestion => ({ ...question, family: "waiting" });

test("limits on numbers of jobs are refused in the reference's words", () => {
  // biome-ignore format: a table
  const table: readonly (readonly [{ readonly [entity: string]: number }, LimitQuestion, string | null])[] = [
    [{ "o:PBS_ALL": 3 },      inQueue,            "Maximum number of jobs already in queue workq"],
    [{ "o:PBS_ALL": 3 },      inComplex,          "Maximum number of jobs already in complex"],
    [{ "o:PBS_ALL": 4 },      inComplex,          null],
    [{ "u:PBS_GENERIC": 2 },  inQueue,            "would exceed queue generic's per-user limit"],
    [{ "u:PBS_GENERIC": 2 },  inComplex,          "would exceed complex's per-user limit"],
    [{ "u:alice": 2 },        inQueue,            "Maximum number of jobs for user alice already in queue workq"],
    [{ "u:alice": 2 },        inComplex,          "Maximum number of jobs for user alice already in complex"],
    [{ "u:alice": 3, "u:PBS_GENERIC": 0 }, inComplex, null],
    [{ "u:bob": 0 },          inComplex,          null],
    [{ "g:PBS_GENERIC": 0 },  inComplex,          "would exceed complex's per-group limit"],
    [{ "g:staff": 1 },        inQueue,            "Maximum number of jobs for group staff already in queue workq"],
    [{ "p:PBS_GENERIC": 1 },  inQueue,            "would exceed queue generic's per-project limit"],
    [{ "p:apollo": 1 },       inComplex,          "Maximum number of jobs for project apollo already in complex"],
    [{ "o:PBS_ALL": 3 },      waiting(inQueue),   "Maximum number of jobs in 'Q' state already in queue workq"],
    [{ "u:PBS_GENERIC": 2 },  waiting(inQueue),   "would exceed queue generic's per-user limit of jobs in 'Q' state"],
    [{ "u:alice": 2 },        waiting(inComplex), "Maximum number of jobs in 'Q' state for user alice already in complex"],
    [{ "u:PBS_GENERIC": 5 },  { ...inQueue, added: each(4) }, "would exceed queue generic's per-user limit"],
    [{ "u:alice": 1, "p:apollo": 3 }, { ...inQueue, added: { ...each(0), project: 1 } }, null],
    [{ "u:alice": 1, "p:apollo": 2 }, { ...inQueue, added: { ...each(0), project: 1 } }, "Maximum number of jobs for project apollo already in queue workq"],
    [{ "u:alice": 2, "o:PBS_ALL": 3 }, inQueue,   "Maximum number of jobs already in queue workq"],
  ];
  for (const [limits, question, text] of table) {
    const refusal = countRefusal(limits, question);
    assert.deepEqual([refusal?.code, refusal?.text], text === null ? [undefined, undefined] : [15142, text], JSON.stringify(limits));
  }
  assert.equal(countRefusal(undefined, inQueue), null);
});

test("limits on amounts of resources are refused in the reference's words", () => {
  const resources = builtinResources();
  // biome-ignore format: a table
  const table: readonly (readonly [string, { readonly [entity: string]: number | string }, LimitQuestion, string | null])[] = [
    ["ncpus", { "o:PBS_ALL": 3 },        inQueue,            "would exceed limit on resource ncpus in queue workq"],
    ["ncpus", { "o:PBS_ALL": 3 },        inComplex,          "would exceed limit on resource ncpus in complex"],
    ["ncpus", { "u:PBS_GENERIC": 2 },    inQueue,            "would exceed per-user limit on resource ncpus in queue workq"],
    ["ncpus", { "u:alice": 2 },          inComplex,          "would exceed user alice's limit on resource ncpus in complex"],
    ["ncpus", { "g:staff": 2 },          waiting(inQueue),   "would exceed group staff's limit on resource ncpus in queue workq for jobs in 'Q' state"],
    ["ncpus", { "p:PBS_GENERIC": 2 },    waiting(inComplex), "would exceed per-project limit on resource ncpus in complex for jobs in 'Q' state"],
    ["mem",   { "u:PBS_GENERIC": "3kb" }, inQueue,           null],
    ["mem",   { "u:PBS_GENERIC": "2kb" }, inQueue,           "would exceed per-user limit on resource mem in queue workq"],
  ];
  for (const [name, limits, question, text] of table) {
    const refusal = resourceRefusal(limits, resources.get(name)!, question);
    assert.deepEqual([refusal?.code, refusal?.text], text === null ? [undefined, undefined] : [15143, text], JSON.stringify(limits));
  }
});

test("old limits: the number of jobs in a queue, and not beside new ones", () => {
  assert.equal(queuableRefusal(2, 2)?.text, "Maximum number of jobs already in queue");
  assert.equal(queuableRefusal(3, 2), null);
  assert.equal(queuableRefusal(undefined, 99), null);
  assert.equal(mixesLimitStyles(["old", undefined, "old"]), false);
  assert.equal(mixesLimitStyles(["old", undefined, "new"]), true);
  const styles = (object: "server" | "queue", style: "old" | "new"): number =>
    ATTRIBUTE_TABLES[object].rows.filter((def) => def.limitStyle === style).length;
  assert.deepEqual([styles("server", "old"), styles("server", "new"), styles("queue", "old"), styles("queue", "new")], [9, 8, 10, 8]);
});

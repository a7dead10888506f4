// Job arrays in a cycle: the next subjob represents its array, as many subjobs start as fit, limits count subjobs, and comments
// belong to the array.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import { applyDelta, createUniverse } from "#sched/mirror/mirror.ts";
import { book, decisionTexts, jobOf, logTexts, queue, run, snapshotOf, universeOf, type World } from "../world.ts";

const NODE = "H ncpus=4";
const one = (...indices: readonly (string | number)[]): string[] => indices.map((index) => `${index}=(H:ncpus=1)`);

test("arrays: what a cycle starts of them", () => {
  // biome-ignore format: a table
  const table: readonly (readonly [what: string, world: World, decisions: readonly string[]])[] = [
    ["as many as fit, in order", { nodes: NODE, jobs: "1[] sub=1-9 ncpus=1" },
      one("1[1]", "1[2]", "1[3]", "1[4]")],
    ["steps and gaps", { nodes: NODE, jobs: "1[] sub=1-5:2,8 ncpus=1" }, one("1[1]", "1[3]", "1[5]", "1[8]")],
    ["all, then the next job", { nodes: NODE, jobs: "1[] sub=1-2 ncpus=1; 2 ncpus=1; 3[] sub=7-9 ncpus=1" }, one("1[1]", "1[2]", "2", "3[7]")],
    ["max_run_subjobs", { nodes: NODE, jobs: "1[] sub=1-9%2 ncpus=1; 2 ncpus=1" },
      one("1[1]", "1[2]", "2")],
    ["of which some run", { nodes: NODE, jobs: "1[] B sub=4-9%3/2 ncpus=1" }, one("1[4]")],
    ["and none more may", { nodes: NODE, jobs: "1[] B sub=4-9%2/2 ncpus=1; 2 ncpus=1" }, one("2")],
    ["a begun one keeps its comment", { nodes: NODE, jobs: "1[] B sub=4-9 ncpus=5" }, []],
    ["a held one is left alone", { nodes: NODE, jobs: "1[] H sub=4-9 ncpus=1" }, []],
    ["nothing waits", { nodes: NODE, jobs: "1[] B sub=-/2 ncpus=1" }, []],
    ["too big for ever", { nodes: NODE, jobs: "1[] sub=1-3 ncpus=20" }, ["1[]: Can Never Run: Insufficient amount of resource: ncpus (R: 20 A: 4 T: 4)"]],
    ["subjobs count against run limits", { nodes: NODE, jobs: "1[] sub=1-9 ncpus=1; 2 u=bob ncpus=1", server: { max_run: { "u:PBS_GENERIC": 2 } } },
      one("1[1]", "1[2]", "2")],
    ["and so do their resources", { nodes: NODE, jobs: "1[] sub=1-9 ncpus=1", server: { max_run_res: { ncpus: { "o:PBS_ALL": 3 } } } },
      one("1[1]", "1[2]", "1[3]")],
    ["one that cannot begin is told so", { nodes: NODE, jobs: "1[] sub=1-9%1 ncpus=1", server: { max_run: { "o:PBS_ALL": 0 } } },
      ["1[]: Not Running: Server job limit has been reached."]],
  ];
  for (const [what, world, decisions] of table) {
    assert.deepEqual(decisionTexts(run(world)), decisions, what);
  }
});

test("arrays: queues take turns by subjobs, and one list goes by rank", () => {
  const queues = [queue("a", { Priority: 5 }), queue("b", { Priority: 5 })];
  const world = { nodes: NODE, jobs: "1[] @a sub=1-9 ncpus=1; 2[] @b sub=1-9 ncpus=1", queues };
  const started = (policy: object): string[] => decisionTexts(run(world, policy)).slice(0, 4);
  assert.deepEqual(started({ round_robin: true, by_queue: false }), one("1[1]", "2[1]", "1[2]", "2[2]"));
  assert.deepEqual(started({ round_robin: false, by_queue: true }), one("1[1]", "1[2]", "1[3]", "1[4]"));
});

test("arrays: the log names the array where it is looked at and the subjob where it runs", () => {
  const result = run({ nodes: NODE, jobs: "1[] B sub=2-6%2/1 ncpus=1" });
  assert.deepEqual(logTexts(result, 767), [
    "0080;Req;;Starting Scheduling Cycle",
    "0080;Job;1[];Considering job to run",
    "run 1[2]",
    "0080;Job;1[];Considering job to run",
    "0040;Job;1[];Number of concurrent running subjobs limit reached",
    "0080;Req;;Leaving Scheduling Cycle",
  ]);
});

test("arrays: qrun of one subjob that waits, whatever max_run_subjobs says", () => {
  const world: World = { nodes: NODE, jobs: "1[] B sub=2-6%1/1 ncpus=1; 2[] sub=1-2 ncpus=9" };
  const qrun = (job: string): string[] => decisionTexts(run(world, {}, { command: SCHED_COMMAND.AJOB, job }));
  assert.deepEqual(qrun("1[5]"), one("1[5]"));
  assert.deepEqual(qrun("1[1]"), ["1[1] refused: Unknown Job Id"]);
  assert.deepEqual(qrun("2[1]"), [
    "2[]: Can Never Run: Insufficient amount of resource: ncpus (R: 9 A: 4 T: 4)",
    "2[1] refused: Insufficient amount of resource: ncpus (R: 9 A: 4 T: 4)",
  ]);
});

test("arrays: an array of many subjobs is one entry, and a full cluster looks at it once", () => {
  const policies = book();
  const universe = universeOf({ nodes: "H ncpus=1000", jobs: "1[] sub=1-100000 ncpus=1; 2 ncpus=1" }, policies);
  assert.equal(universe.entries.size, 2);
  const input = { now_s: 1_000_000, command: SCHED_COMMAND.TIME } as const;
  const result = cycle(universe, policies, input);
  assert.equal(result.stats.jobs_started, 1000);
  assert.equal(result.stats.jobs_considered, 1001);
  assert.deepEqual(cycle(universe, policies, input).decisions, result.decisions, "a cycle leaves the universe as it was");
});

test("arrays: deltas keep the place of an array in its line, and take it out when nothing waits", () => {
  const policies = book();
  const world: World = { nodes: NODE, jobs: "1[] sub=1-2 ncpus=1; 2 ncpus=4" };
  const universe = universeOf(world, policies);
  const input = { now_s: 1_000_000, command: SCHED_COMMAND.TIME } as const;
  const put = (revision: number, text: string): string[] => {
    applyDelta(universe, { revision, changes: [{ put: "job", value: jobOf(text, 1) }] });
    const fresh = createUniverse(
      { ...snapshotOf(world), jobs: [...universe.jobs.values()] },
      { policy: policies.prime, times_matter: false },
    );
    const decisions = decisionTexts(cycle(universe, policies, input));
    assert.deepEqual(decisionTexts(cycle(fresh, policies, input)), decisions);
    return decisions.filter((text) => !text.includes(": "));
  };
  assert.deepEqual(put(2, "1[] B sub=2 ncpus=1"), one("1[2]"));
  assert.deepEqual(put(3, "1[] B sub=- ncpus=1"), ["2=(H:ncpus=4)"]);
  assert.deepEqual(put(4, "1[] B sub=1,2%1 ncpus=1"), one("1[1]"));
  assert.deepEqual(put(5, "1[] H sub=1,2%1 ncpus=1"), ["2=(H:ncpus=4)"]);
});

test("arrays: as a top job the next subjob is planned, and the array is told", () => {
  const jobs = "1 R (H:ncpus=4) walltime=100; 2[] B sub=3-9 ncpus=3 walltime=50; 3 ncpus=2 walltime=500";
  const policies = book({ strict_ordering: true });
  const universe = universeOf({ nodes: "H ncpus=6", jobs }, policies);
  const input = { now_s: 50, command: SCHED_COMMAND.TIME } as const;
  const first = cycle(universe, policies, input);
  const estimate = { kind: "estimate", job: "2[]", start_s: 100, exec_vnode: "(H:ncpus=3)", topjob: true } as const;
  const plan = { start_time: estimate.start_s, exec_vnode: estimate.exec_vnode };
  assert.deepEqual(first.decisions[0], estimate);
  assert.ok(
    first.log.some((record) => "text" in record && record.object === "2[3]" && /^Job is a top job and will run at /.test(record.text)),
  );
  const array = universe.jobs.get("2[]");
  assert.ok(array !== undefined);
  applyDelta(universe, { revision: 2, changes: [{ put: "job", value: { ...array, estimated: plan, topjob: true } }] });
  assert.deepEqual(
    cycle(universe, policies, input).decisions.filter(({ kind }) => kind === "estimate"),
    [],
    "what is published stays",
  );
});

// The next job of a runner, from the list that its scheduler has left (src/server/runners/hand-out.ts).

import assert from "node:assert/strict";
import { test } from "node:test";
import { BUILTIN_RESOURCES } from "#model/resource-table.ts";
import { execOn, mayFollow } from "#server/runners/hand-out.ts";
import type { JobAttrs } from "#server/state/state.ts";
import {
  addHost,
  addJob,
  addQueue,
  addSched,
  advance,
  apply,
  askOk,
  type Harness,
  harness,
  mom,
  obit,
  ROOT,
  runners,
  runOn,
  sched,
  schedHello,
  schedLost,
} from "../harness.ts";

const SCHED = 7;
const BUCKET = "alice:pq:_pbs_project_default:ncpus=1:walltime=00:01:04";

/** A partition with runners that are idle or busy: the n-th has link 60 + n. */
function world(names: number): { readonly h: Harness; readonly runners: readonly string[]; readonly jobs: readonly string[] } {
  const h = harness();
  addHost(h, "n1");
  addQueue(h, "pq", { partition: "p1" });
  addSched(h, "s1", { partition: ["p1"], sched_priv: "/home/pbs/sched_priv_s1", sched_log: "/home/pbs/sched_logs_s1", scheduling: true });
  schedHello(h, SCHED, "s1");
  apply(h, {
    kind: "created",
    object: "backend",
    name: "sl",
    attrs: { type: "local", partition: "p1", enabled: true, max_runners: 8, runner_idle_wait: 600 },
  });
  runners(h, 50, "runners-hello", { pid: 9 });
  const jobs = Array.from({ length: 6 }, () => job(h));
  advance(h, 1);
  runners(h, 50, "runners-ask", { token: 1, backend: "sl", bucket: BUCKET, life_s: 600, digests: Array(names).fill("a".repeat(64)) });
  const all = [...h.core.state.runners.keys()];
  assert.equal(all.length, names);
  for (const [at, name] of all.entries()) {
    mom(h, 60 + at, "mom-hello", {
      host: name,
      port: 15002,
      pid: 1,
      version: "1",
      vnodes: [{ name, attrs: { resources_available: { ncpus: 64 } } }],
      jobs: [],
      pongs: true,
      runner: { token: "", age_s: 10 },
    });
    runOn(h, jobs[at] ?? "", name, 60 + at);
  }
  return { h, runners: all, jobs };
}
const job = (h: Harness, more: { readonly [name: string]: unknown } = {}): string =>
  addJob(h, {
    queue: "pq",
    schedselect: "1:ncpus=1",
    Resource_List: { select: "1:ncpus=1", place: "free", ncpus: 1, walltime: 60 },
    ...more,
  });

const cycleNow = (h: Harness): number =>
  Number((h.to_scheds.filter(({ type }) => type === "sched-cycle").at(-1)?.data as { cycle: number } | undefined)?.cycle ?? 0);
const cycles = (h: Harness): number => h.to_scheds.filter(({ type }) => type === "sched-cycle").length;
/** The scheduler ends its cycles, and leaves a list in the last one. */
function leaves(h: Harness, jobs: readonly string[]): void {
  for (let before = -1; before !== cycleNow(h); ) {
    before = cycleNow(h);
    sched(h, SCHED, "sched-cycle-end", { cycle: before, jobs_considered: 1, cycle_ms: 1, hand_outs: [{ bucket: BUCKET, jobs }] });
  }
}
const where = (h: Harness, id: string): string => {
  const attrs = h.core.state.jobs.get(id)?.attrs;
  if (attrs === undefined) return "F";
  return attrs.job_state === "R" ? `R ${attrs["runner"]}` : attrs.job_state;
};

test("hand-out: a runner whose job ends gets the first job of the list at once, and no cycle is needed", () => {
  const {
    h,
    runners: [name = ""],
    jobs,
  } = world(1);
  const [a = "", b = "", c = ""] = jobs;
  leaves(h, [c, b, jobs[3] ?? "", jobs[4] ?? "", jobs[5] ?? ""]);
  const before = cycles(h);
  obit(h, 60, a);
  assert.deepEqual([where(h, a), where(h, b), where(h, c)], ["F", "Q", `R ${name}`]);
  assert.equal(h.core.state.jobs.get(c)?.attrs["exec_vnode"], `(${name}:ncpus=1)`);
  assert.ok(h.to_moms.some(({ link, type, data }) => link === 60 && type === "mom-start" && JSON.stringify(data).includes(c)));
  assert.equal(cycles(h), before);
  // The list is renewed soon.
  advance(h, 2);
  assert.equal(cycles(h), before + 1);
});

test("hand-out: jobs that do not wait any more, or have become others, are passed over; none left: a cycle", () => {
  const {
    h,
    runners: [name = ""],
    jobs,
  } = world(1);
  const [a = "", held = "", altered = "", moved = "", last = ""] = jobs;
  leaves(h, [held, altered, moved, "999.svr", last]);
  for (const [id, set] of [
    [held, { Hold_Types: "u", job_state: "H", substate: 20 }],
    [altered, { schedselect: "1:ncpus=2", Resource_List: { select: "1:ncpus=2", place: "free", ncpus: 2, walltime: 60 } }],
    [moved, { egroup: "other" }],
  ] as const)
    apply(h, { kind: "job-changed", id, set, unset: id === held ? ["etime"] : [] });
  obit(h, 60, a);
  assert.deepEqual(
    [held, altered, moved, last].map((id) => where(h, id)),
    ["H", "Q", "Q", `R ${name}`],
  );
  leaves(h, []);
  const before = cycles(h);
  obit(h, 60, last);
  assert.equal(cycles(h), before + 1);
});

test("hand-out: a list ends when limits change, when its scheduler is lost or switched off, and for a runner that leaves", () => {
  const changes: readonly ((h: Harness, runner: string) => void)[] = [
    (h) => apply(h, { kind: "changed", object: "queue", name: "pq", set: { max_run: { "u:PBS_GENERIC": 1 } }, unset: [] }),
    (h) =>
      void askOk(h, ROOT, {
        kind: "manager",
        verb: "set",
        object: "server",
        name: "",
        attrs: [{ name: "max_run", op: "=", value: "[o:PBS_ALL=1]" }],
      }),
    (h) => schedLost(h, SCHED),
    (h) => apply(h, { kind: "changed", object: "sched", name: "s1", set: { scheduling: false }, unset: [] }),
    (h, runner) => runners(h, 50, "runners-drain", { names: [runner] }),
  ];
  for (const [at, change] of changes.entries()) {
    const {
      h,
      runners: [name = ""],
      jobs,
    } = world(1);
    leaves(h, jobs.slice(1));
    change(h, name);
    obit(h, 60, jobs[0] ?? "");
    assert.deepEqual(
      jobs.slice(1).map((id) => where(h, id)),
      Array(5).fill("Q"),
      String(at),
    );
  }
});

test("hand-out: two runners whose jobs end together get different jobs", () => {
  const {
    h,
    runners: [first = "", second = ""],
    jobs,
  } = world(2);
  leaves(h, jobs.slice(2));
  obit(h, 61, jobs[1] ?? "");
  obit(h, 60, jobs[0] ?? "");
  assert.deepEqual(
    jobs.slice(2).map((id) => where(h, id)),
    [`R ${second}`, `R ${first}`, "Q", "Q"],
  );
});

test("mayFollow: the same owner, group, project and queue, and no more of what limits may count", () => {
  const attrs = (more: object = {}): JobAttrs =>
    ({
      euser: "a",
      egroup: "g",
      project: "p",
      queue: "q",
      Resource_List: { ncpus: 2, mem: "2gb", walltime: 60 },
      ...more,
    }) as unknown as JobAttrs;
  const state = (server: object, queue: object = {}): Parameters<typeof mayFollow>[0] =>
    ({ server, queues: new Map([["q", { attrs: queue }]]), resources: new Map(BUILTIN_RESOURCES.map((def) => [def.name, def])) }) as never;
  const more = { Resource_List: { ncpus: 2, mem: "3gb", walltime: 60 } };
  // biome-ignore format: one case per row
  const cases: readonly [object, object, object, boolean][] = [
    [{}, {}, {}, true],
    [{ euser: "b" }, {}, {}, false],
    [{ egroup: "h" }, {}, {}, false],
    [{ project: "r" }, {}, {}, false],
    [{ queue: "r" }, {}, {}, false],
    [more, {}, {}, true],
    [more, { max_run: { "u:a": 3 } }, {}, true],
    [more, { max_run_res: { mem: { "u:a": "9gb" } } }, {}, false],
    [more, {}, { resources_available: { mem: "9gb" } }, false],
    [{ Resource_List: { ncpus: 2, mem: "1gb", walltime: 60 } }, { max_run_res: { mem: { "u:a": "9gb" } } }, {}, true],
    [{ Resource_List: { ncpus: 2, mem: "1gb", walltime: 61 } }, { max_run_res: { mem: { "u:a": "9gb" } } }, {}, false],
    [{ Resource_List: { ncpus: 2, naccelerators: 1, walltime: 60 } }, {}, { max_user_res: { naccelerators: 4 } }, false],
  ];
  for (const [next, server, queue, wanted] of cases)
    assert.equal(mayFollow(state(server, queue), attrs(), attrs(next)), wanted, JSON.stringify([next, server, queue]));
});

test("execOn: the consumable resources of all chunks on one vnode", () => {
  const resources = new Map(BUILTIN_RESOURCES.map((def) => [def.name, def]));
  assert.equal(execOn(resources, "1:ncpus=2:mem=1gb:arch=linux", "r"), "(r:ncpus=2:mem=1048576kb)");
  assert.equal(execOn(resources, "2:ncpus=1+1:ncpus=3", "r"), "(r:ncpus=1)+(r:ncpus=1)+(r:ncpus=3)");
  assert.equal(execOn(resources, "1:ncpus=", "r"), null);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { StarterRun } from "#mom/job/starter-link.ts";
import { helloJobs } from "#mom/run/core.ts";
import type { MomConfig } from "#mom/run/state.ts";
import { exited, finished, job, OWNER, prepared, run, type World, world } from "../world.ts";

const J = job();
const RUNNING: StarterRun = { job: "1.n1", run_count: 1, pid: 4711, at_ms: 900_000, state: "running" };
const ENDED: StarterRun = {
  ...RUNNING,
  state: "ended",
  exit: { job: "1.n1", run_count: 1, status: { code: 5 }, cput_s: 2, at_ms: 930_000 },
};
const LOST: StarterRun = { ...RUNNING, state: "lost" };

/** A mom that is killed after `before`, and its successor, which has its records. */
function successor(before: (w: World) => void, config: Partial<MomConfig> = {}): World {
  const old = world();
  before(old);
  const w = world({ config, welcomed: false });
  w.on({ kind: "recovered", saved: [...old.records.values()] });
  return w;
}
const state = (runs: readonly StarterRun[], last: readonly { job: string; run_count: number }[] = []) => ({
  kind: "starter-state" as const,
  data: { pid: 99, runs, last },
});

test("a mom that comes back finds its jobs: by what the starter knows of them", () => {
  const rows: readonly (readonly [
    what: string,
    starter: readonly StarterRun[],
    config: Partial<MomConfig>,
    words: readonly string[],
    hello: string,
  ])[] = [
    ["still running", [RUNNING], {}, [], "running"],
    ["still running, -r", [RUNNING], { kill_found: true }, ["signal 1.n1 9"], "running"],
    ["ended meanwhile", [ENDED], {}, ["finish 1.n1 deliver"], "ended"],
    ["lost with its starter", [LOST], {}, ["finish 1.n1 keep"], "ended"],
    ["never started, same boot", [], {}, ["prepare 1.n1"], "starting"],
    ["nothing known, machine was restarted", [], { boot: "boot-2" }, ["finish 1.n1 keep"], "ended"],
  ];
  for (const [what, starter, config, words, hello] of rows) {
    const w = successor((old) => run(old, J), config);
    assert.deepEqual(w.on(state(starter)), words, what);
    assert.deepEqual(
      helloJobs(w.state).map((each) => each.state),
      [hello],
      what,
    );
  }
});

test("a job that ended while no mom was there keeps its exit status and its times", () => {
  const w = successor((old) => run(old, J));
  w.on(state([ENDED]));
  w.on({ kind: "connected" });
  w.on({ kind: "welcome", data: { keep: ["1.n1"], kill: [], acknowledged: [] } });
  assert.deepEqual(w.on(finished(J)), ["mom-obit 1.n1 5"]);
  const last = w.actions.find((action) => action.kind === "send" && action.type === "mom-obit");
  assert.deepEqual(last?.kind === "send" && last.type === "mom-obit" && last.data.used, {
    cpupercent: 0,
    cput: 2,
    mem: "0kb",
    ncpus: 1,
    vmem: "0kb",
    walltime: 30,
  });
});

test("what was asked of a job before the mom was killed still holds: suspended, to be rerun, over its limit", () => {
  const suspended = successor((old) => {
    run(old, J);
    old.on({ kind: "signal", data: { token: 1, job: "1.n1", signal: "suspend" } });
  });
  suspended.on(state([RUNNING]));
  assert.equal(helloJobs(suspended.state)[0]?.state, "suspended");

  const rerun = successor((old) => {
    run(old, J);
    old.on({ kind: "terminate", data: { job: "1.n1", run_count: 1, why: "rerun", kill_delay_s: 10 } });
  });
  assert.deepEqual(rerun.on(state([RUNNING])), ["signal 1.n1 9"]);

  const limited = job({ attrs: { Resource_List: { ncpus: 1, walltime: 10 } } });
  const over = successor((old) => {
    run(old, limited);
    old.now_ms += 20_000;
    old.on({ kind: "tick" });
  });
  over.on(state([ENDED]));
  over.on({ kind: "connected" });
  over.on({ kind: "welcome", data: { keep: [], kill: [], acknowledged: [] } });
  assert.deepEqual(over.on(finished(J)), ["mom-obit 1.n1 -29"]);
});

test("a job whose start the starter never got is asked for again when the starter comes back", () => {
  const w = world();
  w.on({ kind: "start", job: J, owner: OWNER });
  assert.deepEqual(w.on(prepared(J)), ["start 1.n1"]);
  assert.deepEqual(w.on(state([])), ["start 1.n1"]);
  assert.deepEqual(w.on(state([RUNNING])), ["mom-started 1.n1"]);
});

test("a run of which only the starter knows is killed and forgotten", () => {
  const w = world();
  assert.deepEqual(w.on(state([RUNNING])), ["signal 1.n1 9"]);
  assert.deepEqual(w.on(exited(J, w.now_ms, { signal: 9 })), ["drop 1.n1 1"]);
  assert.deepEqual(world().on(state([ENDED])), ["drop 1.n1 1"]);
  assert.deepEqual(world().on(state([LOST])), ["drop 1.n1 1"]);
});

test("run counts of jobs that are gone come back with the starter's state", () => {
  const w = world();
  w.on(state([], [{ job: "1.n1", run_count: 4 }]));
  assert.deepEqual(w.on({ kind: "start", job: job({ run_count: 4 }), owner: OWNER }), []);
  assert.deepEqual(w.on({ kind: "start", job: job({ run_count: 5 }), owner: OWNER }), ["prepare 1.n1"]);
});

test("a record that a full disk kept back from removal starts nothing: the starter has forgotten the run", () => {
  const w = successor((old) => run(old, J));
  assert.deepEqual(w.on(state([], [{ job: "1.n1", run_count: 1 }])), ["drop 1.n1 1"]);
  assert.deepEqual(helloJobs(w.state), []);
});

// Checkpoints by the site's scripts, and a site's own way to end a job: the actions at each step.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Actions } from "#mom/config/action-script.ts";
import type { MomEvent } from "#mom/run/event.ts";
import { foundCheckpoints, removeCheckpoint, runAction } from "#mom/shell/action-run.ts";
import type { MomJob } from "#protocol/mom-link.ts";
import { exited, finished, job, OWNER, prepared, run, started, type World, world } from "../world.ts";

const S = 1000;
const ACTIONS: Actions = {
  terminate: { timeout_s: 60, words: ["/s/end", "%sid"] },
  checkpoint: { timeout_s: 60, words: ["/s/save", "%jobid", "%path"] },
  checkpoint_abort: { timeout_s: 60, words: ["/s/leave", "%jobid", "%sid", "%uid", "%path"] },
  restart: { timeout_s: 0, words: ["/s/restart", "%path"] },
};
const savable = (more: object = {}): World => world({ config: { actions: ACTIONS, ...more } });
const leave = (w: World): string[] => w.on({ kind: "signal", data: { token: 7, job: "1.n1", signal: "checkpoint" } });
const acted = (w: World, code: number): string[] => {
  const [step] = [...w.state.steps.keys()].slice(-1);
  return w.on({ kind: "acted", step: step ?? -1, end: { kind: "ended", code, text: code === 0 ? "" : "nonzero p/e exit status" } });
};
const LEAVES = "action /s/leave 1.n1 4711 1001 /pbs/checkpoint/1.n1.CK.new";

test("saved and ended: the script, SIGKILL for what is left, CHKP, and the checkpoint stays", () => {
  const w = savable();
  const j = job({ attrs: { Rerunable: false } });
  run(w, j);
  assert.deepEqual(leave(w), [LEAVES, "mom-result ok"]);
  assert.deepEqual(leave(w), ["mom-result ok"], "asked again");
  assert.deepEqual(acted(w, 0), ["signal 1.n1 9"]);
  assert.deepEqual(w.on(exited(j, w.now_ms, { signal: 9 })), ["finish 1.n1 keep"]);
  assert.deepEqual(w.on(finished(j)), ["mom-obit 1.n1 -12"]);
  assert.deepEqual([...w.state.checkpoints], ["1.n1"]);
});

test("a job that its script ends: the obit waits for the script's word", () => {
  for (const [code, words, status] of [
    [0, ["finish 1.n1 keep"], -12],
    [1, ["mom-kept 1.n1 checkpoint_abort failed: exit=1, nonzero p/e exit status", "finish 1.n1 deliver"], 271],
  ] as const) {
    const w = savable();
    const j = job();
    run(w, j);
    leave(w);
    assert.deepEqual(w.on(exited(j, w.now_ms, { signal: 15 })), []);
    const seen = acted(w, code).filter((word) => word !== "signal 1.n1 9");
    assert.deepEqual(seen, words);
    assert.deepEqual(w.on(finished(j)), [`mom-obit 1.n1 ${status}`]);
  }
});

test("a job that qdel ends while its script still saves it, its top process gone: nobody waits, and what the script leaves is cleared away", () => {
  const w = savable();
  const j = job();
  run(w, j);
  leave(w);
  const step = [...w.state.steps.keys()].slice(-1)[0] ?? -1;
  assert.deepEqual(w.on(exited(j, w.now_ms, { signal: 15 })), [], "withheld");
  const end = w.on({ kind: "terminate", data: { job: "1.n1", run_count: 1, why: "delete", kill_delay_s: 10 } });
  assert.ok(end.includes("finish 1.n1 deliver"), end.join());
  assert.deepEqual(w.on(finished(j)), ["mom-obit 1.n1 271"]);
  w.on({ kind: "acknowledged", data: { jobs: [{ job: "1.n1", run_count: 1 }] } });
  const late = w.on({ kind: "acted", step, end: { kind: "ended", code: 0, text: "" } });
  assert.ok(
    late.some((word) => word.startsWith("drop-checkpoint")),
    late.join(),
  );
  assert.deepEqual([...w.state.checkpoints], []);
});

test("a script that fails: the job goes on and the server hears why", () => {
  const w = savable();
  run(w, job());
  leave(w);
  assert.deepEqual(acted(w, 3), ["mom-kept 1.n1 checkpoint_abort failed: exit=3, nonzero p/e exit status"]);
  assert.equal(w.state.checkpoints.size, 0);
  assert.deepEqual(leave(w), [LEAVES, "mom-result ok"], "and may be asked again");
});

test("what cannot be saved: no script, -c n, suspended, not running, being deleted", () => {
  const rows: readonly (readonly [what: string, w: World, before: readonly MomEvent[], attrs: MomJob["attrs"], answer: string])[] = [
    ["no script", world(), [], {}, "mom-result 15029"],
    ["-c n", savable(), [], { Checkpoint: "n" }, "mom-result 15029"],
    ["suspended", savable(), [{ kind: "signal", data: { token: 1, job: "1.n1", signal: "suspend" } }], {}, "mom-result 15016"],
    [
      "deleted",
      savable({ actions: { ...ACTIONS, terminate: undefined } }),
      [{ kind: "terminate", data: { job: "1.n1", run_count: 1, why: "delete", kill_delay_s: 10 } }],
      {},
      "mom-result 15016",
    ],
  ];
  for (const [what, w, before, attrs, answer] of rows) {
    run(w, job({ attrs }));
    for (const event of before) w.on(event);
    assert.equal(leave(w).at(-1), answer, what);
  }
});

test("a job deleted while it is saved is deleted", () => {
  const w = savable({ actions: { ...ACTIONS, terminate: undefined } });
  const j = job();
  run(w, j);
  leave(w);
  w.on({ kind: "terminate", data: { job: "1.n1", run_count: 1, why: "delete", kill_delay_s: 10 } });
  acted(w, 0);
  assert.deepEqual(w.on(exited(j, w.now_ms, { signal: 15 })), ["finish 1.n1 deliver"]);
  assert.deepEqual(w.on(finished(j)), ["drop-checkpoint /pbs/checkpoint/1.n1.CK", "mom-obit 1.n1 271"]);
});

test("the next run goes on from the checkpoint: the script is the top process, with nothing of the user's environment", () => {
  const w = savable();
  w.state.checkpoints.add("1.n1");
  const j = job({ run_count: 2, restart: true, attrs: { Variable_List: ["LD_PRELOAD=/evil"] } });
  w.on({ kind: "start", job: j, owner: OWNER });
  assert.deepEqual(w.on(prepared(j)), ["start 1.n1"]);
  const start = w.actions.findLast((action) => action.kind === "start");
  assert.ok(start?.kind === "start");
  assert.deepEqual([start.spec.path, start.spec.argv, start.spec.cwd], ["/s/restart", ["/s/restart", "/pbs/checkpoint/1.n1.CK"], "/"]);
  assert.equal(start.spec.by_mom, true);
  assert.ok(!start.spec.env.some((entry) => entry.startsWith("LD_")));
  assert.ok(start.spec.env.includes("PBS_JOBCOOKIE=secret"));
  w.on(started(j, w.now_ms));
  assert.ok(w.logged().includes("Restarting"));
  const told = w.actions.findLast((action) => action.kind === "send" && action.type === "mom-started");
  assert.partialDeepStrictEqual(told, { data: { restarted: true } });
  w.on(exited(j, w.now_ms, { code: 0 }));
  assert.deepEqual(w.on(finished(j)), ["drop-checkpoint /pbs/checkpoint/1.n1.CK", "mom-obit 1.n1 0"], "it goes with the job's end");
});

test("a restart that cannot be executed sends the job back to its beginning", () => {
  const w = savable();
  w.state.checkpoints.add("1.n1");
  const j = job({ run_count: 2, restart: true });
  w.on({ kind: "start", job: j, owner: OWNER });
  w.on(prepared(j));
  const failed = w.on({ kind: "start-failed", run: { job: "1.n1", run_count: 2, exit_status: -7, text: "no", at_ms: 0 } });
  assert.deepEqual(failed, ["finish 1.n1 keep"]);
  assert.deepEqual(w.on(finished(j)), ["drop-checkpoint /pbs/checkpoint/1.n1.CK", "mom-obit 1.n1 -7"]);
});

test("a restart script that fails sends the job back to its beginning; one that became the program, or takes the place of the job, ends it", () => {
  for (const [restart_failed, restart_transmogrify, status] of [
    [true, false, -7],
    [false, false, 3],
    [true, true, 3],
  ] as const) {
    const w = savable({ restart_transmogrify });
    w.state.checkpoints.add("1.n1");
    const j = job({ run_count: 2, restart: true });
    w.on({ kind: "start", job: j, owner: OWNER });
    w.on(prepared(j));
    w.on(started(j, w.now_ms));
    const exit = exited(j, w.now_ms, { code: 3 });
    assert.ok(exit.kind === "exited");
    const ended = w.on({ ...exit, run: { ...exit.run, ...(restart_failed ? { restart_failed } : {}) } });
    assert.deepEqual(ended, [`finish 1.n1 ${status === -7 ? "keep" : "deliver"}`]);
    assert.deepEqual(w.on(finished(j)), ["drop-checkpoint /pbs/checkpoint/1.n1.CK", `mom-obit 1.n1 ${status}`]);
  }
});

test("no checkpoint here, or none wanted: begun anew, and what is there goes", () => {
  const there = savable();
  there.state.checkpoints.add("1.n1");
  assert.deepEqual(there.on({ kind: "start", job: job(), owner: OWNER }), ["drop-checkpoint /pbs/checkpoint/1.n1.CK", "prepare 1.n1"]);
  const gone = savable();
  assert.deepEqual(gone.on({ kind: "start", job: job({ restart: true }), owner: OWNER }), ["prepare 1.n1"]);
  assert.ok(gone.logged().some((text) => text.startsWith("no restart: no checkpoint here")));
});

test("-c c=N and w=N: saved at each interval, once at a time, and the job goes on", () => {
  for (const Checkpoint of ["w=1", "c=1"]) {
    const w = savable();
    run(w, job({ attrs: { Checkpoint } }));
    const after = (seconds: number): string[] => {
      w.now_ms += seconds * S;
      const cput_s = (w.now_ms - 1_000_000) / S;
      const words = w.on({ kind: "sampled", seen: new Map([[4711, { cput_s, mem_kb: 0, vmem_kb: 0 }]]) });
      return words.filter((word) => !word.startsWith("mom-usage"));
    };
    const saves = ["action /s/save 1.n1 /pbs/checkpoint/1.n1.CK.new"];
    assert.deepEqual(after(59), [], Checkpoint);
    assert.deepEqual(after(1), saves);
    assert.deepEqual(after(90), [], "the script is still at work");
    assert.deepEqual(acted(w, 0), []);
    assert.deepEqual(after(1), saves);
    assert.deepEqual(acted(w, 1), [], "one that failed costs nothing");
    assert.deepEqual([...w.state.checkpoints], ["1.n1"]);
  }
});

test("lost with its starter: with a checkpoint INITRST, else INITABT", () => {
  for (const [there, status] of [
    [true, -5],
    [false, -4],
  ] as const) {
    const w = savable();
    const j = job();
    run(w, j);
    if (there) w.state.checkpoints.add("1.n1");
    const lost = { job: "1.n1", run_count: 1, pid: 4711, at_ms: 0, state: "lost" as const };
    assert.deepEqual(w.on({ kind: "starter-state", data: { pid: 1, runs: [lost], last: [] } }), ["finish 1.n1 keep"]);
    assert.deepEqual(w.on(finished(j)), [`mom-obit 1.n1 ${status}`]);
  }
});

test("a mom that comes back in the midst: a job that still runs goes on, one that ended is run again", () => {
  for (const ended of [false, true]) {
    const before = savable();
    const j = job();
    run(before, j);
    leave(before);
    const w = world({ config: { actions: ACTIONS }, welcomed: false });
    w.on({ kind: "recovered", saved: [...before.records.values()] });
    const key = { job: "1.n1", run_count: 1, pid: 4711, at_ms: w.now_ms };
    const exit = { job: "1.n1", run_count: 1, status: { signal: 9 }, cput_s: 0, at_ms: w.now_ms };
    const entry = ended ? { ...key, state: "ended" as const, exit } : { ...key, state: "running" as const };
    assert.deepEqual(w.on({ kind: "starter-state", data: { pid: 1, runs: [entry], last: [] } }), ended ? ["finish 1.n1 keep"] : []);
    if (!ended) assert.equal(w.state.runs.get("1.n1")?.checkpointing.asked, "no");
  }
});

test("a site's own way to end a job: its script instead of SIGTERM, SIGTERM when it fails, SIGKILL after its time", () => {
  const end: MomEvent = { kind: "terminate", data: { job: "1.n1", run_count: 1, why: "delete", kill_delay_s: 10 } };
  const begun = (): World => {
    const w = savable();
    run(w, job());
    assert.deepEqual(w.on(end), ["action /s/end 4711"]);
    return w;
  };
  const done = begun();
  assert.deepEqual(acted(done, 0), []);
  done.now_ms += 10 * S;
  assert.deepEqual(done.on({ kind: "tick" }), ["signal 1.n1 9"], "what it left");
  assert.deepEqual(acted(begun(), 1), ["signal 1.n1 15"]);
  const stuck = begun();
  stuck.now_ms += 59 * S;
  assert.deepEqual(stuck.on({ kind: "tick" }), []);
  stuck.now_ms += 1 * S;
  assert.deepEqual(stuck.on({ kind: "tick" }), ["signal 1.n1 9"]);
  const forced = savable();
  run(forced, job());
  assert.deepEqual(forced.on({ kind: "terminate", data: { ...end.data, kill_delay_s: 0 } }), ["signal 1.n1 9"], "by force");
});

// --- the scripts themselves

async function inDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "partita-ck-"));
  try {
    await work(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

test("a checkpoint takes the place of the one before only when its script ended well", () =>
  inDirectory(async (directory) => {
    const script = join(directory, "save");
    writeFileSync(script, '#!/bin/sh\necho "$2" > "$1/state"\nexit "$3"\n', { mode: 0o755 });
    const path = join(directory, "ck", "1.n1.CK");
    const save = (text: string, code: string) =>
      runAction({
        kind: "run-action",
        step: 1,
        job: "1.n1",
        argv: [script, `${path}.new`, text, code],
        env: { PATH: "/usr/bin:/bin" },
        alarm_s: 60,
        checkpoint: path,
      });
    assert.partialDeepStrictEqual(await save("one; rm -rf $HOME", "0"), { code: 0 });
    assert.partialDeepStrictEqual(await save("two", "4"), { code: 4 });
    assert.equal(readFileSync(join(path, "state"), "utf8"), "one; rm -rf $HOME\n");
    assert.partialDeepStrictEqual(await save("three", "0"), { code: 0 });
    assert.equal(readFileSync(join(path, "state"), "utf8"), "three\n");
    assert.deepEqual(readdirSync(join(directory, "ck")), ["1.n1.CK"]);
    assert.deepEqual(foundCheckpoints(join(directory, "ck")), ["1.n1"]);
    await removeCheckpoint(path);
    assert.ok(!existsSync(path));
  }));

test("a script that others could have written is not run", () =>
  inDirectory(async (directory) => {
    const script = join(directory, "save");
    writeFileSync(script, "#!/bin/sh\n", { mode: 0o755 });
    const { chmodSync } = await import("node:fs");
    chmodSync(script, 0o757);
    const end = await runAction({ kind: "run-action", step: 1, job: "1", argv: [script], env: {}, alarm_s: 9, checkpoint: null });
    assert.partialDeepStrictEqual(end, { code: -1 });
  }));

test("what an interrupted change of checkpoints left is put right", () =>
  inDirectory(async (directory) => {
    for (const name of ["1.n.CK.old", "1.n.CK.new", "2.n.CK", "2.n.CK.old", "3[4].n.CK", "other"]) mkdirSync(join(directory, name));
    assert.deepEqual(foundCheckpoints(directory).sort(), ["1.n", "2.n", "3[4].n"]);
    assert.deepEqual(readdirSync(directory).sort(), ["1.n.CK", "2.n.CK", "3[4].n.CK", "other"]);
    assert.deepEqual(foundCheckpoints(join(directory, "none")), []);
  }));

test("a run that was deleted while its script still saves it: a checkpoint that comes after its obit is cleared away", () => {
  const w = savable();
  const j = job();
  run(w, j);
  leave(w);
  const step = [...w.state.steps.keys()].slice(-1)[0] ?? -1;
  w.on({ kind: "terminate", data: { job: "1.n1", run_count: 1, why: "delete", kill_delay_s: 0 } });
  w.on(exited(j, w.now_ms, { signal: 9 }));
  assert.deepEqual(w.on(finished(j)), ["mom-obit 1.n1 265"]);
  const late = w.on({ kind: "acted", step, end: { kind: "ended", code: 0, text: "" } });
  assert.ok(late.includes("drop-checkpoint /pbs/checkpoint/1.n1.CK"), late.join());
  assert.deepEqual([...w.state.checkpoints], []);
});

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { foundKept, noteKept } from "#mom/shell/kept-notes.ts";
import type { MomJob } from "#protocol/mom-link.ts";
import { acknowledged, exited, finished, job, OWNER, prepared, run, started, type World, world } from "../world.ts";

const PURGE = "purge /pbs/spool/1.n1.OU,/pbs/spool/1.n1.ER";
const AS_SISTER = { exec_host: "n0/0+n1/0", exec_vnode: "(n0:ncpus=1)+(n1:ncpus=1)" };

const kill = (w: World): string[] => w.on({ kind: "welcome", data: { keep: [], kill: ["1.n1"], acknowledged: [] } });
/** The notes on the disk, as written. */
const notes = (w: World): boolean[] => w.actions.flatMap((action) => (action.kind === "note-kept" ? [action.kept] : []));

/** A first run that will be repeated: the file agent has been asked to keep its output. */
function keeping(): { readonly w: World; readonly first: MomJob } {
  const w = world();
  const first = job();
  run(w, first);
  w.on({ kind: "terminate", data: { job: first.id, run_count: 1, why: "rerun", kill_delay_s: 0 } });
  assert.deepEqual(w.on(exited(first, w.now_ms, { signal: 9 })), ["finish 1.n1 keep"]);
  return { w, first };
}

test("a discard ends no run that is under way, as a sister or not, and none that waits", () => {
  for (const where of [{}, AS_SISTER]) {
    const w = world();
    w.state.kept.add("1.n1");
    const second = job({ run_count: 2, ...where });
    const expected: string[] = [];
    w.on({ kind: "start", job: second, owner: OWNER });
    assert.deepEqual(w.on({ kind: "discard", job: "1.n1" }), expected, "its files are being made");
    w.on(prepared(second));
    w.on(started(second, w.now_ms));
    assert.deepEqual(w.on({ kind: "discard", job: "1.n1" }), expected, "it runs");
    assert.equal(w.state.runs.get("1.n1")?.ending, null);
    const third = job({ run_count: 3 });
    w.on({ kind: "start", job: third, owner: OWNER });
    w.on({ kind: "discard", job: "1.n1" });
    assert.equal(w.state.runs.get("1.n1")?.next?.job.run_count, 3);
  }
});

test("output that was being kept when the server gave up the run is removed, and then its note", () => {
  const { w, first } = keeping();
  kill(w);
  assert.deepEqual(w.on(finished(first)), [PURGE, "drop 1.n1 1"]);
  assert.equal(w.state.kept.size, 0);
  assert.deepEqual(notes(w), [true]);
  w.on({ kind: "purged", job: "1.n1" });
  assert.deepEqual(notes(w), [true, false]);
});

test("a run that is asked for while the output of the one before is being kept goes on with it", () => {
  const { w, first } = keeping();
  const second = job({ run_count: 2 });
  w.on({ kind: "start", job: second, owner: OWNER });
  assert.deepEqual(w.on(finished(first)), ["drop 1.n1 1", "prepare 1.n1"]);
  assert.equal(w.actions.findLast((action) => action.kind === "prepare")?.request.kept, true);
  assert.deepEqual(notes(w), [true]);
});

test("a sister that did not run leaves the output of an earlier run to the next; one that ran leaves nothing", () => {
  for (const ran of [false, true]) {
    const w = world();
    w.state.kept.add("1.n1");
    const second = job({ run_count: 2, ...AS_SISTER });
    w.on({ kind: "start", job: second, owner: OWNER });
    if (ran) {
      w.on(prepared(second));
      w.on(started(second, w.now_ms));
    }
    w.on({ kind: "terminate", data: { job: "1.n1", run_count: 2, why: "delete", kill_delay_s: 0 } });
    const asked = ran ? w.on(exited(second, w.now_ms, { signal: 9 })) : w.on(prepared(second));
    assert.deepEqual(asked, [`finish 1.n1 ${ran ? "drop" : "keep"}`]);
    w.on(finished(second));
    assert.deepEqual([...w.state.kept], ran ? [] : ["1.n1"]);
  }
});

test("the note of output that a later run has kept does not go with what was removed before", () => {
  const { w, first } = keeping();
  w.on(finished(first));
  w.on(acknowledged(first));
  assert.deepEqual(w.on({ kind: "discard", job: "1.n1" }), [PURGE]);
  const second = job({ run_count: 2 });
  run(w, second);
  w.on({ kind: "terminate", data: { job: "1.n1", run_count: 2, why: "rerun", kill_delay_s: 0 } });
  w.on(exited(second, w.now_ms, { signal: 9 }));
  w.on({ kind: "purged", job: "1.n1" });
  assert.deepEqual(notes(w), [true, true]);
});

test("notes on the disk: found again, and only names that can be a job's", () => {
  const home = mkdtempSync(join(tmpdir(), "kept-"));
  try {
    mkdirSync(join(home, "mom_priv/jobs"), { recursive: true });
    noteKept(home, "1.n1", true);
    noteKept(home, "2[7].n1", true);
    noteKept(home, "3.n1", true);
    noteKept(home, "3.n1", false);
    noteKept(home, "3.n1", false);
    for (const name of ["a b.KP", ".KP", "4.n1.SC"]) writeFileSync(join(home, "mom_priv/jobs", name), "");
    assert.deepEqual(foundKept(home).sort(), ["1.n1", "2[7].n1"]);
  } finally {
    rmSync(home, { recursive: true });
  }
});

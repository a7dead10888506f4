import assert from "node:assert/strict";
import { test } from "node:test";
import { attrsHere, isSister, PLACEHOLDER } from "#mom/job/sister.ts";
import type { MomEvent } from "#mom/run/event.ts";
import { acknowledged, exited, finished, job, OWNER, prepared, run, started, world } from "../world.ts";

const SECOND = { exec_host: "n0/0*2+n1/0", exec_vnode: "(n0:ncpus=2:mem=1048576kb)+(n1:ncpus=1:mem=2048kb)" };

test("a sister makes ready, holds a place, and is done when she is told so", () => {
  const w = world();
  const j = job(SECOND);
  const steps: readonly (readonly [MomEvent, readonly string[]])[] = [
    [{ kind: "start", job: j, owner: OWNER }, ["prepare 1.n1"]],
    [prepared(j), ["mom-joined 1.n1", "start 1.n1"]],
    // The server was away.
    [{ kind: "connected" }, ["hello"]],
    [{ kind: "welcome", data: { keep: [j.id], kill: [], acknowledged: [] } }, ["mom-joined 1.n1"]],
    [started(j, w.now_ms), ["mom-started 1.n1"]],
    [{ kind: "tick" }, []],
    [{ kind: "terminate", data: { job: j.id, run_count: 1, why: "delete", kill_delay_s: 0 } }, ["signal 1.n1 9"]],
    [exited(j, w.now_ms, { signal: 9 }, 2), ["finish 1.n1 drop"]],
    [finished(j), ["mom-obit 1.n1 265"]],
    [acknowledged(j), ["drop 1.n1 1"]],
  ];
  for (const [event, expected] of steps) assert.deepEqual(w.on(event), expected, event.kind);
  const start = w.actions.find((action) => action.kind === "start");
  assert.equal(start?.spec.path, PLACEHOLDER);
  const prepare = w.actions.find((action) => action.kind === "prepare");
  assert.equal(prepare?.request.script_text, null);
  assert.equal(prepare?.request.nodefile_text, "n0\nn1\n");
});

test("limits are kept by the mother superior, of all hosts together", () => {
  const limited = { attrs: { Resource_List: { ncpus: 3, walltime: 1, cput: 10 } } };
  const sister = world();
  run(sister, job({ ...SECOND, ...limited }));
  sister.now_ms += 60_000;
  assert.deepEqual(sister.on({ kind: "tick" }), []);
  const mother = world();
  const j = job({ exec_host: "n1/0+n2/0", exec_vnode: "(n1:ncpus=1)+(n2:ncpus=1)", attrs: { Resource_List: { ncpus: 2, cput: 10 } } });
  run(mother, j);
  const told = { job: j.id, run_count: 1, cput_s: 11, mem_kb: 0, vmem_kb: 0 };
  assert.deepEqual(mother.on({ kind: "sisters", data: told }), [
    "append /pbs/spool/1.n1.ER =>> PBS: job killed: cput 11 exceeded limit 10",
    "signal 1.n1 15",
  ]);
});

test("who is a sister, and what the job has there", () => {
  for (const [exec_host, host, expected] of [
    ["n1/0", "n1", false],
    ["n1/0+n1/1", "n1", false],
    ["n1/0+n2/0", "n1", false],
    ["n1/0+n2/0", "n2", true],
    ["n1/0+n2/0+n2/1", "N2", true],
    ["n1/0+n2/0", "n3", false],
  ] as const)
    assert.equal(isSister({ exec_host }, host), expected, `${exec_host} ${host}`);
  const here = attrsHere(job(SECOND), "n1", [])["Resource_List"];
  assert.deepEqual(here, { ncpus: 1, mem: "2048kb" });
});

test("release_nodes_on_stageout: the mother superior tells when her files are being copied, if there are any", () => {
  for (const [attrs, expected] of [
    [{ release_nodes_on_stageout: true, stageout: ["out@n1:/tmp/out"] }, ["send", "finish 1.n1 deliver"]],
    [{ stageout: ["out@n1:/tmp/out"] }, ["finish 1.n1 deliver"]],
    [{ release_nodes_on_stageout: true }, ["finish 1.n1 deliver"]],
  ] as const) {
    const w = world();
    const j = job({ exec_host: "n1/0+n2/0", exec_vnode: "(n1:ncpus=1)+(n2:ncpus=1)", attrs });
    run(w, j);
    assert.deepEqual(w.on(exited(j, w.now_ms, { code: 0 })), expected, JSON.stringify(attrs));
  }
});

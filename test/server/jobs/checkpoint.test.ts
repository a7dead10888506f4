// Jobs that their mom checkpoints: held or preempted, waiting with a checkpoint on a host, restarted from it.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServerToMom } from "#protocol/mom-link.ts";
import {
  ALICE,
  addHost,
  addJob,
  apply,
  ask,
  askOk,
  type Harness,
  harness,
  jobAttrs,
  jobOwn,
  lettersOf,
  mom,
  momHello,
  obit,
  outcome,
  ROOT,
  restart,
  runOn,
  stateOf,
} from "../harness.ts";

const sent = <T extends keyof ServerToMom>(h: Harness, type: T): ServerToMom[T][] =>
  h.to_moms.filter((frame) => frame.type === type).map((frame) => frame.data as ServerToMom[T]);
const signals = (h: Harness): string[] => sent(h, "mom-signal").map(({ signal }) => signal);
const lastStart = (h: Harness) => sent(h, "mom-start").at(-1)?.jobs[0];
const hold = (h: Harness, job: string): unknown => askOk(h, ALICE, { kind: "hold-job", job, holds: "u" });
const release = (h: Harness, job: string): unknown => askOk(h, ALICE, { kind: "release-job", job, holds: "u" });

function held(): { h: Harness; link: number; id: string } {
  const h = harness();
  const link = addHost(h, "n1");
  const id = addJob(h, { Rerunable: false });
  runOn(h, id, "n1", link);
  hold(h, id);
  mom(h, link, "mom-result", { token: sent(h, "mom-signal")[0]?.token ?? 0, ok: true });
  obit(h, link, id, -12);
  return { h, link, id };
}

test("qhold of a running job asks its mom to save it; saved, it is held whether it may be rerun or not, with record C", () => {
  const { h, id } = held();
  assert.deepEqual(signals(h), ["checkpoint"]);
  assert.equal(stateOf(h, id), "H 20");
  assert.equal(lettersOf(h, id), "QSC");
});

test("output of a run that was to be repeated goes when the job is deleted before", () => {
  for (const again of [false, true]) {
    const h = harness();
    const link = addHost(h, "n1");
    const id = addJob(h);
    runOn(h, id, "n1", link);
    ask(h, ROOT, { kind: "rerun-job", job: id });
    obit(h, link, id, -11);
    assert.equal(stateOf(h, id), "Q 10");
    if (again) runOn(h, id, "n1", link);
    assert.equal(outcome(h, ROOT, { kind: "delete-job", job: id }), "ok");
    if (again) obit(h, link, id, 271);
    assert.equal(stateOf(h, id), "F 91");
    // A mom delivers the output of a run that it ends.
    assert.deepEqual(sent(h, "mom-discard"), again ? [] : [{ job: id }]);
  }
});

test("output of a run that is repeated on another host goes when that has begun; a mom that was away is told at her hello what is for nobody", () => {
  const h = harness();
  const link = addHost(h, "n1");
  const other = addHost(h, "n2");
  const id = addJob(h);
  const hello = (again: number): void => {
    h.to_moms.length = 0;
    mom(h, again, "mom-hello", { host: "n1", port: 1, pid: 2, version: "x", vnodes: [], jobs: [], outputs: [id, "77.s"] });
  };
  runOn(h, id, "n1", link);
  ask(h, ROOT, { kind: "rerun-job", job: id });
  obit(h, link, id, -11);
  hello(link + 10);
  assert.deepEqual(sent(h, "mom-discard"), [{ job: "77.s" }], "the job waits for its next run");
  askOk(h, ROOT, { kind: "run-job", job: id, exec_vnode: "(n2:ncpus=1)", async: true });
  hello(link + 11);
  assert.deepEqual(sent(h, "mom-discard"), [{ job: "77.s" }], "it may yet come back");
  mom(h, other, "mom-started", { job: id, run_count: 2, session_id: 5, jobdir: "/home/alice" });
  assert.deepEqual(sent(h, "mom-discard"), [{ job: "77.s" }, { job: id }]);
  assert.equal(jobOwn(h, id).output_on, undefined);
  hello(link + 12);
  assert.deepEqual(sent(h, "mom-discard"), [{ job: id }, { job: "77.s" }], "she had not heard");
  h.to_moms.length = 0;
  for (const [gone, exit_status] of [["77.s", -4] as const, ["78.s", 0] as const])
    mom(h, link + 12, "mom-obit", { job: gone, run_count: 1, exit_status, used: {} });
  assert.deepEqual(sent(h, "mom-discard"), [{ job: "77.s" }], "the end of a run that was given up");
});

test("what a host keeps of the run before is not discarded there while it has part in the next one, which that would end", () => {
  const h = harness();
  const [n1, n2] = [addHost(h, "n1"), addHost(h, "n2")] as const;
  const job = addJob(h);
  const started = (run_count: number): void => {
    for (const link of [n1, n2]) mom(h, link, "mom-started", { job, run_count, session_id: link, jobdir: "/home/x" });
  };
  askOk(h, ROOT, { kind: "run-job", job, exec_vnode: "(n1:ncpus=1)+(n2:ncpus=1)", async: true });
  started(1);
  ask(h, ROOT, { kind: "rerun-job", job });
  for (const link of [n1, n2]) mom(h, link, "mom-obit", { job, run_count: 1, exit_status: -11, used: {} });
  assert.deepEqual([stateOf(h, job), jobOwn(h, job).output_on], ["Q 10", "n1"]);
  askOk(h, ROOT, { kind: "run-job", job, exec_vnode: "(n2:ncpus=1)+(n1:ncpus=1)", async: true });
  started(2);
  assert.deepEqual([stateOf(h, job), jobAttrs(h, job).exec_host, sent(h, "mom-discard")], ["R 42", "n2/0+n1/0", []]);
});

test("a run that was taken back before its mom confirmed it leaves what another host keeps for one that is", () => {
  const h = harness();
  const [n1, n2] = [addHost(h, "n1"), addHost(h, "n2")] as const;
  const job = addJob(h);
  runOn(h, job, "n1", n1);
  ask(h, ROOT, { kind: "rerun-job", job });
  obit(h, n1, job, -11);
  askOk(h, ROOT, { kind: "run-job", job, exec_vnode: "(n2:ncpus=1)", async: true });
  ask(h, ROOT, { kind: "rerun-job", job });
  obit(h, n2, job, -11);
  assert.deepEqual([stateOf(h, job), jobOwn(h, job).output_on, sent(h, "mom-discard")], ["Q 10", "n1", []]);
  runOn(h, job, "n2", n2);
  assert.deepEqual([jobOwn(h, job).output_on, sent(h, "mom-discard")], [undefined, [{ job }]]);
});

test("a job deleted while its mom ends it for another run, or has saved it, leaves nothing with her", () => {
  for (const status of [-11, -12, -18]) {
    const h = harness();
    const link = addHost(h, "n1");
    const id = addJob(h);
    runOn(h, id, "n1", link);
    ask(h, ROOT, { kind: "rerun-job", job: id });
    ask(h, ROOT, { kind: "delete-job", job: id });
    obit(h, link, id, status);
    assert.equal(stateOf(h, id), "F 91");
    assert.deepEqual(sent(h, "mom-discard"), [{ job: id }]);
    assert.deepEqual(
      h.to_moms.slice(-2).map(({ type }) => type),
      ["mom-obit-ack", "mom-discard"],
    );
  }
});

test("a mom that cannot: the job runs on with its hold", () => {
  const h = harness();
  const link = addHost(h, "n1");
  const id = addJob(h);
  runOn(h, id, "n1", link);
  hold(h, id);
  mom(h, link, "mom-result", { token: sent(h, "mom-signal")[0]?.token ?? 0, ok: false, code: 15029 });
  assert.deepEqual([stateOf(h, id), jobAttrs(h, id).Hold_Types], ["R 42", "u"]);
  mom(h, link, "mom-kept", { job: id, run_count: 1, why: "checkpoint", text: "checkpoint_abort failed" });
  assert.equal(stateOf(h, id), "R 42");
});

test("a job with -c n is not asked to be saved", () => {
  const h = harness();
  const link = addHost(h, "n1");
  const id = addJob(h, { Checkpoint: "n" });
  runOn(h, id, "n1", link);
  hold(h, id);
  assert.deepEqual(signals(h), []);
});

test("released, it goes on there from its checkpoint: record T, also after the server came back", () => {
  for (const crash of [false, true]) {
    const { h, link: first, id } = held();
    let link = first;
    if (crash) {
      restart(h);
      link = first + 7;
      momHello(h, link, "n1");
    }
    release(h, id);
    askOk(h, ROOT, { kind: "run-job", job: id, exec_vnode: "(n1:ncpus=1)", async: true });
    assert.equal(lastStart(h)?.restart, true);
    mom(h, link, "mom-started", { job: id, run_count: 2, session_id: 5, jobdir: "/home/alice", restarted: true });
    assert.equal(stateOf(h, id), "R 42");
    assert.equal(jobOwn(h, id).checkpointed, undefined);
    obit(h, link, id);
    assert.equal(lettersOf(h, id), "QSCTE");
  }
});

test("on another host it begins anew, and what waits on the first is discarded", () => {
  const { h, id } = held();
  const other = addHost(h, "n2");
  release(h, id);
  askOk(h, ROOT, { kind: "run-job", job: id, exec_vnode: "(n2:ncpus=1)", async: true });
  assert.equal(lastStart(h)?.restart, undefined);
  mom(h, other, "mom-started", { job: id, run_count: 2, session_id: 5, jobdir: "/home/alice" });
  assert.equal(lettersOf(h, id), "QSCS");
  assert.deepEqual(sent(h, "mom-discard"), [{ job: id }]);
});

test("deleted while it waits: its checkpoint goes; a mom that was away is told at its hello", () => {
  const { h, link, id } = held();
  askOk(h, ALICE, { kind: "delete-job", job: id });
  assert.deepEqual(sent(h, "mom-discard"), [{ job: id }]);
  h.to_moms.length = 0;
  const hello = { host: "n1", port: 1, pid: 2, version: "x", vnodes: [], jobs: [], checkpoints: [id] };
  mom(h, link + 1, "mom-hello", hello);
  assert.deepEqual(sent(h, "mom-discard"), [{ job: id }]);
});

test("a restart that failed: from the beginning", () => {
  const { h, link, id } = held();
  release(h, id);
  askOk(h, ROOT, { kind: "run-job", job: id, exec_vnode: "(n1:ncpus=1)", async: true });
  apply(h, { kind: "job-changed", id, set: { Rerunable: true }, unset: [] });
  obit(h, link, id, -7);
  assert.equal(stateOf(h, id), "Q 10");
  assert.equal(jobOwn(h, id).checkpointed, undefined);
});

test("-c c and short intervals become the queue's checkpoint_min", () => {
  for (const [Checkpoint, least, told] of [
    ["c", 5, "c=5"],
    ["w=2", 5, "w=5"],
    ["c=9", 5, "c=9"],
    ["u", 5, "u"],
    ["c=2", undefined, "c=2"],
  ] as const) {
    const h = harness();
    const link = addHost(h, "n1");
    if (least !== undefined) apply(h, { kind: "changed", object: "queue", name: "workq", set: { checkpoint_min: least }, unset: [] });
    runOn(h, addJob(h, { Checkpoint }), "n1", link);
    assert.equal(lastStart(h)?.attrs["Checkpoint"], told, `${Checkpoint} ${least}`);
  }
});

test("output of an earlier run is for nobody when the job's last run ends before it was confirmed, whatever it ended with", () => {
  for (const status of [271, -1, -2, -17, -19]) {
    const h = harness();
    const link = addHost(h, "n1");
    const id = addJob(h);
    runOn(h, id, "n1", link);
    ask(h, ROOT, { kind: "rerun-job", job: id });
    obit(h, link, id, -11);
    askOk(h, ROOT, { kind: "run-job", job: id, exec_vnode: "(n1:ncpus=1)", async: true });
    if (status === 271) ask(h, ROOT, { kind: "delete-job", job: id });
    mom(h, link, "mom-obit", { job: id, run_count: 2, exit_status: status, used: {}, kept: true });
    assert.equal(jobAttrs(h, id).job_state, "F");
    assert.deepEqual(sent(h, "mom-discard"), [{ job: id }], `${status}`);
  }
});

test("a host that keeps output of an unconfirmed run is the one where it is looked for; what another host keeps goes", () => {
  const h = harness();
  const [n1, n2] = [addHost(h, "n1"), addHost(h, "n2")] as const;
  const job = addJob(h);
  runOn(h, job, "n1", n1);
  ask(h, ROOT, { kind: "rerun-job", job });
  obit(h, n1, job, -11);
  askOk(h, ROOT, { kind: "run-job", job, exec_vnode: "(n2:ncpus=1)", async: true });
  ask(h, ROOT, { kind: "rerun-job", job });
  mom(h, n2, "mom-obit", { job, run_count: 2, exit_status: -11, used: {}, kept: true });
  assert.deepEqual([stateOf(h, job), jobOwn(h, job).output_on, sent(h, "mom-discard")], ["Q 10", "n2", [{ job }]]);
});

test("a run that was deleted by force says in its late obit what its mom keeps: that is for nobody", () => {
  const h = harness();
  const link = addHost(h, "n1");
  const job = addJob(h);
  runOn(h, job, "n1", link);
  askOk(h, ROOT, { kind: "delete-job", job, force: true });
  h.to_moms.length = 0;
  mom(h, link, "mom-obit", { job, run_count: 1, exit_status: 271, used: {}, kept: true });
  assert.deepEqual(sent(h, "mom-discard"), [{ job }]);
});

test("output of an earlier run goes when a sister ends the job before its mother superior has heard of the run", () => {
  const h = harness();
  const [n1, n2] = [addHost(h, "n1"), addHost(h, "n2")] as const;
  const job = addJob(h);
  runOn(h, job, "n1", n1);
  ask(h, ROOT, { kind: "rerun-job", job });
  obit(h, n1, job, -11);
  askOk(h, ROOT, { kind: "run-job", job, exec_vnode: "(n1:ncpus=1)+(n2:ncpus=1)", async: true });
  obit(h, n2, job, -19);
  assert.deepEqual([stateOf(h, job), sent(h, "mom-discard")], ["F 93", [{ job }]]);
});

test("a mom that comes back with a run that has ended and that nobody wants keeps nothing of it", () => {
  const h = harness();
  const link = addHost(h, "n1");
  const job = addJob(h);
  runOn(h, job, "n1", link);
  askOk(h, ROOT, { kind: "delete-job", job, force: true });
  h.to_moms.length = 0;
  const jobs = [{ job, run_count: 1, state: "ended" as const }];
  mom(h, link + 10, "mom-hello", { host: "n1", port: 1, pid: 2, version: "x", vnodes: [], jobs });
  assert.deepEqual(sent(h, "mom-discard"), [{ job }]);
});

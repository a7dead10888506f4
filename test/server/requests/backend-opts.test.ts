// qsub -W backend_opts: which options a job may give, and what they change (docs/runners.md).

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServerToRunners } from "#protocol/runner-link.ts";
import { ALICE, addQueue, addSched, advance, askOk, type Harness, harness, mom, outcome, ROOT, runners, schedHello } from "../harness.ts";
import { session } from "./qmgr.ts";
import { qalter, qsub, qsubVerdict } from "./qsub.ts";

const LINK = 50;
const S1 = { partition: ["p1"], sched_priv: "/home/pbs/sched_priv_s1", sched_log: "/home/pbs/sched_logs_s1", scheduling: true };

/** A queue cloud in partition p1 with a Slurm backend, whose controller is connected. */
async function world(): Promise<Harness> {
  const h = harness();
  addQueue(h, "cloud", { partition: "p1" });
  addQueue(h, "other");
  addSched(h, "s1", S1);
  schedHello(h, 7, "s1");
  await session(h, [["create backend sl type=slurm"], ["set backend sl partition=p1,max_runners=4,enabled=t"]]);
  runners(h, LINK, "runners-hello", { pid: 9 });
  return h;
}
const submitWords = (options: string, queue = "cloud"): string => `-q ${queue} -W backend_opts=${options} -l walltime=60 -- /bin/true`;
const demands = (h: Harness) => {
  const frame = h.to_runners.findLast(({ type }) => type === "runners-work")?.data as ServerToRunners["runners-work"];
  return frame.demands;
};

test("backend_opts: options that the backend does not have, or the site does not admit, are refused by name", async () => {
  const h = await world();
  assert.equal(await qsubVerdict(h, submitWords("--gres=gpu:1")), "ok");
  assert.match(await qsubVerdict(h, submitWords("--uid=0")), /^15014 .*backend_opts: unknown option --uid=0/);
  assert.match(await qsubVerdict(h, submitWords("--gres=gpu:1", "other")), /^15014 .*no backend serves queue other/);
  await session(h, [["set backend sl backend_opts_allowed='constraint,partition'"]]);
  assert.equal(await qsubVerdict(h, submitWords("--constraint=fast")), "ok");
  assert.match(
    await qsubVerdict(h, submitWords("--gres=gpu:1")),
    /^15014 .*option gres is not admitted by the site; jobs may give constraint, partition/,
  );
  await session(h, [["set backend sl backend_opts_allowed=none"]]);
  assert.match(await qsubVerdict(h, submitWords("--constraint=fast")), /jobs may give no options here/);
  await session(h, [["unset backend sl backend_opts_allowed"]]);
  const id = await qsub(h, submitWords("-Cfast"));
  assert.match(qalter(h, id, ["backend_opts=--uid=0"]), /^15014/);
  assert.equal(qalter(h, id, ["backend_opts=-Cslow"]), "ok");
  assert.match(outcome(h, ALICE, { kind: "move-job", job: id, destination: "other" }), /^15014 .*no backend serves queue other/);
});

test("backend_opts: jobs with different options are in different buckets, and a runner takes only jobs with its own", async () => {
  const h = await world();
  await qsub(h, submitWords("-Cfast"));
  const plain = await qsub(h, "-q cloud -l walltime=60 -- /bin/true");
  advance(h, 1);
  assert.deepEqual(
    demands(h)
      .map(({ bucket }) => bucket.options ?? "")
      .sort(),
    ["", "-Cfast"],
  );
  const fast = demands(h).find(({ bucket }) => bucket.options !== undefined)?.bucket.key ?? "";
  runners(h, LINK, "runners-ask", { token: 1, backend: "sl", bucket: fast, life_s: 600, digests: ["a".repeat(64)] });
  const [host = ""] = h.core.state.runners.keys();
  mom(h, 60, "mom-hello", { host, port: 15002, pid: 1, version: "1", vnodes: [], jobs: [], pongs: true, runner: { token: "", age_s: 1 } });
  const refused = outcome(h, ROOT, { kind: "run-job", job: plain, exec_vnode: `(${host}:ncpus=1)`, async: true });
  assert.match(refused, /was asked for with other backend_opts/);
  askOk(h, ALICE, { kind: "modify-job", job: plain, attrs: [{ name: "backend_opts", op: "=", value: "-Cfast" }] });
  assert.equal(outcome(h, ROOT, { kind: "run-job", job: plain, exec_vnode: `(${host}:ncpus=1)`, async: true }), "ok");
});

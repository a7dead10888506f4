// The adapter for Slurm against a real Slurm.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { BackendError } from "#backends/contract/fault.ts";
import { request } from "../../../backends/order.ts";
import { until } from "../../complex.ts";
import { SHARED } from "../../shared.ts";
import { writer, written } from "../runner-script.ts";
import { bed, STATE, startFreshPeer, startPeer, stopPeer, whyNoPeer } from "./peer-bed.ts";

const skip = whyNoPeer("slurm") ?? false;
const CONFIG = join(STATE, "slurm", "slurm.conf");
const ENV = { PATH: "/usr/bin:/bin", SLURM_CONF: CONFIG };

before(() => {
  if (skip !== false) return;
  startFreshPeer("slurm");
  execFileSync("scontrol", ["create", "PartitionName=short", "Nodes=ALL", "MaxTime=1", "State=UP"], { env: ENV });
});
after(() => skip === false && stopPeer("slurm"));

test("Slurm runs the runners of an array as their owner, and shows them until they end", { skip }, async (t) => {
  const { dir, open, order } = bed(t, "slurm");
  const slurm = open({ config: CONFIG, repo_key: "repo:" });
  const { text, array_max } = await slurm.probe();
  assert.match(text, /^slurm \d+\.\d+/);
  assert.equal(array_max, 100_000);
  const asked = order({ count: 3, argv: writer(dir), env: { SITE: "it's $HOME" } });
  const submitted = await slurm.submit(asked);
  assert.deepEqual(
    submitted.map(({ index, state }) => [index, state]),
    [0, 1, 2].map((index) => [index, "queued"]),
  );
  for (const index of [0, 1, 2]) {
    const lines = (await until(`runner ${index}`, () => written(dir, asked.tag, index))).split("\n");
    assert.deepEqual(lines.slice(0, 2), ["batch1", `secret-${index}`]);
    assert.ok(lines.includes("SITE=it's $HOME"), lines.join("\n"));
  }
  const seen = await slurm.list();
  assert.deepEqual(
    seen.map(({ id, state, user, host }) => [id, state, user, host]),
    submitted.map(({ id }, index) => [id, "running", "batch1", seen[index]?.host]),
  );
  assert.match(seen[0]?.host ?? "", /^sn\d$/);
  writeFileSync(join(dir, "go"), "");
  await until("the end of the runners", async () =>
    (await slurm.list()).every(({ state, ending }) => state === "ended" && ending === "done"),
  );
  await slurm.release(asked.tag);
});

test("B1: a submission to a Slurm whose answer never came is not repeated", { skip }, async (t) => {
  const { dir, open, order } = bed(t, "slurm");
  const slurm = open({ config: CONFIG, command_timeout: 3 });
  await slurm.probe();
  const asked = order({ count: 2, argv: writer(dir) });
  const pid = Number(readFileSync(join(STATE, "slurm", "run", "slurmctld.pid"), "latin1"));
  process.kill(pid, "SIGSTOP");
  try {
    await assert.rejects(slurm.submit(asked), (error) => {
      assert.ok(error instanceof BackendError, String(error));
      assert.match(error.message, /sbatch did not answer within 3 s/);
      return error.kind === "transient" && error.uncertain;
    });
  } finally {
    process.kill(pid, "SIGCONT");
  }
  const patient = open({ config: CONFIG });
  await patient.submit({ ...asked, isFirst: false });
  await patient.submit({ ...asked, isFirst: false });
  const live = await until("one submission of two runners", async () => {
    const all = (await patient.list()).filter(({ state }) => state === "running");
    return all.length === 2 && all;
  });
  assert.equal(new Set(live.map(({ id }) => id.split("_")[0])).size, 1);
  await patient.cancel(live);
  await until("no runner", async () => (await patient.list()).every(({ state }) => state === "ended"));
});

test("what Slurm refuses is told in its words, by kind", { skip }, async (t) => {
  const { open, order } = bed(t, "slurm");
  const slurm = open({ config: CONFIG });
  const refusal = async (parts: Parameters<typeof request>[0], with_ = slurm): Promise<string> => {
    try {
      await with_.submit(order({ request: request(parts) }));
      return "accepted";
    } catch (error) {
      assert.ok(error instanceof BackendError, String(error));
      return `${error.kind}: ${error.message}`;
    }
  };
  assert.match(await refusal({ options: { licenses: "nosuch:1" } }), /^impossible: .*Invalid license specification/);
  assert.match(await refusal({ resources: { lic1: 9 } }), /^impossible: .*Invalid license specification/);
  assert.match(await refusal({ resources: { ngpus: 1 } }), /^impossible: .*Invalid generic resource/);
  assert.match(await refusal({ mem_kb: 10 ** 12 }), /^impossible: .*Memory specification can not be satisfied/);
  assert.match(
    await refusal({}, open({ config: CONFIG, remote_queue: "nosuch" })),
    /^configuration: .*invalid partition specified: nosuch/,
  );
  assert.match(
    await refusal({}, open({ config: CONFIG, bin: "/nonexistent" })),
    /^configuration: there is no program \/nonexistent\/scontrol/,
  );
  const [tooLong] = await slurm.submit(order({ request: request({ walltime_s: 600, options: { partition: "short" } }) }));
  const waits = await until("the reason of a walltime above the partition's", async () => {
    const seen = (await slurm.list()).find(({ id }) => id === tooLong?.id);
    return seen?.fault?.text === "PartitionTimeLimit" && seen;
  });
  assert.equal(waits.fault?.kind, "impossible");
});

test("licences that Slurm counts are asked for, only queued runners are cancelled if that is wished, and nice follows the wish", {
  skip,
}, async (t) => {
  const { dir, open, order } = bed(t, "slurm");
  const slurm = open({ config: CONFIG, use_nice: true, time_origin: "2026-01-01 00:00", nice_factor: 0.5 });
  const wish = { start_s: Date.UTC(2026, 0, 2) / 1000, priority: 0 };
  const asked = order({ count: 3, argv: writer(dir), request: request({ resources: { lic1: 2 } }), wish });
  await slurm.submit(asked);
  const waiting = await until("two runners with two of four licences each", async () => {
    const all = await slurm.list();
    return (
      all.filter(({ state }) => state === "running").length === 2 &&
      all.find(({ state, reason }) => state === "queued" && /Licenses/.test(reason))
    );
  });
  const nice = (): string =>
    execFileSync("squeue", ["-h", "-r", "-j", waiting.id, "-O", "nice"], {
      env: { ...process.env, SLURM_CONF: CONFIG },
      encoding: "utf8",
    }).trim();
  assert.equal(nice(), "43200");
  await slurm.reschedule?.([waiting], { ...wish, start_s: wish.start_s + 86_400 });
  assert.equal(nice(), "86400");
  await slurm.cancel(await slurm.list(), { queued_only: true });
  await until("the waiting runner is gone, the others run", async () => {
    const all = await slurm.list();
    return all.filter(({ state }) => state === "running").length === 2 && all.every(({ state }) => state !== "queued");
  });
});

test("a job of another user with the name of a runner is told apart, also if its name has line ends", { skip }, async (t) => {
  const { open, order } = bed(t, "slurm");
  const slurm = open({ config: CONFIG });
  const asked = order({ argv: ["/bin/sleep", "60"] });
  for (const name of [asked.tag, `x\n|7_0|7|0|RUNNING|None|h|batch1|${asked.tag}|`])
    execFileSync("sbatch", ["--parsable", "-H", "--array=0-0", `--job-name=${name}`, "-o", "/dev/null"], {
      env: ENV,
      input: "#!/bin/sh\nsleep 60\n",
      cwd: "/",
    });
  const strangers = await slurm.list();
  assert.deepEqual(
    strangers.map(({ user, tag }) => [user, tag]),
    [["root", asked.tag]],
  );
  assert.equal(
    (await slurm.submit({ ...asked, isFirst: false })).every(({ user }) => user === "batch1"),
    true,
  );
  execFileSync("scancel", ["--user=root"], { env: ENV });
});

test("a Slurm that is full, or that is not there, says so; later submissions succeed", { skip }, async (t) => {
  const { dir, open, order } = bed(t, "slurm");
  startFreshPeer("slurm", { SLURM_SET: "MaxJobCount=4" });
  const slurm = open({ config: CONFIG, command_timeout: 5 });
  const first = order({ count: 2, argv: writer(dir) });
  await slurm.submit(first);
  const refused = order({ count: 3, argv: writer(dir) });
  await assert.rejects(slurm.submit(refused), (error) => {
    assert.ok(error instanceof BackendError, String(error));
    assert.match(error.message, /temporarily unable to accept job/);
    return error.kind === "limit";
  });
  execFileSync(join(SHARED, "peers", "stop-slurm"), [], { stdio: "ignore" });
  await assert.rejects(slurm.list(), (error) => {
    assert.ok(error instanceof BackendError, String(error));
    assert.match(error.message, /Unable to contact slurm controller|did not answer/);
    return error.kind === "transient";
  });
  startPeer("slurm");
  const again = await until("the submission", () => slurm.submit({ ...refused, isFirst: false }).catch(() => undefined));
  assert.equal(again.length, 3);
  assert.deepEqual([...new Set((await slurm.list()).map(({ tag }) => tag))].sort(), [first.tag, refused.tag].sort());
});

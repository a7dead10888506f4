// Policy that depends on the outside: usage of shares that survives crashes and is changed by pbsfs, and programs that report
// resources of the server.

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { StoredUsage } from "#model/fairshare.ts";
import { parseUsage, usageText } from "#model/usage-file.ts";
import type { Decision, SchedJob } from "#protocol/sched-link.ts";
import { jobOf, snapshotOf } from "../../sched/world.ts";
import { type FakeServer, lines, makeHome, makePrivate, startFakeServer, until } from "../sched-bed.ts";

const texts = (decisions: readonly Decision[]): string[] =>
  decisions.map((decision) =>
    "comment" in decision ? `${decision.job} ${decision.comment}` : `${decision.kind} ${"job" in decision ? decision.job : ""}`,
  );

describe("fairshare over time", () => {
  const world = makeHome();
  const priv = makePrivate(world.home);
  const logs = join(world.home, "sched_logs");
  const usageFile = join(priv, "usage");
  const running = (id: string, user: string, cput: number, run_count = 1): SchedJob => ({
    ...jobOf(`${id} ncpus=1 u=${user}`, Number(id)),
    state: "R",
    exec_vnode: "(a:ncpus=1)",
    resources_used: { cput },
    run_count,
  });
  const stored = (): StoredUsage => parseUsage(readFileSync(usageFile, "utf8")) as StoredUsage;
  const kept = async (usage: Record<string, number>): Promise<void> => {
    await until(
      `usage ${JSON.stringify(usage)} is kept`,
      () => existsSync(usageFile) && JSON.stringify(stored().usage) === JSON.stringify(usage),
    );
  };
  let fake: FakeServer;

  before(async () => {
    writeFileSync(join(priv, "sched_config"), "fair_share: True ALL\npreemptive_sched: False\n", { mode: 0o644 });
    writeFileSync(join(priv, "resource_group"), "alice 20 root 50\nbob 21 root 50\n", { mode: 0o644 });
    const sched = { sched_priv: priv, sched_log: logs, log_events: 2047 };
    fake = await startFakeServer(world, snapshotOf({ nodes: "a ncpus=64", jobs: "", sched }), logs);
  });
  after(() => fake.stop());

  test("what runs have used is counted once, also what a run used last", async () => {
    fake.delta({ put: "job", value: running("1", "alice", 40) }, { put: "job", value: running("2", "bob", 10) });
    await fake.cycle();
    await kept({ alice: 41, bob: 11 });
    fake.delta({ put: "job", value: running("1", "alice", 50) }, { drop: "job", id: "2", resources_used: { cput: 15 } });
    await fake.cycle();
    await fake.cycle();
    await kept({ alice: 51, bob: 16 });
    assert.deepEqual(stored().running, { "1": { run: 1, amount: 50 } });
  });

  test("jobs run in the order of shares", async () => {
    fake.delta(
      { put: "job", value: jobOf("3 u=alice", 3) },
      { put: "job", value: jobOf("4 u=bob", 4) },
      { put: "job", value: jobOf("5 u=nobody", 5) },
    );
    assert.deepEqual(texts(await fake.cycle()), ["run 4", "run 3", "5 Can Never Run: Job has zero shares for fairshare"]);
  });

  test("a scheduler that is killed counts on where it was", async () => {
    fake.snapshot = { ...fake.snapshot, jobs: [running("1", "alice", 60)] };
    fake.child().kill("SIGKILL");
    await fake.restart();
    await fake.cycle();
    await kept({ alice: 61, bob: 16 });
  });

  test("what pbsfs writes counts from then on, and nothing is overwritten", async () => {
    writeFileSync(usageFile, usageText({ ...stored(), usage: { alice: 5, bob: 500 } }));
    writeFileSync(`${usageFile}.touch`, "");
    fake.delta({ put: "job", value: running("1", "alice", 70) });
    await fake.cycle();
    await kept({ alice: 15, bob: 500 });
    assert.ok(!existsSync(`${usageFile}.touch`));
  });

  test("a usage file that cannot be read is kept aside, and told", async () => {
    writeFileSync(usageFile, "PBS_MAG!");
    fake.child().kill("SIGKILL");
    await fake.restart();
    await fake.cycle();
    await kept({ alice: 61 });
    assert.equal(readFileSync(`${usageFile}.bad`, "utf8"), "PBS_MAG!");
    const told = "0001;pbs_sched;Fil;fairshare usage;usage begins anew, the old file is kept as usage.bad: it was written by another PBS";
    assert.ok(lines(logs).includes(told));
  });

  test("usage decays when its time has come", async () => {
    const long_ago = Math.floor(Date.now() / 1000) - 2 * 24 * 3600;
    writeFileSync(usageFile, usageText({ last_decay_s: long_ago, usage: { alice: 400 }, running: { "1": { run: 1, amount: 60 } } }));
    writeFileSync(`${usageFile}.touch`, "");
    await fake.cycle();
    await kept({ alice: 100 });
    await until("it is told", () => lines(logs).includes("0100;pbs_sched;Svr;Fairshare;Decaying Fairshare Tree"));
  });
});

describe("server_dyn_res", () => {
  const world = makeHome();
  const priv = makePrivate(world.home);
  const logs = join(world.home, "sched_logs");
  const programs = join(world.dir, "programs");
  const program = (name: string, text: string, mode = 0o755): string => {
    const path = join(programs, name);
    writeFileSync(path, `#!/bin/sh\n${text}\n`);
    chmodSync(path, mode);
    return path;
  };
  let fake: FakeServer;

  before(async () => {
    mkdirSync(programs);
    const names = ["lic", "slow", "bad", "open"];
    const config = [
      "preemptive_sched: False",
      `resources: "ncpus, host, ${names.join(", ")}"`,
      `server_dyn_res: "lic !${program("lic", 'echo "$1"; echo 99')} 2"`,
      `server_dyn_res: "slow !${program("slow", `echo $$ > ${join(programs, "slow.pid")}; sleep 100000 & wait`)}"`,
      `server_dyn_res: "bad !${program("bad", "echo many")}"`,
      `server_dyn_res: "open !${program("open", "echo 5", 0o777)}"`,
    ];
    writeFileSync(join(priv, "sched_config"), `${config.join("\n")}\n`, { mode: 0o644 });
    const resources = names.map((name) => ({ name, type: "long", flags: "" }));
    const sched = { sched_priv: priv, sched_log: logs, log_events: 2047, server_dyn_res_alarm: 3 };
    const asking = [{ lic: 1 }, { lic: 3 }, { slow: 1 }, { bad: 1 }, { open: 1 }, { lic: 2 }];
    const jobs = asking.map((asked, at): SchedJob => ({ ...jobOf(`${at + 1}`, at + 1), resources: { ncpus: 1, ...asked } }));
    fake = await startFakeServer(world, { ...snapshotOf({ nodes: "a ncpus=64", jobs: "", resources, sched }), jobs }, logs);
  });
  after(() => fake.stop());

  test("a program's first line is what the server has; what a cycle gives away counts in it; nothing else is trusted", async () => {
    const lack = (name: string, asked: number): string =>
      `Can Never Run: Insufficient amount of server resource: ${name} (R: ${asked} A: 0 T: 0)`;
    assert.deepEqual(texts(await fake.cycle()).sort(), [
      "2 Can Never Run: Insufficient amount of server resource: lic (R: 3 A: 2 T: 2)",
      `3 ${lack("slow", 1)}`,
      `4 ${lack("bad", 1)}`,
      `5 ${lack("open", 1)}`,
      "6 Not Running: Insufficient amount of server resource: lic (R: 2 A: 1 T: 2)",
      "run 1",
    ]);
    const open = join(programs, "open");
    const told = [
      `0080;pbs_sched;Svr;server_dyn_res;Program ${join(programs, "slow")} timed out`,
      "0080;pbs_sched;Svr;server_dyn_res;Setting resource slow to 0",
      `0080;pbs_sched;Svr;server_dyn_res;Program ${join(programs, "bad")} returned no value of bad: "many\\n"`,
      `0001;pbs_sched;Svr;pbs_sched;Permission denied (13) in tmp_file_sec_user, Security violation "${open}" resolves to "${open}"`,
      `0020;pbs_sched;Svr;server_dyn_res;error: ${open} file has a non-secure file access, setting resource open to 0, errno: 13`,
    ];
    for (const line of told) await until(`the log has: ${line}`, () => lines(logs).includes(line));
    const slow = Number(readFileSync(join(programs, "slow.pid"), "utf8"));
    await until("what the slow one started is killed, too", () => !existsSync(`/proc/${slow}`));
  });

  test("the next cycle asks again, and sees what came meanwhile", async () => {
    program("lic", "echo 5");
    const cycle = fake.cycle();
    fake.delta({ put: "job", value: jobOf("7 ncpus=1 lic=4", 7) });
    const starts = texts(await cycle).filter((text) => text.startsWith("run") || text.startsWith("7"));
    assert.deepEqual(starts, ["run 1", "run 2", "7 Not Running: Insufficient amount of server resource: lic (R: 4 A: 1 T: 5)"]);
  });
});

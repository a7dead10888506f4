// Named policies and backfill.order, set with qmgr and in sched_config, with real daemons: what starts, what qmgr prints, what the log warns of.

import assert from "node:assert/strict";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, startComplex, until } from "../complex.ts";

let complex: Complex;

before(async () => {
  complex = await startComplex();
  const host = /^Name=([^|]+)/m.exec(complex.must("pbsnodes", ["-a", "-F", "dsv"]))?.[1] as string;
  complex.qmgr(`set node ${host} resources_available.ncpus=4`, "set server job_history_enable=True");
});
after(() => complex.stop());

const submit = (name: string, ncpus: number, walltime_s: number): string =>
  complex.submit(["-N", name, "-l", `select=1:ncpus=${ncpus}`, "-l", `walltime=${walltime_s}`, "--", "/bin/sleep", "3000"]);

/** Submits a job on 3 of 4 cpus, a top job, and two jobs for the free cpu, of which the longer one came first. Returns the name of the one that starts. */
async function startedBehindTop(): Promise<string> {
  complex.qmgr("set sched default scheduling=True");
  const first = submit("first", 3, 3600);
  await complex.untilJob(first, "R");
  complex.qmgr("set sched default scheduling=False");
  const ids = [first, submit("top", 4, 300), submit("long", 1, 1800), submit("short", 1, 600)] as const;
  complex.qmgr("set sched default scheduling=True");
  const running = (): readonly string[] => ids.slice(2).filter((id) => complex.job(id).job_state === "R");
  await until("one of the two runs", () => running().length > 0, 40);
  await until("the top job has its estimate", () => complex.job(ids[1])["topjob"] === "True" || complex.job(ids[1])["topjob"] === true, 40);
  const [one] = running();
  const name = String(complex.job(one as string)["Job_Name"]);
  complex.qmgr("set sched default scheduling=False");
  complex.run("qdel", ["-W", "force", ...ids]);
  await until("no job is left", () => complex.must("qselect", []) === "", 40);
  return name;
}

test("qmgr: policy and backfill.order of a scheduler are set, printed, obeyed and unset", async () => {
  assert.match(complex.run("qmgr", ["-c", "set sched default policy=best"]).stderr, /Illegal attribute or resource value/);
  complex.qmgr("set sched default policy=easy");
  assert.equal(await startedBehindTop(), "long");
  complex.qmgr("set sched default policy=log");
  assert.equal(await startedBehindTop(), "short");
  complex.qmgr("set sched default policy=sjbf", "set sched default backfill.order=queue");
  assert.equal(await startedBehindTop(), "long");
  const printed = complex.must("qmgr", ["-c", "print sched default"]);
  assert.match(printed, /^set sched policy = sjbf$/m);
  assert.match(printed, /^set sched backfill\.order = queue$/m);
  assert.match(complex.must("qmgr", ["-c", "list sched default backfill.order"]), /backfill\.order = queue/);
  complex.qmgr('set sched default backfill.formula="walltime - 1"');
  assert.match(complex.must("qmgr", ["-c", "print sched default"]), /^set sched backfill\.formula = "?walltime - 1"?$/m);
  assert.notEqual(complex.run("qmgr", ["-c", 'set sched default backfill.formula="wall time"']).status, 0);
  complex.qmgr("unset sched default backfill.order", "unset sched default backfill.formula", "unset sched default policy");
  assert.doesNotMatch(complex.must("qmgr", ["-c", "print sched default"]), /backfill|policy/);
});

test("policy in sched_config is obeyed; the attribute wins, and the log says so", async () => {
  appendFileSync(join(complex.pbsHome, "sched_priv", "sched_config"), "policy: log\n");
  process.kill(complex.schedPid("default") as number, "SIGHUP");
  assert.equal(await startedBehindTop(), "short");
  complex.qmgr("set sched default policy=easy");
  assert.equal(await startedBehindTop(), "long");
  const text = "policy log of sched_config has no effect: the scheduler's attribute policy is easy";
  await until("the warning is logged", () => complex.log("sched_logs").includes(text));
});

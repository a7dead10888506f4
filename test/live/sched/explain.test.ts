// partita explain on a live complex: the scheduler's statements about its jobs, through the server, to permitted users.

import assert from "node:assert/strict";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Explanation } from "#protocol/explanation.ts";
import { type Complex, startComplex, until } from "../complex.ts";
import { lackOfUsers } from "../needed-users.ts";

const [USER, OTHER] = ["pbsuser1", "pbsuser2"] as const;
const skip = lackOfUsers(USER, OTHER);

describe("partita explain", () => {
  let complex: Complex;
  before(async () => {
    complex = await startComplex();
    complex.qmgr("set server job_history_enable=True");
    complex.qmgr(`set node ${node()} resources_available.ncpus=4`);
    appendFileSync(join(complex.pbsHome, "sched_priv", "sched_config"), "strict_ordering: True ALL\n");
    process.kill(complex.schedPid("default") as number, "SIGHUP");
  });
  after(() => complex.stop());

  const node = (): string => complex.must("pbsnodes", ["-a"]).split("\n")[0] as string;
  /** CCYYMMDDhhmm */
  const tomorrow = (): string => {
    const time = new Date(Date.now() + 86_400_000);
    return [time.getFullYear(), ...[time.getMonth() + 1, time.getDate()].map((value) => String(value).padStart(2, "0")), "1200"].join("");
  };
  const explained = (id: string): Explanation =>
    JSON.parse(complex.must("partita", ["explain", id, "--json", "--home", complex.home])) as Explanation;

  test("a job that waits: reason, vnodes, who has them, earliest start, how it moved; the comment says the same", async () => {
    const runs = complex.submit(["-l", "select=1:ncpus=3,walltime=1000", "--", "/bin/sleep", "1000"]);
    await complex.untilJob(runs, "R");
    const waits = complex.submit(["-l", "select=1:ncpus=2,walltime=50", "--", "/bin/true"]);
    const told = await until("an estimate", () => {
      const now = explained(waits);
      return now.estimates.length > 0 && now;
    });
    assert.equal(told.verdict, "waits");
    const sentence = "Not Running: Insufficient amount of resource: ncpus (R: 2 A: 1 T: 4)";
    assert.deepEqual([told.why?.text, told.comment, complex.job(waits).comment], [sentence, sentence, sentence]);
    assert.match(complex.must("qstat", ["-s", waits]), /Not Running: Insufficient amount of resource: ncpus \(R: 2 A: 1 T: 4\)/);
    assert.deepEqual(
      told.obstacles.map(({ kind, id }) => [kind, id]),
      [["job", runs]],
    );
    assert.equal(told.earliest?.start_s, told.obstacles[0]?.to_s);
    assert.equal(told.estimates[0]?.start_s, told.earliest?.start_s);
    assert.deepEqual(
      [told.nodes.length, told.nodes[0]?.has, told.nodes[0]?.free, told.jobs_before, told.top_job],
      [1, "ncpus=4", "ncpus=1", 0, true],
    );
    const text = complex.must("partita", ["explain", waits, "--home", complex.home]);
    assert.match(text, new RegExp(`^Job ${waits} in queue workq of scheduler default, state Q: it waits\n`));
    assert.match(text, /\n {2}now +Not Running: Insufficient amount of resource: ncpus \(R: 2 A: 1 T: 4\)\n/);
    assert.match(
      text,
      new RegExp(
        `\n  earliest start +.* \\d\\d:\\d\\d:\\d\\d \\d{4}, in 00:1\\d:\\d\\d, on \\(${node()}:ncpus=2\\)\n  after +job ${runs} ends `,
      ),
    );
    assert.match(text, /\nNodes by kind\n {2}hosts {2}such as/);
    assert.match(text, /\nHow the estimated start has moved\n/);
  });

  test("jobs that run, are held, have finished, are unknown; a scheduler that is down", async () => {
    const held = complex.submit(["-h", "--", "/bin/true"]);
    const behind = complex.submit(["-W", `depend=afterok:${held}`, "-a", tomorrow(), "--", "/bin/true"]);
    const { verdict, kept } = explained(held);
    assert.deepEqual([verdict, kept], ["held", { holds: "u", until_s: null, after: [], on: 0 }]);
    assert.deepEqual(explained(behind).kept?.after, [{ type: "afterok", id: held, state: "H" }]);
    assert.match(
      complex.must("partita", ["explain", behind, "--home", complex.home]),
      new RegExp(`\n  waits until +.* \\d{4}\n  waits for +afterok: job ${held}, state H\n`),
    );
    complex.must("qdel", [behind]);
    const running = Object.entries(complex.jobs()).find(([, job]) => job.job_state === "R")?.[0] as string;
    assert.equal(explained(running).verdict, "runs");
    assert.match(complex.must("partita", ["explain", running, "--home", complex.home]), /: it runs\n(.*\n)* {2}until +.* at the latest\n/);
    const refused = (id: string): string => complex.run("partita", ["explain", id, "--home", complex.home]).stderr;
    assert.match(refused("9999"), /^partita: Unknown Job Id 9999/);
    complex.must("qdel", [held]);
    await complex.untilJob(held, "F");
    assert.match(refused(held), /^partita: Job has finished/);
    const array = complex.submit([
      "-J",
      "1-2%1",
      "-l",
      "select=1:ncpus=1,walltime=100",
      "--",
      "/bin/sh",
      "-c",
      "test $PBS_ARRAY_INDEX = 1 || sleep 100",
    ]);
    const [first, second] = ["[1]", "[2]"].map((index) => array.replace("[]", index)) as [string, string];
    await complex.untilJob(first, "X");
    assert.match(refused(first), /^partita: Job has finished/);
    assert.deepEqual([explained(array).state, explained(second).job], ["B", second]);
    complex.must("qdel", [array]);
    const waits = complex.submit(["-l", "select=1:ncpus=4", "--", "/bin/true"]);
    complex.qmgr("set server scheduling=False");
    complex.must("qterm", ["-s"]);
    await until("the server is down", () => complex.pid("server") === null);
    complex.start();
    const told = complex.must("partita", ["explain", waits, "--home", complex.home]);
    assert.match(
      told,
      /\n {2}now +Not Running: Scheduler default has scheduling = False\n {2}to mend +qmgr -c "set sched default scheduling = True"\n/,
    );
    assert.match(complex.must("partita", ["top", "--home", complex.home]), /wait.*: Scheduler default has scheduling = False/);
  });
});

describe("partita explain in system mode", { skip }, () => {
  let complex: Complex;
  before(async () => {
    complex = await startComplex({ mode: "system" });
  });
  after(() => complex.stop());

  test("query_other_jobs False: neither others' jobs nor their ids", async () => {
    complex.qmgr("set server job_history_enable=True");
    complex.qmgr("set server query_other_jobs=False");
    const cpus = complex.must("pbsnodes", ["-a"]).match(/resources_available.ncpus = (\d+)/)?.[1] as string;
    const theirs = complex.submit(["-l", `select=1:ncpus=${cpus},walltime=1000`, "--", "/bin/sleep", "1000"], { as: OTHER });
    await complex.untilJob(theirs, "R");
    const own = complex.submit(["-l", "select=1:ncpus=1", "--", "/bin/true"], { as: USER });
    const told = complex.run("partita", ["explain", own], { as: USER });
    assert.equal(told.status, 0, told.stderr);
    assert.match(told.stdout, /\n {2}job +of another user, until /);
    assert.ok(!told.stdout.includes(theirs));
    assert.match(complex.run("partita", ["explain", theirs], { as: USER }).stderr, /^partita: Unknown Job Id/);
    assert.match(complex.must("partita", ["explain", own]), new RegExp(`job +${theirs}`));
  });
});

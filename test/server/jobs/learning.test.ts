// Requests that follow what earlier jobs used, or grow after a failure (src/server/jobs/learning.ts).

import assert from "node:assert/strict";
import { test } from "node:test";
import { JOB_EXEC } from "#model/exit-status.ts";
import { learnedTime } from "#server/jobs/learning.ts";
import { addHost, advance, apply, type Harness, harness, jobAttrs, jobOwn, mom, restart, runOn } from "../harness.ts";
import { qalter, qsub } from "../requests/qsub.ts";

type Used = { readonly walltime: number; readonly mem?: string };

function site(): { readonly h: Harness; readonly link: number } {
  const h = harness({ server: { job_history_enable: true } });
  return { h, link: addHost(h, "n1", { ncpus: 16, mem: "64gb" }) };
}
async function ran(h: Harness, link: number, options: string, used: Used, exit_status = 0): Promise<string> {
  const id = await qsub(h, `${options} -- /bin/work 1`);
  runOn(h, id, "n1", link);
  mom(h, link, "mom-obit", { job: id, run_count: 1, exit_status, used, stageout_status: 1 });
  return id;
}
/** `select walltime` of a new job with these options. */
async function asks(h: Harness, options: string): Promise<string> {
  const { Resource_List } = jobAttrs(h, await qsub(h, `${options} -- /bin/work 2`));
  return `${Resource_List["select"]} ${Resource_List["walltime"] ?? "-"}`;
}

test("learning: requests follow earlier jobs as override says, by exact group", async () => {
  const { h, link } = site();
  const select = "-l select=1:ncpus=1:mem=2gb -l walltime=1000";
  for (let at = 0; at < 3; at++) await ran(h, link, `-W override=no,estgroup=ex ${select}`, { walltime: 100, mem: "250000kb" });
  assert.equal(await asks(h, `-W override=no,estgroup=ex ${select}`), "1:ncpus=1:mem=307200kb 160");
  assert.equal(await asks(h, "-W override=no,estgroup=ex -l ncpus=1,mem=2gb,walltime=1000"), "1:mem=307200kb:ncpus=1 160");
  assert.equal(await asks(h, `-W override=higher,estgroup=ex ${select}`), "1:ncpus=1:mem=2gb 1000");
  assert.equal(await asks(h, "-W override=higher,estgroup=ex -l select=1:ncpus=1:mem=100mb -l walltime=10"), "1:ncpus=1:mem=307200kb 160");
  assert.equal(await asks(h, `-W override=always,estgroup=ex ${select}`), "1:ncpus=1:mem=2gb 1000");
  for (const options of ["-W estgroup=ex", "-W override=no,estgroup=ex.1", "-W override=no -N ex"])
    assert.equal(await asks(h, `${options} ${select}`), "1:ncpus=1:mem=2gb 1000", options);
  const two = "-W override=no,estgroup=ex -l select=2:ncpus=1:mem=2gb -l walltime=1000";
  assert.equal(await asks(h, two), "2:ncpus=1:mem=2gb 160", "which chunk needs the memory is not known");
  restart(h);
  assert.equal(await asks(h, `-W override=no,estgroup=ex ${select}`), "1:ncpus=1:mem=307200kb 160");
});

test("learning: failed jobs teach nothing, and what is kept has a bounded size", async () => {
  const { h, link } = site();
  await ran(h, link, "-W override=no -N a", { walltime: 5, mem: "100kb" }, 1);
  assert.equal(h.core.state.run_times.size, 0);
  for (let at = 0; at < 120; at++) await ran(h, link, "-W override=no -N a", { walltime: at, mem: `${at}mb` });
  const [known] = h.core.state.run_times.values();
  assert.deepEqual([known?.mem_kb?.length, known?.time_s?.length, known?.weight], [100, 100, 100]);
});

test("learning: a job that exceeded its memory or time asks for more when it runs again, unless it says override=always", async () => {
  const { h, link } = site();
  const again = async (options: string, exit_status: number, used: Used): Promise<string> => {
    const { Resource_List, comment } = jobAttrs(h, await ran(h, link, `-W retries=2${options}`, used, exit_status));
    return `${Resource_List["mem"]} ${Resource_List["walltime"]} ${/grows/.test(String(comment))}`;
  };
  const request = " -l select=1:ncpus=1:mem=300mb -l walltime=60";
  assert.equal(await again(request, JOB_EXEC.KILL_MEM, { walltime: 5, mem: "307200kb" }), "1331200kb 60 true");
  assert.equal(await again(request, JOB_EXEC.KILL_WALLTIME, { walltime: 61, mem: "1kb" }), "300mb 3661 true");
  assert.equal(await again(`,override=always${request}`, JOB_EXEC.KILL_MEM, { walltime: 5, mem: "307200kb" }), "300mb 60 false");
  assert.equal(await again(request, 3, { walltime: 5, mem: "307200kb" }), "300mb 60 false");
  apply(h, { kind: "changed", object: "queue", name: "workq", set: { resources_max: { mem: "1gb" } }, unset: [] });
  assert.equal(await again(request, JOB_EXEC.KILL_MEM, { walltime: 5, mem: "307200kb" }), "1gb 60 true");
});

test("learning: the time of a job is that of the last success of its command, else the average of its kind", async () => {
  const { h, link } = site();
  await ran(h, link, "-N a", { walltime: 100 });
  await ran(h, link, "-N a", { walltime: 300 });
  const time = async (words: string): Promise<number | undefined> => {
    const job = h.core.state.jobs.get(await qsub(h, words));
    return job === undefined ? undefined : learnedTime(h.core.state, job);
  };
  assert.equal(await time("-N a -- /bin/work 1"), 300);
  assert.equal(await time("-N a -- /bin/work other"), 200);
  assert.equal(await time("-N b -- /bin/work 1"), undefined);
});

test("learning: waiting jobs in a partition with a backend follow a new estimate", async () => {
  const { h, link } = site();
  apply(h, { kind: "created", object: "backend", name: "sl", attrs: { type: "local", enabled: true, max_runners: 4, override: "no" } });
  const waiting = await qsub(h, "-N a -l select=1:ncpus=1:mem=2gb -l walltime=1000 -- /bin/work 2");
  await ran(h, link, "-W override=no -N a", { walltime: 100, mem: "250000kb" });
  advance(h, 2);
  const { Resource_List } = jobAttrs(h, waiting);
  assert.deepEqual([Resource_List["mem"], Resource_List["walltime"]], ["307200kb", 160]);
  for (let at = 0; at < 3; at++) await ran(h, link, "-W override=no -N a", { walltime: 200, mem: "350000kb" });
  advance(h, 2);
  assert.deepEqual([jobAttrs(h, waiting).Resource_List["mem"], jobAttrs(h, waiting).Resource_List["walltime"]], ["409600kb", 260]);
  assert.deepEqual(jobOwn(h, waiting).asked, { mem_kb: 2 * 1024 * 1024, walltime_s: 1000 });
  assert.equal(qalter(h, waiting, ["Resource_List.walltime=5000"]), "ok");
  assert.equal(jobOwn(h, waiting).asked, undefined);
});

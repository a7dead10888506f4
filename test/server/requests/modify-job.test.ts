import assert from "node:assert/strict";
import { test } from "node:test";
import { ALICE, addHost, BOB, HOST, harness, jobAttrs, logsOf, mom, obit, outcome, ROOT, runOn, stateOf } from "../harness.ts";
import { session, shown } from "./qmgr.ts";
import { qalter, qsub } from "./qsub.ts";

const PERM = "15007 Unauthorized Request ";
const RUNNING = "15015 Cannot modify attribute while job running ";
const READ_ONLY = "15003 Cannot set attribute, read only or insufficient permission ";

test("qalter of a waiting job: attributes, paths, resources made anew", async () => {
  const h = harness();
  const job = await qsub(h, "-h -l select=1:ncpus=2 -l walltime=600 -- /bin/true");
  const all = [
    "Job_Name=newname",
    "Priority=5",
    "Resource_List.walltime=300",
    "Account_Name=acct",
    "Mail_Points=abe",
    "Rerunable=n",
    "Join_Path=oe",
    "Output_Path=/tmp/o1",
    "Error_Path=e1",
    "project=prj",
  ];
  assert.equal(qalter(h, job, all), "ok");
  const names = ["Job_Name", "Priority", "Account_Name", "Mail_Points", "Rerunable", "Join_Path", "Output_Path", "Error_Path", "project"];
  assert.deepEqual(
    names.map((name) => jobAttrs(h, job)[name]),
    ["newname", 5, "acct", "abe", false, "oe", `${HOST}:/tmp/o1`, `${HOST}:/home/alice/e1`, "prj"],
  );
  assert.equal(qalter(h, job, ["Resource_List.select=2:ncpus=1"]), "ok");
  assert.deepEqual(shown(h, "job", job, "Resource_List"), {
    ncpus: "2",
    nodect: "2",
    place: "free",
    select: "2:ncpus=1",
    walltime: "00:05:00",
  });
  assert.equal(jobAttrs(h, job).schedselect, "2:ncpus=1");
  assert.ok(logsOf(h, job).includes(`Job Modified at request of alice@${HOST}`));
  assert.deepEqual(
    h.accounting.filter((record) => record.type === "a").map((record) => record.text),
    [
      `Job_Name=newname Priority=5 Resource_List.walltime=00:05:00 Account_Name=acct Mail_Points=abe Rerunable=False Join_Path=oe ` +
        `Output_Path=${HOST}:/tmp/o1 Error_Path=${HOST}:/home/alice/e1 project=prj`,
      "Resource_List.select=2:ncpus=1",
    ],
  );
});

test("qalter: what is refused, and nothing of the request is done", async () => {
  const h = harness();
  const job = await qsub(h, "-h -W run_count=3 -l select=1:ncpus=2 -- /bin/true");
  // biome-ignore format: a table
  const rows: readonly (readonly [change: string, verdict: string])[] = [
    ["Resource_List.ncpus=3",      '15109 "-lresource=" cannot be used with "select" or "place", resource is: ncpus'],
    ["Resource_List.nosuch=1",     "15035 Unknown resource Resource_List.nosuch"],
    ["Resource_List.walltime=abc", "15014 Illegal attribute or resource value Resource_List.walltime"],
    ["Hold_Types=o",               PERM],
    ["comment=hello",              `${READ_ONLY} comment`],
    ["job_state=R",                `${READ_ONLY} job_state`],
    ["nosuch=1",                   "15002 Undefined attribute "],
    ["depend=afterok:999",         "15054 Invalid Job Dependency"],
    ["group_list=wheel",           "15045 Bad GID for job execution"],
    ["User_List=bob",              "15023 Bad UID for job execution"],
    ["Priority=5000",              "15014 Illegal attribute or resource value Priority"],
    ["run_count=2",                "15014 Illegal attribute or resource value run_count"],
    ["run_count=",                 "15014 Illegal attribute or resource value run_count"],
    ["run_count=9999999",          "15014 Illegal attribute or resource value run_count"],
  ];
  for (const [change, expected] of rows) assert.equal(qalter(h, job, ["Job_Name=changed", change]), expected, change);
  assert.equal(jobAttrs(h, job).Job_Name, "STDIN");
  assert.equal(qalter(h, job, ["Job_Name=x"], BOB), PERM);
  assert.equal(qalter(h, "99999", []), "15001 Unknown Job Id");
  assert.equal(qalter(h, "nonsense", []), "15001 Unknown Job Id");
  await session(h, [["set server operators += bob@*"]]);
  assert.equal(qalter(h, job, ["comment=by operator"], BOB), "ok");
});

test("qalter: jobs without select are made anew from their amounts; place may be given", async () => {
  const h = harness();
  const old = await qsub(h, "-h -l ncpus=2,mem=10mb -- a");
  assert.equal(qalter(h, old, ["Resource_List.ncpus=4"]), "ok");
  assert.equal(qalter(h, old, ["Resource_List.mem=20mb", "Resource_List.walltime=1:0:0"]), "ok");
  assert.deepEqual(shown(h, "job", old, "Resource_List"), {
    mem: "20mb",
    ncpus: "4",
    nodect: "1",
    place: "pack",
    select: "1:mem=20mb:ncpus=4",
    walltime: "01:00:00",
  });
  assert.equal(qalter(h, old, ["Resource_List.walltime="]), "ok");
  assert.equal(jobAttrs(h, old).Resource_List["walltime"], undefined);
  const plain = await qsub(h, "-h -- a");
  assert.equal(qalter(h, plain, ["Resource_List.place=scatter"]), "ok");
  assert.deepEqual(shown(h, "job", plain, "Resource_List"), { ncpus: "1", nodect: "1", place: "scatter", select: "1:ncpus=1" });
});

test("qalter: holds and times move a job between its waiting states", async () => {
  const h = harness();
  const job = await qsub(h, "-- a");
  const states = ["Hold_Types=u", "Hold_Types=n", `Execution_Time=${h.now_ms / 1000 + 60}`, "Execution_Time="].map((change) => {
    assert.equal(qalter(h, job, [change]), "ok", change);
    return stateOf(h, job);
  });
  assert.deepEqual(states, ["H 20", "Q 10", "W 30", "Q 10"]);
  assert.equal(qalter(h, job, ["Hold_Types=so"], ROOT), "ok");
  assert.equal(qalter(h, job, ["Hold_Types=n"]), PERM, "holds of others are not taken back that way");
});

test("qalter of a running job: run-alterable attributes, limits that only go down", async () => {
  const h = harness();
  const link = addHost(h, "n1");
  const job = await qsub(h, "-l select=1:ncpus=1 -l walltime=600 -- a");
  runOn(h, job, "n1", link);
  // biome-ignore format: a table
  const rows: readonly (readonly [change: string, verdict: string])[] = [
    ["Resource_List.walltime=300",         "ok"],
    ["Resource_List.walltime=900",         PERM],
    ["Resource_List.cput=10",              PERM],
    ["Resource_List.walltime=",            PERM],
    ["Resource_List.select=1:ncpus=2",     `${RUNNING} Resource_List.select`],
    ["Resource_List.mem=1gb",              `${RUNNING} Resource_List.mem`],
    ["Account_Name=x",                     `${RUNNING} Account_Name`],
    ["run_count=7",                        `${RUNNING} run_count`],
    ["Job_Name=other",                     "ok"],
    ["Hold_Types=u",                       "ok"],
  ];
  for (const [change, expected] of rows) assert.equal(qalter(h, job, [change]), expected, change);
  assert.equal(qalter(h, job, ["Resource_List.walltime=900", "comment=hello"], ROOT), "ok");
  assert.equal(jobAttrs(h, job).Resource_List["walltime"], 900);
  assert.equal(stateOf(h, job), "R 42");
  const told = h.to_moms.filter((frame) => frame.type === "mom-modify").at(-1)?.data as {
    readonly attrs: { readonly [name: string]: unknown };
  };
  assert.equal((told.attrs["Resource_List"] as { readonly walltime: number }).walltime, 900);
  obit(h, link, job);
  assert.equal(qalter(h, job, ["Job_Name=late"]), "15139 Job has finished");
  void mom;
});

test("qalter keeps to the queue's bounds and limits; operators are above the bounds", async () => {
  const h = harness();
  await session(h, [["set queue workq resources_max.walltime=1000,max_queued_res.ncpus=[u:PBS_GENERIC=4]"]]);
  const job = await qsub(h, "-h -l ncpus=1 -- a");
  assert.equal(qalter(h, job, ["Resource_List.walltime=2000"]), "15036 Job violates queue and/or server resource limits");
  assert.equal(qalter(h, job, ["Resource_List.walltime=2000"], ROOT), "ok");
  assert.equal(qalter(h, job, ["Resource_List.ncpus=5"], ROOT), "15143 would exceed per-user limit on resource ncpus in queue workq");
  assert.equal(qalter(h, job, ["Resource_List.ncpus=4"], ROOT), "ok");
  assert.equal(qalter(h, job, ["Resource_List.ncpus=2"], ROOT), "ok");
  assert.equal(outcome(h, ALICE, { kind: "modify-job", job, attrs: [] }), "ok");
});

test("qalter -P: a project's limits hold for jobs that come into it, too", async () => {
  const h = harness();
  await session(h, [["set server max_queued=[p:full=1]"], ["set server max_queued_res.ncpus=[p:narrow=2]"]]);
  await qsub(h, "-h -P full -- a");
  const job = await qsub(h, "-h -l ncpus=3 -- a");
  assert.equal(qalter(h, job, ["project=full"], ROOT), "15142 Maximum number of jobs for project full already in complex");
  assert.equal(qalter(h, job, ["project=narrow"]), "15143 would exceed project narrow's limit on resource ncpus in complex");
  assert.equal(qalter(h, job, ["project=narrow", "Resource_List.ncpus=2"]), "ok");
  assert.equal(qalter(h, job, ["project=narrow", "Priority=3"]), "ok");
  assert.equal(jobAttrs(h, job)["project"], "narrow");
});

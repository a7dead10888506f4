import assert from "node:assert/strict";
import { test } from "node:test";
import { type BriefItem, wholeItems } from "#protocol/brief-items.ts";
import type { StatusItem, StatusRequest } from "#protocol/messages.ts";
import {
  ALICE,
  addHost,
  addQueue,
  apply,
  BOB,
  type Harness,
  HOST,
  harness,
  jobAttrs,
  obit,
  outcome,
  ROOT,
  runOn,
  START_S,
  statusOf,
} from "../harness.ts";
import { session, shown } from "./qmgr.ts";
import { qsub } from "./qsub.ts";

const items = (h: Harness, request: Partial<StatusRequest>, who = ALICE): StatusItem[] =>
  statusOf(h, who, { kind: "status", object: "job", ids: [], ...request }) as StatusItem[];
/** `1 2 3:15001`: numbers of jobs, errors with their number. */
const list = (h: Harness, request: Partial<StatusRequest>, who = ALICE): string =>
  items(h, request, who)
    .map((item) => `${Number.parseInt(item.id, 10)}${"code" in item ? `:${item.code}` : ""}`)
    .join(" ");

test("a fresh server: the attributes PBS lists, in its order", () => {
  const h = harness();
  const [server] = items(h, { object: "server" }, ROOT);
  assert.deepEqual(server, {
    id: HOST,
    attrs: {
      server_state: "Active",
      server_host: HOST,
      scheduling: "True",
      total_jobs: "0",
      state_count: "Transit:0 Queued:0 Held:0 Waiting:0 Running:0 Exiting:0 Begun:0 ",
      default_queue: "workq",
      log_events: "511",
      mailer: "/usr/sbin/sendmail",
      mail_from: "adm",
      query_other_jobs: "True",
      resources_default: { ncpus: "1" },
      default_chunk: { ncpus: "1" },
      scheduler_iteration: "600",
      resv_enable: "True",
      node_fail_requeue: "310",
      max_array_size: "10000",
      resend_term_delay: "5",
      pbs_license_min: "0",
      pbs_license_max: "2147483647",
      pbs_license_linger_time: "31536000",
      license_count: "Avail_Global:1000000 Avail_Local:1000000 Used:0 High_Use:0",
      pbs_version: "23.06.06",
      eligible_time_enable: "False",
      job_history_enable: "True",
      max_concurrent_provision: "5",
      clear_topjob_estimates_enable: "False",
      power_provisioning: "False",
      max_job_sequence_id: "9999999",
    },
  });
  assert.deepEqual(Object.keys((server as { attrs: object }).attrs).slice(0, 4), [
    "server_state",
    "server_host",
    "scheduling",
    "total_jobs",
  ]);
  assert.equal(shown(h, "server", "", "power_provisioning", ALICE), undefined, "for managers only");
});

test("attributes asked for, in any case; unknown ones are refused; what one may not read is left out", async () => {
  const h = harness();
  const id = await qsub(h, "-N x -- a");
  const one = (attrs: readonly string[], who = ALICE): unknown => items(h, { ids: [id], attrs }, who);
  assert.deepEqual(one(["JOB_NAME", "job_state"]), [{ id, attrs: { Job_Name: "x", job_state: "Q" } }]);
  assert.deepEqual(one([]), [{ id, attrs: {} }]);
  assert.deepEqual(one(["schedselect", "Priority"]), [{ id, attrs: { Priority: "0" } }]);
  assert.deepEqual(one(["schedselect"], ROOT), [{ id, attrs: { schedselect: "1:ncpus=1" } }]);
  assert.equal(outcome(h, ALICE, { kind: "status", object: "job", ids: [], attrs: ["nosuch"] }), "15002 Undefined attribute ");
  const [full] = items(h, { ids: [id] });
  const names = Object.keys((full as { attrs: object }).attrs);
  assert.deepEqual(names, [
    "Job_Name",
    "Job_Owner",
    "job_state",
    "queue",
    "server",
    "Checkpoint",
    "ctime",
    "Error_Path",
    "Hold_Types",
    "Join_Path",
    "Keep_Files",
    "Mail_Points",
    "mtime",
    "Output_Path",
    "Priority",
    "qtime",
    "Rerunable",
    "Resource_List",
    "substate",
    "Variable_List",
    "etime",
    "Submit_arguments",
    "executable",
    "project",
    "Submit_Host",
  ]);
});

test("a brief listing made whole is the listing; it says of alike jobs only what is different", async () => {
  const h = harness();
  for (const line of ["-N x -- a", "-N x -- a", "-N y -- a", "-l walltime=60 -- a"]) await qsub(h, line);
  await qsub(h, "-J 1-3 -- a");
  const whole = wholeItems();
  for (const request of [{}, { subjobs: true }, { attrs: ["Job_Name"] }] as const) {
    const brief = items(h, { ...request, brief: true }) as BriefItem[];
    assert.deepEqual(brief.map(whole), items(h, request));
    const second = brief[1] as Extract<BriefItem, { like: object }>;
    assert.deepEqual([second.id, second.like["Job_Name"], second.like["Variable_List"]], [`2.${HOST}`, undefined, undefined]);
  }
});

test("jobs by id: as typed, unknown, finished; order of the ids", async () => {
  const h = harness();
  for (let count = 0; count < 4; count++) await qsub(h, "-- a");
  assert.equal(outcome(h, ALICE, { kind: "delete-job", job: `3.${HOST}` }), "ok");
  assert.equal(list(h, { ids: ["4", `1.${HOST}`, `2.${HOST}@${HOST}`] }), "4 1 2");
  assert.equal(list(h, { ids: ["4", "99", "3", "1[]", "1[2]", "1.other"] }), "4 99:15001 3:15139 1:15001 1:15001 1:15001");
  assert.deepEqual(items(h, { ids: ["99"] }), [{ id: `99.${HOST}`, code: 15001, text: "Unknown Job Id" }]);
  assert.equal(list(h, { ids: ["4", "3"], history: "with" }), "4 3");
  assert.equal(list(h, { ids: ["4", "3"], history: "only" }), "3");
});

test("finished jobs: beside live ones by rank, alone, by queue, not at all", async () => {
  const h = harness();
  addQueue(h, "q2");
  for (const queue of ["workq", "q2", "workq", "q2"]) await qsub(h, `-q ${queue} -- a`);
  for (const job of [`2.${HOST}`, `3.${HOST}`]) assert.equal(outcome(h, ALICE, { kind: "delete-job", job }), "ok");
  assert.equal(list(h, {}), "1 4");
  assert.equal(list(h, { history: "with" }), "1 2 3 4");
  assert.equal(list(h, { history: "only" }), "2 3");
  assert.equal(list(h, { history: "with", queue: "q2" }), "2 4");
  assert.equal(list(h, { queue: `q2@${HOST}` }), "4");
  assert.equal(outcome(h, ALICE, { kind: "status", object: "job", ids: [], queue: "nosuch" }), "15018 Unknown queue");
  assert.equal(shown(h, "server", "", "total_jobs"), "4");
  await session(h, [["set server job_history_enable=False"]]);
  assert.equal(
    outcome(h, ALICE, { kind: "status", object: "job", ids: [], history: "with" }),
    "15140 PBS is not configured to maintain job history",
  );
  assert.equal(
    outcome(h, ALICE, { kind: "status", object: "job", ids: ["1"], history: "only" }),
    "15140 PBS is not configured to maintain job history",
  );
});

test("jobs of others while query_other_jobs is False", async () => {
  const h = harness();
  await qsub(h, "-- a");
  await qsub(h, "-- a", BOB);
  await session(h, [["set server query_other_jobs=False"]]);
  assert.equal(list(h, {}), "1");
  assert.equal(list(h, { ids: ["1", "2"] }), "1 2:15001");
  assert.equal(list(h, {}, ROOT), "1 2");
});

test("jobs come by queue rank, in parts", async () => {
  const h = harness();
  const jobs = [...Array(1201).keys()].map(() => ({ destination: "", attrs: [], script: null }));
  assert.equal(outcome(h, ALICE, { kind: "queue-jobs", jobs }), "ok");
  assert.equal(outcome(h, ALICE, { kind: "order-job", job: `1.${HOST}`, other: `1201.${HOST}` }), "ok");
  const numbers = list(h, { attrs: [] }).split(" ");
  assert.deepEqual([numbers.length, numbers[0], numbers[1], numbers.at(-1)], [1201, "1201", "2", "1"]);
});

test("queues and schedulers: counts, types, unknown names", async () => {
  const h = harness();
  const link = addHost(h, "n1");
  const [running] = [await qsub(h, "-l ncpus=2,mem=1mb -- a"), await qsub(h, "-h -- a"), await qsub(h, "-- a")];
  runOn(h, running, "n1", link, 2);
  const count = "Transit:0 Queued:1 Held:1 Waiting:0 Running:1 Exiting:0 Begun:0 ";
  assert.deepEqual(
    ["total_jobs", "state_count", "resources_assigned"].map((name) => shown(h, "queue", "workq", name)),
    ["3", count, { mem: "1024kb", ncpus: "2", nodect: "1" }],
  );
  assert.deepEqual(
    ["state_count", "resources_assigned"].map((name) => shown(h, "server", "", name)),
    [count, { mem: "1024kb", ncpus: "2", nodect: "1" }],
  );
  assert.deepEqual(items(h, { object: "queue", ids: ["nosuch"] }), [{ id: "nosuch", code: 15018, text: "Unknown queue" }]);
  assert.deepEqual(items(h, { object: "sched", ids: ["nosuch"] }), [{ id: "nosuch", code: 15213, text: "Unknown Scheduler" }]);
  assert.deepEqual(items(h, { object: "resource", ids: ["nosuch", "walltime"] }), [
    { id: "nosuch", code: 15035, text: "Unknown resource" },
    { id: "walltime", attrs: { type: "long", flag: "m" } },
  ]);
  assert.deepEqual(items(h, { object: "resv", ids: ["R1.svr"] }), [{ id: "R1.svr", code: 15084, text: "Unknown Reservation Id" }]);
  assert.deepEqual(items(h, { object: "resv" }), []);
});

test("nodes: jobs by slot, assigned resources with their zeros, states", async () => {
  const h = harness();
  const link = addHost(h, "n1", { ncpus: 4 });
  const [first, second] = [await qsub(h, "-l ncpus=2 -- a"), await qsub(h, "-l ncpus=2 -- b")];
  runOn(h, first, "n1", link, 2);
  runOn(h, second, "n1", link, 2);
  const attrs = ["state", "jobs", "resources_assigned"].map((name) => shown(h, "node", "n1", name));
  const none = { accelerator_memory: "0kb", hbmem: "0kb", mem: "0kb", naccelerators: "0", ncpus: "4", vmem: "0kb" };
  assert.deepEqual(attrs, ["job-busy", `${first}/0, ${first}/1, ${second}/2, ${second}/3`, none]);
  await session(h, [
    ["set node n1 state=offline"],
    ["delete node n1", "15027 Cannot delete busy object"],
    ["set node n1 partition=p1", "15227 Node is busy"],
    ["set node n1 comment=x"],
  ]);
  assert.equal(shown(h, "node", "n1", "state"), "offline,job-busy");
  obit(h, link, first);
  assert.equal(shown(h, "node", "n1", "jobs"), `${second}/2, ${second}/3`);
  assert.equal(shown(h, "node", "n1", "state"), "offline");
  assert.deepEqual(items(h, { object: "node", ids: ["nosuch"] }), [{ id: "nosuch", code: 15062, text: "Unknown node " }]);
  assert.equal(shown(h, "node", "n1", "pbs_version", ALICE), undefined);
});

test("resources with flag i are seen by operators only", async () => {
  const h = harness();
  apply(h, { kind: "resource-put", resource: { name: "hidden", type: "long", flags: "i", read: "op", set: "op" } });
  const id = await qsub(h, "-- a");
  await session(h, [["set queue workq resources_max.hidden=1,resources_max.ncpus=4"]]);
  assert.deepEqual(shown(h, "queue", "workq", "resources_max", ALICE), { ncpus: "4" });
  assert.deepEqual(shown(h, "queue", "workq", "resources_max", ROOT), { hidden: "1", ncpus: "4" });
  assert.equal(outcome(h, ALICE, { kind: "status", object: "resource", ids: ["hidden"] }), "ok");
  assert.deepEqual(items(h, { object: "resource", ids: ["hidden"] }), [{ id: "hidden", code: 15035, text: "Unknown resource" }]);
  assert.equal(jobAttrs(h, id).ctime, START_S);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ALICE,
  addHost,
  addJob,
  addSched,
  addVnode,
  ask,
  HOST,
  harness,
  logsOf,
  momHello,
  outcome,
  ROOT,
  runOn,
  schedHello,
  user,
} from "../harness.ts";
import { qmgr, session, shown } from "./qmgr.ts";

const READ_ONLY = "15003 Cannot set attribute, read only or insufficient permission ";
const PERM = "15007 Unauthorized Request ";
const NO_ATTRIBUTE = "15002 Undefined attribute ";
const BAD_VALUE = "15014 Illegal attribute or resource value";

test("qmgr as user, operator and manager: what each may do", async () => {
  const h = harness();
  addHost(h, HOST);
  await session(h, [
    ["alice: set server comment=mine", PERM],
    ["alice: create queue q1 queue_type=e", PERM],
    ["alice: unset queue workq started", PERM],
    ["alice: delete queue workq", PERM],
    ["alice: create node n1", PERM],
    ["alice: set resource ncpus type=long", PERM],
    ["alice: create sched s1", PERM],
    ["alice: set sched default log_events=1", PERM],
    ["set server operators += alice@*"],
    ["alice: set queue workq started=False"],
    ["alice: set server comment=mine"],
    ["alice: set server managers += alice@*", `${READ_ONLY} managers`],
    ["alice: create queue q1 queue_type=e", PERM],
    ["alice: set queue workq from_route_only=True", `${READ_ONLY} from_route_only`],
    [`alice: set node ${HOST} resv_enable=False`, `${READ_ONLY} resv_enable`],
    [`alice: set node ${HOST} comment='by operator'`],
    ["alice: set resource ncpus type=long", PERM],
    ["set server managers += alice@*"],
    ["alice: create queue q1 queue_type=e"],
    ["alice: delete queue q1"],
    // only root on the server host: the refusal does not name the attribute
    ["alice: set server acl_roots += root@*", READ_ONLY],
    ["alice: set server job_sort_formula=ncpus", "15011 PBS server internal error"],
    ["alice: create hook h1", `15136 alice@${HOST} is unauthorized to access hooks data from server ${HOST}`],
    ["set server job_sort_formula=ncpus"],
    ["unset server job_sort_formula"],
  ]);
  assert.equal(await qmgr(h, "list hook"), "");
  assert.equal(await qmgr(h, "list hook", ALICE), `alice@${HOST} is unauthorized to access hooks data from server ${HOST}\n`);
});

test("the server's own lists: users who are not listed may ask nothing, managers always may", () => {
  const h = harness({ server: { acl_user_enable: true, acl_users: ["bob@*"] } });
  const list = { kind: "status", object: "queue", ids: [] } as const;
  assert.equal(outcome(h, ALICE, list), PERM);
  assert.equal(outcome(h, user("bob"), list), "ok");
  assert.equal(outcome(h, ROOT, list), "ok");
  const far = { ...ALICE, host: "elsewhere" };
  h.core.state.server = { ...h.core.state.server, acl_user_enable: false, acl_host_enable: true, acl_hosts: ["*.org"] };
  assert.equal(outcome(h, far, list), "15008 Access from host not allowed, or unknown host");
  assert.equal(outcome(h, ALICE, list), "ok", "the server's own host is always let in");
  assert.equal(outcome(h, { ...far, host: "n.org" }, list), "ok");
});

test("set server: checks of values and what they depend on", async () => {
  const h = harness();
  await session(h, [
    ["set server server_state=Idle", `${READ_ONLY} server_state`],
    ["set server pbs_version=1", `${READ_ONLY} pbs_version`],
    ["set server default_queue=nosuch", "15018 Unknown queue"],
    ["set server scheduling=perhaps", BAD_VALUE],
    ["set server log_events=abc", BAD_VALUE],
    ["set server max_job_sequence_id=5", "15225 Cannot set max_job_sequence_id < 9999999, or > 999999999999"],
    ["set server max_array_size=0"],
    ["set server node_fail_requeue=-5"],
    ["set server job_requeue_timeout=0", BAD_VALUE],
    ["set server job_requeue_timeout=4:00:00"],
    ["set server jobscript_max_size=3gb", "15176 jobscript max size exceeds 2GB"],
    ["set server pbs_license_min=-1", "15118 pbs_license_min is < 0, or > pbs_license_max"],
    ["set server pbs_license_max=10"],
    ["set server pbs_license_min=11", "15118 pbs_license_min is < 0, or > pbs_license_max"],
    ["set server resend_term_delay=9999", BAD_VALUE],
    ["set server managers=bob", "15008 Access from host not allowed, or unknown host"],
    ["set server managers = bob@*"],
    ["set server managers += bob@*", "15055 Duplicate entry in list  managers"],
    ["set server node_group_key = nosuch", "15035 Unknown resource"],
    ["set server node_group_key = 'host,arch'"],
    ["set server restrict_res_to_release_on_suspend = nosuch", "15035 Unknown resource"],
    ["set server resources_max.nosuch = 1", "15035 Unknown resource resources_max.nosuch"],
    ["set server resources_max.ncpus = x", `${BAD_VALUE} resources_max.ncpus`],
    ["set server reserve_retry_init = 30"],
  ]);
  assert.equal(shown(h, "server", "", "node_fail_requeue"), "-5");
  assert.equal(shown(h, "server", "", "job_requeue_timeout"), "04:00:00");
  assert.equal(shown(h, "server", "", "reserve_retry_time"), "30");
  assert.equal(outcome(h, ROOT, { kind: "manager", verb: "create", object: "server", name: "x", attrs: [] }), "15004 Invalid request");
  assert.equal(
    outcome(h, ROOT, { kind: "manager", verb: "set", object: "server", name: "", attrs: [{ name: "nosuch", op: "=", value: "1" }] }),
    NO_ATTRIBUTE,
  );
});

test("unset server: defaults come back where PBS restores them, other values are gone", async () => {
  const h = harness();
  await session(h, [
    ["set server log_events=2047,mail_from=me,scheduler_iteration=120,comment=hello,resources_default.mem=1gb"],
    ["unset server log_events,mail_from,scheduler_iteration"],
    ["unset server comment,default_queue,node_fail_requeue"],
    ["unset server resources_default.ncpus"],
  ]);
  const attrs = ["log_events", "mail_from", "scheduler_iteration", "comment", "default_queue", "node_fail_requeue", "resources_default"];
  assert.deepEqual(
    attrs.map((name) => shown(h, "server", "", name)),
    ["511", "adm", "600", undefined, undefined, undefined, { mem: "1gb", ncpus: "1" }],
  );
  await session(h, [
    ["set server resources_default.ncpus=8"],
    ["unset server resources_default.ncpus"],
    ["unset server resources_default.mem"],
  ]);
  assert.deepEqual(shown(h, "server", "", "resources_default"), { ncpus: "1" });
  await session(h, [['set server resources_default.ncpus=""'], ["unset server resources_default"]]);
  assert.equal(shown(h, "server", "", "resources_default"), undefined);
});

test("all attributes of a request are set or none", async () => {
  const h = harness();
  await session(h, [
    ["set server comment=one,log_events=x", BAD_VALUE],
    ["create queue q2 queue_type=e,started=perhaps", BAD_VALUE],
    ["set queue q2 started=t", "15018 Unknown queue"],
  ]);
  assert.equal(shown(h, "server", "", "comment"), undefined);
});

test("scheduling and scheduler_iteration are one value on server and default scheduler", async () => {
  const h = harness();
  await session(h, [["set server scheduler_iteration=120,scheduling=False"]]);
  assert.deepEqual(
    ["scheduler_iteration", "scheduling"].map((name) => shown(h, "sched", "default", name)),
    ["120", "False"],
  );
  await session(h, [["set sched default scheduler_iteration=300,scheduling=True"]]);
  assert.deepEqual(
    ["scheduler_iteration", "scheduling"].map((name) => shown(h, "server", "", name)),
    ["300", "True"],
  );
  await session(h, [["unset server scheduler_iteration"]]);
  assert.equal(shown(h, "sched", "default", "scheduler_iteration"), "600");
});

test("old and new limits do not mix, on server and queues together", async () => {
  const h = harness();
  const MIX = "15141 Cannot mix old and new style queue/run limit enforcement types";
  await session(h, [
    ["set server max_queued = [u:PBS_GENERIC=10]"],
    [
      "set server max_run_res.arch = [u:PBS_GENERIC=8]",
      '15109 "-lresource=" cannot be used with "select" or "place", resource is max_run_res.arch',
    ],
    ["set server max_run_res.nosuch = [u:PBS_GENERIC=8]", "15035 Unknown resource max_run_res.nosuch"],
    ["set server max_run = [u:PBS_GENERIC=x]", `${BAD_VALUE} max_run`],
    ["set server max_user_run = 4", MIX],
    ["set queue workq max_running = 4", MIX],
    ["create queue q2 queue_type=e,max_queuable=3", MIX],
    ["set server comment = 'not a limit'"],
    ["unset server max_queued"],
    ["set server max_user_run = 4"],
    ["set server max_run = [u:PBS_GENERIC=5]", MIX],
    ["set queue workq max_run = [u:PBS_GENERIC=5]", MIX],
    ["unset server max_user_run"],
    ["set queue workq max_run = [u:PBS_GENERIC=5]"],
  ]);
});

test("queues: names, types, enabling, warnings that store", async () => {
  const h = harness();
  const warning = (queue: string, attribute: string): string =>
    `15026 Warning: type of queue ${queue} incompatible with attribute ${attribute}`;
  await session(h, [
    ["create queue batch"],
    ["create queue batch", "15025 Queue already exists"],
    ["set queue batch enabled=True", "15030 Cannot enable queue, incomplete definition"],
    ["set queue batch queue_type=x", BAD_VALUE],
    ["set queue batch queue_type=Exec"],
    ["set queue batch ENABLED=y,Started=1,priority=100"],
    ["set queue batch priority=2000", BAD_VALUE],
    ["set queue batch foo=1", NO_ATTRIBUTE],
    ["set queue batch total_jobs=1", `${READ_ONLY} total_jobs`],
    ["unset queue batch state_count", `${READ_ONLY} state_count`],
    ["create queue abcdefghijklmnop queue_type=e", "15028"],
    ["set queue nosuch started=t", "15018 Unknown queue"],
    ["create queue r1 queue_type=route,started=t"],
    ["set queue r1 enabled=True", "15030 Cannot enable queue, incomplete definition"],
    ["set queue r1 route_destinations='workq,nosuch',enabled=t"],
    ["set queue r1 resources_available.ncpus=4", warning("r1", "resources_available")],
    ["set queue r1 kill_delay=5", warning("r1", "resources_available")],
    ["unset queue r1 resources_available,kill_delay"],
    ["unset queue r1 route_destinations"],
    ["set queue r1 enabled=True", "15030 Cannot enable queue, incomplete definition"],
    ["unset queue r1 queue_type", "15137 Queue type must be set"],
    ['set queue r1 queue_type=""', "15137 Queue type must be set"],
    ["create queue plain"],
    ["unset queue plain queue_type", "15137 Queue type must be set"],
    ["create queue turned queue_type=e,enabled=t"],
    ["set queue turned queue_type=Route"],
    ["set queue batch route_retry_time=5", warning("batch", "route_retry_time")],
  ]);
  assert.equal(shown(h, "queue", "batch", "route_retry_time"), "5");
  assert.equal(shown(h, "queue", "batch", "queue_type"), "Execution");
  assert.equal(shown(h, "queue", "batch", "state_count"), "Transit:0 Queued:0 Held:0 Waiting:0 Running:0 Exiting:0 Begun:0 ");
  for (const name of ["", "1q", "a b", "a/b", "a;b"]) {
    const code = outcome(h, ROOT, { kind: "manager", verb: "create", object: "queue", name, attrs: [] });
    assert.equal(code, "15172 Invalid object name", `create queue "${name}"`);
  }
});

test("queues: deleting busy ones, all of them, changing all of them", async () => {
  const h = harness();
  await session(h, [
    ["create queue q1,q2,q3 queue_type=e,enabled=t"],
    ["create node n1 Mom=localhost,queue=q2"],
    ["delete queue q2", "15027 Cannot delete busy object"],
  ]);
  assert.equal(shown(h, "queue", "q2", "hasnodes"), "True");
  assert.equal(shown(h, "queue", "q1", "hasnodes"), undefined);
  await session(h, [
    ["set queue @default comment=all"],
    ["set queue q2 queue_type=r", "15026 Incompatible type"],
    ["delete queue @default", "15027 Cannot delete busy object q2"],
  ]);
  assert.equal(shown(h, "queue", "q2", "comment"), "all");
  assert.deepEqual([...h.core.state.queues.keys()], ["q2"]);
  assert.equal(shown(h, "server", "", "default_queue"), "workq", "a deleted default queue leaves default_queue as it was");
  await session(h, [["delete node n1"], ["delete queue q2"], ["delete queue @default", "15018 Unknown queue"]]);
});

test("schedulers: names, directories, the default one, paired attributes", async () => {
  const h = harness();
  const DEFAULT = "15223 Operation is not permitted on default scheduler";
  await session(h, [
    ["create sched sc1 partition=p1"],
    ["create sched sc1", "15211 Scheduler already exists"],
    ["create sched default", "15211 Scheduler already exists"],
    ["create sched abcdefghijklmno"],
    ["create sched abcdefghijklmnop", "15212 Scheduler name is too long"],
    ["create sched sc2 partition=p1", "15224 Partition is already associated with other scheduler"],
    ["create sched sc2 partition=p2"],
    ["set sched sc2 sched_priv=/home/pbs/sched_priv_sc1", "15215 Another scheduler also has same value for its sched_priv directory"],
    ["set sched sc2 sched_priv=/home/pbs//sched_priv_sc1/", "15215 Another scheduler also has same value for its sched_priv directory"],
    ["set sched sc2 sched_log=/home/pbs/sched_logs_sc1", "15216 Another scheduler also has same value for its sched_log directory"],
    ["set sched sc2 sched_priv=/home/pbs/sched_priv", "15215 Another scheduler also has same value for its sched_priv directory"],
    ["create sched sc3 sched_log=/home/pbs/sched_logs", "15216 Another scheduler also has same value for its sched_log directory"],
    ["set sched default partition=p3", DEFAULT],
    ["set sched default partition=pbs-default", DEFAULT],
    ["set sched default sched_priv=/tmp/x", DEFAULT],
    ["set sched default sched_log=/tmp/x", DEFAULT],
    ["set sched default sched_port=15050", DEFAULT],
    ["set sched default sched_host=foo", DEFAULT],
    ["set sched default sched_host=svr", DEFAULT],
    ["unset sched default sched_host"],
    ["unset sched default partition"],
    ["set sched nosuch scheduling=t", "15213 Unknown Scheduler"],
    ["unset sched nosuch partition", "15213 Unknown Scheduler"],
    ["delete sched nosuch", "15213 Unknown Scheduler"],
    ["delete sched default", "15214 Can not delete Scheduler"],
    ["set sched sc1 state=idle", `${READ_ONLY} state`],
    ["set sched sc1 port=15050", NO_ATTRIBUTE],
    ["set sched sc1 preempt_order=SXC", BAD_VALUE],
    ["set sched sc1 preempt_order='SCR 80 SC 50 S'"],
    ["set sched sc1 preempt_sort=oldest", BAD_VALUE],
    ["set sched sc1 job_run_wait=always", BAD_VALUE],
    ["set sched sc1 sched_user=nobody_here", BAD_VALUE],
    ["set sched sc1 sched_user=alice"],
    ["set sched sc1 throughput_mode=False"],
    ["set sched log_events=1023"],
    ["set sched sc2 sched_priv=/x,sched_log=/y,log_events=1"],
    ["unset sched sc2 sched_priv,sched_log,log_events"],
  ]);
  assert.equal(shown(h, "sched", "default", "partition"), "pbs-default");
  assert.equal(shown(h, "sched", "default", "sched_host"), HOST);
  assert.equal(shown(h, "sched", "default", "log_events"), "1023");
  assert.equal(shown(h, "sched", "sc1", "job_run_wait"), "execjob_hook");
  assert.deepEqual(
    ["sched_priv", "sched_log", "log_events"].map((name) => shown(h, "sched", "sc2", name)),
    ["/home/pbs/sched_priv_sc2", "/home/pbs/sched_logs_sc2", "767"],
  );
  await session(h, [["set sched sc1 job_run_wait=none"]]);
  assert.equal(shown(h, "sched", "sc1", "throughput_mode"), undefined);
  await session(h, [["set sched sc1 throughput_mode-=t"]]);
  assert.deepEqual([shown(h, "sched", "sc1", "throughput_mode"), shown(h, "sched", "sc1", "job_run_wait")], ["True", "runjob_hook"]);
  await session(h, [["unset sched sc1 job_run_wait"], ["delete sched @default"]]);
  assert.deepEqual([...h.core.state.scheds.keys()], ["default"]);
});

test("unset of the default scheduler's scheduling turns it on again, of another scheduler's off", async () => {
  const h = harness();
  await session(h, [
    ["create sched sc1 partition=p1,scheduling=True"],
    ["set sched default scheduling=False"],
    ["unset sched default scheduling"],
    ["unset sched sc1 scheduling"],
  ]);
  assert.deepEqual(
    [shown(h, "sched", "default", "scheduling"), shown(h, "server", "", "scheduling"), shown(h, "sched", "sc1", "scheduling")],
    ["True", "True", "False"],
  );
});

test("a scheduler of this host that gets another sched_host is told to end; the server's own name in another form changes nothing", async () => {
  const h = harness();
  const started = (): number => h.actions.filter((action) => action.kind === "start-sched" && action.sched === "sc1").length;
  await session(h, [["create sched sc1 partition=p1"], ["set sched sc1 sched_host=SVR.cluster.org"], ["set sched sc1 scheduling=True"]]);
  assert.equal(started(), 1);
  schedHello(h, 7, "sc1");
  await session(h, [["set sched sc1 sched_host=svr"]]);
  assert.ok(!h.to_scheds.some(({ link, type }) => link === 7 && type === "sched-quit"));
  await session(h, [["set sched sc1 sched_host=elsewhere"]]);
  assert.ok(h.to_scheds.some(({ link, type }) => link === 7 && type === "sched-quit"));
});

test("delete takes names only: a request that says more is refused", async () => {
  const h = harness();
  addSched(h, "sc1");
  const attrs = [{ name: "partition", op: "unset", value: "" } as const];
  for (const [object, name] of [
    ["sched", "sc1"],
    ["queue", "workq"],
    ["server", ""],
  ] as const)
    assert.equal(outcome(h, ROOT, { kind: "manager", verb: "delete", object, name, attrs }), "15004 Invalid request");
  assert.ok(h.core.state.scheds.has("sc1") && h.core.state.queues.has("workq"));
});

test("job_sort_formula: it can be evaluated, server and schedulers agree, and what it names stays", async () => {
  const h = harness();
  const INVALID = "15123 Invalid Formula Format";
  const KEYWORD = "15124 Formula contains invalid keyword";
  const TYPE = "15125 Formula contains a resource of an invalid type";
  const DIFFERS = "15226 Server's job_sort_formula value is incompatible with sched's";
  await session(h, [
    ["create resource cost type=float"],
    ["create resource where type=string"],
    ["create sched s1"],
    ["set server job_sort_formula='ncpus*'", INVALID],
    ["set server job_sort_formula='nosuch+1'", KEYWORD],
    ["set server job_sort_formula=where", TYPE],
    ["set server job_sort_formula=arch", TYPE],
    ["set sched s1 job_sort_formula='ncpus*'", INVALID],
    ["set sched s1 job_sort_formula='cost * 2'"],
    ["set server job_sort_formula=ncpus", DIFFERS],
    ["set server job_sort_formula='cost * 2'"],
    ["set sched default job_sort_formula=ncpus", DIFFERS],
    ["delete resource cost", "15174 Resource busy on server"],
    ["set resource cost type=string", "15174 Resource busy on server"],
    ["unset server job_sort_formula"],
    ["delete resource cost", "15174 Resource busy on sched"],
    ["set sched default job_sort_formula=ncpus"],
    ["unset sched s1 job_sort_formula"],
    ["delete resource cost"],
  ]);
  assert.equal(shown(h, "sched", "default", "job_sort_formula"), "ncpus");
  assert.equal(shown(h, "sched", "s1", "job_sort_formula"), undefined);
});

test("partitions of a scheduler are a list under two names", async () => {
  const h = harness();
  const rows = async (line: string, expected: unknown, said = "ok"): Promise<void> => {
    await session(h, [[line, said]]);
    assert.equal(shown(h, "sched", "s1", "partition"), expected, line);
  };
  addSched(h, "s2", { partition: ["q1"] });
  await session(h, [["create sched s1"]]);
  await rows("set sched s1 partitions=p1", "p1");
  await rows("set sched s1 partition += p2", "p1,p2");
  await rows("set sched s1 partitions += 'p2,p3'", "p1,p2,p3");
  await rows("set sched s1 partition -= p1", "p2,p3");
  await rows("set sched s1 partition += q1", "p2,p3", "15224 Partition is already associated with other scheduler");
  await rows("set sched s1 partition += pbs-default", "p2,p3", "15228 Default partition name is not allowed");
  await rows("set sched s1 partition = 'a b'", "p2,p3", BAD_VALUE);
  await rows("set sched s1 partition = 'p4,p5'", "p4,p5");
  await rows("set sched s1 partition = None", undefined);
  await rows("set sched s1 partitions = p6", "p6");
  await rows("unset sched s1 partitions", undefined);
});

test("partitions between queues and nodes", async () => {
  const h = harness();
  addHost(h, HOST);
  await session(h, [
    ["create queue wq1,wq2 queue_type=e"],
    ["set queue wq1 partition=p1"],
    ["set queue wq2 partition=p2"],
    [`set node ${HOST} partition=p1`],
    [`set node ${HOST} queue=wq2`, "15220 Partition p1 is not part of queue for node"],
    [`set node ${HOST} queue=workq`],
    [`set node ${HOST} queue=wq1`],
    [`set node ${HOST} partition=p2`, "15219 Queue wq1 is not part of partition for node"],
    ["set queue wq1 partition=p3", "15221 Invalid partition in queue"],
    ["set queue wq2 partition=p1"],
    [`unset node ${HOST} partition`],
    ["set queue wq1 partition=p3"],
    ["unset queue wq1 partition"],
    ["delete queue wq1", "15027 Cannot delete busy object"],
    [`unset node ${HOST} queue`],
    ["set queue wq1 partition=p3"],
    [`set node ${HOST} queue=wq1,partition=p3`],
    [`set node ${HOST} partition=p2,queue=wq2`, "15220 Partition p3 is not part of queue for node"],
    // both at once, to a consistent pair
    [`set node ${HOST} partition=p1,queue=wq2`],
    [`set node ${HOST} partition=pbs-default`, "15228 Default partition name is not allowed"],
    ["set queue wq2 partition=pbs-default", "15228 Default partition name is not allowed"],
    ["create queue r1 queue_type=r"],
    ["set queue r1 partition=p1", "15217 Cannot assign a partition to route queue"],
    ["create queue r2 queue_type=r,partition=p1", "15218 Route queues are incompatible with the partition attribute partition"],
    ["set queue wq1 queue_type=r", "15218 Route queues are incompatible with the partition attribute queue_type"],
    [`set node ${HOST} queue=r1`, "15026 Incompatible type"],
    [`set node ${HOST} queue=nosuch`, "15018 Unknown queue"],
    ["create node n2 Mom=localhost,queue=wq1,partition=p1", "15220 Partition p1 is not part of queue for node"],
  ]);
});

test("log of manager requests: who did it, then one line an attribute", async () => {
  const h = harness();
  h.logs.length = 0;
  await session(h, [
    ["create queue wq1 queue_type=e,enabled=t,partition=P1"],
    ["set queue wq1 resources_max.mem += 1gb,comment='a b'"],
    ["unset queue wq1 comment"],
    ["set server managers -= x@y"],
    ["create sched sc1 partition=P1"],
    ["create resource foo type=long,flag=q"],
    ["delete queue wq1"],
  ]);
  const admin = h.logs.filter((record) => record.event === 4).map((record) => `${record.class};${record.object};${record.text}`);
  assert.deepEqual(admin, [
    `Que;wq1;created at request of root@${HOST}`,
    "Que;wq1;attributes set: queue_type = e",
    "Que;wq1;attributes set: enabled = TRUE",
    "Que;wq1;attributes set: partition = P1",
    `Que;wq1;attributes set:  at request of root@${HOST}`,
    "Que;wq1;attributes set: resources_max.mem + 1gb",
    "Que;wq1;attributes set: comment = a b",
    `Que;wq1;attributes unset:  at request of root@${HOST}`,
    "Que;wq1;attributes unset: comment = ",
    `Svr;Server@${HOST};attributes set:  at request of root@${HOST}`,
    `Svr;Server@${HOST};attributes set: managers - x@y`,
    `Sched;Server@${HOST};created at request of root@${HOST}`,
    `Sched;Server@${HOST};attributes set: partition = P1`,
    `Resc;foo;created at request of root@${HOST}`,
    "Resc;foo;attributes set: type = long",
    "Resc;foo;attributes set: flag = q",
    `Que;wq1;deleted at request of root@${HOST}`,
  ]);
  assert.ok(!logsOf(h, "wq1").includes("nothing"));
});

test("a node of an unknown host is an unknown node; this host needs no name service", async () => {
  const h = harness();
  await session(h, [
    ["create node nosuch", "15062 Unknown node "],
    ["create node n1 Mom=nosuch", "15062 Unknown node "],
    ["create node n1 Mom=localhost,Port=1234,comment='rack 4'"],
    ["create node n1", "15066 Node name already exists"],
    [`create node ${HOST}`],
    [`create node v2 Mom=${HOST}`],
    ["create node n3 Mom=10.1.2.3"],
    [`create node ${"a".repeat(80)}`, "15065 Node name is too big"],
    ["set node nosuch comment=x", "15062 Unknown node "],
    [`set node ${HOST} license=x`, NO_ATTRIBUTE],
    ["create node n9 license=x", NO_ATTRIBUTE],
    ["set node n1 Port=1", `${READ_ONLY} Port`],
    ["set node n1 Mom=x", `${READ_ONLY} Mom`],
    ["set node n1 state=wonderful", "15067 Illegal value for node state"],
    ["set node n1 state='free,offline'", "15068 Mutually exclusive values for  state"],
    ["set node n1 resources_available.nosuch=1", "15035 Unknown resource resources_available.nosuch"],
    ["set node n1 resources_available.ncpus=lots", `${BAD_VALUE} resources_available.ncpus`],
    ["set node n1 foo=1", NO_ATTRIBUTE],
  ]);
  assert.deepEqual(logsOf(h, "nosuch"), Array(2).fill("the name of this host does not resolve"));
  assert.equal(shown(h, "node", "n1", "state"), "state-unknown,down");
  assert.equal(shown(h, "node", "n1", "Port"), "1234");
  assert.equal(shown(h, "node", "n1", "Port", ALICE), undefined, "users do not see the port");
  assert.deepEqual(shown(h, "node", "v2", "resources_available"), { host: HOST, vnode: "v2" });
  assert.deepEqual([...(h.core.state.hosts.get(HOST) ?? [])], [HOST, "v2"]);
  assert.equal(shown(h, "node", "v2", "in_multivnode_host"), "1");
  assert.equal(shown(h, "node", "n1", "in_multivnode_host"), undefined);
});

test("a node that is created under an address belongs to the mom of that host, and its jobs show the address", async () => {
  const h = harness();
  await session(h, [["create node 10.0.0.7"], ["create node 10.0.0.8"]]);
  assert.deepEqual(shown(h, "node", "10.0.0.7", "resources_available"), { host: "n7", vnode: "10.0.0.7" });
  assert.match(await qmgr(h, "print node 10.0.0.7"), /^create node 10\.0\.0\.7 Mom=n7$/m);
  assert.equal(shown(h, "node", "10.0.0.8", "Mom"), "10.0.0.8", "an address without a name may be the name of a mom");
  momHello(h, 7, "n7");
  momHello(h, 8, "10.0.0.8");
  assert.deepEqual([shown(h, "node", "10.0.0.7", "state"), shown(h, "node", "10.0.0.8", "state")], ["free", "free"]);
  const job = addJob(h, {});
  runOn(h, job, "10.0.0.7", 7);
  assert.equal(shown(h, "job", job, "exec_host"), "10.0.0.7/0");
});

test("a node that is created under an address gets the name that the mom of the host has given", async () => {
  const h = harness();
  addHost(h, "n7.site.org");
  await session(h, [["create node 10.0.0.7"], ["create node v7 Mom=10.0.0.7"]]);
  assert.deepEqual([shown(h, "node", "10.0.0.7", "Mom"), shown(h, "node", "v7", "Mom")], ["n7.site.org", "n7.site.org"]);
});

test("nodes: what an administrator sets is marked as his, and given back by unset", async () => {
  const h = harness();
  addHost(h, HOST, { ncpus: 8 });
  await session(h, [[`set node ${HOST} resources_available.mem=64gb,comment=mine`]]);
  const marks = (): string[] => [...(h.core.state.vnodes.get(HOST)?.set_by_admin ?? [])].sort();
  assert.deepEqual(marks(), ["comment", "resources_available.mem"]);
  await session(h, [[`unset node ${HOST} comment,resources_available.mem`]]);
  assert.deepEqual(marks(), []);
  await session(h, [["create node n9 Mom=localhost,resources_available.ncpus=3"]]);
  assert.deepEqual(h.core.state.vnodes.get("n9")?.set_by_admin, ["Mom", "resources_available.ncpus"]);
});

test("nodes: offline and free, all at once, deleting", async () => {
  const h = harness();
  await session(h, [["delete node @default", "15062 Unknown node "]]);
  assert.equal(outcome(h, ROOT, { kind: "status", object: "node", ids: [] }), "15064 Server has no node list");
  assert.equal(outcome(h, ROOT, { kind: "status", object: "node", ids: ["n1"] }), "15064 Server has no node list");
  addHost(h, HOST);
  await session(h, [["create node n2 Mom=localhost"], [`set node ${HOST} state=offline`], [`set node ${HOST} state+=down`]]);
  assert.equal(shown(h, "node", HOST, "state"), "down,offline");
  await session(h, [[`set node ${HOST} state-=down`], [`unset node ${HOST} state`]]);
  assert.equal(shown(h, "node", HOST, "state"), "free");
  await session(h, [
    ["create queue q1 queue_type=e,partition=p1"],
    [`set node ${HOST} queue=q1`],
    ["set node @default partition=p2", `15069 Modification failed for ${HOST}`],
  ]);
  assert.equal(shown(h, "node", "n2", "partition"), "p2", "nodes that can are changed");
  await session(h, [["set node @default foo=1", NO_ATTRIBUTE], ["set node @default comment=all"], ["delete node @default"]]);
  assert.equal(h.core.state.vnodes.size, 0);
});

test("print: a resource of type string_array element by element, other texts whole; a quoted value may hold line ends", async () => {
  const h = harness();
  addVnode(h, "n1");
  await session(h, [
    ["create resource color type=string_array,flag=h"],
    ["create resource note type=string,flag=h"],
    [`set node n1 resources_available.color="red,blue two,green"`],
    [`set node n1 resources_available.note="a,b"`],
    [`set node n1 comment="first\n\tsecond"`],
  ]);
  const printed = await qmgr(h, "print node n1");
  for (const line of [
    "set node n1 resources_available.color = red\n",
    `set node n1 resources_available.color += "blue two"\n`,
    "set node n1 resources_available.color += green\n",
    `set node n1 resources_available.note = "a,b"\n`,
    `set node n1 comment = "first\n\tsecond"\n`,
  ])
    assert.ok(printed.includes(line), `${line} in ${printed}`);
});

test("resources: types and flags", async () => {
  const h = harness();
  const erroneous = (what: string): string => `15014 Erroneous to have ${what} on resource "x1".`;
  await session(h, [
    ["create resource r_long type=long,flag=nh"],
    ["create resource r_long", "15055 Duplicate entry in list "],
    ["create resource ncpus type=long", "15055 Duplicate entry in list "],
    ["create resource x1 type=integer", BAD_VALUE],
    ["create resource x1 type=string,flag=n", erroneous("flag 'n' without 'h'")],
    ["create resource x1 type=long,flag=nfh", erroneous("flag 'n' and 'f'")],
    [
      "create resource x1 type=boolean,flag=hn",
      `15014 Erroneous to have flag 'n', 'f', or 'q' on resource "x1" which is type string, string_array, or boolean.`,
    ],
    ["create resource", BAD_VALUE],
    ["create resource x1 flag=z", BAD_VALUE],
    ["create resource x1 colour=red", NO_ATTRIBUTE],
    ["create resource x1,x2 type=long"],
    ["set resource x1 flag=q"],
    ["unset resource x1 flag"],
    ["unset resource x1 type", "15004 Invalid request"],
    ["set resource mem flag=h", "15004 Invalid request"],
    ["delete resource mem", "15004 Invalid request"],
    ["delete resource nosuch", "15035 Unknown resource"],
  ]);
  assert.equal(await qmgr(h, "list resource r_long"), "Resource r_long\n    type = long\n    flag = hn\n\n");
  assert.equal(await qmgr(h, "list resource x1"), "Resource x1\n    type = long\n\n");
});

test("resources: values go with a deleted resource; the type is kept while there are any", async () => {
  const h = harness();
  addHost(h, HOST);
  await session(h, [
    ["create resource lic type=long,flag=q"],
    ["create resource rack type=string,flag=h"],
    ["set queue workq resources_max.lic=4,max_run_res.lic=[u:PBS_GENERIC=1]"],
    ["set resource lic type=float", "15174 Resource busy on queue"],
    ["set resource lic flag=hq"],
    [`set node ${HOST} resources_available.rack=A`],
    ["set resource rack type=string_array", "15174 Resource busy on node"],
    ["set server resources_available.lic=9,restrict_res_to_release_on_suspend=lic"],
    ["delete resource lic", "15174 Resource busy on server"],
    ["unset server restrict_res_to_release_on_suspend"],
    ["delete resource lic,rack"],
  ]);
  assert.equal(shown(h, "queue", "workq", "resources_max"), undefined);
  assert.equal(shown(h, "queue", "workq", "max_run_res"), undefined);
  assert.equal(shown(h, "server", "", "resources_available"), undefined);
  assert.deepEqual(h.core.state.vnodes.get(HOST)?.set_by_admin, []);
});

test("an unknown request kind of manager objects never crashes the core", () => {
  const h = harness();
  for (const object of ["server", "queue", "node", "resource", "sched"] as const) {
    for (const verb of ["create", "delete", "set", "unset"] as const) {
      for (const name of ["", "\u0000", "x".repeat(1000), "__proto__", "constructor"]) {
        const attrs = [{ name: "__proto__", resource: "constructor", op: "=" as const, value: "toString" }];
        assert.ok(ask(h, ROOT, { kind: "manager", verb, object, name, attrs }) !== undefined);
      }
    }
  }
});

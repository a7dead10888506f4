import assert from "node:assert/strict";
import { test } from "node:test";
import { markedScript } from "#model/script-text.ts";
import type { AttrValueText } from "#protocol/messages.ts";
import type { ServerToMom } from "#protocol/mom-link.ts";
import {
  ALICE,
  addHost,
  addQueue,
  apply,
  ask,
  BOB,
  CONFIG,
  HOST,
  harness,
  jobAttrs,
  jobOwn,
  lettersOf,
  logsOf,
  obit,
  outcome,
  ROOT,
  restart,
  runOn,
  START_S,
  stateOf,
} from "../harness.ts";
import { session, shown } from "./qmgr.ts";
import { qsub, qsubVerdict, submission } from "./qsub.ts";

test("a plain submission: what the server keeps, logs and accounts", async () => {
  const h = harness();
  const id = await qsub(h, "-- /bin/sleep 10");
  assert.equal(id, `1.${HOST}`);
  const { Variable_List, ...attrs } = jobAttrs(h, id);
  const variables = Variable_List as readonly string[];
  assert.deepEqual(attrs, {
    Job_Name: "STDIN",
    Job_Owner: `alice@${HOST}`,
    job_state: "Q",
    queue: "workq",
    server: HOST,
    Checkpoint: "u",
    ctime: START_S,
    mtime: START_S,
    qtime: START_S,
    etime: START_S,
    Error_Path: `${HOST}:/home/alice/STDIN.e1`,
    Output_Path: `${HOST}:/home/alice/STDIN.o1`,
    Hold_Types: "n",
    Join_Path: "n",
    Keep_Files: "n",
    Mail_Points: "a",
    Priority: 0,
    Rerunable: true,
    Resource_List: { ncpus: 1, nodect: 1, place: "pack", select: "1:ncpus=1" },
    schedselect: "1:ncpus=1",
    substate: 10,
    euser: "alice",
    egroup: "users",
    queue_rank: 1,
    queue_type: "E",
    hop_count: 1,
    Submit_arguments: "-- /bin/sleep 10",
    executable: "<jsdl-hpcpa:Executable>/bin/sleep</jsdl-hpcpa:Executable>",
    argument_list: "<jsdl-hpcpa:Argument>10</jsdl-hpcpa:Argument>",
    project: "_pbs_project_default",
    Submit_Host: HOST,
  });
  assert.deepEqual(variables.slice(-2), ["PBS_O_QUEUE=workq", `PBS_O_HOST=${HOST}`]);
  assert.ok(variables.includes("PBS_O_WORKDIR=/home/alice"));
  assert.deepEqual(logsOf(h, id), [
    "enqueuing into workq, state Q hop 1",
    `Job Queued at request of alice@${HOST}, owner = alice@${HOST}, job name = STDIN, queue = workq`,
  ]);
  assert.equal(
    h.accounting.at(-1)?.text,
    `user=alice group=users project=_pbs_project_default jobname=STDIN queue=workq ctime=${START_S} qtime=${START_S} etime=${START_S} ` +
      "Resource_List.ncpus=1 Resource_List.nodect=1 Resource_List.place=pack Resource_List.select=1:ncpus=1 ",
  );
});

test("options of qsub and the attributes they become", async () => {
  const h = harness();
  // biome-ignore format: a table
  const rows: readonly (readonly [words: string, attribute: string, value: unknown])[] = [
    ["-N name",                     "Job_Name",        "name"],
    ["-N name",                     "Output_Path",     `${HOST}:/home/alice/name.o2`],
    ["-o /tmp/out",                 "Output_Path",     `${HOST}:/tmp/out`],
    ["-o dir/",                     "Output_Path",     `${HOST}:/home/alice/dir/`],
    ["-h",                          "Hold_Types",      "u"],
    ["-p 5",                        "Priority",        5],
    ["-r n",                        "Rerunable",       false],
    ["-c c=5",                      "Checkpoint",      "c=5"],
    ["-W umask=027",                "umask",           27],
    ["-W umask=999",                "umask",           999],
    ["-A acct",                     "Account_Name",    "acct"],
    ["-P proj",                     "project",         "proj"],
    ["-S /bin/sh",                  "Shell_Path_List", ["/bin/sh"]],
    ["-u alice",                    "User_List",       ["alice"]],
    ["-W group_list=users",         "egroup",          "users"],
    ["-W run_count=3",              "run_count",       3],
    ["-W sandbox=HOME",             "sandbox",         "HOME"],
    ["-l walltime=",                "Resource_List",   { ncpus: 1, nodect: 1, place: "pack", select: "1:ncpus=1" }],
    ["-l ncpus=4,mem=100mb",        "schedselect",     "1:mem=100mb:ncpus=4"],
    ["-l select=3",                 "schedselect",     "3:ncpus=1"],
    ["-l nodes=1 -l mem=50mb",      "Resource_List",   { mem: "51200kb", ncpus: 1, nodect: 1, nodes: "1", place: "scatter", select: "1:ncpus=1:mem=51200KB" }],
    ["-q workq@svr",                "queue",           "workq"],
    ["-q @svr",                     "queue",           "workq"],
    ["-v A=1,PBS_O_HOST=fake",      "Submit_Host",     HOST],
  ];
  for (const [words, attribute, value] of rows) {
    const id = await qsub(h, `${words} -- /bin/true`);
    const seq = Number.parseInt(id, 10);
    assert.deepEqual(jobAttrs(h, id)[attribute], typeof value === "string" ? value.replace("name.o2", `name.o${seq}`) : value, words);
  }
  const faked = await qsub(h, "-v A=1,PBS_O_HOST=fake -- /bin/true");
  assert.deepEqual(
    jobAttrs(h, faked)
      ["Variable_List"]?.toString()
      .match(/PBS_O_HOST=[^,]*/g),
    [`PBS_O_HOST=${HOST}`],
  );
});

test("where a job waits: held, for its time, queued", async () => {
  const h = harness();
  assert.equal(stateOf(h, await qsub(h, "-- /bin/true")), "Q 10");
  assert.equal(stateOf(h, await qsub(h, "-h -- /bin/true")), "H 20");
  const waiting = await qsub(h, "-a 2359 -- /bin/true");
  assert.equal(stateOf(h, waiting), "W 30");
  assert.equal(jobAttrs(h, waiting).etime, undefined);
  assert.equal(stateOf(h, await qsub(h, "-h -a 2359 -- /bin/true")), "H 20");
});

test("what submissions are refused with", async () => {
  const h = harness({ server: { resources_max: { walltime: 7200 } } });
  apply(h, { kind: "resource-put", resource: { name: "secret", type: "long", flags: "r", read: "all", set: "op" } });
  await session(h, [
    ["create resource covert type=long,flag=nhi"],
    ["create queue off queue_type=e,started=t"],
    ["create queue inner queue_type=e,enabled=t,from_route_only=t"],
    ["create queue narrow queue_type=e,enabled=t,max_array_size=3"],
    ["create queue small queue_type=e,enabled=t,resources_max.ncpus=2,resources_min.ncpus=2"],
  ]);
  const bad = (what: string): string => `15014 Illegal attribute or resource value${what}`;
  // biome-ignore format: a table
  const rows: readonly (readonly [words: string, verdict: string])[] = [
    ["-q nosuch",                                "15018 Unknown queue"],
    ["-q off",                                   "15021 Queue is not enabled"],
    ["-q inner",                                 "15022 Access to queue is denied"],
    ["-l nosuch=1",                              "15035 Unknown resource Resource_List.nosuch"],
    ["-l nosuch",                                "15035 Unknown resource Resource_List.nosuch"],
    ["-l select=1:nosuch=1",                     "15035 Unknown resource: nosuch"],
    ["-l select=1:ncpus=abc",                    bad(" select.ncpus")],
    ["-l select=1:ncpus=2:ncpus=3",              "15116 duplicated resource within a section of a select specification, resource is: ncpus"],
    ["-l select=1:ncpus=1 -l ncpus=2",           '15109 "-lresource=" cannot be used with "select" or "place", resource is: ncpus'],
    ["-l place=pack",                            '15111 Cannot have "place" without "select"'],
    ["-l select=1 -l place=anywhere",            bad(" Resource_List.place")],
    ["-l select=1:walltime=10",                  '15108 Resource invalid in "select" specification: walltime'],
    ["-l nodes=2 -l select=1",                   "15110 Cannot be used with select or place: nodes"],
    ["-l walltime=-5",                           bad(" Resource_List.walltime")],
    ["-l walltime=1:2:3:4",                      bad(" Resource_List.walltime")],
    ["-l ncpus=abc",                             bad(" Resource_List.ncpus")],
    ["-l mem=12xx",                              bad(" Resource_List.mem")],
    ["-l select=0:ncpus=1",                      bad("")],
    ["-l select=1:ncpus=1:",                     bad(" Resource_List.select")],
    ["-l soft_walltime=600",                     "15003 Cannot set attribute, read only or insufficient permission  Resource_List.soft_walltime"],
    ["-l secret=1",                              "15003 Cannot set attribute, read only or insufficient permission  Resource_List.secret"],
    ["-l select=1+2:covert=1",                   "15003 Cannot set attribute, read only or insufficient permission  Resource_List.covert"],
    ["-l select=1:nchunk=2",                     "15003 Cannot set attribute, read only or insufficient permission  Resource_List.nchunk"],
    ["-l min_walltime=700,max_walltime=600",     '15163 "min_walltime" can not be greater than "max_walltime"'],
    ["-l max_walltime=600",                      '15162 Cannot have "max_walltime" without "min_walltime"'],
    ["-l walltime=3:00:00",                      "15036 Job violates queue and/or server resource limits"],
    ["-q small -l ncpus=3",                      "15036 Job violates queue and/or server resource limits"],
    ["-q small -l select=1:ncpus=1",             "15036 Job violates queue and/or server resource limits"],
    ["-q small -l select=1:ncpus=2",             "ok"],
    ["-W group_list=wheel",                      "15045 Bad GID for job execution"],
    ["-u nosuchuser",                            "15023 Bad UID for job execution"],
    ["-u bob",                                   "15023 Bad UID for job execution"],
    ["-W nosuch=1",                              "15002 Undefined attribute "],
    ["-W job_state=R",                           "15003 Cannot set attribute, read only or insufficient permission  job_state"],
    ["-W comment=x",                             "15003 Cannot set attribute, read only or insufficient permission  comment"],
    ["-W max_run_subjobs=2",                     "15231 Attribute has to be set on an array job"],
    ["-J 1-10001",                               "15107 Array job exceeds server or queue size limit"],
    ["-J 1-4 -q narrow",                         "15107 Array job exceeds server or queue size limit"],
    ["-J 1-4 -l min_walltime=60",                '15165 "min_walltime" and "max_walltime" are not valid resources for a job array'],
    ["-W array=True",                            "15003 Cannot set attribute, read only or insufficient permission  array"],
    ["-W array_indices_submitted=1-",            bad(" array_indices_submitted")],
    ["-W array_indices_submitted=1-3,5-9",       bad(" array_indices_submitted")],
    ["-W depend=afterok:1[2]",                   "15054 Invalid Job Dependency"],
  ];
  for (const [words, expected] of rows) assert.equal(await qsubVerdict(h, `${words} -- /bin/true`), expected, words);
  assert.equal(h.core.state.jobs.size, 1, "what is refused leaves nothing");
  await session(h, [["unset server default_queue"]]);
  assert.equal(await qsubVerdict(h, "-- /bin/true"), "15037 No default queue specified");
});

test("attributes straight from the socket: holds beyond one's right, unknown values", () => {
  const h = harness();
  const send = (...attrs: AttrValueText[]): string => outcome(h, ALICE, { kind: "queue-job", destination: "", attrs, script: null });
  assert.equal(send({ name: "Hold_Types", value: "o" }), "15007 Unauthorized Request ");
  assert.equal(send({ name: "Hold_Types", value: "s" }), "15007 Unauthorized Request ");
  assert.equal(send({ name: "Hold_Types", value: "x" }), "15014 Illegal attribute or resource value Hold_Types");
  assert.equal(send({ name: "Priority", value: "5000" }), "15014 Illegal attribute or resource value Priority");
  assert.equal(send({ name: "Job_Name", value: "a".repeat(236) }), "15173 name is too long");
  assert.equal(send({ name: "Resource_List", value: "1" }), "15035 Unknown resource");
  assert.equal(send({ name: "Job_Name", resource: "x", value: "1" }), "15014 Illegal attribute or resource value Job_Name.x");
  assert.equal(send({ name: "stagein", value: "a@h:/b,c@/d" }), "15014 Illegal attribute or resource value stagein");
  assert.equal(send({ name: "block", value: "True" }), "15003 Cannot set attribute, read only or insufficient permission  block");
  const to = (destination: string): string => outcome(h, ALICE, { kind: "queue-job", destination, attrs: [], script: null });
  assert.equal(to("workq@elsewhere"), "15008 Access from host not allowed, or unknown host");
  assert.equal(to("a@b@c"), "15008 Access from host not allowed, or unknown host");
  assert.equal(send(), "ok", "nothing at all is a job STDIN");
  assert.equal(jobAttrs(h, `1.${HOST}`).Output_Path, `${HOST}:/STDIN.o1`);
});

test("root owns jobs only where acl_roots lets him; in user mode the complex's user does", async () => {
  const h = harness();
  assert.equal(await qsubVerdict(h, "-- /bin/true", ROOT), "15023 Bad UID for job execution");
  await session(h, [["set server acl_roots += root@*"]]);
  assert.equal(await qsubVerdict(h, "-- /bin/true", ROOT), "ok");
  assert.equal(
    await qsubVerdict(h, "-- /bin/true", { ...ALICE, user: "stranger" }),
    "15023 Bad UID for job execution",
    "a user the system does not know",
  );
  const own = harness();
  Object.assign(own.core.kernel, { config: { ...CONFIG, own_user: "root" } });
  assert.equal(await qsubVerdict(own, "-- /bin/true", ROOT), "ok");
  assert.equal(await qsubVerdict(own, "-- /bin/true", ALICE), "15023 Bad UID for job execution");
});

test("lists of a queue let in hosts, users and groups", async () => {
  const h = harness();
  const PERM = "15007 Unauthorized Request ";
  await session(h, [["set queue workq acl_user_enable=True,acl_users=bob@*"]]);
  assert.deepEqual([await qsubVerdict(h, "-- a", ALICE), await qsubVerdict(h, "-- a", BOB)], [PERM, "ok"]);
  await session(h, [["set queue workq acl_users = '-alice@*,+*@*'"]]);
  assert.deepEqual([await qsubVerdict(h, "-- a", ALICE), await qsubVerdict(h, "-- a", BOB)], [PERM, "ok"]);
  await session(h, [["set queue workq acl_user_enable=f,acl_group_enable=t,acl_groups=staff"]]);
  assert.deepEqual(
    [await qsubVerdict(h, "-- a", ALICE), await qsubVerdict(h, "-- a", { ...ALICE, groups: ["users", "staff"] })],
    [PERM, "ok"],
  );
  await session(h, [["set queue workq acl_group_enable=f,acl_host_enable=t,acl_hosts=elsewhere"]]);
  assert.equal(await qsubVerdict(h, "-- a", ALICE), PERM);
});

test("limits on queued jobs: which holds, in which words", async () => {
  const PROJECT = "-P apollo";
  // biome-ignore format: a table
  const rows: readonly (readonly [limit: string, words: string, verdict: string])[] = [
    ["server max_queued=[u:PBS_GENERIC=1]",                      "",          "15142 would exceed complex's per-user limit"],
    ["server max_queued=[u:alice=1]",                            "",          "15142 Maximum number of jobs for user alice already in complex"],
    ["server max_queued='[u:alice=2],[u:PBS_GENERIC=1]'",        "",          "ok"],
    ["server max_queued=[o:PBS_ALL=1]",                          "",          "15142 Maximum number of jobs already in complex"],
    ["server max_queued=[g:users=1]",                            "",          "15142 Maximum number of jobs for group users already in complex"],
    ["server max_queued=[p:PBS_GENERIC=1]",                      PROJECT,     "15142 would exceed complex's per-project limit"],
    ["queue workq max_queued=[u:PBS_GENERIC=1]",                 "",          "15142 would exceed queue generic's per-user limit"],
    ["queue workq max_queued=[o:PBS_ALL=1]",                     "",          "15142 Maximum number of jobs already in queue workq"],
    ["queue workq max_queuable=1",                               "",          "15046 Maximum number of jobs already in queue"],
    ["queue workq queued_jobs_threshold=[u:PBS_GENERIC=1]",      "",          "15142 would exceed queue generic's per-user limit of jobs in 'Q' state"],
    ["queue workq queued_jobs_threshold=[u:PBS_GENERIC=1]",      "-h",        "15142 would exceed queue generic's per-user limit of jobs in 'Q' state"],
    ["queue workq queued_jobs_threshold=[u:PBS_GENERIC=1]",      "-a 0101",   "15142 would exceed queue generic's per-user limit of jobs in 'Q' state"],
    ["queue workq max_queued_res.ncpus=[u:PBS_GENERIC=4]",       "-l ncpus=3", "15143 would exceed per-user limit on resource ncpus in queue workq"],
    ["queue workq max_queued_res.ncpus=[u:PBS_GENERIC=4]",       "-l ncpus=2", "ok"],
    ["server max_queued_res.mem=[u:alice=1gb]",                  "-l mem=1048576kb", "15143 would exceed user alice's limit on resource mem in complex"],
    ["server queued_jobs_threshold_res.ncpus=[o:PBS_ALL=2]",     "",          "15143 would exceed limit on resource ncpus in complex for jobs in 'Q' state"],
  ];
  for (const [limit, words, expected] of rows) {
    const h = harness();
    await qsub(h, `${PROJECT} -l ncpus=2,mem=1mb -- first`);
    await session(h, [[`set ${limit}`]]);
    assert.equal(await qsubVerdict(h, `${words} -- second`), expected, `${limit} | ${words}`);
  }
});

test("held and waiting jobs count for queued_jobs_threshold, running ones do not", async () => {
  const h = harness();
  const link = addHost(h, "n1");
  await qsub(h, "-h -- held");
  const first = await qsub(h, "-- first");
  await session(h, [["set server queued_jobs_threshold=[u:PBS_GENERIC=2]"]]);
  const full = "15142 would exceed complex's per-user limit of jobs in 'Q' state";
  assert.equal(await qsubVerdict(h, "-- second"), full);
  runOn(h, first, "n1", link);
  assert.equal(await qsubVerdict(h, "-- second"), "ok");
  assert.equal(await qsubVerdict(h, "-- third"), full);
});

test("a select or nodes that asks for nothing is refused, an empty limit leaves it out", async () => {
  const h = harness();
  const id = await qsub(h, "-l select=1 -- a");
  for (const name of ["select", "nodes"]) {
    const refused = `15014 Illegal attribute or resource value Resource_List.${name}`;
    assert.equal(await qsubVerdict(h, `-l ${name}= -- a`), refused);
    const attrs = [{ name: "Resource_List", resource: name, op: "=", value: "" } as const];
    assert.equal(outcome(h, ALICE, { kind: "modify-job", job: id, attrs }), refused);
  }
  assert.equal(await qsubVerdict(h, "-l walltime= -- a"), "ok");
});

test("limits follow jobs as they end, move and change, also after a restart", async () => {
  const h = harness();
  const link = addHost(h, "n1");
  addQueue(h, "q2");
  await session(h, [["set server max_queued='[u:PBS_GENERIC=2]',max_queued_res.ncpus='[u:PBS_GENERIC=4]'"]]);
  const first = await qsub(h, "-l ncpus=2 -- a");
  await qsub(h, "-l ncpus=2 -- b");
  const full = "15142 would exceed complex's per-user limit";
  assert.equal(await qsubVerdict(h, "-- c"), full);
  assert.equal(
    outcome(h, ALICE, { kind: "move-job", job: first, destination: "q2" }),
    "ok",
    "a move within the complex adds nothing to it",
  );
  restart(h);
  assert.equal(await qsubVerdict(h, "-- c"), full);
  const again = addHost(h, "n2");
  runOn(h, first, "n2", again, 2);
  obit(h, again, first);
  assert.equal(await qsubVerdict(h, "-l ncpus=3 -- c"), "15143 would exceed per-user limit on resource ncpus in complex");
  assert.equal(await qsubVerdict(h, "-l ncpus=2 -- c"), "ok");
  assert.ok(link > 0);
});

test("the script must not be larger than jobscript_max_size", () => {
  const h = harness({ server: { jobscript_max_size: "10b" } });
  const send = (script: string): string => outcome(h, ALICE, { kind: "queue-job", destination: "", attrs: [], script });
  assert.equal(send("0123456789"), "ok");
  assert.equal(send("01234567890"), "15175 jobscript size exceeded the jobscript_max_size");
  assert.equal(send("äöüäöü"), "15175 jobscript size exceeded the jobscript_max_size", "bytes count, not characters");
  assert.equal(send(markedScript("Gr\xfc\xdfe Gr\xfc\xdf")), "ok");
  assert.equal(send(markedScript("Gr\xfc\xdfe Gr\xfc\xdfe")), "15175 jobscript size exceeded the jobscript_max_size");
});

test("numbers of jobs begin again after max_job_sequence_id, past those in use", async () => {
  const h = harness();
  assert.equal(await qsub(h, "-- a"), `1.${HOST}`);
  h.core.state.next_seq = 9_999_998;
  assert.equal(await qsub(h, "-- a"), `9999999.${HOST}`);
  assert.equal(await qsub(h, "-- a"), `2.${HOST}`);
  assert.equal(await qsub(h, "-- a"), `3.${HOST}`);
  restart(h);
  assert.equal(await qsub(h, "-- a"), `4.${HOST}`);
});

test("bulk submission: each job for itself, in order", async () => {
  const h = harness();
  const jobs = await Promise.all(["-N a -- x", "-q nosuch -- x", "-N b -- x"].map((words) => submission(h, words)));
  const answer = ask(h, ALICE, { kind: "queue-jobs", jobs: jobs.map(({ kind: _kind, ...job }) => job) });
  assert.deepEqual(answer, {
    ok: true,
    value: { results: [{ id: `1.${HOST}` }, { code: 15018, text: "Unknown queue" }, { id: `2.${HOST}` }] },
  });
  assert.equal(lettersOf(h, `2.${HOST}`), "Q");
});

test("defaults: of the queue before the server; a changed default holds for the next job", async () => {
  const h = harness();
  await session(h, [
    ["set queue workq resources_default.mem=1gb,default_chunk.ncpus=2"],
    ["set server resources_default.walltime=60,resources_max.cput=100"],
  ]);
  const list = async (words: string): Promise<unknown> => shown(h, "job", await qsub(h, `${words} -- a`), "Resource_List");
  assert.deepEqual(await list(""), {
    cput: "00:01:40",
    mem: "1gb",
    ncpus: "1",
    nodect: "1",
    place: "pack",
    select: "1:mem=1gb:ncpus=1",
    walltime: "00:01:00",
  });
  assert.deepEqual(await list("-l select=2"), {
    cput: "00:01:40",
    ncpus: "4",
    nodect: "2",
    place: "free",
    select: "2",
    walltime: "00:01:00",
  });
  await session(h, [["set queue workq resources_default.mem=2gb"], ["unset server resources_max"]]);
  assert.deepEqual(await list(""), {
    mem: "2gb",
    ncpus: "1",
    nodect: "1",
    place: "pack",
    select: "1:mem=2gb:ncpus=1",
    walltime: "00:01:00",
  });
});

test("qmove: defaults of the queue a job leaves give way to those of the new one, and its rules hold", async () => {
  const h = harness();
  await session(h, [
    ["create queue q2 queue_type=e,enabled=t,resources_default.mem=2gb,resources_max.walltime=100"],
    ["create queue q3 queue_type=e,enabled=t,acl_user_enable=t,acl_users=bob"],
    ["set queue workq resources_default.mem=1gb"],
  ]);
  const [plain, asked, long] = [await qsub(h, "-- a"), await qsub(h, "-l mem=3gb -- a"), await qsub(h, "-l walltime=200 -- a")];
  const move = (job: string, destination: string): string => outcome(h, ALICE, { kind: "move-job", job, destination });
  assert.deepEqual(
    [move(plain, "q2"), move(asked, "q2"), move(long, "q2"), move(long, "q3")],
    ["ok", "ok", "15036 Job violates queue and/or server resource limits", "15007 Unauthorized Request "],
  );
  assert.deepEqual(jobAttrs(h, plain).Resource_List, {
    mem: "2gb",
    ncpus: 1,
    nodect: 1,
    place: "pack",
    select: "1:mem=2gb:ncpus=1",
    walltime: 100,
  });
  assert.equal(jobAttrs(h, asked).schedselect, "1:mem=3gb:ncpus=1");
  assert.equal(jobAttrs(h, long).queue, "workq");
});

test("resources that a job asks for, or a finished one asked for, are not deleted and keep their type", async () => {
  const h = harness();
  const link = addHost(h, "n1", { lic: 4 });
  await session(h, [["create resource lic type=long,flag=nh"]]);
  const job = await qsub(h, "-l select=1:lic=2 -- a");
  const busy = "15174 Resource busy on job";
  await session(h, [["delete resource lic", busy], ["set resource lic type=float", busy], ["set resource lic type=long"]]);
  runOn(h, job, "n1", link);
  obit(h, link, job);
  assert.equal(h.core.state.jobs.size, 0);
  await session(h, [
    ["delete resource lic", busy],
    ["delete resource @default", "15174 Resource busy lic"],
  ]);
  assert.equal(outcome(h, ALICE, { kind: "delete-job", job, history: true }), "ok");
  await session(h, [["delete resource lic"]]);
});

test("an interactive job: not rerunnable, its ticket goes to its mom and is shown to nobody; without one, or as an array, it is refused", async () => {
  const h = harness();
  const link = addHost(h, "n1");
  const terminal = { socket: "partita-qsub-1-ab", secret: "ab".repeat(32) };
  const plain = await submission(h, "-r y -- /bin/sh");
  const asked = { ...plain, attrs: [...plain.attrs, { name: "interactive", value: "True" }] };
  assert.equal(outcome(h, ALICE, asked), "15014 Illegal attribute or resource value interactive");
  const array = { ...asked, attrs: [...asked.attrs, { name: "array_indices_submitted", value: "1-3" }], terminal };
  assert.equal(outcome(h, ALICE, array), "15014 Illegal attribute or resource value interactive");
  const answer = ask(h, ALICE, { ...asked, terminal });
  const { id } = (answer as { readonly value: { readonly id: string } }).value;
  const attrs = jobAttrs(h, id) as { readonly [name: string]: unknown };
  assert.deepEqual([attrs["interactive"], attrs["Rerunable"], jobOwn(h, id).terminal], [1, false, terminal]);
  for (const who of [ALICE, ROOT]) {
    const text = JSON.stringify(ask(h, who, { kind: "status", object: "job", ids: [id] }));
    assert.doesNotMatch(text, /partita-qsub|abab/);
  }
  runOn(h, id, "n1", link);
  const sent = h.to_moms.find(({ type }) => type === "mom-start")?.data as ServerToMom["mom-start"];
  assert.deepEqual(sent.jobs[0]?.attrs["terminal"], terminal);
  obit(h, link, id);
  assert.equal(stateOf(h, id).slice(0, 1), "F");
  assert.equal(h.store.history.get(id)?.own.terminal, undefined);
});

test("interactive=False makes a batch job", async () => {
  const h = harness();
  const plain = await submission(h, "-- /bin/sh");
  const id = await qsub(h, "-- /bin/sh");
  ask(h, ALICE, { ...plain, attrs: [...plain.attrs, { name: "interactive", value: "False" }] });
  assert.equal(jobAttrs(h, id)["interactive" as never], undefined);
  assert.equal(jobAttrs(h, `2.${HOST}`)["interactive" as never], undefined);
});

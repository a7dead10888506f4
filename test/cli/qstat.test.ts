// qstat against recorded output: the tables, the long forms, selection, refusals and the requests that are sent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { qstat } from "#cli/commands/status/qstat.ts";
import { ServerUnreachable } from "#protocol/client.ts";
import type { Request, StatusItem, WireAttrs } from "#protocol/messages.ts";
import { type Answer, type FakeOptions, fakeComplex, type Ran, runBody } from "./fake-complex.ts";

process.env["TZ"] = "UTC";

const base = { Job_Owner: "pbsuser1@HOST", queue: "workq" };
const JOBS: readonly { id: string; attrs: WireAttrs }[] = [
  {
    id: "J1",
    attrs: {
      ...base,
      Job_Name: "runner",
      job_state: "R",
      session_id: "PID",
      exec_host: "HOST.example.org/0*2",
      resources_used: { cput: "00:00:00", walltime: "00:00:01" },
      Resource_List: { ncpus: "2", nodect: "1", mem: "10mb", walltime: "01:00:00" },
      comment: "Job run at DATE on (HOST:ncpus=2:mem=10240kb)",
    },
  },
  { id: "J2", attrs: { ...base, Job_Name: "held_job_with_long_name", job_state: "H", Resource_List: { ncpus: "4", nodect: "1" } } },
  { id: "J3", attrs: { ...base, Job_Name: "waiter", job_state: "W", Resource_List: { ncpus: "1", nodect: "1" } } },
  {
    id: "J4",
    attrs: {
      ...base,
      Job_Name: "toobig",
      job_state: "Q",
      Resource_List: { ncpus: "15", nodect: "1", cput: "00:30:00" },
      comment: "Not Running: Insufficient amount of resource: ncpus (R: 15 A: 14 T: 16)",
    },
  },
];
const SERVER_ITEM: StatusItem = { id: "HOST", attrs: { max_job_sequence_id: "9999999" } };

/** Answers like a server with these jobs. Other ids are unknown jobs. */
function jobServer(jobs: readonly StatusItem[] = JOBS, server: StatusItem = SERVER_ITEM): (request: Request) => Answer {
  return (request) => {
    if (request.kind !== "status") return { code: 15005, text: "Unknown request" };
    if (request.object === "server") return { items: [server] };
    if (request.queue === "nosuch" || request.queue === "abc") return { code: 15018, text: "Unknown queue" };
    if (request.ids.length === 0) return { items: jobs };
    return { items: request.ids.map((id) => jobs.find((job) => job.id === id) ?? { id, code: 15001, text: "Unknown Job Id" }) };
  };
}

async function runQstat(words: string, options: FakeOptions = { answer: jobServer() }): Promise<Ran & { requests: Request[] }> {
  const { complex, requests } = fakeComplex(options);
  const ran = await runBody(qstat, words.split(" ").filter(Boolean), complex);
  return { ...ran, requests };
}

const SHORT = `Job id            Name             User              Time Use S Queue
----------------  ---------------- ----------------  -------- - -----
`;
const ALT = `
HOST: 
                                                            Req'd  Req'd   Elap
Job ID          Username Queue    Jobname    SessID NDS TSK Memory Time  S Time
--------------- -------- -------- ---------- ------ --- --- ------ ----- - -----
`;
const ALT_ROWS = `J1              pbsuser1 workq    runner        PID   1   2   10mb 01:00 R 00:00
J2              pbsuser1 workq    held_job_*    --    1   4    --    --  H   -- 
J3              pbsuser1 workq    waiter        --    1   1    --    --  W   -- 
J4              pbsuser1 workq    toobig        --    1  15    --  00:30 Q   -- 
`;

// Literal outputs of a real PBS: lists.
const LISTS: readonly (readonly [words: string, text: string])[] = [
  [
    "",
    `${SHORT}J1                runner           pbsuser1          00:00:00 R workq           
J2                held_job_with_l* pbsuser1                 0 H workq           
J3                waiter           pbsuser1                 0 W workq           
J4                toobig           pbsuser1                 0 Q workq           
`,
  ],
  ["-a", ALT + ALT_ROWS],
  [
    "-n",
    `${ALT}J1              pbsuser1 workq    runner        PID   1   2   10mb 01:00 R 00:00
   HOST/0*2
J2              pbsuser1 workq    held_job_*    --    1   4    --    --  H   -- 
    -- 
J3              pbsuser1 workq    waiter        --    1   1    --    --  W   -- 
    -- 
J4              pbsuser1 workq    toobig        --    1  15    --  00:30 Q   -- 
    -- 
`,
  ],
  [
    "-n -1",
    `${ALT}J1              pbsuser1 workq    runner        PID   1   2   10mb 01:00 R 00:00 HOST/0*2
J2              pbsuser1 workq    held_job_*    --    1   4    --    --  H   --   -- 
J3              pbsuser1 workq    waiter        --    1   1    --    --  W   --   -- 
J4              pbsuser1 workq    toobig        --    1  15    --  00:30 Q   --   -- 
`,
  ],
  [
    "-s",
    `${ALT}J1              pbsuser1 workq    runner        PID   1   2   10mb 01:00 R 00:00
   Job run at DATE on (HOST:ncpus=2:mem=10240kb)
J2              pbsuser1 workq    held_job_*    --    1   4    --    --  H   -- 
    -- 
J3              pbsuser1 workq    waiter        --    1   1    --    --  W   -- 
    -- 
J4              pbsuser1 workq    toobig        --    1  15    --  00:30 Q   -- 
   Not Running: Insufficient amount of resource: ncpus (R: 15 A: 14 T: 16)
`,
  ],
  [
    "-s1",
    `${ALT}J1              pbsuser1 workq    runner        PID   1   2   10mb 01:00 R 00:00    Job run at DATE on (HOST:ncpus=2:mem=10240kb)
J2              pbsuser1 workq    held_job_*    --    1   4    --    --  H   --      -- 
J3              pbsuser1 workq    waiter        --    1   1    --    --  W   --      -- 
J4              pbsuser1 workq    toobig        --    1  15    --  00:30 Q   --     Not Running: Insufficient amount of resource: ncpus (R: 15 A: 14 T: 16)
`,
  ],
  ["-r", `${ALT}${ALT_ROWS.split("\n")[0]}\n`],
  ["-i", ALT + ALT_ROWS.split("\n").slice(1).join("\n")],
  ["-a -G", ALT + ALT_ROWS.replace("  10mb", "   1gb")],
  ["-a -M", ALT + ALT_ROWS.replace("  10mb", "   2mw")],
  [
    "-a -w",
    `
HOST: 
                                                                                                   Req'd  Req'd   Elap
Job ID                         Username        Queue           Jobname         SessID   NDS  TSK   Memory Time  S Time
------------------------------ --------------- --------------- --------------- -------- ---- ----- ------ ----- - -----
J1                             pbsuser1        workq           runner               PID    1     2   10mb 01:00 R 00:00
J2                             pbsuser1        workq           held_job_with_*      --     1     4    --    --  H   -- 
J3                             pbsuser1        workq           waiter               --     1     1    --    --  W   -- 
J4                             pbsuser1        workq           toobig               --     1    15    --  00:30 Q   -- 
`,
  ],
  [
    "-w",
    `Job id                         Name            User             Time Use S Queue
-----------------------------  --------------- ---------------  -------- - ---------------
J1                             runner          pbsuser1         00:00:00 R workq          
J2                             held_job_with_* pbsuser1                0 H workq          
J3                             waiter          pbsuser1                0 W workq          
J4                             toobig          pbsuser1                0 Q workq          
`,
  ],
  [
    "-p",
    `Job id            Name             User               % done  S Queue
----------------  ---------------- ----------------  -------- - -----
J1                runner           pbsuser1                0  R workq           
J2                held_job_with_l* pbsuser1               --  H workq           
J3                waiter           pbsuser1               --  W workq           
J4                toobig           pbsuser1               --  Q workq           
`,
  ],
  ["-u pbsuser1", ALT + ALT_ROWS],
  ["-u pbsuser2", ""],
  ["-u root,pbsuser1", ALT + ALT_ROWS],
];

for (const [words, text] of LISTS) {
  test(`recorded list: qstat ${words}`, async () => {
    const ran = await runQstat(words);
    assert.equal(ran.text, text);
    assert.equal(ran.status, 0);
  });
}

test("plain qstat asks only for the attributes it shows", async () => {
  const { requests } = await runQstat("");
  assert.deepEqual(requests.at(-1), {
    kind: "status",
    object: "job",
    ids: [],
    brief: true,
    attrs: ["Job_Name", "Job_Owner", "resources_used", "job_state", "queue"],
  });
});

// --- the long forms

const LONG_JOB: StatusItem = {
  id: "1.HOST",
  attrs: {
    Job_Name: "12",
    Job_Owner: "pbsuser1@HOST",
    resources_used: { cput: "00:00:01", ncpus: "1", mem: "0kb" },
    job_state: "H",
    ctime: "1795166788",
    Mail_Users: "a@b.c,d@e.f",
    Priority: "3",
    Rerunable: "True",
    Resource_List: { mem: "20mb", ncpus: "1" },
    substate: "20",
    Variable_List: 'PBS_O_HOME=/home/pbsuser1,Q=a\\,b,R=it\\"s,N=4,EMPTY=',
    comment: "one\ntwo",
    estimated: { start_time: "1795166788" },
    Submit_arguments:
      "-h -N longone -l select=1:ncpus=1:mem=20mb -l walltime=300 -A my acct -P proj -M a@b.c,d@e.f -m be -p 3 -v X=1,Y=a b -- /bin/sleep 1 2 3",
    argument_list: "<jsdl-hpcpa:Argument>1 2</jsdl-hpcpa:Argument><jsdl-hpcpa:Argument>3</jsdl-hpcpa:Argument>",
    history_timestamp: "1795166788",
    project: "7",
  },
};

test("qstat -f breaks lines as recorded and writes times as dates", async () => {
  const ran = await runQstat("-f 1", { answer: jobServer([LONG_JOB]) });
  assert.equal(
    ran.text,
    `Job Id: 1.HOST
    Job_Name = 12
    Job_Owner = pbsuser1@HOST
    resources_used.cput = 00:00:01
    resources_used.ncpus = 1
    resources_used.mem = 0kb
    job_state = H
    ctime = Fri Nov 20 09:26:28 2026
    Mail_Users = a@b.c,d@e.f
    Priority = 3
    Rerunable = True
    Resource_List.mem = 20mb
    Resource_List.ncpus = 1
    substate = 20
    Variable_List = PBS_O_HOME=/home/pbsuser1,Q=a\\,b,R=it\\"s,N=4,EMPTY=
    comment = one
two
    estimated.start_time = Fri Nov 20 09:26:28 2026
    Submit_arguments = -h -N longone -l select=1:ncpus=1:mem=20mb -l walltime=3
	00 -A my acct -P proj -M a@b.c,d@e.f -m be -p 3 -v X=1,
	Y=a b -- /bin/sleep 1 2 3
    argument_list = <jsdl-hpcpa:Argument>1 2</jsdl-hpcpa:Argument><jsdl-hpcpa:A
	rgument>3</jsdl-hpcpa:Argument>
    history_timestamp = 1795166788
    project = 7

`,
  );
});

test("a start that the scheduler cannot tell is UNKNOWN", async () => {
  const answer = jobServer([{ id: "1.HOST", attrs: { ...base, Job_Name: "j", job_state: "Q", estimated: { start_time: "0" } } }]);
  assert.match((await runQstat("-f 1", { answer })).text, /^ {4}estimated\.start_time = UNKNOWN$/m);
  assert.match((await runQstat("-f -F json 1", { answer })).text, /"start_time":\t"UNKNOWN"/);
});

test("qstat -fw writes an attribute a line", async () => {
  const { text } = await runQstat("-fw 1", { answer: jobServer([LONG_JOB]) });
  assert.ok(text.includes("    comment = one\\ntwo\n"));
  assert.ok(text.includes("-l walltime=300 -A my acct"));
  assert.equal(text.split("\n").filter((line) => line.startsWith("\t")).length, 0);
});

test("qstat -f -F dsv writes a line an object and protects the delimiter", async () => {
  const { text } = await runQstat("-f -F dsv -D , 1", { answer: jobServer([LONG_JOB]) });
  assert.match(text, /^Job Id: 1\.HOST,Job_Name=12,Job_Owner=pbsuser1@HOST,resources_used\.cput=00:00:01,/);
  assert.match(text, /,Mail_Users=a@b\.c\\,d@e\.f,/);
});

test("qstat -f -F json is one valid document with every job of every operand", async () => {
  const second: StatusItem = { id: "2.HOST", attrs: { Job_Name: "b", job_state: "Q" } };
  const ran = await runQstat("-f -F json 1 99999 2 workq", { answer: jobServer([LONG_JOB, second]), now_ms: 1_795_166_790_000 });
  const { Jobs, ...rest } = JSON.parse(ran.out);
  assert.deepEqual(rest, { timestamp: 1795166790, pbs_version: "23.06.06", pbs_server: "HOST" });
  assert.deepEqual(Object.keys(Jobs), ["1.HOST", "2.HOST"]);
  assert.deepEqual(Jobs["1.HOST"].Variable_List, { PBS_O_HOME: "/home/pbsuser1", Q: "a,b", R: 'it"s', N: 4, EMPTY: "" });
  assert.deepEqual(
    [
      Jobs["1.HOST"].Job_Name,
      Jobs["1.HOST"].project,
      Jobs["1.HOST"].Priority,
      Jobs["1.HOST"].ctime,
      Jobs["1.HOST"].history_timestamp,
      Jobs["1.HOST"].comment,
    ],
    ["12", "7", 3, "Fri Nov 20 09:26:28 2026", 1795166788, "one\ntwo"],
  );
  assert.deepEqual(Jobs["1.HOST"].estimated, { start_time: "Fri Nov 20 09:26:28 2026" });
  assert.deepEqual([ran.err, ran.status], ["qstat: Unknown Job Id 99999.HOST\n", 153]);
});

const QUEUES: readonly StatusItem[] = [
  {
    id: "workq",
    attrs: {
      queue_type: "Execution",
      total_jobs: "2",
      state_count: "Transit:0 Queued:1 Held:1 Waiting:0 Running:0 Exiting:0 Begun:0 ",
      max_running: "10",
      resources_max: { cput: "01:00:00", mem: "4gb", walltime: "12:00:00" },
      max_run: ["[u:PBS_GENERIC=2]", "[u:a=3]"],
      enabled: "True",
      started: "False",
    },
  },
  {
    id: "front",
    attrs: {
      queue_type: "Route",
      total_jobs: "1",
      state_count: "Transit:0 Queued:1 Held:0 Waiting:0 Running:0 Exiting:0 Begun:0 ",
      route_destinations: "workq",
      enabled: "True",
    },
  },
];
const SERVER_FULL: StatusItem = {
  id: "HOST",
  attrs: {
    server_state: "Active",
    total_jobs: "3",
    state_count: "Transit:0 Queued:2 Held:1 Waiting:0 Running:0 Exiting:0 Begun:0 ",
    log_events: "511",
  },
};

function queueServer(request: Request): Answer {
  if (request.kind !== "status") return { code: 15005, text: null };
  if (request.object === "server") return { items: [SERVER_FULL] };
  if (request.ids.length === 0) return { items: QUEUES };
  return { items: request.ids.map((id) => QUEUES.find((queue) => queue.id === id) ?? { id, code: 15018, text: "Unknown queue" }) };
}

const QUEUE_HEAD = `Queue              Max   Tot Ena Str   Que   Run   Hld   Wat   Trn   Ext Type
---------------- ----- ----- --- --- ----- ----- ----- ----- ----- ----- ----
`;
const WORKQ = "workq               10     2 yes  no     1     0     1     0     0     0 Exe*\n";
const FRONT = "front                0     1 yes  no     1     0     0     0     0     0 Rou*\n";
const LIMITS_HEAD = `
server: HOST

Queue            Memory CPU Time Walltime Node   Run   Que   Lm  State
---------------- ------ -------- -------- ---- ----- ----- ----  -----
`;
const LIMITS_FRONT = "front              --      --       --     --      0     1   --   E S\n";
const limitsSum = (waiting: string): string => `                                               ----- -----
                                                   0     ${waiting}
`;
const LIMITS_REST = LIMITS_FRONT + limitsSum("3");
const SERVER_HEAD = `Server             Max   Tot   Que   Run   Hld   Wat   Trn   Ext Status
---------------- ----- ----- ----- ----- ----- ----- ----- ----- -----------
`;
const SERVER_ROW = "HOST                 0     3     2     0     1     0     0     0 Active    \n";

// Literal outputs of a real PBS: queues and servers.
const QUEUE_OUTPUTS: readonly (readonly [words: string, text: string, status: number])[] = [
  ["-Q", QUEUE_HEAD + WORKQ + FRONT, 0],
  ["-Q front", QUEUE_HEAD + FRONT, 0],
  ["-Q workq@HOST", QUEUE_HEAD + WORKQ, 0],
  ["-Q nosuch", "qstat: Unknown queue nosuch\n", 170],
  ["-q", `${LIMITS_HEAD}workq               4gb 01:00:00 12:00:00  --      0     2   10   E S\n${LIMITS_REST}`, 0],
  ["-q -M", `${LIMITS_HEAD}workq             512mw 01:00:00 12:00:00  --      0     2   10   E S\n${LIMITS_REST}`, 0],
  [
    "-q workq front",
    `${LIMITS_HEAD}workq               4gb 01:00:00 12:00:00  --      0     2   10   E S\n${limitsSum("2")}${LIMITS_HEAD}${LIMITS_FRONT}${limitsSum("1")}`,
    0,
  ],
  ["-B", SERVER_HEAD + SERVER_ROW, 0],
  ["-B -a", SERVER_HEAD + SERVER_ROW, 0],
  ["-B HOST", SERVER_HEAD + SERVER_ROW, 0],
  ["-B nosuchhost", "Unknown Host.\nqstat: cannot connect to server HOST (errno=15008)\n", 255],
  [
    "-Qf front",
    "Queue: front\n    queue_type = Route\n    total_jobs = 1\n" +
      "    state_count = Transit:0 Queued:1 Held:0 Waiting:0 Running:0 Exiting:0 Begun\n\t:0 \n    route_destinations = workq\n    enabled = True\n\n",
    0,
  ],
  [
    "-Q -f -F dsv workq",
    "Queue: workq|queue_type=Execution|total_jobs=2|state_count=Transit:0 Queued:1 Held:1 Waiting:0 Running:0 Exiting:0 Begun:0 |max_running=10|" +
      "resources_max.cput=01:00:00|resources_max.mem=4gb|resources_max.walltime=12:00:00|max_run=[u:PBS_GENERIC=2]|max_run=[u:a=3]|enabled=True|started=False\n",
    0,
  ],
];

for (const [words, text, status] of QUEUE_OUTPUTS) {
  test(`recorded queues and servers: qstat ${words}`, async () => {
    const ran = await runQstat(words, { answer: queueServer });
    assert.equal(ran.text, text);
    assert.equal(ran.status, status);
  });
}

test("qstat -Qf -F json joins entity limits in one string", async () => {
  const { out } = await runQstat("-Qf -F json workq", { answer: queueServer });
  assert.equal(JSON.parse(out).Queue.workq.max_run, "[u:PBS_GENERIC=2],[u:a=3]");
  assert.ok(out.includes('\t\t\t"resources_max":\t{\n\t\t\t\t"cput":\t"01:00:00",\n'));
});

// --- errors

const USAGE_HEAD = "usage: ";
// biome-ignore format: one row a case
const CONFLICTS: readonly (readonly [words: string, first: string, second?: string])[] = [
  ["-a -i",         "qstat: conflicting options.", USAGE_HEAD],
  ["-F json",       "qstat: conflicting options.", USAGE_HEAD],
  ["-f -F xml",     USAGE_HEAD],
  ["-1",            "qstat: conflicting options."],
  ["-B -Q",         "qstat: conflicting options."],
  ["-a -B",         "qstat: conflicting options."],
  ["-q -Q",         "qstat: conflicting options."],
  ["-G -M",         "qstat: conflicting options."],
  ["-q -f",         "qstat: conflicting options."],
  ["-Q -F dsv",     "qstat: conflicting options."],
  ["-f -D ,",       USAGE_HEAD],
  ["-Z",            "qstat: invalid option -- 'Z'", USAGE_HEAD],
  ["-u",            "qstat: option requires an argument -- 'u'", USAGE_HEAD],
  ["-w -f -F json", "qstat: conflicting options.", "qstat: option w cannot be used with -F"],
];

for (const [words, first, second] of CONFLICTS) {
  test(`qstat refuses ${words}`, async () => {
    const ran = await runQstat(words);
    const lines = ran.text.split("\n");
    assert.equal(lines[0], first);
    if (second !== undefined) assert.equal(lines[1], second);
    assert.ok(ran.text.endsWith("qstat --version\n"));
    assert.deepEqual([ran.status, ran.requests.length], [2, 0]);
  });
}

const HISTORY: StatusItem = { id: "5.HOST", code: 15139, text: "Job has finished" };
// biome-ignore format: one row a case
const ERRORS: readonly (readonly [words: string, text: string, status: number])[] = [
  ["99999",              "qstat: Unknown Job Id 99999.HOST\n", 153],
  ["99998 99999",        "qstat: Unknown Job Id 99998.HOST\nqstat: Unknown Job Id 99999.HOST\n", 153],
  ["99999[1]",           "qstat: Unknown Job Id 99999[1].HOST\n", 153],
  ["abc",                "qstat: Unknown queue destination abc\n", 170],
  ["12x",                "qstat: illegally formed job identifier: 12x\n", 1],
  ["1.HOST.x.y",         "qstat: illegally formed job identifier: 1.HOST.x.y\n", 1],
  ["a@b@c",              "qstat: illegally formed destination: a@b@c\n", 1],
  ["5",                  "qstat: 5.HOST Job has finished, use -x or -H to obtain historical job information\n", 35],
  ["99999 5",            "qstat: Unknown Job Id 99999.HOST\nqstat: 5.HOST Job has finished, use -x or -H to obtain historical job information\n", 35],
  ["-E workq",           "qstat: Express option can only be used with job ids\n", 1],
  ["-E 5 99999",         "", 0],
  ["@nosuchhost",        "Unknown Host.\nqstat: cannot connect to server HOST (errno=15008)\n", 255],
  ["-f -F json 99999",   'qstat: Unknown Job Id 99999.HOST\n{\n\t"timestamp":\t1795166788,\n\t"pbs_version":\t"23.06.06",\n\t"pbs_server":\t"HOST"\n}\n', 153],
];

for (const [words, text, status] of ERRORS) {
  test(`qstat tells ${words}`, async () => {
    const ran = await runQstat(words, { answer: jobServer([HISTORY]) });
    assert.deepEqual([ran.text, ran.status], [text, status]);
  });
}

test("live jobs are printed beside the errors, in the order of the operands", async () => {
  const jobs: StatusItem[] = [HISTORY, { id: "7.HOST", attrs: { ...base, Job_Name: "live", job_state: "R" } }];
  const ran = await runQstat("5 7 99999", { answer: jobServer(jobs) });
  assert.equal(ran.out, `${SHORT}7.HOST            live             pbsuser1                 0 R workq           \n`);
  assert.equal(ran.status, 153);
  const express = await runQstat("-E 99999 7 5", { answer: jobServer(jobs) });
  assert.deepEqual([express.err, express.status], ["", 0]);
});

test("without history the server's word is passed on and is no failure", async () => {
  const answer = (request: Request): Answer =>
    request.kind === "status" && request.history !== undefined
      ? { code: 15140, text: "PBS is not configured to maintain job history" }
      : { items: [] };
  assert.deepEqual(await runQstat("-x 5", { answer }).then(({ text, status }) => [text, status]), [
    "qstat: PBS is not configured to maintain job history 5.HOST\n",
    0,
  ]);
  assert.equal((await runQstat("-x", { answer })).text, "qstat: PBS is not configured to maintain job history \n");
});

test("an unreachable server gives 255, and no jobs give nothing", async () => {
  const ran = await runQstat("", { down: new ServerUnreachable("Connection refused", 15010) });
  assert.deepEqual([ran.text, ran.status], ["Connection refused\nqstat: cannot connect to server HOST (errno=15010)\n", 255]);
  assert.deepEqual(await runQstat("", { answer: jobServer([]) }).then(({ text, status }) => [text, status]), ["", 0]);
});

// --- variants of the tables

test("the server's comment stands above the tables, long numbers widen them", async () => {
  const server: StatusItem = { id: "HOST", attrs: { comment: "down at noon", max_job_sequence_id: "99999999" } };
  const job: StatusItem = { id: "10000001.HOST.dom.org", attrs: { ...base, Job_Name: "exactly16letters", job_state: "Q" } };
  const { text } = await runQstat("", { answer: jobServer([job], server) });
  assert.equal(
    text,
    `down at noon
Job id                 Name             User              Time Use S Queue
---------------------  ---------------- ----------------  -------- - -----
10000001.HOST          exactly16letter* pbsuser1                 0 Q workq           
`,
  );
  assert.match((await runQstat("-a", { answer: jobServer([job], server) })).text, /^\nHOST: down at noon\n/);
  assert.match((await runQstat("-w", { answer: jobServer([job], server) })).text, /\n10000001\.HOST\.dom\.org {10}exactly16lette\* /);
});

test("-T sorts by start and shortens it by its distance", async () => {
  const now_ms = new Date(2026, 10, 20, 9, 26, 28).getTime();
  const at = (...date: [number, number, number, number, number]): string => String(new Date(...date).getTime() / 1000);
  const job = (id: string, start?: string, state = "Q"): StatusItem => ({
    id,
    attrs: {
      ...base,
      Job_Name: id,
      job_state: state,
      ...("RSF".includes(state) ? { stime: start ?? "" } : start === undefined ? {} : { estimated: { start_time: start } }),
    },
  });
  const jobs = [
    job("none"),
    job("past", at(2026, 10, 19, 1, 0)),
    job("years", at(2040, 1, 1, 0, 0)),
    job("year", at(2027, 1, 1, 0, 0)),
    job("month", at(2026, 11, 20, 0, 0)),
    job("week", at(2026, 10, 25, 15, 0)),
    job("today", at(2026, 10, 20, 15, 34)),
    job("dunno", "0"),
    job("runs", at(2026, 10, 20, 8, 0), "R"),
    job("over", at(2026, 10, 20, 7, 0), "F"),
    { id: "held", attrs: { ...base, Job_Name: "held", job_state: "H", estimated: { start_time: at(2026, 10, 20, 15, 0) } } },
    job("fifth", at(2031, 1, 1, 0, 0)),
  ];
  const { text } = await runQstat("-T", { answer: jobServer(jobs), now_ms });
  const rows = text
    .split("\n")
    .slice(6, -1)
    .map((row) => `${row.split(" ")[0]}=${row.slice(-5)}`);
  assert.deepEqual(rows, [
    "over=   --",
    "runs=   --",
    "held=   --",
    "today=15:34",
    "week=We 15",
    "month=  Dec",
    "year= 2027",
    "fifth=>5yrs",
    "years=>5yrs",
    "none=   --",
    "past=   --",
    "dunno=    ?",
  ]);
  assert.equal(text.split("\n")[2], `${" ".repeat(75)}Est`);
  assert.equal(text.split("\n")[3], `${" ".repeat(60)}Req'd  Req'd   Start`);
});

test("a job that is over shows no session, one without cpus no tasks; a named live job is shown with -H, too", async () => {
  const attrs = (job_state: string, ncpus: string) => ({ ...base, Job_Name: "j", job_state, session_id: "4711", Resource_List: { ncpus } });
  const answer = jobServer([
    { id: "1.HOST", attrs: attrs("R", "0") },
    { id: "2.HOST", attrs: attrs("F", "2") },
  ]);
  const cells = (text: string): string[] => [...text.matchAll(/ j {10}(.{14})/g)].map((row) => row[1] as string);
  assert.deepEqual(cells((await runQstat("-a", { answer })).text), ["  4711  --  --", "   --   --   2"]);
  const { requests } = await runQstat("-H 1", { answer });
  assert.deepEqual(requests.at(-1), {
    kind: "status",
    object: "job",
    ids: ["1.HOST"],
    attrs: ["Job_Name", "Job_Owner", "resources_used", "job_state", "queue", "Resource_List", "session_id"],
    history: "with",
  });
});

test("-n breaks long host lists before a plus, -s cuts long comments", async () => {
  const exec_host = Array.from({ length: 8 }, (_, index) => `verylongnode${index}.example.org/0*2`).join("+");
  const job: StatusItem = { id: "1.HOST", attrs: { ...base, Job_Name: "a", job_state: "R", exec_host, comment: "c".repeat(75) } };
  const { text } = await runQstat("-ns", { answer: jobServer([job]) });
  const lines = text.split("\n").slice(6, -1);
  assert.equal(lines[0], "   verylongnode0/0*2+verylongnode1/0*2+verylongnode2/0*2+verylongnode3/0*2");
  assert.match(lines[1] as string, /^ {3}\+verylongnode4\/0\*2\+/);
  assert.equal(lines.at(-1), `   ${"c".repeat(71)}...`);
  const wide = (await runQstat("-sw", { answer: jobServer([job]) })).text.split("\n").at(-2);
  assert.equal(wide, `   ${"c".repeat(75)}`);
});

// biome-ignore format: one row a case
const PERCENTS: readonly (readonly [attrs: WireAttrs, percent: string])[] = [
  [{ job_state: "X" },                                                                                                    "100 "],
  [{ job_state: "R", resources_used: { cput: "00:00:50", walltime: "00:01:00" }, Resource_List: { cput: "100", walltime: "00:10:00" } }, " 50 "],
  [{ job_state: "B", array_state_count: "Queued:1 Running:1 Exiting:0 Expired:2 " },                                      " 50 "],
  [{ job_state: "F", array_state_count: "Queued:0 Running:0 Exiting:0 Expired:0 " },                                      " -- "],
  [{ job_state: "R", resources_used: { cput: "00:00:50" } },                                                              " -- "],
];

for (const [attrs, percent] of PERCENTS) {
  test(`percent done of ${JSON.stringify(attrs)}`, async () => {
    const job: StatusItem = { id: "1.HOST", attrs: { ...base, Job_Name: "a", ...attrs } };
    const row = (await runQstat("-p", { answer: jobServer([job]) })).out.split("\n")[2] as string;
    assert.equal(row.slice(57, 61), percent);
  });
}

// biome-ignore format: one row a case
const STATUS_REQUESTS: readonly (readonly [words: string, request: object])[] = [
  ["-f",              { ids: [], brief: true }],
  ["-x 5",            { ids: ["5.HOST"], attrs: ["Job_Name", "Job_Owner", "resources_used", "job_state", "queue"], history: "with" }],
  ["-fxt 5[]",        { ids: ["5[].HOST"], history: "with", subjobs: true }],
  ["-f workq",        { ids: [], brief: true, queue: "workq" }],
  ["-f @HOST",        { ids: [], brief: true }],
  ["-f 3 1.HOST 2",   { ids: ["3.HOST", "1.HOST", "2.HOST"] }],
  ["-Ef 3 1.HOST 2",  { ids: ["1.HOST", "2.HOST", "3.HOST"] }],
  ["-Hf",             { ids: [], brief: true, history: "only" }],
];

for (const [words, request] of STATUS_REQUESTS) {
  test(`status request of qstat ${words}`, async () => {
    const { requests } = await runQstat(words);
    assert.deepEqual(requests.at(-1), { kind: "status", object: "job", ...request });
  });
}

test("-J shows arrays only, with -t their subjobs, of a named array both", async () => {
  const jobs: StatusItem[] = ["1.HOST", "2[].HOST", "2[1].HOST"].map((id) => ({ id, attrs: { ...base, Job_Name: "a", job_state: "Q" } }));
  assert.deepEqual((await runQstat("-Jt", { answer: jobServer(jobs) })).out.match(/^\d\S*/gm), ["2[1].HOST"]);
  assert.deepEqual((await runQstat("-Jt 2[] 2[1]", { answer: jobServer(jobs) })).out.match(/^\d\S*/gm), ["2[].HOST", "2[1].HOST"]);
  assert.deepEqual((await runQstat("-J", { answer: jobServer(jobs.slice(0, 2)) })).out.match(/^\d\S*/gm), ["2[].HOST"]);
});

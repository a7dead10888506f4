import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BackendError } from "#backends/contract/fault.ts";
import { readVariables } from "#backends/contract/variables.ts";
import { errorReason, indicesOf, memoryNames, qdelFailures, readQstat, submittedJob, tasksMax } from "#backends/gridengine/answer.ts";
import { gridEngineKind } from "#backends/gridengine/faults.ts";
import { gridEngineOptions, nameOf } from "#backends/gridengine/options.ts";
import { qalterArgs, qstatArgs, qsubArgs, qsubScript } from "#backends/gridengine/request.ts";
import { order, request } from "../order.ts";

const SETTINGS = {
  name: "b",
  type: "gridengine",
  complex: "k1",
  user: null,
  state_dir: "/s",
  attributes: { bin: "/usr/lib/gridengine", root: "/var/lib/gridengine" },
} as const;
const OF = { complex: "k1", backend: "b", prefix: "" };
const MEMORY = new Set(["h_vmem", "mem_free"]);

test("qsub is asked for an array under the name of the tag", () => {
  assert.equal(
    qsubArgs(order({ count: 3 }), gridEngineOptions(SETTINGS), MEMORY).join(" "),
    "-terse -N k1.b.1 -t 1-3 -S /bin/sh -wd / -r n -j y -o /dev/null -w e -l h_rt=3600",
  );
});

test("the keys of the document: names of resources, priority, hard and soft", () => {
  const attributes = {
    ...SETTINGS.attributes,
    cpu_resource: "cpu_r",
    mem_resource: "h_vmem",
    tmp_resource: "tmp_r",
    default_prio: -3,
    account: "prj",
    remote_queue: "main.q",
    repo_key: "repo:",
  };
  const options = gridEngineOptions({ ...SETTINGS, attributes });
  const args = (parts: Parameters<typeof request>[0], priority = 0): string =>
    qsubArgs(order({ request: request(parts), wish: { start_s: null, priority } }), options, MEMORY)
      .slice(15)
      .join(" ");
  const rows: readonly (readonly [parts: Parameters<typeof request>[0], priority: number, text: string])[] = [
    [
      { ncpus: 2, mem_kb: 10 * 1024, tmp_kb: 100 * 1024 },
      0,
      "-w e -p -3 -P prj -q main.q -l h_rt=3600 -l cpu_r=2 -l h_vmem=10M -l tmp_r=100",
    ],
    [{ resources: { lic: 2, arch: "lx-*" } }, -10, "-w e -p -10 -P prj -q main.q -l h_rt=3600 -l cpu_r=1 -l lic=2 -l arch=lx-*"],
    [{ options: { p: "-9" } }, -10, "-w e -p -9 -P prj -q main.q -l h_rt=3600 -l cpu_r=1"],
    [
      { resources: { hard: "-l fast=1 -q a.q", soft: "-l mem_free=1G" } },
      500,
      "-w e -p 0 -P prj -q main.q -l h_rt=3600 -l cpu_r=1 -hard -l fast=1 -q a.q -soft -l mem_free=1G",
    ],
  ];
  for (const [parts, priority, text] of rows) assert.equal(args(parts, priority), text);
  assert.match(qsubArgs(order(), options, MEMORY).join(" "), /-N repo;k1\.b\.1 /);
});

test("several cpus need a parallel environment or a resource that counts them", () => {
  const many = order({ request: request({ ncpus: 4 }) });
  assert.throws(() => qsubArgs(many, gridEngineOptions(SETTINGS), MEMORY), { kind: "configuration" });
  const options = gridEngineOptions({ ...SETTINGS, attributes: { ...SETTINGS.attributes, parallel_env: "smp" } });
  assert.match(qsubArgs(many, options, MEMORY).join(" "), / -pe smp 4 /);
});

test("G1: a resource cannot smuggle in another option or resource", () => {
  const ask = (resources: Record<string, string | number>) => () =>
    qsubArgs(order({ request: request({ resources }) }), gridEngineOptions(SETTINGS), MEMORY);
  const bad: readonly Record<string, string>[] = [
    { a: "1,h_rt=9" },
    { a: "-q" },
    { "a=1,b": "1" },
    { hard: "-o /etc/x" },
    { hard: "-b y" },
    { hard: "-l" },
    { soft: "-pe smp 2" },
    { hard: "-l -q" },
    { hard: "word" },
  ];
  for (const resources of bad)
    assert.throws(ask(resources), (error) => error instanceof BackendError && error.kind === "impossible", JSON.stringify(resources));
});

test("the attributes bin and root are required; names get characters that look alike", () => {
  for (const missing of ["bin", "root"]) {
    const attributes = Object.fromEntries(Object.entries(SETTINGS.attributes).filter(([name]) => name !== missing));
    assert.throws(() => gridEngineOptions({ ...SETTINGS, attributes }), new RegExp(`needs the attribute ${missing}`));
  }
  assert.equal(nameOf("x/b\\c:d@e*f?"), "x|b|c;dae#f!");
  assert.deepEqual(readVariables("export SGE_CELL=peer\nSGE_QMASTER_PORT='26444'; \nPATH=/tmp\nexport SGE_X=$(id)\n", ["SGE"]), {
    SGE_CELL: "peer",
    SGE_QMASTER_PORT: "26444",
    SGE_X: "$(id)",
  });
});

test("the script counts its index from 0", () => {
  assert.match(qsubScript(order(), "/tok"), /\nexport PARTITA_RUNNER_INDEX=\$\(\(SGE_TASK_ID - 1\)\)\n/);
  assert.deepEqual(qstatArgs(null), ["-xml", "-s", "prsz", "-u", "*"]);
  const [runner] = readQstat(list(job({ number: 7, name: "k1.b.1", state: "qw", tasks: "1-2:1" })), OF);
  assert.ok(runner !== undefined);
  assert.deepEqual(qalterArgs([runner, runner], { start_s: null, priority: -5 }), ["-p", "-5", "7"]);
});

type Job = { readonly number: number; readonly name: string; readonly state: string; readonly tasks?: string; readonly queue?: string };

function job({ number, name, state, tasks, queue = "" }: Job): string {
  return `    <job_list state="running">
      <JB_job_number>${number}</JB_job_number>
      <JAT_prio>0.25000</JAT_prio>
      <JB_name>${name}</JB_name>
      <JB_owner>batch1</JB_owner>
      <state>${state}</state>
      <JAT_start_time>2026-11-25T22:45:48</JAT_start_time>
      <queue_name>${queue}</queue_name>
      <slots>1</slots>${tasks === undefined ? "" : `\n      <tasks>${tasks}</tasks>`}
    </job_list>`;
}

const list = (...jobs: string[]): string =>
  `<?xml version='1.0'?>\n<job_info  xmlns:xsd="x.xsd">\n  <queue_info>\n${jobs.join("\n")}\n  </queue_info>\n  <job_info>\n  </job_info>\n</job_info>\n`;

test("qstat -xml as a real Grid Engine 8.1.9 prints it", () => {
  const text = list(
    job({ number: 2, name: "k1.b.1", state: "r", tasks: "2", queue: "main.q@localhost" }),
    job({ number: 2, name: "k1.b.1", state: "qw", tasks: "3,5-7:2" }),
    job({ number: 3, name: "k1.b.2", state: "Eqw", tasks: "1" }),
    job({ number: 4, name: "k1.b.3", state: "dr", tasks: "1", queue: "main.q@h" }),
    job({ number: 5, name: "k1.b.4", state: "z", tasks: "1-2:1" }),
    job({ number: 6, name: "STDIN", state: "qw" }),
    job({ number: 7, name: "k2.b.1", state: "qw", tasks: "1" }),
  );
  assert.deepEqual(
    readQstat(text, OF).map(({ tag, index, id, state, host, fault }) => [tag, index, id, state, host, fault?.kind ?? null]),
    [
      ["k1.b.1", 1, "2.2", "running", "localhost", null],
      ["k1.b.1", 2, "2.3", "queued", null, null],
      ["k1.b.1", 4, "2.5", "queued", null, null],
      ["k1.b.1", 6, "2.7", "queued", null, null],
      ["k1.b.2", 0, "3.1", "queued", null, "configuration"],
      ["k1.b.3", 0, "4.1", "running", "h", null],
      ["k1.b.4", 0, "5.1", "ended", null, null],
      ["k1.b.4", 1, "5.2", "ended", null, null],
    ],
  );
});

test("a list that is not whole is no list, and hostile names make no sightings", () => {
  const whole = list(job({ number: 2, name: "k1.b.1", state: "r", tasks: "1" }));
  for (const text of ["", "error: commlib error", whole.slice(0, -20), "<html></html>"])
    assert.throws(() => readQstat(text, OF), BackendError);
  const names = ["a%lt;JB_owner&gt;root&amp;amp;&quot;x", "&lt;JB_name&gt;k1.b.1", "k1.b.1\n", "k1.b.1&lt;"];
  for (const name of names) assert.deepEqual(readQstat(list(job({ number: 9, name, state: "r", tasks: "1" })), OF), []);
  assert.deepEqual(indicesOf("1-999999999,x,-4,0"), []);
  assert.equal(indicesOf("1-9999999").length, 10_000);
  fc.assert(fc.property(fc.string(), (text) => indicesOf(text).every((each) => Number.isInteger(each) && each >= 0)));
});

test("the other outputs", () => {
  assert.equal(submittedJob("4.1-6:1\n"), "4");
  assert.equal(submittedJob("5\n"), "5");
  assert.equal(submittedJob("Your job 3 has been submitted"), null);
  assert.equal(
    errorReason('x: 1\nerror reason          1:      11/25/2026 23:06:11 [1004:16214]: error: can\'t open output file "/nonexistent/x"\n'),
    '11/25/2026 23:06:11 [1004:16214]: error: can\'t open output file "/nonexistent/x"',
  );
  assert.equal(errorReason("Following jobs do not exist: 99"), null);
  assert.deepEqual(
    [
      ...memoryNames(
        "h_vmem              h_vmem     MEMORY    <=    YES\nnum_proc            p          INT       ==    YES\nmem_free            mf         MEMORY    <=",
      ),
    ],
    ["h_vmem", "mem_free", "mf"],
  );
  assert.equal(tasksMax("max_aj_instances             2000\nmax_aj_tasks                 75000\n"), 75_000);
  assert.equal(tasksMax("max_aj_tasks 0"), 10_000);
  assert.equal(qdelFailures("batch1 has deleted job-array task 28.2\n", 'denied: job "29" does not exist\n'), "");
  assert.match(qdelFailures("", 'denied: "eve" is not operator\n'), /eve/);
});

test("Grid Engine's errors by kind", () => {
  const rows: readonly (readonly [text: string, kind: string])[] = [
    ['Unable to run job: Job was rejected because job requests unknown queue "nosuch" Exiting.', "configuration"],
    ['Unable to run job: unknown resource "nosuch" Exiting.', "impossible"],
    ["Unable to run job: error: no suitable queues Exiting.", "impossible"],
    ['Unable to run job: job rejected: the requested parallel environment "nosuch" does not exist Exiting.', "configuration"],
    ["Unable to run job: job rejected: positive submission priority requires operator privileges Exiting.", "configuration"],
    ['Unable to run job: job rejected: the requested project "nosuch" does not exist Exiting.', "configuration"],
    ["Unable to run job: job rejected: you tried to submit a job with more than 75000 tasks Exiting.", "impossible"],
    ["Unable to run job: job rejected: only 10 jobs are allowed per user (current job count: 10) Exiting.", "limit"],
    [
      'error: commlib error: got select error (Connection refused) Unable to run job: unable to send message to qmaster using port 26444 on host "localhost": got send error.',
      "transient",
    ],
    ["qsub did not answer within 30 s", "transient"],
  ];
  for (const [text, kind] of rows) assert.equal(gridEngineKind(text), kind, text);
});

// Hosts of hooks as a daemon uses them: answers of hooks of both languages, and the treatment of hooks that misbehave.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { hookRunner } from "#hooks/hook-runner.ts";
import type { HookInput, HookOutcome, HookRun } from "#hooks/run/hook-input.ts";
import { isAlive, until } from "../complex.ts";

const directory = mkdtempSync(join(tmpdir(), "partita-hooks-"));
const complaints: string[] = [];
const SERVER = { id: "svr", attrs: { default_queue: "workq" } };
const JOB = { id: "1.svr", attrs: { Job_Name: "x", queue: "workq", Resource_List: { ncpus: "2" } } };
const runner = hookRunner({
  directory,
  conf: { PBS_HOME: "/var/spool/pbs" },
  nobody: process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : null,
  answer: ({ what }) => (what === "server" ? { items: [SERVER] } : { items: [JOB] }),
  complain: (text) => complaints.push(text),
});
after(() => {
  runner.close();
  rmSync(directory, { recursive: true, force: true });
});

const INPUT: HookInput = {
  event: "queuejob",
  requestor: "alice",
  requestor_host: "svr",
  server: "svr",
  node: "svr",
  writable: { job: ["Priority", "Resource_List", "Account_Name"] },
  job: { id: null, attrs: { Job_Name: "name", Priority: "0", Resource_List: { walltime: "00:10:00", ncpus: "1", mem: "1gb" } } },
};

function run(language: "python" | "javascript", text: string, more: Partial<HookRun> = {}): Promise<HookOutcome> {
  const content = Buffer.from(text).toString("base64");
  const hook: HookRun = {
    name: "h1",
    type: "site",
    alarm: 30,
    freq: 120,
    order: 1,
    user: "pbsadmin",
    debug: false,
    fail_action: ["none"],
    script: { language, content },
    config: null,
    input: INPUT,
    resources: { walltime: "duration", ncpus: "long", mem: "size" },
    ...more,
  };
  return runner.run(hook, null);
}
/** The kind of an outcome, and its text. */
const short = (outcome: HookOutcome): string =>
  outcome.kind === "reject" ? `reject ${outcome.message}` : outcome.kind === "error" ? "error" : outcome.kind;

const CHANGED = { Priority: "7", Account_Name: "byhook", Resource_List: { walltime: "00:03:00", mem: "1034mb" } };

test("values have their types, changes come back as texts, the server answers questions", async () => {
  const python = `import pbs
j = pbs.event().job
pbs.logmsg(pbs.LOG_DEBUG, "%s %s" % (pbs.server().default_queue, [str(each.Resource_List["ncpus"]) for each in pbs.server().jobs()]))
j.Priority = 7
j.Account_Name = "byhook"
j.Resource_List["walltime"] = pbs.duration("00:03:00")
j.Resource_List["mem"] = j.Resource_List["mem"] + pbs.size("10mb")
`;
  const outcome = await run("python", python);
  assert.ok(outcome.kind === "accept", JSON.stringify(outcome));
  assert.deepEqual(outcome.changes.job, CHANGED);
  assert.ok(outcome.logs.some(({ text }) => text === "workq ['2']"));
  const javascript = `const j = pbs.event().job;
pbs.logmsg(pbs.LOG_DEBUG, pbs.server().default_queue + " " + pbs.server().jobs().map((each) => each.Resource_List.ncpus));
j.Priority = 7;
j.Account_Name = "byhook";
j.Resource_List.walltime = pbs.duration("00:03:00");
`;
  const other = await run("javascript", javascript);
  assert.ok(other.kind === "accept", JSON.stringify(other));
  assert.deepEqual(other.changes.job, { ...CHANGED, Resource_List: { walltime: "00:03:00" } });
  assert.ok(other.logs.some(({ text }) => text === "workq 2"));
});

test("hooks that refuse, fail, lie or die: each has its outcome, and the next one runs", async () => {
  const rows: readonly (readonly [language: "python" | "javascript", text: string, expected: string])[] = [
    ["python", 'import pbs\npbs.event().reject("no")', "reject no"],
    ["python", "import pbs\npbs.event().reject()", "reject null"],
    ["python", "1/0", "error"],
    ["python", "if if", "error"],
    ["python", "import pbs\npbs.event().job.substate = 50", "error"],
    ["python", "import pbs\npbs.event().job.nonsense = 50", "error"],
    ["python", "import pbs\npbs.event().resv", "error"],
    ["python", "import os\nos._exit(3)", "error"],
    ["python", "import os\nos.kill(os.getpid(), 11)", "error"],
    ["python", "import os\nos.kill(os.getppid(), 9)", "error"],
    ["python", "pass", "accept"],
    ["javascript", 'pbs.event().reject("no")', "reject no"],
    ["javascript", "pbs.event().reject()", "reject null"],
    ["javascript", "null.x", "error"],
    ["javascript", "if if", "error"],
    ["javascript", "pbs.event().job.substate = 50", "error"],
    ["javascript", "pbs.event().job.nonsense = 50", "error"],
    ["javascript", "pbs.event().resv", "error"],
    ["javascript", "(function f() { f(); })()", "error"],
    ["javascript", "throw { get stack() { throw 1; }, toString() { throw 2; } }", "error"],
    ["javascript", "", "accept"],
  ];
  for (const [language, text, expected] of rows) assert.equal(short(await run(language, text)), expected, `${language}: ${text}`);
});

test("a hook in JavaScript reaches nothing of its host", async () => {
  for (const text of [
    "process.exit()",
    'require("fs")',
    'pbs.event.constructor("return process")().exit(1)',
    'pbs.server.constructor.constructor("return process")()',
    "fetch('http://127.0.0.1/')",
    "new Worker('x')",
  ])
    assert.equal(short(await run("javascript", text)), "error", text);
  assert.equal(short(await run("javascript", 'import("node:fs").then(() => { for (;;); })')), "accept", "nothing is imported");
});

test("a hook that loops is stopped at its alarm; no process of it is left", async () => {
  const pid = join(directory, "pid");
  assert.equal(short(await run("javascript", "for (;;);", { alarm: 1 })), "alarm");
  const text = `import os
if os.fork() == 0:
    os.setsid()
    open("${pid}", "w").write(str(os.getpid()))
    while True:
        pass
while True:
    pass
`;
  assert.equal(short(await run("python", text, { alarm: 2 })), "alarm");
  assert.equal(isAlive(Number(readFileSync(pid, "utf8"))), false);
  assert.equal(short(await run("python", "pass")), "accept");
  assert.equal(short(await run("javascript", "")), "accept");
  assert.deepEqual(complaints, []);
});

test("a hook or a host that is stopped by SIGSTOP ends at the alarm, one that is killed meanwhile at once; no process is left, and the next hook runs", async () => {
  const pid = join(directory, "stopped-pid");
  const here = `import os, signal\nopen("${pid}", "w").write(str(os.getpid()))\n`;
  const loop = "while True:\n    pass\n";
  const rows: readonly (readonly [text: string, alarm: number, expected: string])[] = [
    ["os.kill(os.getpid(), signal.SIGSTOP)", 1, "alarm"],
    [`os.kill(os.getppid(), signal.SIGSTOP)\n${loop}`, 1, "alarm"],
    [`os.kill(os.getppid(), signal.SIGSTOP)\nos.kill(os.getpid(), signal.SIGSTOP)`, 1, "alarm"],
    [`os.kill(os.getppid(), signal.SIGSTOP)\nos.kill(os.getppid(), signal.SIGKILL)\n${loop}`, 1000, "error"],
  ];
  for (const [text, alarm, expected] of rows) {
    assert.equal(short(await run("python", `${here}${text}`, { alarm })), expected, text);
    const hook = Number(readFileSync(pid, "utf8"));
    await until(`the process of ${text} is gone`, () => !isAlive(hook));
    assert.equal(short(await run("python", "pass")), "accept", text);
  }
});

test("many hooks at once are all answered; a configuration file is there for those that have one", async () => {
  const outcomes = await Promise.all(
    Array.from({ length: 24 }, (_, at) => run(at % 2 === 0 ? "python" : "javascript", at % 2 === 0 ? "pass" : "")),
  );
  assert.deepEqual(new Set(outcomes.map(short)), new Set(["accept"]));
  const config = { suffix: ".json", content: Buffer.from('{"most": 3}').toString("base64") };
  const python = 'import json, pbs\npbs.event().reject(str(json.load(open(pbs.hook_config_filename))["most"]))';
  assert.equal(short(await run("python", python, { config })), "reject 3");
  assert.equal(short(await run("javascript", "pbs.event().reject(JSON.parse(pbs.config).most)", { config })), "reject 3");
});

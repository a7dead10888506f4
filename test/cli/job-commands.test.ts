// qdel, qalter, qhold, qrls, qmove, qorder, qmsg, qsig, qrerun, qrun, qselect, qstop and related commands, qterm: requests
// sent, refusals printed, usage.

import assert from "node:assert/strict";
import { test } from "node:test";
import { qterm } from "#cli/commands/complex/qterm.ts";
import { qalter } from "#cli/commands/jobs/qalter.ts";
import { qdel } from "#cli/commands/jobs/qdel.ts";
import { qhold } from "#cli/commands/jobs/qhold.ts";
import { qmove } from "#cli/commands/jobs/qmove.ts";
import { qmsg } from "#cli/commands/jobs/qmsg.ts";
import { qorder } from "#cli/commands/jobs/qorder.ts";
import { qrerun } from "#cli/commands/jobs/qrerun.ts";
import { qrls } from "#cli/commands/jobs/qrls.ts";
import { qrun } from "#cli/commands/jobs/qrun.ts";
import { qselect } from "#cli/commands/jobs/qselect.ts";
import { qsig } from "#cli/commands/jobs/qsig.ts";
import { SWITCH as QDISABLE } from "#cli/commands/queues/qdisable.ts";
import { SWITCH as QENABLE, run as qenableCommand } from "#cli/commands/queues/qenable.ts";
import { SWITCH as QSTART } from "#cli/commands/queues/qstart.ts";
import { SWITCH as QSTOP } from "#cli/commands/queues/qstop.ts";
import type { CommandBody } from "#cli/complex.ts";
import { queueSwitchBody } from "#cli/queue-switch.ts";
import { ServerUnreachable } from "#protocol/client.ts";
import type { Request } from "#protocol/messages.ts";
import { type Answer, type FakeOptions, fakeComplex, runBody, runCommand } from "./fake-complex.ts";

process.env["TZ"] = "UTC";

const BODIES: Readonly<Record<string, CommandBody>> = {
  qalter,
  qdel,
  qhold,
  qmove,
  qmsg,
  qorder,
  qrerun,
  qrls,
  qrun,
  qselect,
  qsig,
  qterm,
  qstart: queueSwitchBody(QSTART),
  qstop: queueSwitchBody(QSTOP),
  qenable: queueSwitchBody(QENABLE),
  qdisable: queueSwitchBody(QDISABLE),
};

/** Refuses by job number: 9xxxx unknown, 35 finished, 7 not allowed, 16 wrong state. */
function refusing(request: Request): Answer {
  const job = "job" in request ? String(request.job) : "name" in request ? request.name : "";
  if (/^9/.test(job) || ("other" in request && /^9/.test(request.other))) return { code: 15001, text: "Unknown Job Id" };
  if (/^35/.test(job)) return { code: 15139, text: "Job has finished" };
  if (/^7/.test(job)) return { code: 15007, text: "Unauthorized Request " };
  if (/^16/.test(job)) return { code: 15016, text: "Request invalid for state of job" };
  if (job === "nosuch") return { code: 15018, text: "Unknown queue" };
  return {};
}

async function run(line: string | readonly string[], options: FakeOptions = {}) {
  const [command, ...words] = typeof line === "string" ? line.split(" ") : line;
  const { complex, requests } = fakeComplex({ answer: refusing, ...options });
  return { ...(await runBody(BODIES[command as string] as CommandBody, words, complex)), requests };
}

// biome-ignore format: one row a case
const REQUESTS: readonly (readonly [line: string | readonly string[], request: unknown])[] = [
  ["qdel 1",                     { kind: "delete-job", job: "1.HOST" }],
  ["qdel -W dead 1.HOST",        { kind: "confirm-dead", names: ["1.HOST"], age_s: 0 }],
  ["qdel -W force -x 1.HOST",    { kind: "delete-job", job: "1.HOST", force: true, history: true }],
  ["qdel -W suppress_email=0 1", { kind: "delete-job", job: "1.HOST", suppressMail: true }],
  ["qdel 3[1-8:7]",              { kind: "delete-job", job: "3[1-8:7].HOST" }],
  ["qhold 1",                    { kind: "hold-job", job: "1.HOST", holds: "u" }],
  ["qhold -h os 1",              { kind: "hold-job", job: "1.HOST", holds: "os" }],
  ["qrls -hs 1",                 { kind: "release-job", job: "1.HOST", holds: "s" }],
  ["qmove q2@HOST 1",            { kind: "move-job", job: "1.HOST", destination: "q2@HOST" }],
  ["qorder 1 2",                 { kind: "order-job", job: "1.HOST", other: "2.HOST" }],
  ["qmsg hello 1",               { kind: "message-job", job: "1.HOST", files: "e", message: "hello" }],
  ["qmsg -E -O hello 1",         { kind: "message-job", job: "1.HOST", files: "eo", message: "hello" }],
  ["qsig 1",                     { kind: "signal-job", job: "1.HOST", signal: "SIGTERM" }],
  ["qsig -s 0 1",                { kind: "signal-job", job: "1.HOST", signal: "0" }],
  ["qrerun -Wforce 1",           { kind: "rerun-job", job: "1.HOST", force: true }],
  ["qrun 1",                     { kind: "run-job", job: "1.HOST" }],
  ["qrun -a -H (n1:ncpus=1) 1",  { kind: "run-job", job: "1.HOST", exec_vnode: "(n1:ncpus=1)", async: true }],
  ["qrun -H - 1",                { kind: "run-job", job: "1.HOST", exec_vnode: "-" }],
  ["qstop workq",                { kind: "manager", verb: "set", object: "queue", name: "workq", attrs: [{ name: "started", op: "=", value: "False" }] }],
  ["qstart workq@HOST",          { kind: "manager", verb: "set", object: "queue", name: "workq", attrs: [{ name: "started", op: "=", value: "True" }] }],
  ["qenable @HOST",              { kind: "manager", verb: "set", object: "queue", name: "", attrs: [{ name: "enabled", op: "=", value: "True" }] }],
  ["qdisable workq",             { kind: "manager", verb: "set", object: "queue", name: "workq", attrs: [{ name: "enabled", op: "=", value: "False" }] }],
  ["qterm",                      { kind: "shutdown", manner: "quick", scheds: false, moms: false }],
  ["qterm -t immediate -s -m",   { kind: "shutdown", manner: "immediate", scheds: true, moms: true }],
  ["qalter -h n 1",              { kind: "modify-job", job: "1.HOST", attrs: [{ name: "Hold_Types", op: "=", value: "n" }] }],
  ["qalter -o /tmp/o1 -l walltime=300 1", { kind: "modify-job", job: "1.HOST", attrs: [
    { name: "Output_Path", op: "=", value: "/tmp/o1" }, { name: "Resource_List", resource: "walltime", op: "=", value: "300" }] }],
  [["qalter", "-A", "", "1"],    { kind: "modify-job", job: "1.HOST", attrs: [{ name: "Account_Name", op: "=", value: "" }] }],
  ["qalter -W comment=hello,depend=afterok:2 1", { kind: "modify-job", job: "1.HOST", attrs: [
    { name: "comment", op: "=", value: "hello" }, { name: "depend", op: "=", value: "afterok:2.HOST@HOST" }] }],
  ["qalter 1",                   { kind: "modify-job", job: "1.HOST", attrs: [] }],
];

for (const [line, request] of REQUESTS) {
  test(`request of: ${typeof line === "string" ? line : line.join(" ")}`, async () => {
    const ran = await run(line);
    assert.deepEqual(ran.requests, [request]);
    assert.deepEqual([ran.text, ran.status], ["", 0]);
  });
}

// biome-ignore format: one row a case
const REFUSED: readonly (readonly [line: string, text: string, status: number])[] = [
  ["qdel 99999",            "qdel: Unknown Job Id 99999.HOST\n", 153],
  ["qdel 99999 4 35",       "qdel: Unknown Job Id 99999.HOST\nqdel: Job has finished 35.HOST\n", 35],
  ["qdel abc",              "qdel: illegally formed job identifier: abc\n", 1],
  ["qdel 3.other",          "qdel: illegally formed job identifier: 3.other\n", 1],
  ["qdel 99999 abc 7",      "qdel: Unknown Job Id 99999.HOST\nqdel: illegally formed job identifier: abc\nqdel: Unauthorized Request  7.HOST\n", 159],
  ["qdel 99999 1@nowhere 35", "qdel: Unknown Job Id 99999.HOST\nUnknown Host.\nqdel: Couldn't connect to cluster: HOST\nqdel: Job has finished 35.HOST\n", 35],
  ["qhold 35 1@nowhere",    "qhold: Job has finished\nUnknown Host.\nqhold: cannot connect to server HOST (errno=15008)\n", 160],
  ["qalter -N x 35",        "qalter: Job has finished\n", 35],
  ["qalter -N x 7",         "qalter: Unauthorized Request  7.HOST\n", 159],
  ["qhold 2 99999 4",       "qhold: Unknown Job Id 99999.HOST\n", 153],
  ["qrls 35",               "qrls: Job has finished\n", 35],
  ["qmove q2 16",           "qmove: Request invalid for state of job 16.HOST\n", 168],
  ["qmove a@b@c 1",         "qmove: illegally formed destination: a@b@c\n", 2],
  ["qorder 1 99999",        "qorder: Unknown Job Id 1.HOST or 99999.HOST\n", 153],
  ["qorder 35 1",           "qorder: Job has finished\n", 35],
  ["qsig 35",               "qsig: Job has finished\n", 35],
  ["qrerun 7",              "qrerun: Unauthorized Request  7.HOST\n", 159],
  ["qrun 7",                "qrun: Unauthorized Request  7.HOST\n", 2],
  ["qrun 35",               "qrun: Job has finished\n", 2],
  ["qstop nosuch",          "qstop: Unknown queue nosuch\n", 2],
  ["qstop -x",              "", 0],
  ["qstart nosuch workq",   "qstart: Unknown queue nosuch\n", 2],
  ["qenable workq@nowhere", "Unknown Host.\nqenable: could not connect to server nowhere (15008)\n", 2],
  ["qterm nosuchhost",      "Unknown Host.\nqterm: could not connect to server nosuchhost (15008)\n", 2],
  ["qterm -F",              "qterm: No support for requested service HOST\n", 2],
];

for (const [line, text, status] of REFUSED) {
  test(`refusal of: ${line}`, async () => {
    const ran = await run(line);
    assert.deepEqual([ran.text, ran.status], [text, status]);
  });
}

test("a refusal without text names the number", async () => {
  const ran = await run("qhold 1", { answer: () => ({ code: 15040, text: null }) });
  assert.deepEqual([ran.text, ran.status], ["qhold: Server returned error 15040 for job 1.HOST\n", 192]);
});

test("qrun names the vnodes it does not know and the text of a hook", async () => {
  assert.equal((await run("qrun -H nn 1", { answer: () => ({ code: 15062, text: "Unknown node " }) })).text, "qrun: Unknown node  nn\n");
  const long = `n${"m".repeat(300)}`;
  const cut = (await run(`qrun -H ${long} 1`, { answer: () => ({ code: 15062, text: "Unknown node " }) })).text;
  assert.equal(cut, `${`qrun: Unknown node  ${long}`.slice(0, 255)}...\n`);
  const hook = await run("qrun 1", { answer: () => ({ code: 15136, text: "no runs" }) });
  assert.deepEqual([hook.text, hook.status], ["qrun: Failed to run: no runs (15136) 1.HOST\n", 2]);
});

test("a destination that is none is told as such: qdisable and its kin with exit status 1, the others are done; qselect with 2", async () => {
  const answer = (): Answer => ({ code: 15018, text: "Unknown queue" });
  const malformed = "qdisable: illegally formed destination: a@b@c\n";
  const ran = await run("qdisable nosuch a@b@c", { answer });
  assert.deepEqual([ran.text, ran.status], [`qdisable: Unknown queue nosuch\n${malformed}`, 1]);
  const named = await run("qstart a@b@c nosuch@HOST", { answer });
  assert.deepEqual([named.text, named.status], ["qstart: illegally formed destination: a@b@c\nqstart: Unknown queue nosuch@HOST\n", 2]);
  const select = await run("qselect -q a@b@c", {});
  assert.deepEqual([select.text, select.status], ["qselect: illegally formed destination: a@b@c\n", 2]);
});

// biome-ignore format: one row a case
const USAGE: readonly (readonly [line: string, text: RegExp, status: number])[] = [
  ["qdel -W dead -x 1",    /^qdel: -W dead decides about the runner of a job and deletes nothing/, 2],
  ["qdel",                 /^usage:\n\tqdel \[-W force\|suppress_email=X\] \[-x\] job_identifier\.\.\.\n\tqdel --version\n$/, 2],
  ["qdel -W nosuch 1",     /^qdel: illegal -W value\nusage:\n/, 2],
  ["qalter",               /^usage: qalter \[-a date_time\]/, 2],
  ["qalter -p 5000 1",     /^qalter: illegal -p value\nusage: qalter/, 2],
  ["qalter -q workq 1",    /^qalter: invalid option -- 'q'\nusage: qalter/, 2],
  ["qalter -W depend= 1",  /^qalter: illegal -W value\nusage: qalter/, 2],
  ["qhold -h x 1",         /^qhold: illegal -h value\nusage: qhold \[-h hold_list\] job_identifier\.\.\.\n {7}qhold --version\n$/, 2],
  ["qmove",                /^usage: qmove destination job_identifier\.\.\.\n/, 2],
  ["qorder 1",             /^usage: qorder job_identifier job_identifier\n {7}qorder --version\n$/, 2],
  ["qmsg hello",           /^usage: qmsg \[-O\] \[-E\] msg_string job_identifier\.\.\.\n {7}qmsg --version\n$/, 2],
  ["qsig",                 /^usage: qsig \[-s signal\] job_identifier\.\.\.\n/, 2],
  ["qrerun -W x 1",        /^qrerun: illegal -W value\nusage: qrerun/, 2],
  ["qrun",                 /^Usage: qrun \[-a\] \[-H vnode_specification \] job_identifier_list\n/, 1],
  ["qrun -x 1",            /^qrun: invalid option -- 'x'\nUsage: qrun/, 1],
  ["qstop",                /^Usage: qstop \[queue\]\[@server\] \.\.\.\n {7}qstop --version\n$/, 1],
  ["qterm -t slow",        /^Usage: qterm \[-t immediate\|delay\|\[quick\]\] \[-m\] \[-s\] \[-f\|-i\] \[server \.\.\.\]\n {7}qterm --version\n$/, 1],
  ["qterm -x",             /^qterm: invalid option -- 'x'\nUsage: qterm/, 1],
  ["qselect -s A",         /^qselect: illegal -s value\nusage: qselect/, 2],
  ["qselect -l ncpus=2",   /^qselect: illegal -l value\nresource_list: ncpus=2\nusage: qselect \[-a \[op\]date_time\]/, 2],
  ["qselect -Z",           /^qselect: invalid option -- 'Z'\nusage: qselect/, 2],
  ["qselect 1",            /^usage: qselect/, 2],
];

for (const [line, text, status] of USAGE) {
  test(`usage of: ${line}`, async () => {
    const ran = await run(line);
    assert.match(ran.err, text);
    assert.deepEqual([ran.out, ran.status, ran.requests.length], ["", status, 0]);
  });
}

// biome-ignore format: one row a case
const SELECTIONS: readonly (readonly [line: string, request: object])[] = [
  ["qselect",                         { criteria: [] }],
  ["qselect -s QW",                   { states: "QW", criteria: [] }],
  ["qselect -N alpha -u pbsuser1",    { criteria: [{ name: "Job_Name", op: "eq", value: "alpha" }, { name: "User_List", op: "eq", value: "pbsuser1" }] }],
  ["qselect -p.gt.-6",                { criteria: [{ name: "Priority", op: "gt", value: "-6" }] }],
  ["qselect -p 5",                    { criteria: [{ name: "Priority", op: "eq", value: "5" }] }],
  ["qselect -p .lt.0",                { criteria: [{ name: "Priority", op: "lt", value: "0" }] }],
  ["qselect -l ncpus.ge.4,mem.lt.1gb", { criteria: [
    { name: "Resource_List", resource: "ncpus", op: "ge", value: "4" }, { name: "Resource_List", resource: "mem", op: "lt", value: "1gb" }] }],
  ["qselect -r n -c n -h u",          { criteria: [
    { name: "Rerunable", op: "eq", value: "False" }, { name: "Checkpoint", op: "eq", value: "n" }, { name: "Hold_Types", op: "eq", value: "u" }] }],
  ["qselect -tc.gt.202001010000",     { criteria: [{ name: "ctime", op: "gt", value: "1577836800" }] }],
  ["qselect -tt.lt.202001010000",     { criteria: [{ name: "estimated", op: "lt", value: "1577836800", resource: "start_time" }] }],
  ["qselect -tg.ge.01:00:00",         { criteria: [{ name: "eligible_time", op: "ge", value: "01:00:00" }] }],
  ["qselect -J -T -x -q q2",          { arraysOnly: true, subjobs: true, history: "with", destination: "q2", criteria: [] }],
  ["qselect -xH",                     { history: "only", criteria: [] }],
];

for (const [line, request] of SELECTIONS) {
  test(`selection of: ${line}`, async () => {
    const ran = await run(line, { answer: () => ({ value: ["1.HOST", "2.HOST"] }) });
    assert.deepEqual(ran.requests, [{ kind: "select-jobs", ...request }]);
    assert.deepEqual([ran.text, ran.status], ["1.HOST\n2.HOST\n", 0]);
  });
}

test("qselect prints nothing for no jobs and tells refusals without names", async () => {
  assert.deepEqual([(await run("qselect", { answer: () => ({ value: [] }) })).text], [""]);
  const queue = await run("qselect -q nosuch", { answer: () => ({ code: 15018, text: "Unknown queue" }) });
  assert.deepEqual([queue.text, queue.status], ["qselect: Unknown queue destination\n", 170]);
  const value = await run("qselect -p x", { answer: () => ({ code: 15014, text: "Illegal attribute or resource value" }) });
  assert.deepEqual([value.text, value.status], ["qselect: Illegal attribute or resource value\n", 166]);
});

test("an unreachable server is told by every command in its words", async () => {
  const down = new ServerUnreachable("Connection refused", 15010);
  // biome-ignore format: one row a case
  const rows = [
    ["qdel 1", "Connection refused\nqdel: Couldn't connect to cluster: HOST\n", 162],
    ["qhold 1", "Connection refused\nqhold: cannot connect to server HOST (errno=15010)\n", 162],
    ["qstop q", "Connection refused\nqstop: could not connect to server HOST (15010)\n", 2],
    ["qterm", "Connection refused\nqterm: could not connect to server HOST (15010)\n", 2],
    ["qselect", "Connection refused\nqselect: cannot connect to server HOST (errno=15010)\n", 162],
  ] as const;
  for (const [line, text, status] of rows) {
    const ran = await run(line, { down });
    assert.deepEqual([ran.text, ran.status], [text, status], line);
  }
});

test("many operands: every one is asked and answered in order", async () => {
  const ids = Array.from({ length: 1000 }, (_, index) => String(index + 1));
  const ran = await run(["qdel", ...ids], { answer: refusing });
  assert.equal(ran.requests.length, 1000);
  const refused = ids.filter((id) => /^(?:9|35|7|16)/.test(id));
  assert.deepEqual(
    ran.err
      .split("\n")
      .slice(0, -1)
      .map((line) => / (\d+)\.HOST$/.exec(line)?.[1]),
    refused,
  );
  assert.equal(ran.requests.filter((request) => request.kind === "delete-job" && request.suppressMail).length, 0);
});

test("--version and --help are answered without a server", async () => {
  assert.deepEqual(await runCommand(qenableCommand, ["--VERSION"]).then(({ text, status }) => [text, status]), [
    "pbs_version = 23.06.06\n",
    0,
  ]);
  assert.deepEqual(await runCommand(qenableCommand, ["--help"]).then(({ out, status }) => [out, status]), [
    "Usage: qenable [queue][@server] ...\n       qenable --version\n",
    0,
  ]);
});

// tracejob, pbs_hostn, pbs_dataservice, pbsfs and printjob: texts recorded from a real PBS.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import { pbsDataservice } from "#cli/commands/complex/pbs_dataservice.ts";
import { type NameService, pbsHostn } from "#cli/commands/nodes/pbs_hostn.ts";
import { pbsfs } from "#cli/commands/status/pbsfs.ts";
import { printjob } from "#cli/commands/status/printjob.ts";
import { tracejob } from "#cli/commands/status/tracejob.ts";
import { inOrder, type LogRecord, layOut, recordsOf, withoutExcess } from "#cli/tracejob/records.ts";
import type { StoredUsage } from "#model/fairshare.ts";
import { parseUsage, usageText } from "#model/usage-file.ts";
import { ServerUnreachable } from "#protocol/client.ts";
import { type FakeOptions, fakeComplex, runBody } from "./fake-complex.ts";

process.env["TZ"] = "UTC";
const HOME = mkdtempSync(join(tmpdir(), "partita-tools-"));
after(() => rmSync(HOME, { recursive: true }));
const NOW_MS = Date.UTC(2026, 10, 20, 9, 26, 28);

const file = (path: string, text: string | Uint8Array): void => {
  mkdirSync(join(HOME, path, ".."), { recursive: true });
  writeFileSync(join(HOME, path), text);
};
file(
  "server_logs/20261120",
  [
    "11/20/2026 09:26:28.000100;0100;Server@HOST;Job;1.HOST;enqueuing into workq, state Q hop 1",
    "11/20/2026 09:26:28.000200;0008;Server@HOST;Job;1.HOST;Job Queued at request of a@HOST; more",
    "11/20/2026 09:26:28.000300;0008;Server@HOST;Job;11.HOST;another job",
    "11/20/2026 09:26:28.900000;0008;Server@HOST;Job;1.HOST;Job Run at request of Scheduler@HOST",
    "11/20/2026 09:26:32.000000;0010;Server@HOST;Job;1.HOST;Exit_status=0",
    "11/20/2026 09:26:33.000000;0008;Server@HOST;Svr;Server@HOST;text that names ;1.HOST; inside",
    "",
  ].join("\n"),
);
file("sched_logs_s1/20261120", "11/20/2026 09:26:28.500000;0040;pbs_sched;Job;1.HOST;Job run\n");
file("sched_logs/20261119", "11/19/2026 09:00:00.000000;0080;pbs_sched;Job;1.HOST;Considering job to run\n");
file("server_priv/accounting/20261120", "11/20/2026 09:26:28;Q;1.HOST;user=a group=g \n11/20/2026 09:26:32;E;1.HOST;user=a end=1\n");

async function trace(...argv: string[]) {
  return runBody(tracejob, argv, fakeComplex({ home: HOME, now_ms: NOW_MS }).complex);
}

const HEAD = "\nJob: 1.HOST\n\n";
const S = [
  "11/20/2026 09:26:28.000100  S    enqueuing into workq, state Q hop 1\n",
  "11/20/2026 09:26:28.000200  S    Job Queued at request of a@HOST; more\n",
  "11/20/2026 09:26:28.900000  S    Job Run at request of Scheduler@HOST\n",
  "11/20/2026 09:26:32.000000  S    Exit_status=0\n",
] as const;
const L = "11/20/2026 09:26:28.500000  L    Job run\n";
const A = ["11/20/2026 09:26:28         A    user=a group=g \n", "11/20/2026 09:26:32         A    user=a end=1\n"] as const;

// biome-ignore format: one row a case
const TRACES: readonly (readonly [words: string, text: string, status: number])[] = [
  ["-w 900 1",       HEAD + S[0] + S[1] + L + S[2] + A[0] + S[3] + A[1], 0],
  ["-a 1.HOST",      HEAD + S[0] + S[1] + L + S[2] + S[3], 0],
  ["-sl 1",          `${HEAD}11/20/2026 09:26:28         A    user=a group=g \n11/20/2026 09:26:32         A    user=a end=1\n`, 0],
  ["-al -f debug2 1", HEAD + S[1] + S[2] + S[3], 0],
  ["-al -f 0x18 1",  HEAD + S[0], 0],
  ["-as -n 2 1",     `${HEAD}11/19/2026 09:00:00.000000  L    Considering job to run\n${L}`, 0],
  ["99999",          "\ntracejob: Couldn't find Job Id 99999.HOST in logs of past 1 day\n\n", 1],
  ["-n 2 99999",     "\ntracejob: Couldn't find Job Id 99999.HOST in logs of past 2 days\n\n", 1],
  ["abc",            "tracejob: illegally formed job identifier: abc\n", 1],
];

for (const [words, text, status] of TRACES) {
  test(`tracejob ${words}`, async () => {
    const ran = await trace(...words.split(" "));
    assert.deepEqual([ran.text, ran.status], [text, status]);
  });
}

test("tracejob reads what the schedulers' logger has rotated and compressed", async () => {
  const line = (time: string, text: string): string => `11/19/2026 ${time}.000000;0080;pbs_sched;Job;7.HOST;${text}\n`;
  file("sched_logs/20261118.gz", gzipSync(line("01:00:00", "before")));
  file("sched_logs_s1/20261119.1.gz", gzipSync(line("02:00:00", "first")));
  file("sched_logs_s1/20261119.2", line("03:00:00", "second"));
  const shown = (text: string): string[] => [...text.matchAll(/ L +(\w+)$/gm)].map(([, word]) => word ?? "");
  assert.deepEqual(shown((await trace("-n", "2", "7")).text), ["first", "second"]);
  assert.deepEqual(shown((await trace("-n", "3", "7")).text), ["before", "first", "second"]);
});

test("tracejob without operand shows its usage with the place of the logs", async () => {
  const ran = await trace();
  assert.match(ran.text, /^USAGE: tracejob \[-a\|s\|l\|m\|v\] \[-w size\]/);
  assert.ok(ran.text.endsWith(`default prefix path = ${HOME}\nfilter_excessive: ON\n`));
  assert.equal(ran.status, 1);
  assert.match((await trace("-w", "x", "1")).text, /^USAGE/);
});

const record = (text: string, date = "11/20/2026 09:26:28"): LogRecord => ({ source: "S", date, event: 8, text });

test("messages that come too often are shown once, long ones wrapped below themselves", () => {
  const many = [record("a"), record("b"), record("a"), record("a")];
  assert.deepEqual(
    withoutExcess(many, 2).map(({ text }) => text),
    ["b", "a"],
  );
  assert.deepEqual(
    withoutExcess(many, 3).map(({ text }) => text),
    ["a", "b", "a", "a"],
  );
  assert.equal(
    layOut(record("one two three four five six seven"), 46, false),
    "11/20/2026 09:26:28  S    one two three four\n                          five six seven\n",
  );
  assert.equal(layOut(record("x".repeat(25)), 46, false).split("\n")[1], `${" ".repeat(26)}xxxxx`);
});

test("lines sort by year, not by month; a file is searched line by line", () => {
  const order = inOrder([record("new", "01/01/2027 00:00:00"), record("old", "12/31/2026 23:59:59")]);
  assert.deepEqual(
    order.map(({ text }) => text),
    ["old", "new"],
  );
  assert.deepEqual(recordsOf(Buffer.from(";1.s;\nbroken;1.s;line"), "S", "1.s"), []);
});

const NAMES: NameService = {
  addressesOf: async (name) =>
    name === "HOST" ? ["10.99.21.1", "192.168.100.1"] : Promise.reject(Object.assign(new Error("no"), { code: "ENOTFOUND" })),
  nameOf: async () => "localhost",
};

test("pbs_hostn as recorded", async () => {
  const run = (...argv: string[]) => runBody((io) => pbsHostn(io, null, NAMES), argv, fakeComplex().complex);
  assert.equal((await run("HOST")).text, "HOST\n");
  assert.equal(
    (await run("-v", "HOST")).text,
    "primary name: HOST (from gethostbyname())\naliases:            -none-\n     address length:  4 bytes\n" +
      "     address:           10.99.21.1   (18178826 dec)  name:  HOST\n" +
      "     address:           192.168.100.1 (23374016 dec)  name:  HOST\n",
  );
  const unknown = await run("no.such.host");
  assert.deepEqual([unknown.text, unknown.status], ["no name entry found for no.such.host\n ** h_errno is 2 Try Again\n", 0]);
  const usage = await run();
  assert.deepEqual(
    [usage.text, usage.status],
    ["Usage: pbs_hostn [-v] hostname\n\t -v turns on verbose output\n       pbs_hostn --version\n", 1],
  );
});

test("pbs_dataservice: the server is the service", async () => {
  const down = new ServerUnreachable("Connection refused", 15010);
  // biome-ignore format: a table
  const rows: readonly (readonly [verb: string, options: FakeOptions, text: string, status: number])[] = [
    ["status", {},       "PBS Data Service running\n",     0],
    ["status", { down }, "PBS Data Service not running\n", 1],
    ["start",  {},       "PBS Data Service running\n",     0],
    ["start",  { down }, "PBS Data Service not running\npbs_dataservice: pbs_server keeps the data itself: start pbs_server\n", 1],
    ["stop",   {},       "PBS Data Service running\npbs_dataservice: pbs_server keeps the data itself: qterm stops it\n", 1],
    ["stop",   { down }, "PBS Data Service not running\n", 0],
    ["status", { mode: "system", uid: 1000 }, "pbs_dataservice: Must be run by root\n", 1],
    ["reload", {},       "usage: pbs_dataservice start|stop|status\n       pbs_dataservice --version\n", 1],
  ];
  for (const [verb, options, text, status] of rows) {
    const ran = await runBody(pbsDataservice, [verb], fakeComplex(options).complex);
    assert.deepEqual([ran.text, ran.status], [text, status], verb);
  }
});

const TREE = `Fairshare usage units are in: cput
TREEROOT  : Grp: -1     cgrp: 0    Shares: -1     Usage: 1      Perc: 100.000%
unknown   : Grp: 0      cgrp: 1    Shares: 0      Usage: 1      Perc:  0.000%
`;

test("pbsfs shows the tree of a scheduler without shares", async () => {
  mkdirSync(join(HOME, "sched_priv"), { recursive: true });
  const run = (argv: string[], options: FakeOptions = {}) => runBody(pbsfs, argv, fakeComplex({ home: HOME, ...options }).complex);
  assert.equal((await run(["-z"])).text, `pbsfs: invalid option -- 'z'\nCreating usage database for fairshare.\n${TREE}`);
  writeFileSync(join(HOME, "sched_priv", "usage"), usageText({ last_decay_s: 0, usage: {}, running: {} }));
  assert.deepEqual([(await run([])).text, (await run([])).status], [TREE, 0]);
  assert.equal((await run(["-t"])).text, " TREEROOT(0)\n     unknown(1)\n");
  const missing = await run(["-g", "nosuch"]);
  assert.deepEqual([missing.text, missing.status], ["Fairshare Entity nosuch does not exist.\n", 1]);
  assert.equal((await run(["-s", "x"])).text, "Usage: pbsfs [-I sched_name] -s <fairshare_entity> <usage>\n");
  const answer = () => ({ items: [{ id: "nosuch", code: 15213, text: "Unknown Scheduler" }] });
  const sched = await run(["-I", "nosuch"], { answer });
  assert.deepEqual([sched.text, sched.status], ["Scheduler nosuch does not exist\n", 1]);
  assert.equal(
    (await run(["-I", "s1"], { answer: () => ({ items: [{ id: "s1", attrs: { sched_priv: join(HOME, "gone") } }] }) })).text,
    "Unable to access fairshare data: No such file or directory\n",
  );
});

test("pbsfs shows and changes usage (sched-fairshare-pbsfs)", async () => {
  const priv = join(HOME, "priv-fs");
  mkdirSync(priv);
  const put = (name: string, text: string): void => writeFileSync(join(priv, name), text);
  put("resource_group", "grpA 10 root 60\ngrpB 11 root 40\nu1 20 grpA 50\nu2 21 grpA 50\nu3 22 grpB 100\n");
  put("sched_config", 'fair_share: True ALL\nunknown_shares: 1\nunknown_shares: 10\nfairshare_usage_res: "ncpus*walltime"\n');
  const answer = () => ({ items: [{ id: "fs", attrs: { sched_priv: priv } }] });
  const run = async (...argv: string[]) => {
    const { text, status } = await runBody(pbsfs, ["-I", "fs", ...argv], fakeComplex({ home: HOME, answer }).complex);
    return status === 0 ? text : `${text}[${status}]`;
  };
  assert.equal(
    await run("-s", "u1", "100"),
    "Creating usage database for fairshare.\nCould not backup usage database.: No such file or directory\n",
  );
  assert.ok(existsSync(join(priv, "usage.touch")));
  assert.equal(await run("-s", "u3", "20"), "");
  assert.match(readFileSync(join(priv, "usage.bak"), "utf8"), /"u1": 100\n/);
  const line = (name: string, cells: string): string => `${name.padEnd(10)}: ${cells}\n`;
  assert.equal(
    await run(),
    `Fairshare usage units are in: ncpus*walltime\n${[
      line("TREEROOT", "Grp: -1     cgrp: 0    Shares: -1     Usage: 121    Perc: 100.000%"),
      line("grpB", "Grp: 0      cgrp: 11   Shares: 40     Usage: 21     Perc: 36.364%"),
      line("u3", "Grp: 11     cgrp: 22   Shares: 100    Usage: 20     Perc: 36.364%"),
      line("grpA", "Grp: 0      cgrp: 10   Shares: 60     Usage: 101    Perc: 54.545%"),
      line("u2", "Grp: 10     cgrp: 21   Shares: 50     Usage: 1      Perc: 27.273%"),
      line("u1", "Grp: 10     cgrp: 20   Shares: 50     Usage: 100    Perc: 27.273%"),
      line("unknown", "Grp: 0      cgrp: 1    Shares: 10     Usage: 1      Perc:  9.091%"),
    ].join("")}`,
  );
  assert.equal(
    await run("-t"),
    " TREEROOT(0)\n     grpB(11)\n          u3(22)\n     grpA(10)\n          u2(21)\n          u1(20)\n     unknown(1)\n",
  );
  const entity = await run("-g", "u1");
  assert.match(entity, /^fairshare_tree_usage\t: 0\.830579\nusage\t\t\t: 100 \(ncpus\*walltime\)\nusage\/perc\t\t: 367$/m);
  assert.match(entity, /^Percentage\t\t: 27\.272728%$/m);
  assert.match(entity, /^grpA {6}: {4}10 {8}101 \/ 0\.545 = 185$/m);
  assert.deepEqual([await run("-c", "u1", "u3"), await run("-c", "u2", "u3"), await run("-c", "u2", "u2")], ["u3\n", "u3\n", "u2 == u2\n"]);
  assert.equal(await run("-s", "u1", "much"), "Usage: pbsfs [-I sched_name] -s <fairshare_entity> <usage>\n[1]");
  assert.deepEqual([await run("-s", "grpA", "5"), await run("-d")], ["", ""]);
  assert.match(await run(), /^u1 .* Usage: 50 .*$/m);
  const decayed = parseUsage(readFileSync(join(priv, "usage"), "utf8")) as StoredUsage;
  assert.deepEqual(decayed.usage, { u1: 50, u3: 10 });
  put("usage", usageText({ ...decayed, usage: { ...decayed.usage, stranger: 7 }, running: { "5.svr": { run: 1, amount: 3 } } }));
  assert.match(await run(), /^stranger {2}: Grp: 1 .* Usage: 7 /m);
  assert.equal(await run("-e"), "");
  const kept = parseUsage(readFileSync(join(priv, "usage"), "utf8")) as StoredUsage;
  assert.deepEqual([kept.usage, kept.running], [{ u1: 50, u3: 10 }, { "5.svr": { run: 1, amount: 3 } }]);
  put("usage", "PBS_MAG!...");
  assert.equal(await run("-d"), `pbsfs: ${join(priv, "usage")} cannot be read: it was written by another PBS\n[1]`);
  assert.equal(readFileSync(join(priv, "usage"), "utf8"), "PBS_MAG!...", "what cannot be read is not touched");
});

test("printjob shows what the server keeps, and who is not there", async () => {
  const job = {
    id: "1.HOST",
    attrs: { Job_Name: "a", job_state: "R", substate: "42", stime: "1795166788", queue: "workq", Resource_List: { ncpus: "1" } },
  };
  const answer: FakeOptions["answer"] = (request) =>
    "ids" in request && request.ids[0] === "1.HOST" ? { items: [job] } : { items: [{ id: "9.HOST", code: 15001, text: "Unknown Job Id" }] };
  const run = (...argv: string[]) => runBody(printjob, argv, fakeComplex({ home: HOME, answer }).complex);
  const all = await run("1");
  assert.match(all.out, /^-{51}\njobid:\t1\.HOST\n-{51}\nstate:\t\t0x4\nsubstate:\t0x2a \(42\)\n/);
  assert.ok(
    all.out.endsWith(
      "--attributes--\nJob_Name = a\njob_state = R\nsubstate = 42\nstime = 1795166788\nqueue = workq\nResource_List.ncpus = 1\n\n",
    ),
  );
  assert.match((await run("-a", "1.HOST")).out, /^--attributes--\n/);
  const gone = await run("9");
  assert.deepEqual([gone.err, gone.status], ["Job 9.HOST not found\n", 1]);
  file("mom_priv/jobs/1.HOST.SC", "date\n");
  assert.match((await run("-s", "1")).out, /\nJobscript for jobid:1\.HOST\n-{51}\n\ndate\n\n$/);
  assert.equal((await run()).status, 1);
});

test("in system mode pbsfs and printjob are for root", async () => {
  const ordinary = fakeComplex({ home: HOME, mode: "system", uid: 1000 }).complex;
  assert.deepEqual(
    (await runBody(pbsfs, [], ordinary)).text,
    "pbsfs: Must be run by PBS_DAEMON_SERVICE_USER if set or root if not set\n: Success\n",
  );
  assert.deepEqual((await runBody(printjob, ["1"], ordinary)).text, "printjob must be run by root\n");
  assert.equal((await runBody(pbsfs, [], fakeComplex({ home: HOME, mode: "system", uid: 0 }).complex)).status, 0);
});

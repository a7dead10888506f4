// qsub: its own refusals, its requests, directives, variables, batches. The texts are those of a real PBS.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { qsub } from "#cli/commands/jobs/qsub.ts";
import { outputPath } from "#cli/output-paths.ts";
import { QSUB_USAGE } from "#cli/qsub/job.ts";
import { readDirectives } from "#cli/qsub/script.ts";
import { namedVariables } from "#cli/qsub/variables.ts";
import { markedScript } from "#model/script-text.ts";
import { ServerUnreachable } from "#protocol/client.ts";
import type { QueueJobRequest, QueueJobsRequest, Request } from "#protocol/messages.ts";
import { type Answer, type FakeOptions, fakeComplex, type Ran, type RunOptions, runBody } from "./fake-complex.ts";

process.env["TZ"] = "UTC";
const DIRECTORY = mkdtempSync(join(tmpdir(), "partita-qsub-"));
after(() => rmSync(DIRECTORY, { recursive: true }));
const file = (name: string, text: string): string => {
  writeFileSync(join(DIRECTORY, name), text);
  return name;
};
const ENV = { HOME: "/home/pbsuser1", LOGNAME: "pbsuser1", PATH: "/bin", SHELL: "/bin/bash" };

/** A server that accepts every job and numbers the jobs. */
function taking(defaults = ""): (request: Request) => Answer {
  let next = 1;
  return (request) => {
    switch (request.kind) {
      case "status":
        return { items: [{ id: "HOST", attrs: defaults === "" ? {} : { default_qsub_arguments: defaults } }] };
      case "queue-job":
        return { value: { id: `${next++}.HOST` } };
      case "queue-jobs":
        return {
          value: {
            results: request.jobs.map((job) =>
              job.destination === "nosuch" ? { code: 15018, text: "Unknown queue" } : { id: `${next++}.HOST` },
            ),
          },
        };
      default:
        return { code: 15005, text: "Unknown request" };
    }
  };
}

async function submit(
  words: readonly string[],
  options: FakeOptions & RunOptions = {},
): Promise<Ran & { requests: Request[]; sent: Record<string, string>; job: QueueJobRequest | undefined }> {
  const { complex, requests } = fakeComplex({ answer: taking(), ...options });
  const ran = await runBody(qsub, words, complex, { cwd: DIRECTORY, env: ENV, ...options });
  const job = requests.find((request): request is QueueJobRequest => request.kind === "queue-job");
  const sent = Object.fromEntries(
    (job?.attrs ?? []).map(({ name, resource, value }) => [resource === undefined ? name : `${name}.${resource}`, value]),
  );
  return { ...ran, requests, sent, job };
}

const EXE = ["--", "/bin/true"];

// biome-ignore format: one row a case
const USAGE_FAULTS: readonly (readonly [words: readonly string[], line: string])[] = [
  [["-N", "a/b", ...EXE],                 "qsub: illegal -N value"],
  [["-N", "", ...EXE],                    "qsub: illegal -N value"],
  [["-N", "a b", ...EXE],                 "qsub: illegal -N value"],
  [["-N", "tab\tx", ...EXE],              "qsub: illegal -N value"],
  [["-N", "a".repeat(231), ...EXE],       "qsub: Job name is too long "],
  [["-p", "1024", ...EXE],                "qsub: illegal -p value"],
  [["-p", "-1025", ...EXE],               "qsub: illegal -p value"],
  [["-p", "x", ...EXE],                   "qsub: illegal -p value"],
  [["-r", "maybe", ...EXE],               "qsub: illegal -r value"],
  [["-r", "Y", ...EXE],                   "qsub: illegal -r value"],
  [["-j", "oo", ...EXE],                  "qsub: illegal -j value"],
  [["-j", "oe", "-j", "x", ...EXE],       "qsub: illegal -j value"],
  [["-k", "x", ...EXE],                   "qsub: illegal -k value"],
  [["-k", "d", ...EXE],                   "qsub: illegal -k value"],
  [["-R", "x", ...EXE],                   "qsub: illegal -R value"],
  [["-c", "u", ...EXE],                   "qsub: illegal -c value"],
  [["-c", "zz", ...EXE],                  "qsub: illegal -c value"],
  [["-a", "1399", ...EXE],                "qsub: illegal -a value"],
  [["-a", "tomorrow", ...EXE],            "qsub: illegal -a value"],
  [["-m", "q", ...EXE],                   "qsub: illegal -m value"],
  [["-m", "an", ...EXE],                  "qsub: illegal -m value"],
  [["-m", "j", ...EXE],                   "qsub: mail option 'j' can not be used without array job"],
  [["-l", "=4", ...EXE],                  "qsub: illegal -l value"],
  [["-W", "nosuch", ...EXE],              "qsub: illegal -W value"],
  [["-W", "umask=022,", ...EXE],          "qsub: illegal -W value"],
  [["-W", "depend=sometime:1", ...EXE],   "qsub: illegal -W value"],
  [["-W", "depend=afterok:abc", ...EXE],  "qsub: illegal -W value"],
  [["-W", "block=maybe", ...EXE],         "qsub: illegal -W value"],
  [["-W", "sandbox=BOX", ...EXE],         "qsub: illegal -W value"],
  [["-W", "stagein=abc", ...EXE],         "qsub: illegal -W value"],
  [["-J", "5-3", ...EXE],                 "qsub: illegal -J value"],
  [["-J", "x", ...EXE],                   "qsub: illegal -J value"],
  [["-J", "5", ...EXE],                   "qsub: illegal -J value"],
  [["-J", "0-3:0", ...EXE],               "qsub: illegal -J value"],
  [["-J", "-1-3", ...EXE],                "qsub: illegal -J value"],
  [["-J", "1-3", "-r", "n", ...EXE],      "qsub:  cannot submit non-rerunable Array Job"],
  [["-J", "1-3%2", "-W", "max_run_subjobs=3", ...EXE], "qsub: multiple max_run_subjobs values found"],
  [["-S", "/bin/sh,/bin/bash", ...EXE],   "qsub: illegal -S value"],
  [["-u", "root,root", ...EXE],           "qsub: illegal -u value"],
  [["-M", "", ...EXE],                    "qsub: illegal -M value"],
  [["-o", "", ...EXE],                    "qsub: illegal -o value"],
  [["-Z"],                                "qsub: invalid option -- 'Z'"],
  [["-q"],                                "qsub: option requires an argument -- 'q'"],
  [["--"],                                "usage: qsub [-a date_time] [-A account_string] [-c interval]"],
  [["ok.sh", "ok.sh"],                    "usage: qsub [-a date_time] [-A account_string] [-c interval]"],
];

for (const [words, line] of USAGE_FAULTS) {
  test(`qsub refuses with usage: ${JSON.stringify(words).slice(0, 60)}`, async () => {
    const ran = await submit(words);
    assert.equal(ran.err.split("\n")[0], line);
    assert.ok(ran.err.endsWith(QSUB_USAGE));
    assert.equal(ran.out, "");
    assert.equal(ran.status, 2);
    assert.equal(ran.requests.length, 0);
  });
}

test("a fault inside -l is pointed at", async () => {
  const ran = await submit(["-l", "ncpus=1,=4", ...EXE]);
  assert.equal(ran.err, `qsub: illegal -l value\nncpus=1,=4\n        ^\n${QSUB_USAGE}`);
});

// biome-ignore format: one row a case
const OTHER_FAULTS: readonly (readonly [words: readonly string[], err: string, status: number])[] = [
  [["nosuchfile"],                 "qsub: script file:: No such file or directory\n", 1],
  [["/tmp"],                       "qsub: script not a file\n", 1],
  [["-I"],                         "qsub:\tstandard input and output must be a terminal for\n\tinteractive job submission\n", 1],
  [["-I", "-J", "1-3"],            "qsub:\tstandard input and output must be a terminal for\n\tinteractive job submission\n", 1],
  [["-W", "interactive=true"],     "qsub:\tstandard input and output must be a terminal for\n\tinteractive job submission\n", 1],
  [["-X", ...EXE],                 "qsub: DISPLAY not set\n", 1],
  [["-v", "NOSUCHVAR", ...EXE],    "qsub: cannot send environment with the job\n", 1],
  [["-q", "a@b@c", ...EXE],        "qsub: illegally formed destination: a@b@c\n", 2],
  [["-q", "q@nosuchhost", ...EXE], "Unknown Host.\nqsub: cannot connect to server HOST (errno=15008)\n", 160],
];

for (const [words, err, status] of OTHER_FAULTS) {
  test(`qsub fails: ${words.join(" ")}`, async () => {
    const ran = await submit(words);
    assert.deepEqual([ran.text, ran.status], [err, status]);
  });
}

test("an unreachable server is told after mistakes of the user", async () => {
  const down = new ServerUnreachable("Connection refused", 15010);
  assert.match((await submit(["-p", "x", ...EXE], { down })).err, /^qsub: illegal -p value/);
  const ran = await submit(EXE, { down });
  assert.deepEqual([ran.text, ran.status], ["Connection refused\nqsub: cannot connect to server HOST (errno=15010)\n", 162]);
});

// biome-ignore format: one row a case
const REFUSALS: readonly (readonly [code: number, text: string | null, err: string, status: number])[] = [
  [15018, "Unknown queue",                                "qsub: Unknown queue\n", 170],
  [15007, "Unauthorized Request ",                        "qsub: Unauthorized Request \n", 159],
  [15014, "Illegal attribute or resource value select.ncpus", "qsub: Illegal attribute or resource value select.ncpus\n", 166],
  [15107, "Array job exceeds server or queue size limit", "qsub: Array job exceeds server or queue size limit\n", 3],
  [15002, "Undefined attribute ",                         "qsub: Error (15002) submitting job\n", 154],
];

for (const [code, text, err, status] of REFUSALS) {
  test(`qsub tells the server's refusal ${code}`, async () => {
    const ran = await submit(EXE, { answer: (request) => (request.kind === "queue-job" ? { code, text } : { items: [] }) });
    assert.deepEqual([ran.text, ran.status], [err, status]);
  });
}

test("a job by its program: attributes as the server takes them", async () => {
  const ran = await submit([
    "-h",
    "-m",
    "abe",
    "-M",
    "x@y.z",
    "-S",
    "/bin/sh",
    "-u",
    "pbsuser1",
    "-r",
    "n",
    "-c",
    "c=5",
    "-k",
    "doe",
    "-A",
    "my acct",
    "-P",
    "p1",
    "-p",
    "-1024",
    "-W",
    "umask=027,group_list=g,run_count=3,sandbox=home",
    "-R",
    "oe",
    "-j",
    "oe",
    "-l",
    "select=1:ncpus=2,walltime=60",
    "-l",
    "place=free:excl",
    "-a",
    "203001010000",
    "-q",
    "workq@HOST",
    "--",
    "/bin/sleep",
    `1 "<2>'&`,
    "3",
  ]);
  assert.deepEqual([ran.text, ran.status], ["1.HOST\n", 0]);
  const { Variable_List: _, Submit_arguments: args, ...sent } = ran.sent;
  assert.deepEqual(sent, {
    Job_Name: "STDIN",
    Hold_Types: "u",
    Mail_Points: "abe",
    Mail_Users: "x@y.z",
    Shell_Path_List: "/bin/sh",
    User_List: "pbsuser1",
    Rerunable: "False",
    Checkpoint: "c=5",
    Keep_Files: "doe",
    Account_Name: "my acct",
    project: "p1",
    Priority: "-1024",
    umask: "027",
    group_list: "g",
    run_count: "3",
    sandbox: "HOME",
    Remove_Files: "oe",
    Join_Path: "oe",
    "Resource_List.select": "1:ncpus=2",
    "Resource_List.walltime": "60",
    "Resource_List.place": "free:excl",
    Execution_Time: "1893456000",
    executable: "<jsdl-hpcpa:Executable>/bin/sleep</jsdl-hpcpa:Executable>",
    argument_list: "<jsdl-hpcpa:Argument>1 &quot;&lt;2&gt;'&amp;</jsdl-hpcpa:Argument><jsdl-hpcpa:Argument>3</jsdl-hpcpa:Argument>",
  });
  assert.match(args as string, /^-h -m abe .* -- \/bin\/sleep 1 "<2>'& 3$/);
  assert.equal(ran.job?.destination, "workq");
  assert.equal(ran.job?.script, null);
});

test("-z prints no id; without words there are no Submit_arguments; stdin is named STDIN", async () => {
  assert.equal((await submit(["-z", ...EXE])).text, "");
  const ran = await submit([], { stdin: "#!/bin/sh\n#PBS -N one -p 7\n#PBS -N two\n:\n#PBS -P proj1\ndate\n#PBS -A late\n" });
  assert.equal(ran.text, "1.HOST\n");
  assert.deepEqual(
    [ran.sent["Job_Name"], ran.sent["Priority"], ran.sent["project"], ran.sent["Account_Name"]],
    ["two", "7", "proj1", undefined],
  );
  assert.equal("Submit_arguments" in ran.sent, false);
  assert.equal((await submit([], { stdin: "date\n" })).sent["Job_Name"], "STDIN");
});

const SCRIPT =
  "#!/bin/bash\n#PBS -N first\n\n# a comment\n#PBS -l select=1:ncpus=2\n  #PBS -p 10\n#PBS -l walltime=00:10:00\n#PBS -r n\necho hello\n#PBS -N late\n";

test("a script file: directives count, the command line wins, -l is merged resource by resource", async () => {
  file("dir1.sh", SCRIPT);
  const plain = await submit(["-h", "dir1.sh"]);
  assert.deepEqual(
    [
      plain.sent["Job_Name"],
      plain.sent["Priority"],
      plain.sent["Rerunable"],
      plain.sent["Resource_List.walltime"],
      plain.sent["Submit_arguments"],
    ],
    ["first", "10", "False", "00:10:00", "-h dir1.sh"],
  );
  assert.equal(plain.job?.script, SCRIPT);
  const over = await submit(["-N", "second", "-p", "-5", "-l", "walltime=60", "dir1.sh"]);
  assert.deepEqual(
    [over.sent["Job_Name"], over.sent["Priority"], over.sent["Resource_List.walltime"], over.sent["Resource_List.select"]],
    ["second", "-5", "60", "1:ncpus=2"],
  );
  assert.equal((await submit(["-C", "#XX", "dir1.sh"])).sent["Job_Name"], "dir1.sh");
  const none = await submit(["-C", "", "dir1.sh"]);
  assert.deepEqual([none.sent["Job_Name"], none.sent["Submit_arguments"]], ["dir1.sh", "-C dir1.sh"]);
  file("dir2.sh", "#XX -N xname\n#PBS -A nope\nsleep 1\n");
  const env = await submit(["dir2.sh"], { env: { ...ENV, PBS_DPREFIX: "#XX" } });
  assert.deepEqual([env.sent["Job_Name"], env.sent["Account_Name"]], ["xname", undefined]);
});

// biome-ignore format: one row a case
const DIRECTIVES: readonly (readonly [script: string, prefix: string, found: readonly string[]])[] = [
  ["#PBS -N a\n\n\n# x\n#PBS -l b\ndate\n#PBS -N c\n", "#PBS", ["-N a", "-l b"]],
  ["#PBS -N split \\\n -p 3\nsleep 2\n",               "#PBS", ["-N split  -p 3"]],
  ["   #PBS\t-N a\n",                                  "#PBS", ["-N a"]],
  ["#PBSX -N a\n#PBS\n#PBS foo\n#PBS -h",              "#PBS", ["foo", "-h"]],
  ["#PBS-h\n#PBS: -N x\n#PBS_HOME -N y\n",             "#PBS", ["-h"]],
  ["#PBS -N a # b\n",                                 "#PBS", ["-N a # b"]],
  [":\n:PBS\n#PBS -h\n",                               "#PBS", ["-h"]],
  ["#PBS -h\n",                                        "",     []],
  ["",                                                 "#PBS", []],
  ["#PBS -h \\",                                       "#PBS", ["-h"]],
];

for (const [script, prefix, found] of DIRECTIVES) {
  test(`directives of ${JSON.stringify(script)} with ${prefix}`, () => assert.deepEqual(readDirectives(script, prefix).directives, found));
}

// The script as the job gets it: each continued directive is on one line, and nothing else is changed.
const SENT: readonly (readonly [script: string, sent: string])[] = [
  ["#!/bin/sh\n#PBS -N split \\\n -p 3\nsleep 2\n", "#!/bin/sh\n#PBS -N split  -p 3\nsleep 2\n"],
  ["#PBS -l select=1:\\\nncpus=2 \\\n  -h\ndate \\\n +%s\n", "#PBS -l select=1:ncpus=2   -h\ndate \\\n +%s\n"],
  ["# a comment \\\n#PBS -h\ndate", "# a comment \\\n#PBS -h\ndate"],
  ["#PBS -h \\", "#PBS -h "],
  ["date\n#PBS -h \\\n", "date\n#PBS -h \\\n"],
];

for (const [script, sent] of SENT) {
  test(`the job is given ${JSON.stringify(sent)} of ${JSON.stringify(script)}`, async () => {
    const ran = await submit([file("sent.sh", script)]);
    assert.deepEqual([ran.text, ran.status, ran.job?.script], ["1.HOST\n", 0, sent]);
  });
}

// biome-ignore format: one row a case
const BAD_DIRECTIVES: readonly (readonly [directive: string, before: string])[] = [
  ["-p x",                       "qsub: illegal -p value\n"],
  ["-Y",                         "qsub: invalid option -- 'Y'\n"],
  ["l walltime=0:10",            ""],
  ["-l select=1 ncpus=2",        ""],
  ["-N abc # my name",           ""],
  ["-N a b",                     ""],
  ["-h now",                     ""],
  ["-- /bin/true",               ""],
  ["--",                         ""],
  ['-N "open',                   ""],
  ["this is prose",              ""],
];

for (const [directive, before] of BAD_DIRECTIVES) {
  test(`#PBS ${directive}: a directive error, and nothing is submitted`, async () => {
    const ran = await submit([file("bad.sh", `#!/bin/sh\n#PBS ${directive}\ndate\n`)]);
    assert.deepEqual([ran.text, ran.status, ran.job], [`${before}qsub: directive error: ${directive} \n`, 1, undefined]);
  });
}

for (const list of ["", ",", "A=1,", "A=1,,", " , A=1"]) {
  test(`-v ${JSON.stringify(list)}: empty items name nothing`, async () => {
    const ran = await submit(["-v", list, ...EXE]);
    assert.deepEqual([ran.text, ran.status], ["1.HOST\n", 0]);
    assert.equal(/,A=1$/.test(ran.sent["Variable_List"] ?? ""), list.includes("A"));
  });
}

test("a script in Latin-1 is taken byte by byte, its directives too", async () => {
  writeFileSync(join(DIRECTORY, "latin.sh"), Buffer.from("#PBS -N J\xfcrgen\n# Gr\xfc\xdfe\ndate\n", "latin1"));
  const ran = await submit(["latin.sh"]);
  assert.deepEqual([ran.status, ran.sent["Job_Name"]], [0, "Jürgen"]);
  assert.equal(ran.job?.script, markedScript("#PBS -N J\xfcrgen\n# Gr\xfc\xdfe\ndate\n"));
  const utf8 = await submit([file("utf8.sh", "# Grüße\n")]);
  assert.equal(utf8.job?.script, "# Grüße\n");
});

test("scripts that are no text are refused", async () => {
  file("dos.sh", "#!/bin/sh\r\ndate\r\n");
  assert.deepEqual([(await submit(["dos.sh"])).text, (await submit(["dos.sh"])).status], ["qsub: script contains cr, lf\n", 1]);
  writeFileSync(join(DIRECTORY, "program"), Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0x0a]));
  assert.equal((await submit(["program"])).text, "qsub: script is not a text\n");
});

test("the server's default arguments stand below everything else", async () => {
  const byServer = await submit(EXE, { answer: taking("-N byserver -p 9") });
  assert.deepEqual(
    [byServer.sent["Job_Name"], byServer.sent["Priority"], byServer.sent["Submit_arguments"]],
    ["byserver", "9", "-- /bin/true"],
  );
  const mine = await submit(["-N", "mine", ...EXE], { answer: taking("-N byserver -p 9") });
  assert.deepEqual([mine.sent["Job_Name"], mine.sent["Priority"]], ["mine", "9"]);
});

test("Variable_List: own variables first, then -V and -v, escaped", async () => {
  const env = { ...ENV, AA: "1", BB: "x y", LANG: "C", TZ: "UTC", MAIL: "/m" };
  const ran = await submit(["-v", 'AA,BB,CC=3,Q="a,b",R=it\\,s', ...EXE], { env });
  assert.equal(
    ran.sent["Variable_List"],
    "PBS_O_HOME=/home/pbsuser1,PBS_O_LANG=C,PBS_O_LOGNAME=pbsuser1,PBS_O_PATH=/bin,PBS_O_MAIL=/m,PBS_O_SHELL=/bin/bash,PBS_O_TZ=UTC," +
      `PBS_O_INTERACTIVE_AUTH_METHOD=resvport,PBS_O_INTERACTIVE_ENCRYPT_METHOD=,PBS_O_WORKDIR=${DIRECTORY},PBS_O_SYSTEM=Linux,` +
      "AA=1,BB=x y,CC=3,Q=a\\,b,R=it\\,s",
  );
  const all = await submit(["-V", "-v", "AA=2", ...EXE], { env });
  assert.match(all.sent["Variable_List"] as string, /,PBS_O_SYSTEM=Linux,HOME=.*,AA=2,BB=x y/);
});

// biome-ignore format: one row a case
const VARIABLES: readonly (readonly [list: string, variables: readonly string[] | null])[] = [
  ["A=1,B=2",        ["A=1", "B=2"]],
  ["'A=x,y',B",      ["A=x\\,y", "B=b"]],
  ["A=",             ["A="]],
  ["A=\\\\",         ["A=\\\\"]],
  ["A=it's",         null],
  ["NOSUCH",         null],
  ["=x",             null],
];

for (const [list, variables] of VARIABLES) {
  test(`-v ${list}`, () => assert.deepEqual(namedVariables(list, { B: "b" }), variables));
}

test("output paths are completed with the directory and its slash, and with the site's output host", () => {
  const where = { output_host: null, directory: "/home/a", isDirectory: (path: string) => path === "/home/a/d" };
  // biome-ignore format: one row a case
  const rows = [
    ["/tmp/o1", "/tmp/o1"], ["d/o.txt", "/home/a/d/o.txt"], ["d", "/home/a/d/"], ["d/", "/home/a/d/"], ["./x", "/home/a/x"],
    ["other:/x", "other:/x"], ["other:x", "other:/home/a/x"], ["other:d", "other:/home/a/d"], ["/dev/null", "/dev/null"], ["", null],
  ] as const;
  for (const [given, expected] of rows) assert.equal(outputPath(given, where), expected, given);
  assert.equal(outputPath("x", { ...where, output_host: "files" }), "files:/home/a/x");
});

test("-W block=true waits and ends as the job does", async () => {
  const answers =
    (value: unknown) =>
    (request: Request): Answer => {
      if (request.kind === "queue-job") return { value: { id: "7.HOST" } };
      return request.kind === "wait-job" ? { value } : { items: [] };
    };
  const done = await submit(["-W", "block=true", ...EXE], { answer: answers({ exit_status: 5 }) });
  assert.deepEqual([done.text, done.status], ["7.HOST\n", 5]);
  const gone = await submit(["-W", "block=true", ...EXE], { answer: answers({ message: "Job deleted" }) });
  assert.deepEqual([gone.text, gone.status], ["7.HOST\nqsub: 7.HOST Job deleted\n", 3]);
});

test("a batch submits line by line, tells faults by line and goes on", async () => {
  file("job.sh", "#PBS -N fromfile\ndate\n");
  const lines = [
    "-N one -- /bin/true 1",
    "# comment",
    "",
    'qsub -N two -v "A=x y" job.sh',
    "-p wrong -- /bin/true",
    '{"args": ["-N", "three"], "command": ["/bin/echo", "a b"]}',
    '{"script": "date\\n", "args": ["-q", "nosuch"]}',
    "-N four",
    '{"script": "#PBS -p 3\\ndate\\n"}',
    "job.sh",
  ];
  const ran = await submit(["-A", "acct", "--batch", file("batch", `${lines.join("\n")}\n`)]);
  assert.equal(
    ran.text,
    "1.HOST\n2.HOST\nqsub: line 5: illegal -p value\n3.HOST\nqsub: line 7: Unknown queue\nqsub: line 8: a batch line needs a script or a program\n4.HOST\n5.HOST\n",
  );
  assert.equal(ran.status, 1);
  const jobs = ran.requests
    .filter((request): request is QueueJobsRequest => request.kind === "queue-jobs")
    .flatMap((request) => request.jobs);
  const names = jobs.map((job) => job.attrs.find(({ name }) => name === "Job_Name")?.value);
  assert.deepEqual(names, ["one", "two", "three", "STDIN", "STDIN", "fromfile"]);
  assert.ok(jobs.every((job) => job.attrs.some(({ name, value }) => name === "Account_Name" && value === "acct")));
});

test("a batch in the form of wr: fields that map, and those that do not by name", async () => {
  const lines = [
    "echo a b | wc",
    'bin/align 1\t{"memory": "500M", "time": "1h30m", "cpus": 2, "disk": 3, "priority": 7, "retries": 0, "override": 2, "queue": "fast", "rep_grp": "run1"}',
    '{"cmd": "x", "cwd": "/data/it\'s", "cwd_matters": true, "env": ["A=b,c", "D=e"], "req_grp": "g", "misc": "-R x,y", "mounts": [], "deps": null}',
    'x\t{"mounts": [{"Mount": "/mnt"}]}',
    'x\t{"cpus": 0.5}',
    'x\t{"colour": "red"}',
    'x\t{"cwd": "/data"}',
    'x\t{"time": "soon"}',
    "x\t[1]",
  ];
  const ran = await submit(["--batch-format", "wr", "-W", "retries=1", "--batch", file("wr", lines.join("\n"))]);
  assert.equal(
    ran.text,
    `1.HOST
2.HOST
3.HOST
qsub: line 4: field "mounts": has no counterpart here: there are no mounts here
qsub: line 5: field "cpus": must be a whole number from 0 to 1000000
qsub: line 6: field "colour": is no field of wr
qsub: line 7: field "cwd": without cwd_matters, jobs run in a directory of their own below the site's job directory
qsub: line 8: field "time": "soon" is no time like 30m or 1h30m
qsub: line 9: the JSON must be an object
`,
  );
  assert.equal(ran.status, 2);
  const jobs = ran.requests.flatMap((request) => (request.kind === "queue-jobs" ? request.jobs : []));
  const sent = jobs.map(({ attrs }) => Object.fromEntries(attrs.map(({ name, resource, value }) => [resource ?? name, value])));
  const [first, second, third] = sent;
  assert.deepEqual(
    [first?.["select"], first?.["walltime"], first?.["retries"], first?.["override"], first?.["estgroup"], first?.["sandbox"]],
    ["1:ncpus=1:mem=1gb", "3600", "1", "no", "echo", "PRIVATE"],
  );
  assert.match(first?.["argument_list"] ?? "", /echo a b \| wc/);
  assert.deepEqual(
    [second?.["select"], second?.["walltime"], second?.["retries"], second?.["override"], second?.["Priority"], second?.["project"]],
    ["1:tmp=3gb:ncpus=2:mem=500mb", "5400", "0", "always", "7", "run1"],
  );
  assert.deepEqual([third?.["estgroup"], third?.["backend_opts"], third?.["sandbox"]], ["g", "-R x,y", undefined]);
  assert.match(third?.["Variable_List"] ?? "", /A=b\\,c,D=e/);
  assert.match(third?.["argument_list"] ?? "", /cd '\/data\/it'/);
  const unknown = await submit(["--batch-format", "tsv", "--batch", file("wr", "x")]);
  assert.deepEqual([unknown.text, unknown.status], ["qsub: --batch-format must be qsub or wr\n", 2]);
});

test("a large batch shows its progress on a terminal, if the ids go elsewhere", async () => {
  const stdin = Array.from({ length: 1200 }, (_, index) => `-N j${index} -- /bin/true`).join("\n");
  const ran = await submit(["--batch", "-"], { stdin, errTty: true });
  assert.ok(ran.err.endsWith("qsub: 1200 of 1200 jobs (100 %)\r\u001b[K"), JSON.stringify(ran.err));
  assert.equal((await submit(["--batch", "-"], { stdin })).err, "");
  assert.equal((await submit(["--batch", "-"], { stdin, tty: true })).err, "");
});

test("a batch from standard input in frames of limited size, ids in order", async () => {
  const stdin = Array.from({ length: 1201 }, (_, index) => `-N j${index} -- /bin/true`).join("\n");
  const ran = await submit(["--batch", "-"], { stdin });
  assert.equal(ran.out, Array.from({ length: 1201 }, (_, index) => `${index + 1}.HOST\n`).join(""));
  assert.deepEqual(
    ran.requests.flatMap((request) => (request.kind === "queue-jobs" ? [request.jobs.length] : [])),
    [500, 500, 201],
  );
});

test("the working directory keeps the name the user knows it by", async () => {
  mkdirSync(join(DIRECTORY, "real"), { recursive: true });
  const ran = await submit(EXE, { cwd: DIRECTORY, env: { ...ENV, PWD: "/nonexistent" } });
  assert.match(ran.sent["Variable_List"] as string, new RegExp(`PBS_O_WORKDIR=${DIRECTORY},`));
});

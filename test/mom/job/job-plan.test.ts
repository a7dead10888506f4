import assert from "node:assert/strict";
import { test } from "node:test";
import { identityWords } from "#mom/host/identity-words.ts";
import { commandOfJob, shellOf, umaskOf } from "#mom/job/attrs.ts";
import { deviceVariables, jobEnvironment, nodefileText, siteEnvironment, variableList } from "#mom/job/environment.ts";
import { kernelLimits, niceOf } from "#mom/job/limits.ts";
import { filePlan, startSpec } from "#mom/job/plan.ts";
import { commandOf } from "#mom/starter/launch.ts";
import type { MomJob } from "#protocol/mom-link.ts";
import { CONFIG, job, OWNER } from "../world.ts";

const PLACES = { home: "/home/alice", jobdir: "/home/alice", tmpdir: "/var/tmp/pbs.1.n1", nodefile: "/pbs/aux/1.n1" };
const environment = (of: MomJob, site: readonly (readonly [string, string])[] = [["PATH", "/bin"]]): { [name: string]: string } =>
  Object.fromEntries(
    jobEnvironment(of, { ...PLACES, user: "alice", shell: "/bin/bash", port: 15003, site }).map((entry) => [
      entry.slice(0, entry.indexOf("=")),
      entry.slice(entry.indexOf("=") + 1),
    ]),
  );

test("the environment of a job is exactly what PBS gives it", () => {
  assert.deepEqual(environment(job({ attrs: { Variable_List: ["PBS_O_HOST=n0", "AA=1"], Account_Name: "acc" } })), {
    PATH: "/bin",
    PBS_O_HOST: "n0",
    AA: "1",
    HOME: "/home/alice",
    LOGNAME: "alice",
    USER: "alice",
    SHELL: "/bin/bash",
    PBS_JOBNAME: "name",
    PBS_JOBID: "1.n1",
    PBS_QUEUE: "workq",
    PBS_JOBCOOKIE: "secret",
    PBS_NODENUM: "0",
    PBS_TASKNUM: "1",
    PBS_MOMPORT: "15003",
    PBS_NODEFILE: "/pbs/aux/1.n1",
    NCPUS: "1",
    OMP_NUM_THREADS: "1",
    PBS_JOBDIR: "/home/alice",
    TMPDIR: "/var/tmp/pbs.1.n1",
    PBS_ENVIRONMENT: "PBS_BATCH",
    ENVIRONMENT: "BATCH",
    PBS_ACCOUNT: "acc",
  });
});

test("what PBS sets wins over what the user sent, and that over the site's file", () => {
  const env = environment(job({ attrs: { Variable_List: ["HOME=/evil", "PATH=/users", "TZ=UTC"] } }), [
    ["PATH", "/sites"],
    ["TZ", "CET"],
    ["LANG", "C"],
  ]);
  assert.deepEqual([env["HOME"], env["PATH"], env["TZ"], env["LANG"]], ["/home/alice", "/users", "UTC", "C"]);
  assert.equal(environment(job(), [])["PATH"], "/usr/local/bin:/usr/bin:/bin", "a job is never without PATH");
});

test("a subjob has its index and its array's id", () => {
  const env = environment(job({ id: "12[3].n1" }));
  assert.deepEqual([env["PBS_JOBID"], env["PBS_ARRAY_ID"], env["PBS_ARRAY_INDEX"]], ["12[3].n1", "12[].n1", "3"]);
  assert.equal(environment(job())["PBS_ARRAY_INDEX"], undefined);
});

test("NCPUS and OMP_NUM_THREADS: ompthreads of the first chunk, else its ncpus", () => {
  for (const [select, threads] of [
    ["1:ncpus=4", "4"],
    ["2:ncpus=4:ompthreads=2+1:ncpus=8", "2"],
    ["1:mem=1gb", "1"],
  ]) {
    const env = environment(job({ attrs: { schedselect: select } }));
    assert.deepEqual([env["NCPUS"], env["OMP_NUM_THREADS"]], [threads, threads], select);
  }
});

test("elements of Variable_List: a backslash protects commas, quotes and itself, and nothing else", () => {
  const rows: readonly (readonly [element: string, name: string, value: string])[] = [
    ["A=1", "A", "1"],
    ["B=x y", "B", "x y"],
    ["C=it\\,s", "C", "it,s"],
    ['D="a\\,b"', "D", '"a,b"'],
    ["E=a=b", "E", "a=b"],
    ["F=\\\\n", "F", "\\n"],
    ["G=\\u@\\h", "G", "\\u@\\h"],
    ["H", "H", ""],
  ];
  for (const [element, name, value] of rows) assert.deepEqual(variableList([element]), [[name, value]], element);
});

test("pbs_environment: values, comments, and names taken from the daemon", () => {
  assert.deepEqual(siteEnvironment("# c\nPATH=/bin:/usr/bin\nTZ\nNONE\nX=a b\n", { TZ: "CET" }), [
    ["PATH", "/bin:/usr/bin"],
    ["TZ", "CET"],
    ["X", "a b"],
  ]);
});

test("the node file names each chunk's host once for each of its mpiprocs", () => {
  const rows: readonly (readonly [select: string, exec_host: string, text: string])[] = [
    ["1:ncpus=2", "n1/0*2", "n1\n"],
    ["1:ncpus=2:mpiprocs=2", "n1/0*2", "n1\nn1\n"],
    ["2:ncpus=1:mpiprocs=2+1:ncpus=1", "n1/0+n2/0+n1/1", "n1\nn1\nn2\nn2\nn1\n"],
    ["1:ncpus=1:mpiprocs=0+1:ncpus=1", "n1/0+n2/0", "n2\n"],
  ];
  for (const [schedselect, exec_host, text] of rows)
    assert.equal(nodefileText(job({ exec_host, attrs: { schedselect } })), text, schedselect);
});

const at = (place: { readonly host: string | null; readonly path: string } | null): string =>
  place === null ? "nowhere" : place.host === null ? place.path : `${place.host}:${place.path}`;

test("stage lists: here from the job's directory, there from the owner's home, as a path of this host where it can be reached so", () => {
  const rows: readonly (readonly [item: string, local: string, remote: string])[] = [
    ["in@n1:/data/in", "/home/alice/in", "/data/in"],
    ["/tmp/in@n1.example.org:data/in", "/tmp/in", "/home/alice/data/in"],
    ["d/in@n9:/data/in*", "/home/alice/d/in", "n9:/data/in*"],
    ["in@n9:rel", "/home/alice/in", "n9:rel"],
    ["in@x.far.org:/data/in", "/home/alice/in", "/mnt/far/in"],
    ["in@[fe80::1]:/in", "/home/alice/in", "[fe80::1]:/in"],
  ];
  for (const [item, local, remote] of rows) {
    const { stagein, stageout } = filePlan(job({ attrs: { stagein: [item], stageout: [item] } }), OWNER, CONFIG.facts);
    for (const list of [stagein, stageout])
      assert.deepEqual(
        list.map((each) => [each.local, at(each.remote)]),
        [[local, remote]],
        item,
      );
  }
  const sandboxed = filePlan(job({ attrs: { sandbox: "PRIVATE", stagein: ["in@n1:/a"] } }), OWNER, CONFIG.facts);
  assert.equal(sandboxed.stagein[0]?.local, "/home/alice/pbs.1.n1.x8z/in");
});

test("where output is written while the job runs and where it goes", () => {
  const S = "/pbs/spool/1.n1";
  const rows: readonly (readonly [attrs: MomJob["attrs"], stdout: string, stderr: string])[] = [
    [{}, `spool ${S}.OU -> /home/alice/name.o1`, `spool ${S}.ER -> /home/alice/name.e1`],
    [{ Join_Path: "oe" }, `spool ${S}.OU -> /home/alice/name.o1`, "joined"],
    [{ Join_Path: "eo" }, "joined", `spool ${S}.ER -> /home/alice/name.e1`],
    [{ Output_Path: "n1.example.org:/d/" }, `spool ${S}.OU -> /d/`, `spool ${S}.ER -> /home/alice/name.e1`],
    [{ Output_Path: "localhost:/d", Error_Path: "rel/e" }, `spool ${S}.OU -> /d`, `spool ${S}.ER -> /home/alice/rel/e`],
    [{ Output_Path: "n1:/dev/null", Error_Path: "/dev/null" }, "null", "null"],
    [{ Keep_Files: "oe" }, "direct /home/alice/name.o1", "direct /home/alice/name.e1"],
    [{ Keep_Files: "o" }, "direct /home/alice/name.o1", `spool ${S}.ER -> /home/alice/name.e1`],
    [{ Keep_Files: "doe", Output_Path: "n1:/a/b" }, "direct /a/b", "direct /home/alice/name.e1"],
    [{ Output_Path: "n9:/a/b" }, `spool ${S}.OU -> n9:/a/b`, `spool ${S}.ER -> /home/alice/name.e1`],
    [{ Output_Path: "x.far.org:/data/b" }, `spool ${S}.OU -> /mnt/far/b`, `spool ${S}.ER -> /home/alice/name.e1`],
    [{ Output_Path: "x.far.org:/other/b" }, `spool ${S}.OU -> x.far.org:/other/b`, `spool ${S}.ER -> /home/alice/name.e1`],
  ];
  for (const [attrs, stdout, stderr] of rows) {
    const plan = filePlan(job({ attrs }), OWNER, CONFIG.facts);
    const shown = [plan.stdout, plan.stderr].map((output) => {
      if (output.how === "spool") return `spool ${output.path} -> ${at(output.target)}`;
      return output.how === "direct" ? `direct ${output.path}` : output.how;
    });
    assert.deepEqual(shown, [stdout, stderr], JSON.stringify(attrs));
  }
});

test("subjobs: the index in kept names, in ^array_index^ and in the name in a directory", () => {
  const sub = (attrs: MomJob["attrs"]) => filePlan(job({ id: "12[3].n1", attrs }), OWNER, CONFIG.facts);
  assert.equal(sub({ Keep_Files: "o" }).stdout.path, "/home/alice/name.o12.3");
  assert.equal(sub({ Output_Path: "n1:/d/x.^array_index^" }).stdout.target?.path, "/d/x.3");
  assert.equal(sub({ Output_Path: "n1:/d/" }).stdout.name, "12[3].n1.OU");
});

test("sandbox=PRIVATE has a directory of its own under the home, which is the start directory", () => {
  const private_job = job({ attrs: { sandbox: "PRIVATE" } });
  const plan = filePlan(private_job, OWNER, CONFIG.facts);
  assert.equal(plan.sandbox, "/home/alice/pbs.1.n1.x8z");
  const files = { job: "1.n1", run_count: 1, ok: true as const, stdout: "/s/o", stderr: "/s/e" };
  const spec = startSpec(private_job, OWNER, CONFIG.facts, plan, files);
  assert.equal(spec.cwd, "/home/alice/pbs.1.n1.x8z");
  assert.ok(spec.env.includes("PBS_JOBDIR=/home/alice/pbs.1.n1.x8z"));
  assert.equal(filePlan(job({ attrs: { sandbox: "HOME" } }), OWNER, CONFIG.facts).sandbox, null);
});

test("the program of a job: a login shell that reads the script's path, or program and arguments as given", () => {
  const files = { job: "1.n1", run_count: 1, ok: true as const, stdout: "/s/o", stderr: "/s/e" };
  const specOf = (of: MomJob, facts = CONFIG.facts) => startSpec(of, OWNER, facts, filePlan(of, OWNER, facts), files);
  const script = specOf(job());
  assert.deepEqual([script.path, script.login, script.stdin], ["/bin/bash", true, "/pbs/mom_priv/jobs/1.n1.SC\n"]);
  assert.equal(specOf(job(), { ...CONFIG.facts, home: "/my pbs" }).stdin, "'/my pbs/mom_priv/jobs/1.n1.SC'\n");
  assert.equal(specOf(job({ id: "1[2].n1" })).stdin, "'/pbs/mom_priv/jobs/1[2].n1.SC'\n", "no pattern for the shell");
  const element = (name: string, text: string): string => `<jsdl-hpcpa:${name}>${text}</jsdl-hpcpa:${name}>`;
  const program = job({
    script: null,
    attrs: {
      executable: element("Executable", "/bin/echo"),
      argument_list: element("Argument", "a &lt;b&gt;") + element("Argument", "") + element("Argument", "&amp;amp;"),
    },
  });
  assert.deepEqual(
    [specOf(program).path, specOf(program).argv, specOf(program).login, specOf(program).stdin],
    ["/bin/echo", ["/bin/echo", "a <b>", "", "&amp;"], false, null],
  );
  assert.equal(commandOfJob({}), null);
});

test("-S: the shell for this host, else the one without a host, else the login shell", () => {
  const rows: readonly (readonly [list: readonly string[], shell: string])[] = [
    [[], "/bin/bash"],
    [["/bin/csh"], "/bin/csh"],
    [["/bin/csh@n2", "/bin/ksh"], "/bin/ksh"],
    [["/bin/ksh", "/bin/csh@n1.dom"], "/bin/csh"],
    [["/bin/csh@n2"], "/bin/bash"],
  ];
  for (const [Shell_Path_List, shell] of rows)
    assert.equal(shellOf({ Shell_Path_List }, "n1", "/bin/bash"), shell, String(Shell_Path_List));
  assert.equal(shellOf({}, "n1", ""), "/bin/sh");
});

test("umask: octal digits of a decimal number, 077 unless set", () => {
  for (const [umask, bits] of [
    [undefined, 0o077],
    [22, 0o022],
    [0, 0],
    [77, 0o077],
    [999, 0],
    ["027", 0o027],
  ] as const)
    assert.equal(umaskOf({ umask }), bits, String(umask));
});

test("limits of the kernel and nice come from Resource_List, the smaller of vmem and pvmem", () => {
  const attrs = { Resource_List: { file: "1mb", pmem: "10kb", vmem: "2mb", pvmem: "1mb", pcput: 60, core: "0b", nice: 5, walltime: 10 } };
  assert.deepEqual(kernelLimits(attrs), { fsize: 1048576, rss: 10240, as: 1048576, core: 0, cpu: 60 });
  assert.equal(niceOf(attrs), 5);
  assert.deepEqual([kernelLimits({}), niceOf({})], [{}, null]);
});

test("the chain of programs that put on identity and limits, and the login form with and without it", () => {
  const find = (name: string): string => `/t/${name}`;
  const base = { path: "/bin/bash", argv: ["/bin/bash"], login: true, env: ["A=1"], owner: null, limits: {}, nice: null };
  const owner = { uid: 1001, gid: 100, groups: [100, 27] };
  const setpriv = ["/t/setpriv", "--reuid=1001", "--regid=100", "--groups=100,27", "--"];
  const rows: readonly (readonly [what: string, spec: Partial<Parameters<typeof commandOf>[0]>, path: string, argv: readonly string[]])[] =
    [
      ["login shell", {}, "/bin/bash", ["-bash"]],
      ["program", { login: false, argv: ["/bin/bash", "-c", "x"] }, "/bin/bash", ["/bin/bash", "-c", "x"]],
      ["login shell of another", { owner }, "/t/setpriv", [...setpriv, "/bin/bash", "-l"]],
      ["shell without -l", { owner, path: "/opt/odd", argv: ["/opt/odd"] }, "/t/setpriv", [...setpriv, "/opt/odd"]],
      [
        "no groups",
        { owner: { ...owner, groups: [] }, login: false },
        "/t/setpriv",
        ["/t/setpriv", "--reuid=1001", "--regid=100", "--clear-groups", "--", "/bin/bash"],
      ],
      [
        "everything",
        { owner, login: false, limits: { fsize: 10 }, nice: -5 },
        "/t/nice",
        ["/t/nice", "-n", "-5", ...setpriv, "/t/prlimit", "--fsize=10", "--", "/bin/bash"],
      ],
    ];
  for (const [what, spec, path, argv] of rows)
    assert.deepEqual(commandOf({ ...base, ...spec }, find, null, "setpriv"), { path, argv, env: ["A=1"] }, what);
});

test("an identity in numbers that no name service is asked about, where chroot takes it", () => {
  const find = (name: string): string => `/t/${name}`;
  const words = (groups: readonly number[]): string[] => identityWords({ uid: 1001, gid: 100, groups }, find, "chroot");
  assert.deepEqual(words([100, 27]), ["/t/chroot", "--userspec=+1001:+100", "--groups=+100,+27", "--skip-chdir", "/"]);
  assert.deepEqual(words([]).at(2), "--groups=");
});

test("variables that steer a program are set after the identity is the owner's; as ourselves they need no detour", () => {
  const find = (name: string): string => `/t/${name}`;
  const steering = [
    "LD_PRELOAD=/x.so",
    "LD_LIBRARY_PATH=/x",
    "LD_AUDIT=/x",
    "GLIBC_TUNABLES=a=b",
    "MALLOC_CHECK_=3",
    "GCONV_PATH=/x",
    "LOCPATH=/x",
    "NLSPATH=/x",
    "LANGUAGE=../x",
    "RES_OPTIONS=x",
    "HOSTALIASES=/x",
    "TZDIR=/x",
  ];
  const harmless = ["PATH=/bin", "TMPDIR=/t", "LANG=C", "XLD_PRELOAD=1", "PBS_JOBCOOKIE=secret"];
  const base = { path: "/p", argv: ["/p", "LD_PRELOAD=arg"], login: false, env: [...harmless, ...steering], limits: {}, nice: null };
  const chain = commandOf({ ...base, owner: { uid: 1, gid: 2, groups: [2] } }, find, null, "setpriv");
  assert.deepEqual(chain.env, harmless);
  assert.deepEqual(chain.argv, ["/t/setpriv", "--reuid=1", "--regid=2", "--groups=2", "--", "/t/env", ...steering, "/p", "LD_PRELOAD=arg"]);
  assert.deepEqual(commandOf({ ...base, path: "/p=q", owner: { uid: 1, gid: 2, groups: [2] } }, find, null, "setpriv").argv.slice(-5), [
    "/t/nice",
    "-n",
    "0",
    "/p=q",
    "LD_PRELOAD=arg",
  ]);
  assert.deepEqual(commandOf({ ...base, owner: null }, find), { path: "/p", argv: base.argv, env: base.env });
});

test("a job on a runner gets the devices of the runner's allocation, whatever its own environment says", () => {
  const devices = deviceVariables({ CUDA_VISIBLE_DEVICES: "1", HOME: "/root" });
  assert.deepEqual(devices, [["CUDA_VISIBLE_DEVICES", "1"]]);
  const facts = { ...PLACES, user: "alice", shell: "/bin/bash", port: 15003, site: [], devices };
  const entries = jobEnvironment(job({ attrs: { Variable_List: ["CUDA_VISIBLE_DEVICES=7"] } }), facts);
  assert.deepEqual(
    entries.filter((entry) => entry.startsWith("CUDA")),
    ["CUDA_VISIBLE_DEVICES=1"],
  );
});

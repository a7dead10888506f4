// Hooks in a complete complex, in both languages, as root and as an ordinary user: what they accept, change and refuse; hooks
// that misbehave; prologue and epilogue.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, chownSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { becoming, type Complex, isAlive, type RunOptions, startComplex, until } from "../complex.ts";
import { lackOfCheckout, lackOfUsers } from "../needed-users.ts";

type Language = "python" | "javascript";
type Source = { readonly python: string; readonly javascript: string };

const USER = "pbsuser1";
/** PBSE_HOOKERROR as an exit status */
const HOOK_ERROR = 15136 & 0xff;
const FAILED = (hook: string): string => `qsub: request rejected as filter hook '${hook}' encountered an exception. Please inform Admin\n`;

/** Tools for further tests of a mode. */
export type HookTools = {
  readonly complex: () => Complex;
  /** qsub as a user; the id */
  readonly submit: (...args: readonly string[]) => string;
  /** creates a hook, does the work, removes the hook */
  readonly withHook: (event: string, language: Language, text: string, attrs: string, during: (name: string) => unknown) => Promise<void>;
};

/** Defines the tests. In user mode the complex belongs to an ordinary user if there is one. more: tests of this mode only. */
export function hookTests(mode: "user" | "system", more: (tools: HookTools) => void): void {
  const skip = mode === "system" && lackOfUsers(USER);
  describe(`hooks in ${mode} mode`, { skip }, () => tests(mode, mode === "system" || lackOfCheckout(USER) === false, more));
}

/** The hook that docs/hooks.md shows in a language. */
function example(language: Language): string {
  const text = readFileSync(join(import.meta.dirname, "../../../docs/hooks.md"), "utf8");
  const found = new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(text)?.[1];
  assert.ok(found !== undefined, `docs/hooks.md shows no hook in ${language}`);
  return found;
}

function tests(mode: "user" | "system", withUser: boolean, more: (tools: HookTools) => void): void {
  let complex: Complex;
  let host: string;
  const as: RunOptions = mode === "system" ? { as: USER } : {};
  before(async () => {
    complex = await startComplex(mode === "system" ? { mode } : withUser ? { owner: USER } : {});
    host = /^Name=([^|]+)/m.exec(complex.must("pbsnodes", ["-a", "-F", "dsv"]))?.[1] as string;
    complex.qmgr("set server job_history_enable=True", `set node ${host} resources_available.ncpus=4`);
  });
  after(() => complex?.stop());

  const work = (): string => complex.work(as.as);
  const qsub = (...args: readonly string[]) => complex.run("qsub", args, as);
  const submit = (...args: readonly string[]): string => complex.submit(args, as);
  const output = (id: string, letter = "o", name = "STDIN"): string =>
    readFileSync(join(work(), `${name}.${letter}${id.split(".")[0]}`), "utf8");
  const sh = (script: string): readonly string[] => ["-N", "STDIN", "--", "/bin/sh", "-c", script];

  /** The exit status and the whole output. */
  function inBackground(command: string, ...args: readonly string[]): Promise<{ readonly status: number | null; readonly text: string }> {
    const words = [
      ...(withUser ? [...becoming(USER), "env", `PBS_CONF_FILE=${complex.home}/pbs.conf`] : []),
      complex.command(command),
      ...args,
    ];
    const child = spawn(words[0] as string, words.slice(1), { env: complex.env(), cwd: work(), stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (text += chunk));
    return new Promise((done) => child.on("close", (status) => done({ status, text })));
  }

  function importScript(name: string, language: Language, text: string): void {
    const file = join(complex.work(), `${name}.txt`);
    writeFileSync(file, text);
    complex.qmgr(`import hook ${name} application/x-${language} default ${file}`);
  }
  const withHook: HookTools["withHook"] = async (event, language, text, attrs, during) => {
    const name = `h${++hooks}`;
    complex.qmgr(`create hook ${name} event='${event}'${attrs === "" ? "" : `,${attrs}`}`);
    try {
      importScript(name, language, text);
      await during(name);
    } finally {
      complex.qmgr(`delete hook ${name}`);
    }
  };
  let hooks = 0;
  const each = (title: string, source: Source, check: (language: Language, text: string) => Promise<unknown>): void => {
    for (const language of ["python", "javascript"] as const)
      test(`${title} (${language})`, async () => void (await check(language, source[language])));
  };

  each(
    "a queuejob hook accepts, changes and refuses",
    {
      python: `import pbs
e = pbs.event()
j = e.job
if str(j.Job_Name) == "bad":
    e.reject("no job named bad")
j.Account_Name = "by %s" % e.requestor
j.Priority = 7
j.Resource_List["walltime"] = pbs.duration("00:05:00")
e.accept()
`,
      javascript: `const e = pbs.event();
const j = e.job;
if (j.Job_Name === "bad") e.reject("no job named bad");
j.Account_Name = "by " + e.requestor;
j.Priority = 7;
j.Resource_List.walltime = pbs.duration("00:05:00");
e.accept();
`,
    },
    (language, text) =>
      withHook("queuejob", language, text, "", async () => {
        const job = complex.job(submit("-h", "--", "/bin/true"));
        assert.deepEqual([job["Account_Name"], job["Priority"]], [`by ${withUser ? USER : userInfo().username}`, 7]);
        assert.equal((job["Resource_List"] as { walltime?: string }).walltime, "00:05:00");
        const refused = qsub("-N", "bad", "--", "/bin/true");
        assert.deepEqual([refused.status, refused.stdout, refused.stderr], [HOOK_ERROR, "", "qsub: no job named bad\n"]);
      }),
  );

  each("the example of docs/hooks.md", { python: example("python"), javascript: example("javascript") }, (language, text) =>
    withHook("queuejob", language, text, "", async () => {
      const job = complex.job(submit("-h", "-v", "A=1", "--", "/bin/true"));
      assert.equal((job["Resource_List"] as { walltime?: string }).walltime, "01:00:00");
      const variables = job["Variable_List"] as { readonly [name: string]: string | number };
      assert.deepEqual([variables["SITE"], String(variables["A"])], ["here", "1"]);
      const refused = qsub("-l", "walltime=25:00:00", "--", "/bin/true");
      assert.deepEqual([refused.status, refused.stderr], [HOOK_ERROR, "qsub: more than a day is for alice and bob\n"]);
    }),
  );

  each(
    "a hook that fails refuses the submission and is told of in the log",
    { python: "x = {}['gone']\n", javascript: "null.gone;\n" },
    (language, text) =>
      withHook("queuejob", language, text, "", async (name) => {
        const refused = qsub("--", "/bin/true");
        assert.deepEqual([refused.status, refused.stderr], [HOOK_ERROR, FAILED(name)]);
        await until("the log", () =>
          complex.log("server_logs").includes(`queuejob hook '${name}' encountered an exception, request rejected`),
        );
      }),
  );

  each(
    "a hook that loops is stopped after its alarm; meanwhile the server serves others",
    { python: "while True:\n    pass\n", javascript: "for (;;);\n" },
    (language, text) =>
      withHook("queuejob", language, text, "alarm=8", async (name) => {
        let over = false;
        const submission = inBackground("qsub", "--", "/bin/true").finally(() => (over = true));
        const isStopped = () => complex.log("server_logs").includes(`alarm call while running queuejob hook '${name}'`);
        let answers = 0;
        while (!over) {
          assert.equal((await inBackground("qstat")).status, 0);
          if (!isStopped()) answers++;
        }
        assert.ok(answers > 0, "others are served before the hook is stopped");
        assert.deepEqual(await submission, { status: HOOK_ERROR, text: FAILED(name) });
        await until("the log", () =>
          complex.log("server_logs").includes(`alarm call while running queuejob hook '${name}', request rejected`),
        );
      }),
  );

  test("hooks that die, write garbage, answer twice or leave children behind harm nobody", async () => {
    const child = join(complex.work(), "child");
    const rows: readonly (readonly [what: string, text: string, ok: boolean])[] = [
      ["dies", "import os\nos.kill(os.getpid(), 11)\n", false],
      ["exits", "import os\nos._exit(3)\n", false],
      ["kills its host", "import os\nos.kill(os.getppid(), 9)\n", false],
      [
        "garbage",
        'import os\nfor fd in range(3, 64):\n    try:\n        os.write(fd, b"garbage\\f{}\\f")\n    except OSError:\n        pass\n',
        false,
      ],
      ["answers twice", 'import pbs\ntry:\n    pbs.event().accept()\nexcept SystemExit:\n    pass\npbs.event().reject("late")\n', false],
      [
        "leaves a child",
        `import os, time\nif os.fork() == 0:\n    os.setsid()\n    open("${child}", "w").write(str(os.getpid()))\n    time.sleep(300)\n    os._exit(0)\ntime.sleep(0.5)\n`,
        true,
      ],
    ];
    for (const [what, text, ok] of rows) {
      await withHook("queuejob", "python", text, "", async (name) => {
        const ran = qsub("-h", "--", "/bin/true");
        if (ok) assert.deepEqual([ran.status, ran.stderr], [0, ""], what);
        else if (what === "answers twice") assert.notEqual(ran.status, 0, what);
        else if (what !== "garbage") assert.deepEqual([ran.status, ran.stderr], [HOOK_ERROR, FAILED(name)], what);
      });
    }
    assert.equal(isAlive(Number(readFileSync(child, "utf8"))), false, "the child is gone");
    assert.equal(qsub("-h", "--", "/bin/true").status, 0);
  });

  test("a script of 7 MB is taken and run, one of 9 MB is refused", async () => {
    const text = (bytes: number): string => `${"# a long remark\n".repeat(bytes / 16)}import pbs\npbs.event().job.Priority = 3\n`;
    await withHook("queuejob", "python", text(7 << 20), "", () =>
      assert.equal(complex.job(submit("-h", "--", "/bin/true"))["Priority"], 3),
    );
    await assert.rejects(async () => withHook("queuejob", "python", text(9 << 20), "", () => undefined));
  });

  each(
    "an execjob_launch hook changes environment and arguments, execjob_epilogue adds to resources_used",
    {
      python: `import pbs
e = pbs.event()
if e.type == pbs.EXECJOB_LAUNCH:
    e.env["GREETING"] = "hello, you"
    e.argv.append("more")
else:
    e.job.resources_used["vmem"] = pbs.size("77kb")
    pbs.logjobmsg(e.job.id, "ended with %s" % e.job.Exit_status)
`,
      javascript: `const e = pbs.event();
if (e.type === pbs.EXECJOB_LAUNCH) {
  e.env.GREETING = "hello, you";
  e.argv.push("more");
} else {
  e.job.resources_used.vmem = pbs.size("77kb");
  pbs.logjobmsg(e.job.id, "ended with " + e.job.Exit_status);
}
`,
    },
    (language, text) =>
      withHook("execjob_launch,execjob_epilogue", language, text, "", async () => {
        const id = submit(...sh('echo "$GREETING: $0 $1"; exit 5'), "first");
        const job = await complex.untilJob(id, "F");
        assert.equal(output(id), "hello, you: first more\n");
        assert.equal((job["resources_used"] as { vmem?: string }).vmem, "77kb");
        assert.match(complex.log("mom_logs"), new RegExp(`;${id.replaceAll(".", "\\.")};ended with 5\n`));
      }),
  );

  each(
    "execjob_begin refuses: the job waits and is tried again; with delete() it is over",
    {
      python: `import pbs, os
e = pbs.event()
if e.job.Job_Name == "gone":
    e.job.delete()
    e.reject("never here")
if e.job.run_count < 3:
    e.reject("not yet")
`,
      javascript: `const e = pbs.event();
if (e.job.Job_Name === "gone") {
  e.job.delete();
  e.reject("never here");
}
if (e.job.run_count < 3) e.reject("not yet");
`,
    },
    (language, text) =>
      withHook("execjob_begin", language, text, "", async () => {
        const id = submit("-N", "tried", "--", "/bin/true");
        const job = await complex.untilJob(id, "F");
        assert.deepEqual([job.run_count, job.Exit_status], [3, 0]);
        assert.ok(complex.log("mom_logs").includes(`;${id};execjob_begin hook rejected request: not yet\n`));
        const gone = submit("-N", "gone", "--", "/bin/true");
        assert.equal((await complex.untilJob(gone, "F")).Exit_status, -17);
      }),
  );

  each(
    "an execjob_begin hook that loops is stopped after its alarm and its host goes offline, as fail_action says",
    { python: "while True:\n    pass\n", javascript: "for (;;);\n" },
    async (language, text) => {
      let id = "";
      await withHook("execjob_begin", language, text, "alarm=1,fail_action=offline_vnodes", async (name) => {
        id = submit("--", "/bin/true");
        const node = await until("the vnode offline", () => {
          const shown = complex.must("pbsnodes", [host]);
          return /state = .*offline/.test(shown) && shown;
        });
        assert.match(node, new RegExp(`comment = offlined by hook '${name}' due to hook error`));
        await complex.untilJob(id, "Q");
        assert.ok(complex.log("mom_logs").includes(`alarm call while running execjob_begin hook '${name}', request rejected`));
      });
      complex.must("pbsnodes", ["-r", host]);
      complex.qmgr("set server scheduling=True");
      assert.equal((await complex.untilJob(id, "F")).Exit_status, 0);
    },
  );

  each(
    "a periodic hook of a host runs again and again, one of the server, too",
    {
      python: `import pbs
e = pbs.event()
pbs.logmsg(pbs.EVENT_DEBUG, "round of %s" % ("server" if e.type == pbs.PERIODIC else pbs.get_local_nodename()))
`,
      javascript: `const e = pbs.event();
pbs.logmsg(pbs.EVENT_DEBUG, "round of " + (e.type === pbs.PERIODIC ? "server" : pbs.get_local_nodename()));
`,
    },
    (language, text) =>
      withHook("exechost_periodic,periodic", language, text, "freq=1", async (name) => {
        for (const [logs, what] of [
          ["mom_logs", host],
          ["server_logs", "server"],
        ] as const)
          await until(`rounds of ${what}`, () => complex.log(logs).split(`;${name};round of ${what}\n`).length > 3);
      }),
  );

  each(
    "an execjob_preterm hook may keep a job that is to be deleted",
    { python: 'import pbs\npbs.event().reject("still needed")\n', javascript: 'pbs.event().reject("still needed");\n' },
    async (language, text) => {
      const id = submit("--", "/bin/sleep", "1000");
      await complex.untilJob(id, "R");
      await withHook("execjob_preterm", language, text, "", async () => {
        complex.run("qdel", [id]);
        await until("the server's log", () =>
          complex.log("server_logs").includes(`;${id};execjob_preterm hook rejected request: still needed\n`),
        );
        assert.equal(complex.job(id).job_state, "R");
      });
      complex.must("qdel", [id]);
      assert.equal((await complex.untilJob(id, "F")).Exit_status, 271);
    },
  );

  // --- prologue and epilogue

  async function withScript(name: "prologue" | "epilogue", text: string, mode_bits: number, during: () => unknown): Promise<void> {
    const path = join(complex.pbsHome, "mom_priv", name);
    writeFileSync(path, text);
    chmodSync(path, mode_bits);
    const { uid, gid } = statSync(join(complex.pbsHome, "mom_priv"));
    chownSync(path, uid, gid);
    try {
      await during();
    } finally {
      rmSync(path, { force: true });
    }
  }

  test("prologue and epilogue: arguments, environment, output in the job's files", async () => {
    const tell = (name: string): string => `#!/bin/sh\necho "${name}: $*"; echo "$PBS_JOBID" "$(id -u)" >&2\n`;
    await withScript("prologue", tell("before"), 0o700, () =>
      withScript("epilogue", tell("after"), 0o700, async () => {
        const id = submit("-A", "acct", "-l", "ncpus=1,walltime=100", ...sh("echo in; exit 4"));
        const job = await complex.untilJob(id, "F");
        const [euser, egroup] = [job["euser"], job["egroup"]];
        const lines = output(id).split("\n");
        const wanted = "ncpus=1,nodect=1,place=pack,select=1:ncpus=1,walltime=00:01:40";
        assert.equal(lines[0], `before: ${id} ${euser} ${egroup} ${wanted}`);
        assert.equal(lines[1], "in");
        const used = "cpupercent=\\d+,cput=[\\d:]+,mem=\\d+kb,ncpus=1,vmem=\\d+kb,walltime=00:00:\\d\\d";
        const session = String(job["session_id"]);
        assert.match(lines[2] as string, new RegExp(`^after: ${id} ${euser} ${egroup} STDIN ${session} ${wanted} ${used} workq acct 4$`));
        const uid = mode === "system" ? 0 : statUid();
        assert.equal(output(id, "e"), `${id} ${uid}\n${id} ${uid}\n`);
        const log = complex.log("mom_logs");
        for (const line of ["running prologue", "completed prologue, exit=0", "running epilogue", "completed epilogue, exit=0"])
          assert.ok(log.includes(`;${id};${line}\n`), line);
      }),
    );
  });
  const statUid = (): number => Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${complex.pid("mom")}/status`, "latin1"))?.[1]);

  test("a prologue that says 1 ends the job, any other value sends it back", async () => {
    await withScript("prologue", "#!/bin/sh\nexit 1\n", 0o700, async () => {
      const id = submit(...sh("echo in"));
      assert.equal((await complex.untilJob(id, "F")).Exit_status, -2);
      const path = `${complex.pbsHome}/mom_priv/prologue`;
      assert.equal(output(id, "e"), `Could not run prolog: pro/epilogue failed, file: ${path}, exit: 1, nonzero p/e exit status\n`);
      assert.equal(output(id), "");
    });
    const once = join(complex.work(), "once");
    await withScript("prologue", `#!/bin/sh\n[ -e ${once} ] || { : > ${once}; exit 2; }\n`, 0o700, async () => {
      const id = submit(...sh("echo in"));
      const job = await complex.untilJob(id, "F");
      assert.deepEqual([job.run_count, job.Exit_status], [2, 0]);
      assert.equal(output(id), "in\n");
    });
  });

  test("a prologue that others may write, or that hangs, is not a prologue: the job is sent back", async () => {
    const path = `${complex.pbsHome}/mom_priv/prologue`;
    let id = "";
    await withScript("prologue", "#!/bin/sh\nexit 0\n", 0o722, async () => {
      id = submit(...sh("echo in"));
      await until("the log", () =>
        complex.log("mom_logs").includes(`;${id};pro/epilogue failed, file: ${path}, exit: -1, Permission Error\n`),
      );
    });
    await complex.untilJob(id, "F");
    writeFileSync(`${complex.pbsHome}/mom_priv/config`, "$prologalarm 1\n");
    process.kill(complex.pid("mom") as number, "SIGHUP");
    await until("the configuration", () => complex.log("mom_logs").includes("re-read configuration"));
    const pid = join(complex.work(), "hanging");
    await withScript("prologue", `#!/bin/sh\nsleep 600 & echo $! > ${pid}\nwait\n`, 0o700, async () => {
      id = submit(...sh("echo in"));
      await until("the log", () => complex.log("mom_logs").includes(`;${id};pro/epilogue failed, file: ${path}, exit: -3, wait failed\n`));
      await until("its child gone", () => !isAlive(Number(readFileSync(pid, "utf8"))));
    });
    assert.equal((await complex.untilJob(id, "F")).Exit_status, 0);
  });

  more({ complex: () => complex, submit, withHook });
}

// Commands through a resident: output, statuses and effects are the same as in a separate process, whatever happens to launcher
// or resident.
//
// The tested launchers are in an installation without bundles of the commands. A command that no resident runs ends with 127
// there, so no test can pass because a launcher quietly ran the command itself.

import assert from "node:assert/strict";
import { type SpawnSyncReturns, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { becoming, type Complex, isAlive, startComplex, until } from "../complex.ts";
import { lackOfCheckout } from "../needed-users.ts";
import { ROOT } from "../shared.ts";

const why = existsSync(join(ROOT, "dist", "pbs_launcher")) ? false : "there is no C compiler: no launcher, no residents";
const asRoot = why || lackOfCheckout("pbsuser1");
const NOT_HERE = 127;
const UNKNOWN_OUTCOME = 255;

let folder = "";
let complex: Complex;

before(async () => {
  if (why) return;
  folder = mkdtempSync(join(tmpdir(), "partita-resident-"));
  chmodSync(folder, 0o755);
  const dist = join(folder, "lib", "partita", "dist");
  mkdirSync(dist, { recursive: true });
  mkdirSync(join(folder, "bin"));
  symlinkSync(join(ROOT, "node_modules"), join(folder, "lib", "partita", "node_modules"));
  for (const name of ["pbs_launcher", "pbs_resident.mjs"]) copyFileSync(join(ROOT, "dist", name), join(dist, name));
  for (const name of ["qsub", "qstat", "qmgr", "qselect", "qdel", "qhold", "pbsnodes", "pbs_rstat", "tracejob"])
    linkSync(join(dist, "pbs_launcher"), join(folder, "bin", name));
  complex = await startComplex({ conf: { PARTITA_RESIDENT: "yes" } });
  complex.qmgr("set server scheduling = False", "set server job_history_enable = True");
});

after(async () => {
  if (why) return;
  for (const name of readdirSync(folder)) if (name.startsWith("runtime")) for (const { pid } of residents(join(folder, name))) kill(pid);
  await complex.stop();
  rmSync(folder, { recursive: true, force: true });
});

function kill(pid: number, signal: NodeJS.Signals = "SIGKILL"): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has ended by itself.
  }
}

let places = 0;
/** A directory for sockets of the residents of one test. */
function place(owner?: string): string {
  const path = join(folder, `runtime-${places++}`);
  mkdirSync(path, { mode: 0o700 });
  if (owner !== undefined) spawnSync("chown", [owner, path]);
  return path;
}

type Resident = { readonly pid: number; readonly socket: string; readonly mark: string };

/** Listening residents. */
function residents(runtime: string): readonly Resident[] {
  const directory = join(runtime, "partita");
  if (lstatSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true) return [];
  return readdirSync(directory)
    .filter((name) => name.endsWith(".sock"))
    .flatMap((name) => {
      const mark = join(directory, name.replace(/sock$/, "mark"));
      const pid = Number.parseInt(readFileSync(mark, "utf8"), 10);
      return pid > 1 && isAlive(pid) ? [{ pid, socket: join(directory, name), mark }] : [];
    });
}

type How = {
  readonly input?: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly as?: string;
  /** words before the command, such as sh -c ... sh */
  readonly by?: readonly string[];
};

function environment(runtime: string, how: How): NodeJS.ProcessEnv {
  // The launcher waits for a busy resident, however slow the machine is.
  return { ...complex.env(), PARTITA_RESIDENT: "yes", PARTITA_RESIDENT_ACCEPT_MS: "60000", XDG_RUNTIME_DIR: runtime, ...how.env };
}

function words(program: string, args: readonly string[], env: NodeJS.ProcessEnv, how: How): readonly string[] {
  const variables = Object.entries(env)
    .filter(([name]) => how.as !== undefined && /^(PARTITA|PBS|XDG|PATH$)/.test(name))
    .map(([name, value]) => `${name}=${value}`);
  return [...(how.as === undefined ? [] : [...becoming(how.as), "env", ...variables]), ...(how.by ?? []), program, ...args];
}

/** Runs a command by a launcher of the installation without bundles. */
function launch(runtime: string, command: string, args: readonly string[], how: How = {}): SpawnSyncReturns<string> {
  return spawned(join(folder, "bin", command), args, environment(runtime, how), how);
}

/** Runs a command as a separate process. */
function alone(command: string, args: readonly string[], how: How = {}): SpawnSyncReturns<string> {
  return spawned(complex.command(command), args, { ...environment("", how), PARTITA_RESIDENT: "no" }, how);
}

function spawned(program: string, args: readonly string[], env: NodeJS.ProcessEnv, how: How): SpawnSyncReturns<string> {
  const [first = "", ...rest] = words(program, args, env, how);
  const cwd = how.cwd ?? complex.work();
  return spawnSync(first, rest, { env, cwd, encoding: "utf8", input: how.input ?? "", maxBuffer: 1 << 28, timeout: 300_000 });
}

/** Repeats until a resident has run the command. A command that is always handed back ends in a timeout. */
async function served(runtime: string, command: string, args: readonly string[], how: How = {}): Promise<SpawnSyncReturns<string>> {
  return until(`${command} ${args.join(" ")} by a resident`, () => {
    const ran = launch(runtime, command, args, how);
    return ran.status !== NOT_HERE && ran;
  });
}

/** Starts a resident for ordinary circumstances. */
async function warm(runtime: string, how: How = {}): Promise<Resident> {
  await served(runtime, "qstat", ["--version"], how);
  const [resident] = residents(runtime);
  assert.ok(resident !== undefined);
  return resident;
}

const outcome = ({ status, signal, stdout, stderr }: SpawnSyncReturns<string>) => ({ status, signal, stdout, stderr });
const jobs = (): number => alone("qselect", []).stdout.split("\n").filter(Boolean).length;

test("the first command starts nothing, the second a resident, and none is started where it is not wanted or in a job", {
  skip: why,
}, async () => {
  const runtime = place();
  assert.equal(launch(runtime, "qstat", ["--version"], { env: { PARTITA_RESIDENT: "no" } }).status, NOT_HERE);
  assert.equal(existsSync(join(runtime, "partita")), false, "PARTITA_RESIDENT=no touches nothing");
  assert.equal(launch(runtime, "qstat", ["--version"]).status, NOT_HERE);
  const [mark = ""] = readdirSync(join(runtime, "partita"));
  assert.match(mark, /^[0-9a-f]{16}\.mark$/);
  assert.equal(launch(runtime, "qstat", ["--version"], { env: { PBS_JOBID: "1.svr" } }).status, NOT_HERE);
  assert.deepEqual(readdirSync(join(runtime, "partita")), [mark], "a job starts none");
  const { stdout } = await served(runtime, "qstat", ["--version"]);
  assert.equal(stdout, alone("qstat", ["--version"]).stdout);
  const inJob = launch(runtime, "qstat", ["--version"], { env: { PBS_JOBID: "1.svr" } });
  assert.equal(inJob.status, 0, "a job uses one that is there");
  const [resident] = residents(runtime) as [Resident];
  assert.equal(lstatSync(join(runtime, "partita")).mode & 0o777, 0o700);
  assert.equal(lstatSync(resident.socket).mode & 0o077, 0);
  assert.deepEqual(
    readdirSync(`/proc/${resident.pid}/fd`)
      .map(Number)
      .filter((fd) => fd < 4),
    [0, 1, 2, 3],
  );
  assert.equal(readFileSync(`/proc/${resident.pid}/environ`, "utf8").includes("PBS_"), false, "its environment is not that of a command");
});

test("listings, errors and refusals are the same bytes with the same status", { skip: why }, async () => {
  const runtime = place();
  const id = complex.submit(["-h", "-N", "same", "-l", "select=1:ncpus=1", "--", "/bin/true"]);
  await warm(runtime);
  const commands: readonly (readonly [command: string, args: readonly string[], how?: How])[] = [
    ["qstat", []],
    ["qstat", ["-f", id]],
    ["qstat", ["-f", "-F", "json", id], { env: { TZ: "Asia/Tokyo" } }],
    ["qstat", ["-f", id], { env: { TZ: "America/New_York" } }],
    ["qstat", ["-B", "-f"]],
    ["qstat", ["-Z"]],
    ["qstat", ["4711"]],
    ["qstat", ["1", "x y", "9999"]],
    ["qsub", ["-l", "nonsense"]],
    ["qsub", ["-q", "nowhere", "--", "/bin/true"]],
    ["qsub", ["no-such-script"]],
    ["qdel", ["9999", "9998"]],
    ["qmgr", ["-c", "p s"]],
    ["qmgr", ["-c", "list nonsense"]],
    ["qmgr", [], { input: "list queue workq\nset queue workq nonsense=1\nprint node @default\n" }],
    ["qmgr", ["-a"], { input: "set queue workq nonsense=1\nlist queue workq\n" }],
    ["pbsnodes", ["-a"]],
    ["pbs_rstat", []],
    ["qselect", ["-s", "H"]],
    ["qstat", ["--help"]],
    ["qstat", ["-B"], { env: { PBS_CONF_FILE: "/nonexistent", PARTITA_RESIDENT: "yes" } }],
  ];
  for (const [command, args, how] of commands) {
    const expected = outcome(alone(command, args, how));
    const what = `${command} ${args.join(" ")}`;
    const stable = (text: string): string => text.replace(/"timestamp":\t\d+/, "").replace(/last state change time = .*/g, "");
    const got = outcome(await served(runtime, command, args, how));
    assert.deepEqual({ ...got, stdout: stable(got.stdout) }, { ...expected, stdout: stable(expected.stdout) }, what);
  }
});

test("another complex, another directory, another environment: a resident serves them from one to the next", { skip: why }, async () => {
  const runtime = place();
  await warm(runtime);
  const elsewhere = join(folder, "elsewhere.conf");
  writeFileSync(elsewhere, readFileSync(join(complex.home, "pbs.conf"), "utf8").replace(/^PBS_HOME=.*/m, "PBS_HOME=/nonexistent"));
  for (const conf of [elsewhere, join(complex.home, "pbs.conf")])
    assert.deepEqual(
      outcome(await served(runtime, "qstat", ["-B"], { env: { PBS_CONF_FILE: conf } })),
      outcome(alone("qstat", ["-B"], { env: { PBS_CONF_FILE: conf } })),
    );
  const ids: string[] = [];
  for (const [run, name] of [
    [async (...given: Parameters<typeof alone>) => served(runtime, ...given), "through"],
    [async (...given: Parameters<typeof alone>) => alone(...given), "alone"],
  ] as const) {
    const cwd = join(folder, `cwd ${name}`);
    mkdirSync(join(cwd, "out"), { recursive: true });
    writeFileSync(join(cwd, "job.sh"), "#PBS -N scripted\necho hi\n");
    const env = { WITNESS: `a,b "c" ${name}`, PWD: cwd };
    ids.push((await run("qsub", ["-h", "-V", "-o", "out", "-e", "./err", "job.sh"], { cwd, env })).stdout.trim());
    ids.push((await run("qsub", ["-h", "-v", "WITNESS"], { cwd, env, input: "#PBS -A typed\necho hi\n" })).stdout.trim());
  }
  const shown = ids.map((id) => {
    const { Job_Name, Account_Name, Output_Path, Error_Path, Variable_List } = complex.job(id);
    const { WITNESS, PBS_O_WORKDIR } = Variable_List as Readonly<Record<string, string>>;
    return JSON.stringify([Job_Name, Account_Name, Output_Path, Error_Path, WITNESS, PBS_O_WORKDIR])
      .replaceAll("through", "alone")
      .replaceAll(/\.[oe]\d+/g, "");
  });
  assert.deepEqual(shown.slice(0, 2), shown.slice(2));
  assert.match(shown[0] as string, /cwd alone\/out\/.*cwd alone\/err/);
});

test("files are made with the umask of the caller: another one has a resident of its own", { skip: why }, async () => {
  const runtime = place();
  complex.qmgr("create hook witness");
  const hook = join(folder, "witness.py");
  writeFileSync(hook, "import pbs\n");
  complex.must("qmgr", ["-c", `import hook witness application/x-python default ${hook}`]);
  const modes = [];
  for (const umask of ["022", "077"]) {
    const file = `exported-${umask}`;
    const by = ["/bin/sh", "-c", `umask ${umask}; exec "$@"`, "sh"];
    const ran = await served(runtime, "qmgr", ["-c", `export hook witness application/x-python default ${file}`], { by });
    assert.deepEqual(outcome(ran), { status: 0, signal: null, stdout: "", stderr: "" });
    modes.push((statSync(join(complex.work(), file)).mode & 0o777).toString(8));
  }
  complex.qmgr("delete hook witness");
  assert.deepEqual(modes, ["644", "600"]);
  assert.equal(residents(runtime).length, 2);
});

test("a resident that is killed in the middle: the launcher says that the outcome is unknown, and the next one takes its place", {
  skip: why,
}, async () => {
  const runtime = place();
  const resident = await warm(runtime);
  const env = environment(runtime, {});
  const child = spawn(join(folder, "bin", "qsub"), ["-h"], { env, cwd: complex.work(), stdio: ["pipe", "pipe", "pipe"] });
  const before = jobs();
  let stderr = "";
  child.stderr.on("data", (text) => {
    stderr += text;
  });
  child.stdin.write("#PBS -N killed\n");
  // The resident has taken the first piece: the pipe is empty again.
  await until(
    "the launcher has read the first piece",
    () => readFileSync(`/proc/${child.pid}/wchan`, "utf8") !== "" && isPolling(child.pid as number),
  );
  kill(resident.pid);
  const [status] = await once(child, "close");
  assert.equal(status, UNKNOWN_OUTCOME);
  assert.match(stderr, /^qsub: .* it is not known whether the command was carried out\n$/);
  assert.equal(jobs(), before);
  assert.ok(lstatSync(resident.socket).isSocket(), "a stale socket is in the way");
  const { stdout } = await served(runtime, "qstat", ["--version"]);
  assert.match(stdout, /^pbs_version/);
  assert.notEqual(residents(runtime)[0]?.pid, resident.pid);
});

/** Whether a process waits only for descriptors. */
function isPolling(pid: number): boolean {
  return readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.[0] === "S" && readdirSync(`/proc/${pid}/fd`).length >= 4;
}

test("a launcher that is killed while it gives the script: half a script becomes no job", { skip: why }, async () => {
  const runtime = place();
  const resident = await warm(runtime);
  const before = jobs();
  const env = environment(runtime, {});
  for (const signal of ["SIGINT", "SIGKILL"] as const) {
    const child = spawn(join(folder, "bin", "qsub"), ["-h"], { env, cwd: complex.work(), stdio: ["pipe", "ignore", "ignore"] });
    child.stdin.write("#PBS -N half\necho half\n");
    await until("the launcher waits for more", () => isPolling(child.pid as number));
    child.kill(signal);
    const [, killed_by] = await once(child, "close");
    assert.equal(killed_by, signal);
  }
  assert.match((await served(runtime, "qstat", ["--version"])).stdout, /^pbs_version/);
  assert.equal(residents(runtime)[0]?.pid, resident.pid, "the resident is none the worse");
  assert.equal(jobs(), before);
});

test("a resident that does not answer is passed over, and does not carry the command out later", { skip: why }, async () => {
  const runtime = place();
  const resident = await warm(runtime);
  const before = jobs();
  kill(resident.pid, "SIGSTOP");
  const ran = launch(runtime, "qsub", ["-h", "--", "/bin/true"], { env: { PARTITA_RESIDENT_ACCEPT_MS: "50" } });
  assert.equal(ran.status, NOT_HERE);
  kill(resident.pid, "SIGCONT");
  assert.equal((await served(runtime, "qstat", ["--version"])).status, 0);
  assert.equal(residents(runtime)[0]?.pid, resident.pid);
  assert.equal(jobs(), before);
});

test("a directory that is not ours alone has no resident: a link, an open one, one of another user", { skip: why }, async () => {
  const target = join(folder, "target");
  mkdirSync(target, { mode: 0o700 });
  const bad: ((path: string) => void)[] = [
    (path) => symlinkSync(target, path),
    (path) => mkdirSync(path, { mode: 0o755 }),
    (path) => writeFileSync(path, ""),
    ...(process.geteuid?.() === 0 ? [(path: string) => void spawnSync("install", ["-d", "-m", "700", "-o", "nobody", path])] : []),
  ];
  for (const make of bad) {
    const runtime = place();
    const path = join(runtime, "partita");
    make(path);
    for (let i = 0; i < 3; i++) assert.equal(launch(runtime, "qstat", ["--version"]).status, NOT_HERE);
    assert.deepEqual(lstatSync(path).isFile() ? [] : readdirSync(path), []);
  }
});

test("much output arrives whole through a slow reader; a reader that goes ends the command as SIGPIPE would", { skip: why }, async () => {
  const runtime = place();
  const resident = await warm(runtime);
  complex.must("qsub", ["--batch", "-"], { input: "-h -N many -l select=1:ncpus=1 -- /bin/true\n".repeat(2000) });
  const expected = alone("qstat", ["-f"]).stdout;
  assert.ok(expected.length > 1_000_000);
  const env = environment(runtime, {});
  const start = () => spawn(join(folder, "bin", "qstat"), ["-f"], { env, stdio: ["ignore", "pipe", "pipe"] });
  const slow = start();
  let got = "";
  slow.stdout.setEncoding("utf8");
  for await (const piece of slow.stdout) {
    got += piece;
    // Another command is served between the pieces: the slow reader blocks nobody.
    if (got.length < 400_000) assert.equal(launch(runtime, "qstat", ["--version"]).status, 0);
  }
  assert.equal(got, expected);
  const closing = start();
  let stderr = "";
  closing.stderr.on("data", (text) => {
    stderr += text;
  });
  closing.stdout.once("data", () => closing.stdout.destroy());
  const [status] = await once(closing, "close");
  assert.deepEqual([status, stderr], [141, ""]);
  const full = spawnSync(join(folder, "bin", "qstat"), ["-B"], {
    env,
    encoding: "utf8",
    stdio: ["ignore", openSync("/dev/full", "w"), "pipe"],
  });
  const fullAlone = spawnSync(complex.command("qstat"), ["-B"], {
    env: { ...env, PARTITA_RESIDENT: "no" },
    encoding: "utf8",
    stdio: ["ignore", openSync("/dev/full", "w"), "pipe"],
  });
  assert.deepEqual([full.status, full.stderr], [fullAlone.status, fullAlone.stderr]);
  assert.equal(residents(runtime)[0]?.pid, resident.pid);
});

test("closed standard streams are as /dev/null, for a launcher as for Node", { skip: why }, async () => {
  const runtime = place();
  await warm(runtime);
  const by = ["/bin/sh", "-c", 'exec "$@" <&- >&-', "sh"];
  assert.equal(launch(runtime, "qstat", ["--version"], { by }).status, 0, "the same environment in another order is the same");
  const before = jobs();
  assert.deepEqual(outcome(launch(runtime, "qsub", ["-h", "--", "/bin/true"], { by })), {
    status: 0,
    signal: null,
    stdout: "",
    stderr: "",
  });
  assert.equal(jobs(), before + 1);
});

test("many commands at once are each carried out once", { skip: why }, async () => {
  const runtime = place();
  await warm(runtime);
  const before = jobs();
  const env = environment(runtime, {});
  const ids = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const child = spawn(join(folder, "bin", "qsub"), ["-h", "--", "/bin/true"], { env, stdio: ["ignore", "pipe", "inherit"] });
      let out = "";
      child.stdout.on("data", (text) => {
        out += text;
      });
      const [status] = await once(child, "close");
      assert.equal(status, 0);
      return out.trim();
    }),
  );
  assert.equal(new Set(ids).size, 20);
  assert.equal(jobs(), before + 20);
});

test("a resident ends when it is idle, after so many commands, and leaves no socket", { skip: why }, async () => {
  for (const [limits, commands] of [
    [{ PARTITA_RESIDENT_IDLE: "1" }, 0],
    [{ PARTITA_RESIDENT_COMMANDS: "3" }, 4],
  ] as const) {
    const runtime = place();
    const resident = await warm(runtime, { env: limits });
    for (let i = 0; i < commands; i++) launch(runtime, "qstat", ["--version"], { env: { ...limits, PBS_JOBID: "1.svr" } });
    await until("it has ended", () => !isAlive(resident.pid));
    assert.equal(existsSync(resident.socket), false);
  }
});

test("a resident removes marks and sockets that nobody has used for a day, but none whose lock is held", { skip: why }, async () => {
  const runtime = place();
  const directory = join(runtime, "partita");
  mkdirSync(directory, { mode: 0o700 });
  const old = (name: string): void => {
    writeFileSync(join(directory, name), "");
    utimesSync(join(directory, name), 1_000_000, 1_000_000);
  };
  for (const name of ["00000000000000aa.mark", "00000000000000aa.sock", "00000000000000bb.mark", "another file"]) old(name);
  const holder = spawn("flock", [join(directory, "00000000000000bb.mark"), "sh", "-c", "echo held; cat"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  await once(holder.stdout, "data");
  const resident = await warm(runtime);
  const expected = ["00000000000000bb.mark", basename(resident.mark), basename(resident.socket), "another file"].sort();
  await until("the old ones are gone", () => JSON.stringify(readdirSync(directory).sort()) === JSON.stringify(expected));
  holder.stdin.end();
});

test("a new build has a new resident, and the old one ends", { skip: why }, async () => {
  const runtime = place();
  const old = await warm(runtime);
  const bundle = join(folder, "lib", "partita", "dist", "pbs_resident.mjs");
  copyFileSync(bundle, `${bundle}.new`);
  renameSync(`${bundle}.new`, bundle);
  assert.equal(launch(runtime, "qstat", ["--version"]).status, NOT_HERE, "the old one is not asked");
  await served(runtime, "qstat", ["--version"]);
  await until("the old resident has ended", () => !isAlive(old.pid));
});

test("what needs a process of its own is handed back, also when that turns out late", { skip: why }, async () => {
  const runtime = place();
  await warm(runtime);
  const script = join(complex.work(), "interactive.sh");
  writeFileSync(script, "#PBS -I\n");
  for (const [command, args] of [
    ["tracejob", ["1"]],
    ["qsub", ["-I"]],
    ["qsub", ["--batch", "-"]],
    ["qstat", ["-f", "/proc/self/fd/0"]],
  ] as const)
    assert.equal(launch(runtime, command, args).status, NOT_HERE, command);
  assert.equal(launch(runtime, "qstat", ["-B"], { env: { PBS_CONF_FILE: "pbs.conf" } }).status, NOT_HERE);
});

test("root and another user have residents of their own, each under its own identity", { skip: asRoot }, async () => {
  const user = "pbsuser1";
  const [mine, theirs] = [place(), place(user)];
  await warm(mine);
  const how = { as: user, cwd: "/" };
  await served(theirs, "qstat", ["--version"], how);
  const [resident] = residents(theirs) as [Resident];
  assert.equal(statSync(`/proc/${resident.pid}`).uid, Number(spawnSync("id", ["-u", user], { encoding: "utf8" }).stdout));
  // The complex belongs to root, so the answer shows as which user its resident connects.
  assert.deepEqual(outcome(await served(theirs, "qstat", ["-B"], how)), outcome(alone("qstat", ["-B"], how)));
  const foreign = launch(mine, "qstat", ["-B"], { ...how, env: { PARTITA_RESIDENT_AFTER: "0" } });
  assert.equal(foreign.status, NOT_HERE, "another user's directory is not used");
  assert.equal(residents(mine).length, 1);
});

test("a server that was killed or restarted between two commands is connected to anew", { skip: why }, async () => {
  const runtime = place();
  const resident = await warm(runtime);
  const show = (): { readonly status: number | null; readonly stderr: string } => {
    const { status, stderr } = launch(runtime, "qstat", ["-B"]);
    return { status, stderr };
  };
  for (const end of [() => complex.halt(), () => kill(complex.pid("server") as number)]) {
    assert.deepEqual(show(), { status: 0, stderr: "" });
    end();
    await until("the server is gone", () => complex.pid("server") === null);
    // Threads of a killed process may hold its sockets slightly longer than the process exists.
    await until("the server is refused", () => /^Connection refused\nqstat: cannot connect to server/.test(show().stderr));
    complex.start();
    assert.deepEqual(show(), { status: 0, stderr: "" });
  }
  assert.equal(residents(runtime)[0]?.pid, resident.pid);
});

test("partita doctor shows the caller's residents, partita stop ends them", { skip: why }, async () => {
  const runtime = place();
  const env = environment(runtime, {});
  const qstat = () => spawnSync(complex.command("qstat"), ["--version"], { env });
  const partita = (...args: readonly string[]) =>
    spawnSync(complex.command("partita"), [...args, "--home", complex.home], { env, encoding: "utf8" }).stdout;
  await until("a resident of the checkout", () => {
    qstat();
    return residents(runtime).length === 1;
  });
  const [resident] = residents(runtime) as [Resident];
  assert.match(partita("doctor"), new RegExp(`your residents run commands: pid ${resident.pid}\n`));
  assert.match(partita("stop"), /pbs_resident/);
  assert.equal(isAlive(resident.pid), false);
  complex.start();
});

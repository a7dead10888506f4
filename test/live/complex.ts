// A complex for a test: created by `partita init` in a temporary directory and started. It is stopped and removed completely at
// the end, also if the test is interrupted.

import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import { appendFileSync, chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ROOT } from "./shared.ts";

export type ComplexOptions = {
  /** default: user. system needs root */
  readonly mode?: "user" | "system";
  /** user mode as this user instead of ourselves (root only) */
  readonly owner?: string;
  /** further lines of pbs.conf */
  readonly conf?: Readonly<Record<string, string>>;
  /** files to make below PBS_HOME before the first start, for their owner alone: path -> text */
  readonly files?: Readonly<Record<string, string>>;
  /** everything of the complex is on a separate disk of this size (root only) */
  readonly disk_mb?: number;
};

export type RunOptions = { readonly as?: string; readonly input?: string; readonly cwd?: string };
export type Daemon = "server" | "mom" | "comm" | "starter";
export type JobRecord = Readonly<Record<string, unknown>> & {
  readonly job_state: string;
  readonly queue: string;
  readonly exec_vnode?: string;
  readonly Exit_status?: number;
  readonly comment?: string;
  readonly run_count?: number;
};

export type Complex = {
  readonly mode: "user" | "system";
  /** the directory given to --home; it contains pbs.conf */
  readonly home: string;
  /** PBS_HOME */
  readonly pbsHome: string;
  /** PBS_EXEC/bin and sbin first in PATH, PBS_CONF_FILE set */
  env(): NodeJS.ProcessEnv;
  /** absolute path of a command of the installation */
  command(name: string): string;
  /** a directory for files of a user's jobs, created on first use; no user: the owner of the complex */
  work(user?: string): string;
  /** runs a command of the complex in the work directory and waits for it; as: user to become (root only) */
  run(command: string, args: readonly string[], options?: RunOptions): SpawnSyncReturns<string>;
  /** as run(), but a status other than 0 throws an error with all output */
  must(command: string, args: readonly string[], options?: RunOptions): string;
  /** runs qmgr lines; throws if one of them fails */
  qmgr(...lines: readonly string[]): string;
  /** runs qsub and returns the id */
  submit(args: readonly string[], options?: RunOptions): string;
  /** jobs as `qstat -x -f -F json` shows them; no ids: all */
  jobs(...ids: readonly string[]): Readonly<Record<string, JobRecord>>;
  job(id: string): JobRecord;
  /** waits until the job is in that state, and returns it */
  untilJob(id: string, state: string): Promise<JobRecord>;
  /** pid of a running daemon; null: it does not run */
  pid(daemon: Daemon): number | null;
  schedPid(name: string): number | null;
  /** starts daemons that do not run; returns when all are up */
  start(): void;
  /** stops the complex as an administrator would */
  halt(): void;
  /** the contents of a directory of logs below PBS_HOME */
  log(directory: string): string;
  /** stops and removes everything */
  stop(): Promise<void>;
};

const LOCKS: Readonly<Record<Daemon, string>> = {
  server: "server_priv/server.lock",
  mom: "mom_priv/mom.lock",
  comm: "server_priv/comm.lock",
  starter: "mom_priv/starter.lock",
};
const COMMAND_MS_MAX = 300_000;

/** Mode system needs root. The directory is readable for other users, because jobs run as them. */
export async function startComplex(options: ComplexOptions = {}): Promise<Complex> {
  const dir = mkdtempSync(join(tmpdir(), "partita-complex-"));
  chmodSync(dir, 0o755);
  if (options.disk_mb !== undefined)
    check(spawnSync("mount", ["-t", "tmpfs", "-o", `size=${options.disk_mb}m,mode=755`, "none", dir], { encoding: "utf8" }));
  if (options.owner !== undefined) chown(dir, options.owner);
  const complex = makeComplex(dir, options);
  const onExit = (): void => dispose(dir, complex.home);
  process.once("exit", onExit);
  try {
    complex.start();
  } catch (error) {
    const told = logsOf(complex.pbsHome);
    dispose(dir, complex.home);
    process.off("exit", onExit);
    throw new Error(`${(error as Error).message}\n${told}`);
  }
  return {
    ...complex,
    async stop() {
      process.off("exit", onExit);
      dispose(dir, complex.home);
      await sleep(0);
    },
  };
}

// node:test ends a file's process with these signals; the complexes must be removed then.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

function makeComplex(dir: string, options: ComplexOptions): Omit<Complex, "stop"> {
  const mode = options.mode ?? "user";
  const home = join(dir, "complex");
  const exec = mode === "system" ? join(dir, "opt") : ROOT;
  const program = join(ROOT, "bin", "partita");
  const become = options.owner === undefined ? [] : becoming(options.owner);
  const partita = (...args: readonly string[]): string => {
    const words = [...become, program, ...args, "--home", home];
    return check(spawnSync(words[0] as string, words.slice(1), { encoding: "utf8", cwd: dir }));
  };
  partita("init", ...(mode === "system" ? ["--system", "--prefix", exec] : []));
  const conf = join(home, "pbs.conf");
  // Every complex numbers its jobs from 1, so their jobs' directories must not share /var/tmp. A resident would outlive the
  // test, so it is off unless a test asks for one (test/README.md).
  const lines = {
    PARTITA_RESIDENT: process.env["PARTITA_RESIDENT"] ?? "no",
    ...(mode === "system" ? { PBS_TMPDIR: join(dir, "tmp") } : {}),
    ...options.conf,
  };
  appendFileSync(
    conf,
    Object.entries(lines)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(""),
  );
  const pbsHome = /^PBS_HOME=(.*)$/m.exec(readFileSync(conf, "utf8"))?.[1] as string;
  for (const [path, text] of Object.entries(options.files ?? {})) {
    writeFileSync(join(pbsHome, path), text, { mode: 0o600 });
    if (options.owner !== undefined) chown(join(pbsHome, path), options.owner);
  }
  // Tests start with the server's own defaults and set what they need.
  rmSync(join(pbsHome, "server_priv/first_start"), { force: true });
  const path = [join(exec, "bin"), ...(mode === "system" ? [join(exec, "sbin")] : []), process.env["PATH"]].join(":");
  const env = (): NodeJS.ProcessEnv => ({ ...process.env, PATH: path, PBS_CONF_FILE: conf });
  const command = (name: string): string =>
    join(exec, /^pbs_(server|sched|mom|comm)$/.test(name) && mode === "system" ? "sbin" : "bin", name);
  const work = (user = options.owner): string => {
    const directory = join(dir, user === undefined ? "work" : `work-${user}`);
    mkdirSync(directory, { recursive: true });
    if (user !== undefined) chown(directory, user);
    return directory;
  };
  const run: Complex["run"] = (name, args, { as = options.owner, input, cwd } = {}) => {
    const words = [...(as === undefined ? [] : [...becoming(as), "env", `PATH=${path}`, `PBS_CONF_FILE=${conf}`]), command(name), ...args];
    return spawnSync(words[0] as string, words.slice(1), {
      env: env(),
      encoding: "utf8",
      ...(input === undefined ? {} : { input }),
      cwd: cwd ?? work(as),
      timeout: COMMAND_MS_MAX,
      maxBuffer: 1 << 28,
    });
  };
  const must: Complex["must"] = (name, args, how) => check(run(name, args, how), `${name} ${args.join(" ")}`);
  const jobs: Complex["jobs"] = (...ids) =>
    (JSON.parse(must("qstat", ["-x", "-f", "-F", "json", ...ids])) as { readonly Jobs?: Record<string, JobRecord> }).Jobs ?? {};
  const job = (id: string): JobRecord => {
    const found = jobs(id)[id];
    if (found === undefined) throw new Error(`qstat does not show ${id}`);
    return found;
  };
  return {
    mode,
    home,
    pbsHome,
    env,
    command,
    work,
    run,
    must,
    qmgr: (...lines) => lines.map((line) => must("qmgr", ["-c", line])).join(""),
    submit: (args, how) => must("qsub", args, how).trim(),
    jobs,
    job,
    untilJob: (id, state) => untilJob(() => job(id), id, state),
    pid: (daemon) => lockHolder(join(pbsHome, LOCKS[daemon])),
    schedPid: (name) => lockHolder(join(pbsHome, name === "default" ? "sched_priv" : `sched_priv_${name}`, "sched.lock")),
    start: () => void partita("start"),
    halt: () => void partita("stop"),
    log: (directory) => logText(join(pbsHome, directory)),
  };
}

async function untilJob(ask: () => JobRecord, id: string, state: string): Promise<JobRecord> {
  let last: JobRecord | undefined;
  return until(`${id} in state ${state}`, () => {
    last = ask();
    return last.job_state === state && last;
  }).catch((error: Error) => {
    throw new Error(`${error.message}; it is ${JSON.stringify(last, null, 1)}`);
  });
}

/** Asks until the condition holds. what: named in the error if it never holds. */
export async function until<T>(what: string, ask: () => T | undefined | false | Promise<T | undefined | false>, limit_s = 300): Promise<T> {
  const deadline_ms = performance.now() + limit_s * 1000;
  for (;;) {
    const seen = await ask();
    if (seen !== undefined && seen !== false) return seen as T;
    if (performance.now() > deadline_ms) throw new Error(`not within ${limit_s} s: ${what}`);
    await sleep(100);
  }
}

/** Whether a process exists and is not a zombie. */
export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat[stat.lastIndexOf(")") + 2] !== "Z";
  } catch {
    return false;
  }
}

/** The words that precede a command to run it as that user, in an environment like that of a login. */
export function becoming(user: string): readonly string[] {
  return ["setpriv", `--reuid=${user}`, `--regid=${user}`, "--init-groups", "--reset-env"];
}

export function lockHolder(path: string): number | null {
  let pid: number;
  try {
    pid = Number.parseInt(readFileSync(path, "utf8"), 10);
  } catch {
    return null;
  }
  return pid > 1 && isAlive(pid) ? pid : null;
}

function logText(directory: string): string {
  try {
    return readdirSync(directory)
      .filter((name) => /^\d{8}/.test(name))
      .sort()
      .map((name) => readFileSync(join(directory, name), "utf8"))
      .join("");
  } catch {
    return "";
  }
}

/** The last lines of the logs, for a failed start. */
function logsOf(pbsHome: string): string {
  return ["server_logs", "sched_logs", "mom_logs"]
    .map((directory) => `${directory}:\n${logText(join(pbsHome, directory)).split("\n").slice(-15).join("\n")}`)
    .join("\n");
}

/** Longer than a stop itself waits, so that its own message is seen. */
const STOP_MS_MAX = 200_000;

/** Removes a complex in steps: if it cannot be stopped normally it is killed with its jobs, and then its files are removed. */
function dispose(dir: string, home: string): void {
  const partita = join(ROOT, "bin", "partita");
  const stopped = spawnSync(partita, ["stop", "--home", home], { encoding: "utf8", timeout: STOP_MS_MAX });
  if (stopped.status !== 0)
    process.stderr.write(
      `partita stop: ${stopped.stdout}${stopped.stderr}${stopped.signal === null ? "" : `ended by ${stopped.signal}`}\n`,
    );
  for (const pid of holders(join(home, "pbs"))) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // The process has ended by itself.
    }
  }
  spawnSync("sh", ["-c", 'grep -q " $1 tmpfs " /proc/mounts && umount -l "$1"', "sh", dir]);
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
}

/** Daemons of a complex that should have ended. */
function holders(pbsHome: string): readonly number[] {
  const locks = Object.values(LOCKS).map((lock) => join(pbsHome, lock));
  try {
    for (const name of readdirSync(pbsHome)) if (name.startsWith("sched_priv")) locks.push(join(pbsHome, name, "sched.lock"));
  } catch {
    return [];
  }
  return locks.flatMap((lock) => lockHolder(lock) ?? []);
}

function chown(path: string, user: string): void {
  const id = (flag: string): number => Number(check(spawnSync("id", [flag, user], { encoding: "utf8" })));
  chownSync(path, id("-u"), id("-g"));
}

export function check(result: SpawnSyncReturns<string>, what?: string): string {
  if (result.status === 0) return result.stdout;
  const status = `status ${result.status ?? result.signal}: ${result.stdout}${result.stderr}${result.error ?? ""}`;
  throw new Error(what === undefined ? status : `${what}: ${status}`);
}

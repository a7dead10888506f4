// Processes of local schedulers: starts them as children that outlive the server, watches them and ends them. The core
// decides which schedulers should run (scheds/session.ts).
//
// I1. A scheduler is started with the directories that its attributes name, if these pass their checks.
// I2. While a process has the lock of a sched_priv, no second process is started there. If an earlier server has started
//     that process, it connects by itself.

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { LOG_FAULT, PRIV_FAULT, SCHED_ENV } from "#protocol/sched-link.ts";
import { nth } from "#support/assert.ts";
import { messageOf } from "#support/caught.ts";
import { isLocked, readPid } from "#support/libc/lock-file.ts";
import type { UserDatabase } from "#support/passwd.ts";
import { checkLogDirectory, checkPrivate, openSchedOut } from "#support/sched-directory.ts";
import { trustedDirectory } from "#support/trusted-file.ts";
import type { ProcessesPort } from "../driver/ports.ts";
import type { SchedSight } from "../scheds/heartbeat.ts";
import type { SchedEnd } from "../scheds/session.ts";
import { makeSchedDirectories } from "./sched-directories.ts";

export type SchedProcessesOptions = {
  readonly home: string;
  readonly exec: string;
  /** whether the complex is in system mode, where schedulers run as their sched_user */
  readonly system: boolean;
  readonly users: UserDatabase;
  /** attributes of a scheduler; undefined: it was deleted */
  attrsOf(name: string): { readonly [name: string]: unknown } | undefined;
  exited(name: string, how: SchedEnd): void;
  /** called when a scheduler was not started because a directory fails its check. text: for the scheduler's comment */
  unfit(name: string, text: string): void;
  log(name: string, text: string): void;
};

export type SchedProcesses = ProcessesPort & {
  /** resolves when all processes that were told to end have ended */
  stopped(): Promise<void>;
};

const LOCK_POLL_MS = 500;
const KILL_AFTER_MS = 10_000;
const LOOK_MS = 50;

export function schedProcesses(options: SchedProcessesOptions): SchedProcesses {
  return new LocalScheds(options);
}

type Child = { readonly process: ChildProcess; stopped: boolean };

class LocalScheds implements SchedProcesses {
  readonly #options: SchedProcessesOptions;
  readonly #children = new Map<string, Child>();
  /** pids of all processes that were started here. The end of each is reported, before or after the loss of its connection */
  readonly #started = new Set<number>();
  /** names of schedulers whose lock another process has; the server waits until that process has connected or ended */
  readonly #waiting = new Set<string>();
  readonly #stopping = new Set<Promise<void>>();
  /** killed processes that are not children and have not ended yet; each end is reported once */
  readonly #dying = new Set<number>();

  constructor(options: SchedProcessesOptions) {
    this.#options = options;
  }

  start(name: string): void {
    const options = this.#options;
    const attrs = options.attrsOf(name);
    if (attrs === undefined || this.#children.has(name) || attrs["state"] !== "down") return;
    if (isLocked(lockOf(attrs))) return this.#awaitLock(name);
    let child: ChildProcess;
    try {
      const runner = runnerOf(options, attrs);
      makeOwnDirectories(options, name, attrs, runner);
      const unfit = whyUnfit(options, attrs, runner);
      if (unfit !== null) {
        options.log(name, `scheduler is not started: ${unfit.why}`);
        return options.unfit(name, unfit.text);
      }
      child = launch(name, attrs, runner);
    } catch (error) {
      options.log(name, `scheduler cannot be started: ${messageOf(error)}`);
      return options.exited(name, { code: 1, signal: null, stopped: false });
    }
    this.#follow(name, { process: child, stopped: false }, lockOf(attrs));
  }

  /** Makes the directories of a scheduler that does not run. Faults are reported only when it is started. */
  prepare(name: string): void {
    const options = this.#options;
    const attrs = options.attrsOf(name);
    if (attrs === undefined) return;
    try {
      makeOwnDirectories(options, name, attrs, runnerOf(options, attrs));
    } catch (error) {
      options.log(name, `directories cannot be made: ${messageOf(error)}`);
    }
  }

  say(name: string, text: string): void {
    const options = this.#options;
    this.prepare(name);
    const attrs = options.attrsOf(name);
    if (attrs === undefined) return;
    try {
      const child = launch(name, attrs, runnerOf(options, attrs), { [SCHED_ENV.say]: text });
      child.once("error", (error) => options.log(name, `its log cannot be written: ${error.message}`));
    } catch (error) {
      options.log(name, `its log cannot be written: ${messageOf(error)}`);
    }
  }

  stop(name: string, pid: number): void {
    const entry = this.#children.get(name);
    if (entry !== undefined) entry.stopped = true;
    const target = entry?.process.pid ?? pid;
    if (target <= 0) return;
    const gone = terminate(target, () => (entry === undefined ? isAlive(target) : this.#children.get(name) === entry));
    this.#stopping.add(gone);
    void gone.then(() => this.#stopping.delete(gone));
  }

  look(name: string, pid: number, done: (sight: SchedSight) => void): void {
    const target = pid > 0 ? pid : (this.#ownerOf(name) ?? 0);
    const process = processState(target);
    done({ pid: target, process: process === null ? "none" : /^[Tt]$/.test(process) ? "stopped" : "runs" });
  }

  kill(name: string, pid: number): void {
    const options = this.#options;
    if (this.#ownerOf(name) !== pid) {
      options.log(name, `process ${pid} is not the scheduler any more`);
      // The process has ended and never had a connection, so nothing else reports its end.
      if (!this.#children.has(name) && !isAlive(pid)) options.exited(name, { code: null, signal: "unknown", stopped: false, pid });
      return;
    }
    send(pid, "SIGKILL");
    if (this.#children.has(name) || this.#dying.has(pid)) return;
    this.#dying.add(pid);
    void gone(pid).then(() => {
      this.#dying.delete(pid);
      options.exited(name, { code: null, signal: "SIGKILL", stopped: false, pid });
    });
  }

  isChild(pid: number): boolean {
    return this.#started.has(pid);
  }

  isAlive(pid: number): boolean {
    return isAlive(pid);
  }

  stopAll(scheds: readonly { readonly name: string; readonly pid: number }[], done: () => void): void {
    for (const { name, pid } of scheds) this.stop(name, pid);
    if (scheds.length === 0) done();
    else void this.stopped().then(done);
  }

  async stopped(): Promise<void> {
    await Promise.all(this.#stopping);
  }

  /** Waits until the process that has the lock has connected, or has ended and released the lock. */
  #awaitLock(name: string): void {
    if (this.#waiting.has(name)) return;
    this.#waiting.add(name);
    setTimeout(() => {
      this.#waiting.delete(name);
      this.start(name);
    }, LOCK_POLL_MS).unref();
  }

  /** Reports the end of a child when it comes. lock: the lock file in its sched_priv. */
  #follow(name: string, entry: Child, lock: string): void {
    const options = this.#options;
    const { process: child } = entry;
    this.#children.set(name, entry);
    if (child.pid !== undefined) this.#started.add(child.pid);
    options.log(name, `starting, pid ${child.pid ?? "unknown"}`);
    const ended = (code: number | null, signal: string | null): void => {
      if (this.#children.get(name) !== entry) return;
      this.#children.delete(name);
      // Another process took the lock between the check and the start: that process is the scheduler.
      if (code !== 0 && signal === null && isLocked(lock)) return this.#awaitLock(name);
      options.exited(name, { code, signal, stopped: entry.stopped, ...(child.pid === undefined ? {} : { pid: child.pid }) });
    };
    child.once("exit", ended);
    child.once("error", (error) => {
      options.log(name, `scheduler cannot be started: ${error.message}`);
      ended(1, null);
    });
  }

  /**
   * The pid of a scheduler's process: the child, or the process that the lock file names. The file belongs to the
   * scheduler's user, who could write any pid into it. Therefore a process of another user is not accepted.
   */
  #ownerOf(name: string): number | null {
    const child = this.#children.get(name)?.process.pid;
    if (child !== undefined) return child;
    const { system, users } = this.#options;
    const attrs = this.#options.attrsOf(name);
    if (attrs === undefined) return null;
    const lock = lockOf(attrs);
    const pid = isLocked(lock) ? readPid(lock) : null;
    const sched_user = system && typeof attrs["sched_user"] === "string" ? users.userByName(attrs["sched_user"])?.uid : null;
    return pid !== null && uidOf(pid) === (sched_user ?? process.getuid?.()) ? pid : null;
  }
}

const lockOf = (attrs: SchedAttrs): string => join(String(attrs["sched_priv"]), "sched.lock");

/** Whether a process exists. A zombie counts as dead, because the process that should reap it (for example process 1 of a container) may never do so. */
function isAlive(pid: number): boolean {
  const state = processState(pid);
  return state !== null && !/[ZX]/.test(state);
}

/** The state of a process as a letter of proc(5): T and t: suspended (SIGSTOP, a debugger), Z: a zombie. null: there is no such process. */
function processState(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.charAt(stat.lastIndexOf(")") + 2);
  } catch {
    return null;
  }
}

function uidOf(pid: number): number | null {
  try {
    return statSync(`/proc/${pid}`).uid;
  } catch {
    return null;
  }
}

async function gone(pid: number): Promise<void> {
  while (isAlive(pid)) await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has just ended.
  }
}

async function terminate(pid: number, lives: () => boolean): Promise<void> {
  send(pid, "SIGTERM");
  const end = Date.now() + KILL_AFTER_MS;
  while (lives()) {
    if (Date.now() > end) send(pid, "SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

type SchedAttrs = { readonly [name: string]: unknown };
/** The user and group under which a scheduler runs; null: the user and group of the server. */
type Runner = { readonly uid: number; readonly gid: number } | null;

/** The user under which a scheduler must run. Throws if there is no such user. */
function runnerOf({ system, users }: SchedProcessesOptions, attrs: SchedAttrs): Runner {
  const name = attrs["sched_user"];
  if (!system || typeof name !== "string") return null;
  const user = users.userByName(name);
  if (user === null) throw new Error(`no user ${name}`);
  return user.uid === process.getuid?.() ? null : { uid: user.uid, gid: user.gid };
}

function makeOwnDirectories({ home, exec }: SchedProcessesOptions, name: string, attrs: SchedAttrs, runner: Runner): void {
  const [sched_priv, sched_log] = [String(attrs["sched_priv"]), String(attrs["sched_log"])];
  makeSchedDirectories({ name, home, sched_priv, sched_log, defaults: defaultsDirectory(exec), owner: runner });
}

/** The fault of a scheduler's directories; null: none. text: the fault in the words of the scheduler itself. */
function whyUnfit(
  { system }: SchedProcessesOptions,
  attrs: SchedAttrs,
  runner: Runner,
): { readonly text: string; readonly why: string } | null {
  const [sched_priv, sched_log] = [String(attrs["sched_priv"]), String(attrs["sched_log"])];
  const above = (path: string): string | null => (system ? whyUntrusted(path, [0, runner?.uid ?? 0]) : null);
  const log = checkLogDirectory(sched_log, runner?.uid) ?? above(sched_log);
  if (log !== null) return { text: LOG_FAULT, why: log };
  const priv = checkPrivate(sched_priv, runner?.uid) ?? above(sched_priv);
  return priv === null ? null : { text: PRIV_FAULT, why: priv };
}

/** Names a user who could replace this directory and is not one of the trusted owners; null: there is none. */
function whyUntrusted(path: string, owners: readonly number[]): string | null {
  try {
    trustedDirectory(path, owners);
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

function launch(name: string, attrs: SchedAttrs, runner: Runner, more: { readonly [variable: string]: string } = {}): ChildProcess {
  const [sched_priv, sched_log] = [String(attrs["sched_priv"]), String(attrs["sched_log"])];
  const command = [process.execPath, schedProgram(), ...(name === "default" ? [] : ["-I", name]), "-N"];
  // setpriv is needed because Node.js (libuv) alone would drop the user's supplementary groups.
  if (runner !== null) command.unshift("setpriv", `--reuid=${runner.uid}`, `--regid=${runner.gid}`, "--init-groups", "--");
  const out = openSchedOut(sched_priv) ?? "ignore";
  const env = { ...process.env, [SCHED_ENV.priv]: sched_priv, [SCHED_ENV.log]: sched_log, ...more };
  const child = spawn(nth(command, 0), command.slice(1), { stdio: ["ignore", out, out], detached: true, cwd: "/", env });
  if (typeof out === "number") closeSync(out);
  return child;
}

/** The path of the scheduler program, which is beside this program: the bundle in dist/, or the source file if the server runs from source. */
function schedProgram(): string {
  const self = fileURLToPath(import.meta.url);
  return basename(dirname(self)) === "shell" ? join(dirname(self), "../../sched/main.ts") : join(dirname(self), "pbs_sched.mjs");
}

/** The directory with the default files of the installation: PBS_EXEC/etc, or etc/ beside the program. */
function defaultsDirectory(exec: string): string {
  const self = dirname(fileURLToPath(import.meta.url));
  const candidates = [join(exec, "etc"), join(self, "../etc"), join(self, "../../etc"), join(self, "../../../etc")];
  return candidates.find((path) => existsSync(join(path, "pbs_sched_config"))) ?? candidates[0] ?? "";
}

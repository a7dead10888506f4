// pbs_sched: options, checks, lock, log, signals (docs/reference/files.md 10, docs/reference/scheduler.md 1 and 2). A scheduler that is started by hand becomes
// a daemon and returns 0 when it is up. With -N, as the server starts it, it stays in the foreground. On another host than the server, the daemon has a keeper
// that starts it again after a crash (shell/keeper.ts).

import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, writeSync } from "node:fs";
import { availableParallelism, constants, getPriority, hostname, setPriority } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { schedDirectories } from "#model/tables/sched-attributes.ts";
import { KEEPER_LOCK, SCHED_ENV, schedPlaceOfRoot } from "#protocol/sched-link.ts";
import { messageOf, stackOf } from "#support/caught.ts";
import type { Conf } from "#support/conf.ts";
import { ConfError, readConf } from "#support/conf.ts";
import { closeForeignDescriptors } from "#support/descriptors.ts";
import type { HeldLock } from "#support/libc/lock-file.ts";
import { takeLock } from "#support/libc/lock-file.ts";
import type { Log } from "#support/log.ts";
import { openLog } from "#support/log.ts";
import { LOG_EVENT, LOG_MASK } from "#support/log-event.ts";
import { type SystemUser, systemUsers } from "#support/passwd.ts";
import { checkLogDirectory, checkPrivate, openSchedOut } from "#support/sched-directory.ts";
import { homeFault } from "#support/trusted-home.ts";
import { PBS_VERSION } from "#support/version.ts";
import { keepRunning } from "./shell/keeper.ts";
import type { SchedOptions } from "./shell/options.ts";
import { parseOptions, USAGE } from "./shell/options.ts";
import { RELAY_ENV, RELAY_FD, relayedWay, runRelayed } from "./shell/relay.ts";
import { Scheduler } from "./shell/scheduler.ts";
import { type DialledWay, isDialled, listenForServer, openServerWay } from "./shell/server-way.ts";

/** The descriptor on which the daemon reports to the command that started it: `up`, or a text for stderr. READY_ENV says that it is open. */
const READY_FD = 3;
const READY_ENV = "PARTITA_SCHED_READY";
/** Says that the process is the child of a keeper, which starts it again after a crash. */
const KEPT_ENV = "PARTITA_SCHED_KEPT";

/** By this number the nice value of the scheduler's thread is higher than the nice value of its server (setpriority(2)). */
const BEHIND_SERVER = 5;

async function main(argv: readonly string[]): Promise<number> {
  const isRelayed = process.env[RELAY_ENV] !== undefined;
  closeForeignDescriptors(...(process.env[READY_ENV] === undefined ? [] : [READY_FD]), ...(isRelayed ? [RELAY_FD] : []));
  const parsed = parseOptions(argv, availableParallelism());
  switch (parsed.kind) {
    case "version":
      process.stdout.write(`pbs_version = ${PBS_VERSION}\n`);
      return 0;
    case "help":
      process.stdout.write(USAGE);
      return 0;
    case "wrong":
      process.stderr.write(parsed.text);
      return 1;
    case "run":
      break;
  }
  for (const note of parsed.notes) process.stderr.write(note);
  const conf = readConf();
  const { options } = parsed;
  const isFar = isRelayed || isDialled(conf);
  if (options.port !== undefined && !isFar) process.stderr.write("-S: a scheduler on the server's host needs no port\n");
  const fault = homeFault(conf, options.home ?? conf.home);
  if (fault !== null) {
    process.stderr.write(`pbs_sched: ${fault}\n`);
    return 1;
  }
  const user = isRelayed ? null : runnerOf(options, isFar);
  if (typeof user === "string") {
    process.stderr.write(`pbs_sched: ${user}\n`);
    return 1;
  }
  const isDaemon = process.env[READY_ENV] !== undefined;
  const isKept = process.env[KEPT_ENV] !== undefined;
  for (const variable of [READY_ENV, KEPT_ENV, RELAY_ENV]) delete process.env[variable];
  const start: Start = { conf, options, argv, user, isDaemon, isRelayed };
  if (isDaemon && !isKept && !isRelayed && !options.no_restart && isFar) return keep(start);
  if (user !== null && (options.foreground || isDaemon)) return relay(start, user);
  if (options.foreground || isDaemon) return serve(start);
  return intoBackground(start);
}

/** How this program was started. user: as whom the scheduler must run; null: as the user of this process. isRelayed: it has a relay (shell/relay.ts) */
type Start = {
  readonly conf: Conf;
  readonly options: SchedOptions;
  readonly argv: readonly string[];
  readonly user: SystemUser | null;
  readonly isDaemon: boolean;
  readonly isRelayed: boolean;
};

/** Returns the user of option -U; null: this process already has the right user. A text says why the option cannot be obeyed. */
function runnerOf({ user: name }: SchedOptions, isFar: boolean): SystemUser | null | string {
  if (name === undefined) return null;
  const user = systemUsers().userByName(name);
  if (user === null) return `no user ${name}`;
  if (user.uid === process.geteuid?.()) return null;
  if (!isFar) return "-U: on the server's host the server decides by sched_user";
  return process.geteuid?.() === 0 ? user : `-U: only root can start a scheduler as ${name}`;
}

/** Runs the scheduler. Returns when it ends. */
async function serve({ conf, options, isDaemon, isRelayed }: Start): Promise<number> {
  process.title = options.name === "default" ? "pbs_sched" : `pbs_sched -I ${options.name}`;
  const home = options.home ?? conf.home;
  const { sched_priv, sched_log } = directoriesOf(options, home);
  const only_say = process.env[SCHED_ENV.say];
  delete process.env[SCHED_ENV.say];
  if (only_say !== undefined) return sayOnly(options, conf, sched_log, only_say);
  // If a scheduler has no directory of its own, only the server can tell it which one to use. A scheduler that is started by
  // hand cannot ask the server.
  const lock = existsSync(sched_priv) || isDaemon ? lockOf(sched_priv) : null;
  if (typeof lock === "string") return failed(lock, isDaemon);
  const wrong = isDaemon && options.log_file === undefined ? checkLogDirectory(sched_log) : null;
  if (wrong !== null) return failed(`pbs_sched: ${wrong}\n`, isDaemon);
  if (lock !== null) process.chdir(sched_priv);
  // Every process waits for the server, because only the server commits changes. If processors are scarce, the server must
  // therefore run before the scheduler, whose further decisions would only have to wait for it.
  setPriority(Math.min(getPriority() + BEHIND_SERVER, constants.priority.PRIORITY_LOW));
  const log = openLog({
    dir: sched_log,
    daemon: "pbs_sched",
    mask: LOG_MASK.sched,
    highres: conf.log_highres,
    header: [`hostname=${hostname()};pbs_leaf_name=N/A;pbs_mom_node_name=N/A`],
    ...(options.log_file === undefined ? {} : { file: options.log_file }),
  });
  const note = (event: number, text: string): void => log.record(event, "Svr", "pbs_sched", text);
  note(LOG_EVENT.SYSTEM, `pbs_sched startup pid ${process.pid}`);
  let relayHasGone = (): void => undefined;
  const relayGone = new Promise<"gone">((resolve) => {
    relayHasGone = () => resolve("gone");
  });
  const way = isRelayed
    ? relayedWay(note, relayHasGone)
    : await openServerWay({ conf, port: options.port, leader_in: sched_priv, note }).catch((error: unknown) => messageOf(error));
  if (typeof way === "string") {
    note(LOG_EVENT.ERROR, `cannot listen: ${way}`);
    closeLog(log);
    return failed(`pbs_sched: cannot listen for the server: ${way}\n`, isDaemon);
  }
  const scheduler = new Scheduler({
    name: options.name,
    way,
    version: PBS_VERSION,
    log,
    fixed_log: options.log_file !== undefined,
    sched_priv,
    sched_log,
    lock,
    ...(isRelayed || isDialled(conf) ? ownName() : {}),
  });
  process.on("SIGHUP", () => scheduler.reread(1));
  if (isDaemon) tell("up");
  const signal = await Promise.race([scheduler.quit, ended(), relayGone]);
  if (signal === "gone") note(LOG_EVENT.ERROR, "the process with the connection to the server has ended");
  else if (signal !== undefined) log.record(LOG_EVENT.SYSTEM, "Svr", "die", `caught signal ${signal}`);
  else log.record(LOG_EVENT.SYSTEM, "Svr", "pbs_sched", `pbs_sched normal finish pid ${process.pid}`);
  await scheduler.leave();
  closeLog(log);
  return signal === "gone" ? 1 : 0;
}

function ownName(): { readonly user?: string } {
  const user = systemUsers().userByUid(process.geteuid?.() ?? 0);
  return user === null ? {} : { user: user.name };
}

/** The words before a command that is to run as a user. Node.js alone would drop the user's supplementary groups. */
const wordsAs = (user: SystemUser | null): readonly string[] =>
  user === null ? [] : ["setpriv", `--reuid=${user.uid}`, `--regid=${user.gid}`, "--init-groups", "--"];

/** Starts this program again. */
function spawnSelf({ argv, user }: Pick<Start, "argv" | "user">, stdio: StdioOptions, env: NodeJS.ProcessEnv): ChildProcess {
  const [program = "", ...words] = [...wordsAs(user), process.execPath, fileURLToPath(import.meta.url), ...argv];
  return spawn(program, words, { stdio, env: { ...process.env, ...env } });
}

/** Runs the scheduler as another user, behind a relay with the rights of root. Returns when it ends. */
async function relay(start: Start, user: SystemUser): Promise<number> {
  const { conf, options, isDaemon } = start;
  process.title = `pbs_sched_relay -I ${options.name}`;
  const leader_in = rootPlace(start);
  const open = (note: (event: number, text: string) => void): Promise<DialledWay> =>
    listenForServer({ conf, port: options.port, leader_in, note });
  const fd = isDaemon ? READY_FD : "ignore";
  const env = { [RELAY_ENV]: "1", ...(isDaemon ? { [READY_ENV]: "1" } : {}) };
  return runRelayed({
    name: options.name,
    open,
    start: () => {
      const child = spawnSelf({ ...start, user }, ["ignore", "inherit", "inherit", fd, "pipe"], env);
      // The reader waits until the last process has closed the descriptor.
      if (isDaemon) closeSync(READY_FD);
      return child;
    },
    complain: (text) => process.stderr.write(`pbs_sched: ${text}\n`),
  }).catch((error: unknown) => failed(`pbs_sched: cannot listen for the server: ${messageOf(error)}\n`, isDaemon));
}

/** Returns the directory for what keeper and relay keep: sched_priv or, if this belongs to another user, a directory of root. */
function rootPlace({ conf, options, user }: Start): string {
  if (user === null) return schedDirectories(options.name, options.home ?? conf.home).sched_priv;
  const place = schedPlaceOfRoot(conf.home, options.name);
  mkdirSync(place, { recursive: true, mode: 0o700 });
  return place;
}

/** Starts the scheduler in a process of its own, and starts it again after each crash. Returns when it ends. */
async function keep(start: Start): Promise<number> {
  const { conf, options, argv, user } = start;
  process.title = `pbs_sched_keeper -I ${options.name}`;
  const { sched_priv, sched_log } = schedDirectories(options.name, options.home ?? conf.home);
  const unfit = checkPrivate(sched_priv, user?.uid);
  const lock = unfit === null ? takeLock(join(rootPlace(start), KEEPER_LOCK), 0o644) : null;
  if (lock === null) return failed(existsSync(sched_priv) ? `pbs_sched: ${unfit}\n` : "", true);
  if (!("held" in lock)) return failed("pbs_sched: another scheduler running\n", true);
  const wrong = options.log_file === undefined ? checkLogDirectory(sched_log, user?.uid) : null;
  if (wrong !== null) return failed(`pbs_sched: ${wrong}\n`, true);
  const file = options.log_file === undefined ? {} : { file: options.log_file };
  const status = await keepRunning({
    start: () => spawnSelf({ argv, user: null }, ["ignore", "inherit", "inherit", "pipe"], { [READY_ENV]: "1", [KEPT_ENV]: "1" }),
    ready_fd: READY_FD,
    tell,
    note(text) {
      // The directory of the log belongs to the user, so that only a process of the user may write there.
      if (user !== null)
        return void spawnSelf({ argv: [...argv, "-N"], user }, "ignore", {
          [SCHED_ENV.say]: text,
          [READY_ENV]: undefined,
          [RELAY_ENV]: undefined,
        });
      const log = openLog({ dir: sched_log, daemon: "pbs_sched", mask: LOG_MASK.sched, highres: conf.log_highres, ...file });
      log.record(LOG_EVENT.ERROR, "Svr", "pbs_sched", text);
      closeLog(log);
    },
  });
  lock.held.release();
  return status;
}

/** Returns the directories that the server has checked and passed on. For a scheduler that is started by hand they are the default ones. */
function directoriesOf({ name }: SchedOptions, home: string): { readonly sched_priv: string; readonly sched_log: string } {
  const named = schedDirectories(name, home);
  const { [SCHED_ENV.priv]: sched_priv = named.sched_priv, [SCHED_ENV.log]: sched_log = named.sched_log } = process.env;
  for (const variable of [SCHED_ENV.priv, SCHED_ENV.log]) delete process.env[variable];
  return { sched_priv, sched_log };
}

/** Writes one line into the log for a scheduler that shall not run. */
function sayOnly(options: SchedOptions, conf: Conf, dir: string, text: string): number {
  const wrong = checkLogDirectory(dir);
  if (wrong !== null) return failed(`pbs_sched: ${wrong}\n`, false);
  const log = openLog({ dir, daemon: "pbs_sched", mask: LOG_MASK.sched, highres: conf.log_highres });
  log.record(LOG_EVENT.SCHED, "Svr", "query_server", text);
  closeLog(log);
  process.stdout.write(`${options.name}: ${text}\n`);
  return 0;
}

/** Checks a sched_priv and takes its lock. Returns the text to print if that is not possible. */
function lockOf(sched_priv: string): HeldLock | string {
  const wrong = checkPrivate(sched_priv);
  if (wrong !== null) return existsSync(sched_priv) ? `pbs_sched: ${wrong}\n` : "";
  const taken = takeLock(join(sched_priv, "sched.lock"), 0o644);
  return "held" in taken ? taken.held : "pbs_sched: another scheduler running\n";
}

function failed(text: string, isDaemon: boolean): number {
  if (isDaemon) tell(text);
  else process.stderr.write(text);
  return 1;
}

/** Resolves with the number of the signal that ends the process. */
function ended(): Promise<number> {
  return new Promise((resolve) => {
    // A second signal does not interrupt the end: a keeper passes its signals on.
    process.on("SIGTERM", () => resolve(15));
    process.on("SIGINT", () => resolve(2));
  });
}

function closeLog(log: Log): void {
  log.flush();
  log.close();
}

function tell(text: string): void {
  writeSync(READY_FD, text === "" ? "\n" : text);
  closeSync(READY_FD);
}

/** Starts this program again as a daemon, and waits until the daemon is up or has failed. */
async function intoBackground({ conf, options, argv }: Start): Promise<number> {
  const { sched_priv } = schedDirectories(options.name, options.home ?? conf.home);
  if (!existsSync(sched_priv)) return 1;
  const out = options.out_file === undefined ? openSchedOut(sched_priv) : openSync(options.out_file, "a", 0o644);
  if (out === null) {
    process.stderr.write(`pbs_sched: ${join(sched_priv, "sched_out")} cannot be written safely\n`);
    return 1;
  }
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), ...argv], {
    detached: true,
    stdio: ["ignore", out, out, "pipe"],
    env: { ...process.env, [READY_ENV]: "1" },
  });
  closeSync(out);
  const text = await new Promise<string>((resolve, reject) => {
    let said = "";
    child.once("error", reject);
    child.stdio[READY_FD]?.on("data", (chunk: Buffer) => {
      said += chunk.toString("utf8");
    });
    child.stdio[READY_FD]?.once("close", () => resolve(said));
  });
  child.unref();
  if (text === "up") return 0;
  process.stderr.write(text.trimStart());
  return 1;
}

process.on("uncaughtException", (error) => {
  process.stderr.write(`pbs_sched: abnormal termination: ${error.stack ?? error.message}\n`);
  process.exit(1);
});

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`pbs_sched: ${error instanceof ConfError ? error.message : stackOf(error)}\n`);
  process.exitCode = 1;
}
process.exit();

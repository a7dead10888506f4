// pbs_sched: options, checks, lock, log, signals (docs/reference/files.md 10, docs/reference/scheduler.md 1 and 2). A scheduler that is started by hand becomes
// a daemon and returns 0 when it is up. With -N, as the server starts it, it stays in the foreground. On another host than the server, the daemon has a keeper
// that starts it again after a crash (shell/keeper.ts).

import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, writeSync } from "node:fs";
import { availableParallelism, constants, getPriority, hostname, setPriority } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { schedDirectories } from "#model/tables/sched-attributes.ts";
import { KEEPER_LOCK, SCHED_ENV } from "#protocol/sched-link.ts";
import { messageOf, stackOf } from "#support/caught.ts";
import type { Conf } from "#support/conf.ts";
import { ConfError, readConf } from "#support/conf.ts";
import { closeForeignDescriptors } from "#support/descriptors.ts";
import type { HeldLock } from "#support/libc/lock-file.ts";
import { takeLock } from "#support/libc/lock-file.ts";
import type { Log } from "#support/log.ts";
import { openLog } from "#support/log.ts";
import { LOG_EVENT, LOG_MASK } from "#support/log-event.ts";
import { checkLogDirectory, checkPrivate } from "#support/sched-directory.ts";
import { homeFault } from "#support/trusted-home.ts";
import { PBS_VERSION } from "#support/version.ts";
import { keepRunning } from "./shell/keeper.ts";
import type { SchedOptions } from "./shell/options.ts";
import { parseOptions, USAGE } from "./shell/options.ts";
import { Scheduler } from "./shell/scheduler.ts";
import { isDialled, openServerWay } from "./shell/server-way.ts";

/** The descriptor on which the daemon reports to the command that started it: `up`, or a text for stderr. READY_ENV says that it is open. */
const READY_FD = 3;
const READY_ENV = "PARTITA_SCHED_READY";
/** Says that the process is the child of a keeper, which starts it again after a crash. */
const KEPT_ENV = "PARTITA_SCHED_KEPT";

/** By this number the nice value of the scheduler's thread is higher than the nice value of its server (setpriority(2)). */
const BEHIND_SERVER = 5;

async function main(argv: readonly string[]): Promise<number> {
  closeForeignDescriptors(...(process.env[READY_ENV] === undefined ? [] : [READY_FD]));
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
  if (options.port !== undefined && !isDialled(conf)) process.stderr.write("-S: a scheduler on the server's host needs no port\n");
  const fault = homeFault(conf, options.home ?? conf.home);
  if (fault !== null) {
    process.stderr.write(`pbs_sched: ${fault}\n`);
    return 1;
  }
  const isDaemon = process.env[READY_ENV] !== undefined;
  const isKept = process.env[KEPT_ENV] !== undefined;
  for (const variable of [READY_ENV, KEPT_ENV]) delete process.env[variable];
  if (isDaemon && !isKept && !options.no_restart && isDialled(conf)) return keep(conf, options, argv);
  if (options.foreground || isDaemon) return serve(conf, options, isDaemon);
  return intoBackground(conf, options, argv);
}

/** Runs the scheduler. Returns when it ends. */
async function serve(conf: Conf, options: SchedOptions, isDaemon: boolean): Promise<number> {
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
  const way = await openServerWay({ conf, port: options.port, sched_priv, note }).catch((error: unknown) => messageOf(error));
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
  });
  process.on("SIGHUP", () => scheduler.reread(1));
  if (isDaemon) tell("up");
  const signal = await Promise.race([scheduler.quit, ended()]);
  if (signal !== undefined) log.record(LOG_EVENT.SYSTEM, "Svr", "die", `caught signal ${signal}`);
  else log.record(LOG_EVENT.SYSTEM, "Svr", "pbs_sched", `pbs_sched normal finish pid ${process.pid}`);
  await scheduler.leave();
  closeLog(log);
  return 0;
}

/** Starts the scheduler in a process of its own, and starts it again after each crash. Returns when it ends. */
async function keep(conf: Conf, options: SchedOptions, argv: readonly string[]): Promise<number> {
  process.title = `pbs_sched_keeper -I ${options.name}`;
  const { sched_priv, sched_log } = schedDirectories(options.name, options.home ?? conf.home);
  const lock = lockOf(sched_priv, KEEPER_LOCK);
  if (typeof lock === "string") return failed(lock, true);
  const wrong = options.log_file === undefined ? checkLogDirectory(sched_log) : null;
  if (wrong !== null) return failed(`pbs_sched: ${wrong}\n`, true);
  const file = options.log_file === undefined ? {} : { file: options.log_file };
  const status = await keepRunning({
    start: () =>
      spawn(process.execPath, [fileURLToPath(import.meta.url), ...argv], {
        stdio: ["ignore", "inherit", "inherit", "pipe"],
        env: { ...process.env, [READY_ENV]: "1", [KEPT_ENV]: "1" },
      }),
    ready_fd: READY_FD,
    tell,
    note(text) {
      const log = openLog({ dir: sched_log, daemon: "pbs_sched", mask: LOG_MASK.sched, highres: conf.log_highres, ...file });
      log.record(LOG_EVENT.ERROR, "Svr", "pbs_sched", text);
      closeLog(log);
    },
  });
  lock.release();
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
function lockOf(sched_priv: string, file = "sched.lock"): HeldLock | string {
  const wrong = checkPrivate(sched_priv);
  if (wrong !== null) return existsSync(sched_priv) ? `pbs_sched: ${wrong}\n` : "";
  const taken = takeLock(join(sched_priv, file), 0o644);
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
async function intoBackground(conf: Conf, options: SchedOptions, argv: readonly string[]): Promise<number> {
  const { sched_priv } = schedDirectories(options.name, options.home ?? conf.home);
  if (!existsSync(sched_priv)) return 1;
  const out = openSync(options.out_file ?? join(sched_priv, "sched_out"), "a", 0o644);
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

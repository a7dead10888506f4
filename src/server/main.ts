// pbs_server: options, configuration, lock, store, logs; then the service until a signal or qterm ends it (pbs/files.md 10).
//
// Without -N it goes into the background: the command returns when the server answers (exit 0), or says why it does not.

import { spawn } from "node:child_process";
import { chmodSync, closeSync, existsSync, mkdirSync, readSync, statSync, writeSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { openSqliteStore } from "#store/sqlite-store.ts";
import { type Store, StoreError } from "#store/store.ts";
import { openAccounting } from "#support/accounting-log.ts";
import { type Conf, ConfError, readConf, shortHostName } from "#support/conf.ts";
import { type HeldLock, takeLock } from "#support/lock-file.ts";
import { openLog } from "#support/log.ts";
import { LOG_EVENT, LOG_MASK } from "#support/log-event.ts";
import { systemUsers } from "#support/passwd.ts";
import { PBS_VERSION } from "#support/version.ts";
import { prepareStart } from "./first-start.ts";
import { parseOptions, type ServerOptions, USAGE } from "./options.ts";
import { dueRecords } from "./rows.ts";
import { recoverAccounting } from "./shell/accounting-recovery.ts";
import { loadFromStore, startService } from "./shell/service.ts";
import { timeZone } from "./shell/time-zone.ts";
import type { ServerConfig } from "./transaction.ts";

/** The background process says here that it answers, or why not. */
const READY_FD = 3;
const READY_ENV = "PARTITA_READY_FD";

async function main(): Promise<number> {
  const argv = process.argv.slice(2);
  if (argv.length === 1 && argv[0]?.toLowerCase() === "--version") return say(1, `pbs_version = ${PBS_VERSION}\n`, 0);
  if (argv.length === 1 && argv[0] === "--help") return say(1, USAGE, 0);
  const parsed = parseOptions(argv);
  if (!parsed.ok) return say(2, `${parsed.message}\n${USAGE}`, 1);
  const { options } = parsed;
  const conf = readConfiguration(options);
  if (typeof conf === "string") return say(2, `${conf}\n`, 1);
  const fault = mayRun(conf);
  if (fault !== null) return say(2, `pbs_server: ${fault}\n`, 1);
  if (process.env[READY_ENV] === undefined && isDestructive(options, conf) && !confirmed(options)) return 1;
  if (options.foreground || process.env[READY_ENV] !== undefined) return serve(options, conf);
  return intoBackground(argv);
}

function readConfiguration(options: ServerOptions): Conf | string {
  try {
    const conf = readConf();
    return options.home === undefined ? conf : { ...conf, home: options.home };
  } catch (error) {
    if (error instanceof ConfError) return error.message;
    throw error;
  }
}

/** System mode is root's; in user mode the complex belongs to whoever owns PBS_HOME. */
function mayRun(conf: Conf): string | null {
  const uid = process.getuid?.() ?? 0;
  if (conf.mode === "system" && uid !== 0) return "must be run by root";
  if (!existsSync(conf.home)) return `PBS_HOME ${conf.home} does not exist`;
  if (statSync(conf.home).uid !== uid && uid !== 0) return `PBS_HOME ${conf.home} belongs to another user`;
  return null;
}

const isDestructive = (options: ServerOptions, conf: Conf): boolean =>
  (options.start === "create" || options.start === "cold") && existsSync(storeFile(conf));
const storeFile = (conf: Conf): string => join(conf.home, "server_priv/partita.db");

/** `-t create` and `-t cold` destroy: a positive answer is read from stdin. */
function confirmed(options: ServerOptions): boolean {
  const what = options.start === "create" ? "create mode and server database exists" : "cold start: all jobs are purged";
  writeSync(1, `pbs_server: ${what},\ndo you wish to continue y/(n)?`);
  const buffer = Buffer.alloc(16);
  try {
    const length = readSync(0, buffer);
    if (/^y/i.test(buffer.toString("utf8", 0, length))) return true;
  } catch {
    // No stdin: no answer.
  }
  writeSync(2, "PBS server not started\n");
  return false;
}

function say(fd: number, text: string, status: number): number {
  writeSync(fd, text);
  return status;
}

/** Starts this program again, detached, and waits for its word. */
function intoBackground(argv: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, [...process.execArgv, process.argv[1] as string, ...argv], {
    detached: true,
    cwd: "/",
    stdio: ["ignore", "ignore", "ignore", "pipe"],
    env: { ...process.env, [READY_ENV]: String(READY_FD) },
  });
  return new Promise((resolve) => {
    let text = "";
    const channel = child.stdio[READY_FD] as NodeJS.ReadableStream;
    channel.on("data", (chunk: Buffer) => {
      text += chunk.toString("utf8");
    });
    channel.on("end", () => {
      child.unref();
      if (text.startsWith("ready\n")) return resolve(0);
      resolve(say(2, text === "" ? "pbs_server: ended before it answered; see the server's log\n" : text, 1));
    });
  });
}

/** The word to the process that waits; in the foreground a fault goes to stderr. */
function tellStarter(text: string): void {
  if (process.env[READY_ENV] === undefined) {
    if (text !== "ready\n") writeSync(2, text);
    return;
  }
  try {
    writeSync(READY_FD, text);
    closeSync(READY_FD);
  } catch {
    // It has gone.
  }
  delete process.env[READY_ENV];
}

async function serve(options: ServerOptions, conf: Conf): Promise<number> {
  // `ps` shows what runs, and site tools look for the name (pbs/files.md 9).
  process.title = ["pbs_server", ...process.argv.slice(2)].join(" ");
  process.umask(0o022);
  makeHome(conf);
  const lock = holdLock(conf);
  if (typeof lock === "string") return fail(lock);
  const host = shortHostName(conf.server);
  const log = openLog({
    dir: join(conf.home, "server_logs"),
    daemon: `Server@${host}`,
    mask: options.log_events ?? LOG_MASK.server,
    highres: conf.log_highres,
    ...(options.log_file === undefined ? {} : { file: options.log_file }),
    header: [`hostname=${hostname()};pbs_leaf_name=N/A;pbs_mom_node_name=${conf.mom_node_name}`],
  });
  const note = (event: number, text: string): void => log.record(event, "Svr", `Server@${host}`, text);
  note(LOG_EVENT.SYSTEM, `starting, pid ${process.pid}`);
  let store: Store;
  try {
    store = await openSqliteStore(storeFile(conf), { onNotice: (text) => note(LOG_EVENT.SYSTEM, text) });
  } catch (error) {
    note(LOG_EVENT.ERROR, `store: ${(error as Error).message}`);
    log.close();
    if (error instanceof StoreError) return fail(error.message);
    throw error;
  }
  const accounting = openAccounting({
    dir: join(conf.home, "server_priv/accounting"),
    ...(options.accounting_file === undefined ? {} : { file: options.accounting_file }),
  });
  const users = systemUsers();
  const config: ServerConfig = {
    host,
    home: conf.home,
    pbs_version: PBS_VERSION,
    own_user: conf.mode === "user" ? (users.userByUid(process.getuid?.() ?? 0)?.name ?? null) : null,
    ctime,
    timeZone,
    userExists: (name) => users.userByName(name) !== null,
  };
  const accounting_dir = join(conf.home, "server_priv/accounting");
  const state = await loadFromStore(store, host, (loaded) => {
    const written = recoverAccounting(
      dueRecords(loaded),
      accounting,
      options.accounting_file ?? accounting_dir,
      options.accounting_file === undefined,
    );
    if (written > 0) note(LOG_EVENT.SYSTEM, `${written} accounting records written that a kill had kept back`);
  });
  const fresh = state.scheds.size === 0;
  return new Promise((resolve) => {
    const ended = (): void => {
      accounting.close();
      log.close();
      lock.release();
      resolve(0);
    };
    startService({
      conf,
      config,
      store,
      log,
      accounting,
      users,
      state,
      ended,
      prepare: (core) =>
        prepareStart(core, {
          start: options.start,
          fresh,
          node: conf.start.mom ? conf.mom_node_name : null,
          ...(options.scheduling === undefined ? {} : { scheduling: options.scheduling }),
        }),
    }).then(
      (service) => {
        process.on("SIGTERM", () => service.stop());
        process.on("SIGINT", () => service.stop());
        process.on("SIGHUP", () => service.reopenLogs());
        process.on("SIGUSR2", collectGarbage);
        process.on("uncaughtException", (error) => {
          note(LOG_EVENT.ERROR, `fatal: ${error.stack ?? error.message}`);
          log.close();
          process.exit(1);
        });
        note(LOG_EVENT.SYSTEM, `Server started, initialization type = ${options.start}`);
        tellStarter("ready\n");
      },
      (error: Error) => {
        note(LOG_EVENT.ERROR, `cannot start: ${error.message}`);
        void store.close().finally(() => {
          log.close();
          resolve(fail(error.message));
        });
      },
    );
  });
}

/** SIGUSR2: gives memory back as far as possible, so that what the jobs themselves need can be measured. */
function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as (options: object) => void;
  collect({ type: "major", execution: "sync", flavor: "last-resort" });
}

function fail(why: string): number {
  tellStarter(`pbs_server: ${why}\n`);
  return 1;
}

/** Directories of the server that are missing (pbs/files.md 1). */
function makeHome(conf: Conf): void {
  const directories: readonly (readonly [path: string, mode: number])[] = [
    ["server_logs", 0o755],
    ["server_priv", 0o750],
    ["server_priv/accounting", 0o755],
    ["server_priv/jobs", 0o750],
    ["server_priv/users", 0o750],
  ];
  for (const [name, mode] of directories) {
    const path = join(conf.home, name);
    if (existsSync(path)) continue;
    mkdirSync(path, { mode });
    chmodSync(path, mode);
  }
}

function holdLock(conf: Conf): HeldLock | string {
  try {
    const outcome = takeLock(join(conf.home, "server_priv/server.lock"));
    return "held" in outcome ? outcome.held : `another server is running (pid ${outcome.owner_pid ?? "unknown"})`;
  } catch (error) {
    return `cannot lock ${join(conf.home, "server_priv/server.lock")}: ${(error as Error).message}`;
  }
}

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

let second = Number.NaN;
let text_of_second = "";

/** As ctime(3): `Fri Nov 20 09:26:28 2026`, local time. A second's text is made once: a cycle starts thousands of jobs in it. */
function ctime(epoch_s: number): string {
  if (epoch_s === second) return text_of_second;
  const date = new Date(epoch_s * 1000);
  const two = (value: number): string => String(value).padStart(2, "0");
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  second = epoch_s;
  text_of_second = `${DAYS[date.getDay()]} ${MONTHS[date.getMonth()]} ${String(date.getDate()).padStart(2, " ")} ${time} ${date.getFullYear()}`;
  return text_of_second;
}

process.exitCode = await main();
if (process.exitCode !== undefined) process.exit();

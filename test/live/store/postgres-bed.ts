// A PostgreSQL of a test: made by initdb in a temporary directory, started, and removed at the end. It runs as an ordinary
// user, because PostgreSQL refuses to run as root.

import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openPostgresStore, type PostgresStore, type PostgresStoreOptions } from "#store/postgres/postgres-store.ts";
import { type DatabaseSettings, parseSettings } from "#store/postgres/settings.ts";
import type { WithStore } from "../../store/contract.ts";
import { isAlive } from "../complex.ts";

/** The directory with initdb and pg_ctl; undefined: PostgreSQL is not installed. */
const PROGRAMS = programs();
/** Why tests with PostgreSQL cannot run here, for `skip`; false: they can. */
export const LACK_OF_POSTGRES: string | false = PROGRAMS === undefined && "needs PostgreSQL (scripts/test-host.sh installs it)";

const isRoot = process.geteuid?.() === 0;
const USER = "partita";
/** It is in no command line: initdb reads it from a file. */
export const PASSWORD = "a secret = # of 'tests'";
const PORT = 5432;
const START_S = 300;
const BURIAL_MS = 1000;

export type Postgres = {
  readonly directory: string;
  /** the lines of database.conf for a link over the unix socket. more: further lines */
  conf(...more: readonly string[]): string;
  settings(...more: readonly string[]): DatabaseSettings;
  start(): void;
  /** how: fast ends its sessions, immediate ends it as a crash does */
  stop(how?: "fast" | "immediate"): void;
  /** sends SIGKILL to all its processes */
  kill(): void;
  /** pid of the first process */
  pid(): number;
  /** runs statements as the owner of the database; returns the rows as lines, with | between columns */
  sql(text: string, database?: string): string;
  /** stops and removes it */
  remove(): void;
};

export type PostgresOptions = {
  /** lines of postgresql.conf */
  readonly conf?: readonly string[];
  /** fsync is off unless a test needs it */
  readonly durable?: boolean;
  /** lines of pg_hba.conf, beside those for the unix socket */
  readonly hba?: readonly string[];
  /** words before those of its programs, which let them run on another host of a test */
  readonly within?: readonly string[];
};

export function startPostgres({ conf = [], durable = false, hba = [], within = [] }: PostgresOptions = {}): Postgres {
  const directory = mkdtempSync(join(tmpdir(), "partita-pg-"));
  chmodSync(directory, 0o755);
  const data = join(directory, "data");
  const secret = join(directory, "secret");
  writeFileSync(secret, PASSWORD, { mode: 0o600 });
  if (isRoot) mustRun("chown", ["-R", "nobody", directory]);
  const postgres = makePostgres(directory, data, within);
  try {
    must("initdb", [
      "-D",
      data,
      "-U",
      USER,
      "-A",
      "scram-sha-256",
      `--pwfile=${secret}`,
      "-E",
      "UTF8",
      "--no-locale",
      ...(durable ? [] : ["-N"]),
    ]);
    addLines(data, [`unix_socket_directories = '${directory}'`, "listen_addresses = ''", `fsync = ${durable ? "on" : "off"}`, ...conf]);
    addLines(data, hba, "pg_hba.conf");
    postgres.start();
    postgres.sql(`CREATE DATABASE partita`, "postgres");
  } catch (error) {
    postgres.remove();
    throw error;
  }
  return postgres;
}

/** A standby, which takes the place of its primary when it is promoted. */
export type Standby = Postgres & { promote(): void };

/** Makes a copy of a running PostgreSQL that follows it over a stream. Its own commits wait for no other standby. */
export function startStandby(primary: Postgres): Standby {
  const directory = mkdtempSync(join(tmpdir(), "partita-pg-"));
  chmodSync(directory, 0o755);
  if (isRoot) mustRun("chown", ["nobody", directory]);
  const data = join(directory, "data");
  const postgres = makePostgres(directory, data);
  try {
    must("pg_basebackup", ["-h", primary.directory, "-U", USER, "-D", data, "-R", "-X", "stream", "-c", "fast"], { PGPASSWORD: PASSWORD });
    addLines(data, [`unix_socket_directories = '${directory}'`, "synchronous_standby_names = ''"]);
    postgres.start();
  } catch (error) {
    postgres.remove();
    throw error;
  }
  return { ...postgres, promote: () => void must("pg_ctl", ["-D", data, "promote", "-w", "-t", String(START_S)]) };
}

function addLines(data: string, lines: readonly string[], file = "postgresql.conf"): void {
  spawnSync("tee", ["-a", join(data, file)], { input: `${lines.join("\n")}\n`, stdio: ["pipe", "ignore", "inherit"] });
}

function makePostgres(directory: string, data: string, within: readonly string[] = []): Postgres {
  const pid = (): number => Number.parseInt(readFileSync(join(data, "postmaster.pid"), "utf8"), 10);
  const onExit = (): void => remove();
  const remove = (): void => {
    process.off("exit", onExit);
    if (existsSync(join(data, "postmaster.pid"))) run("pg_ctl", ["-D", data, "stop", "-m", "immediate", "-w"]);
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  };
  process.once("exit", onExit);
  const conf = (...more: readonly string[]): string =>
    [`host = ${directory}`, `user = ${USER}`, `password = "${PASSWORD}"`, ...more].map((line) => `${line}\n`).join("");
  return {
    directory,
    conf,
    settings(...more) {
      const settings = parseSettings(conf(...more), USER);
      if (typeof settings === "string") throw new Error(settings);
      return settings;
    },
    start() {
      const words = ["-D", data, "start", "-w", "-t", String(START_S), "-l", join(directory, "log")];
      const { status, stdout, stderr } = run("pg_ctl", words, {}, within);
      if (status !== 0) throw new Error(`pg_ctl: ${stdout}${stderr}\n${readFileSync(join(directory, "log"), "utf8").slice(-2000)}`);
    },
    stop: (how = "fast") => void must("pg_ctl", ["-D", data, "stop", "-m", how, "-w", "-t", String(START_S)]),
    kill() {
      const first = pid();
      const children = spawnSync("ps", ["-o", "pid=", "--ppid", String(first)], { encoding: "utf8" })
        .stdout.split("\n")
        .map(Number);
      const all = [first, ...children].filter((one) => one > 1);
      for (const one of all) killNow(one);
      while (all.some(isAlive)) pause(5);
      // PostgreSQL takes a zombie for a server that runs. The machine's first process buries it soon, or never.
      for (let waited_ms = 0; existsSync(`/proc/${first}`) && waited_ms < BURIAL_MS; waited_ms += 20) pause(20);
      for (const lock of [join(data, "postmaster.pid"), join(directory, `.s.PGSQL.${PORT}.lock`)]) rmSync(lock, { force: true });
    },
    pid,
    sql(text, database = "partita") {
      const { status, stdout, stderr } = spawnSync(
        "psql",
        ["-h", directory, "-U", USER, "-d", database, "-qAtX", "-v", "ON_ERROR_STOP=1"],
        {
          input: text,
          encoding: "utf8",
          env: { ...process.env, PGPASSWORD: PASSWORD },
        },
      );
      if (status !== 0) throw new Error(`psql: ${stderr}`);
      return stdout.trimEnd();
    },
    remove,
  };
}

/** Opens a store in the database. Beats and silence are short, so that tests need not wait. */
export const openStore = (postgres: Postgres, more: Partial<PostgresStoreOptions> = {}): Promise<PostgresStore> =>
  openPostgresStore({ settings: postgres.settings(), holder: "here", host: "here", mark: null, ...more });

let schemas = 0;

/** For the contract of stores: each body gets a schema of its own. */
export function withPostgres(postgres: Postgres): WithStore {
  return async (work) => {
    const options = { settings: postgres.settings(`schema = contract_${++schemas}`) };
    let last = await openStore(postgres, options);
    try {
      await work(last, async (old) => {
        await old.close();
        last = await openStore(postgres, options);
        return last;
      });
    } finally {
      await last.close();
    }
  };
}

/** Waits for a state, however slow the machine is. */
export async function until(what: string, ask: () => boolean | Promise<boolean>, limit_s = 300): Promise<void> {
  const deadline_ms = performance.now() + limit_s * 1000;
  while (!(await ask())) {
    if (performance.now() > deadline_ms) throw new Error(`not within ${limit_s} s: ${what}`);
    await sleep(10);
  }
}

const pause = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

function killNow(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has ended by itself.
  }
}

function programs(): string | undefined {
  const root = "/usr/lib/postgresql";
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : [];
  return versions.map((version) => join(root, version, "bin")).find((path) => existsSync(join(path, "initdb")));
}

function run(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  within: readonly string[] = [],
): SpawnSyncReturns<string> {
  const words = [
    ...within,
    ...(isRoot ? ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] : []),
    join(PROGRAMS ?? "", program),
    ...args,
  ];
  return spawnSync(words[0] as string, words.slice(1), {
    encoding: "utf8",
    cwd: "/",
    env: { PATH: process.env["PATH"], LC_ALL: "C", ...env },
  });
}

function must(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): string {
  const { status, stdout, stderr } = run(program, args, env);
  if (status !== 0) throw new Error(`${program} ended with ${status}: ${stdout}${stderr}`);
  return stdout;
}

function mustRun(program: string, args: readonly string[]): void {
  const { status, stderr } = spawnSync(program, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")}: ${stderr}`);
}

// The files of a complex. Its directory DIR has pbs.conf and PBS_HOME (DIR/pbs). `partita init` creates the files with the
// modes of docs/reference/files.md 1.

import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { homedir, hostname } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { FIRST_START } from "#server/shell/daemon-start.ts";
import { CONF_FILE_DEFAULT, type Conf, type Env, makeConf, SERVER_PORT_DEFAULT, shortHostName, thisMachine } from "#support/conf.ts";
import { PBS_VERSION } from "#support/version.ts";

/** The error for a mistake of the caller. It is printed without a stack, and the exit status is 1. */
export class AdminError extends Error {
  override readonly name = "AdminError";
}

/** Returns the directory of the complex for a call: --home, else $PARTITA_HOME, else a directory in the user's state directory. */
export function complexDirectory(given: string | undefined, env: Env): string {
  if (given === "") throw new AdminError("--home: the directory's name is empty");
  const state = env["XDG_STATE_HOME"] || join(homedir(), ".local", "state");
  return resolve(given || env["PARTITA_HOME"] || join(state, "partita"));
}

export const confFile = (dir: string): string => join(dir, "pbs.conf");

/** Reads the configuration in a file. The environment of the caller does not override it. */
export function confOf(file: string): Conf {
  return makeConf(file, readFileSync(file, "utf8"), {}, thisMachine());
}

/**
 * Returns the configuration of the complex for a call. It is the first that exists of: --home, $PARTITA_HOME, $PBS_CONF_FILE, the user's own complex, the
 * complex of the system.
 */
export function complexConf(home: string | undefined, env: Env = process.env): Conf {
  const file = complexConfFile(home, env);
  if (!existsSync(file)) {
    const dir = dirname(file);
    throw new AdminError(`there is no complex in ${dir}; make one with: partita init --home ${dir}`);
  }
  return confOf(file);
}

function complexConfFile(home: string | undefined, env: Env): string {
  const own = confFile(complexDirectory(home, env));
  if (home !== undefined || env["PARTITA_HOME"]) return own;
  if (env["PBS_CONF_FILE"]) return env["PBS_CONF_FILE"];
  return !existsSync(own) && existsSync(CONF_FILE_DEFAULT) ? CONF_FILE_DEFAULT : own;
}

/**
 * Throws AdminError if the caller must be root: in system mode only root may start, stop and reset a complex. In user mode the modes of the files keep other
 * users out.
 */
export function mustBeRoot(conf: Conf): void {
  if (conf.mode === "system" && process.geteuid?.() !== 0)
    throw new AdminError(`${conf.file} describes a complex in system mode: this needs root`);
}

/** Returns the directory that has bin/, etc/ and dist/: the checkout, or PBS_EXEC/lib/partita of an installation. */
export function programTree(): string {
  const self = dirname(fileURLToPath(import.meta.url));
  const candidates = [join(self, ".."), join(self, "../../..")];
  return resolve(candidates.find((path) => existsSync(join(path, "etc", "pbs_sched_config"))) ?? join(self, ".."));
}

/** The directories of PBS_HOME, each with its path, its mode in system mode and its mode in user mode. */
const TREE: readonly (readonly [path: string, system: number, user: number])[] = [
  ["", 0o755, 0o755],
  ["server_logs", 0o755, 0o755],
  ["server_priv", 0o750, 0o700],
  ["server_priv/accounting", 0o755, 0o755],
  ["server_priv/jobs", 0o750, 0o700],
  ["server_priv/users", 0o750, 0o700],
  ["server_priv/hooks", 0o750, 0o700],
  ["server_priv/hooks/tmp", 0o750, 0o700],
  ["server_priv/hooks/tracking", 0o750, 0o700],
  ["sock", 0o755, 0o700],
  ["sched_priv", 0o750, 0o750],
  ["sched_logs", 0o755, 0o755],
  ["comm_logs", 0o755, 0o755],
  ["mom_logs", 0o755, 0o755],
  ["mom_priv", 0o751, 0o751],
  ["mom_priv/jobs", 0o751, 0o751],
  ["mom_priv/config.d", 0o755, 0o755],
  ["mom_priv/hooks", 0o750, 0o750],
  ["mom_priv/hooks/tmp", 0o750, 0o750],
  ["aux", 0o755, 0o755],
  ["checkpoint", 0o700, 0o700],
  ["spool", 0o1777, 0o700],
  ["undelivered", 0o1777, 0o700],
];
const SCHED_FILES = [
  ["sched_config", "pbs_sched_config"],
  ["holidays", "pbs_holidays"],
  ["resource_group", "pbs_resource_group"],
  ["dedicated_time", "pbs_dedicated"],
] as const;

/** The first settings of a new server. They keep finished jobs in the history. */
const FIRST_WISHES = `# Attributes of the server, set once: when it starts with an empty store.
job_history_enable=True
`;

export type NewConf = {
  readonly file: string;
  readonly home: string;
  readonly exec: string;
  readonly mode: "user" | "system";
  /** name of the server; undefined: the short host name */
  readonly server: string | undefined;
  /** false: the host starts no daemon of a complex. Absent: it starts all of them */
  readonly starts?: false;
  /**
   * a host without a server. host, port: host and port of the server; node: the name of this host in the complex, if it is not the
   * short host name; login: it runs no mom
   */
  readonly member?: {
    readonly host: string;
    readonly port: number;
    readonly node: string | undefined;
    readonly login: boolean;
    /** PBS_PRIMARY and PBS_SECONDARY of a complex with two servers */
    readonly pair?: { readonly primary: string; readonly secondary: string } | undefined;
    /** set if this host has the standby server. port: the port on which that server listens */
    readonly standby?: { readonly port: number } | undefined;
  };
};

/** Writes pbs.conf. Throws AdminError if there is one already. */
export function makeConfFile(facts: NewConf): void {
  if (existsSync(facts.file)) throw new AdminError(`${dirname(facts.file)} holds a complex already`);
  const server = facts.server ?? shortHostName(hostname());
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/.test(server))
    throw new AdminError(`${JSON.stringify(server)} cannot be a server's name: up to 63 letters, digits, - _ .`);
  for (const path of [facts.home, facts.exec])
    if (/[\n"']|^\s|\s$/.test(path)) throw new AdminError(`${JSON.stringify(path)} cannot stand in pbs.conf`);
  mkdirSync(dirname(facts.file), { recursive: true, mode: 0o755 });
  const lines = [
    `PBS_EXEC=${facts.exec}`,
    `PBS_HOME=${facts.home}`,
    `PBS_SERVER=${server}`,
    ...(facts.member === undefined ? serverLines(facts.starts ?? true) : memberLines(server, facts.member)),
    `PBS_START_MOM=${facts.member?.login === true || facts.starts === false ? 0 : 1}`,
    "PBS_CORE_LIMIT=unlimited",
    // In system mode, pbs.conf has only keys that PBS has. The mode then follows from the owner of PBS_HOME, which is root.
    ...(facts.mode === "user" ? ["PARTITA_MODE=user"] : []),
  ];
  writeFileSync(facts.file, `${lines.join("\n")}\n`, { mode: 0o644 });
}

const serverLines = (starts: boolean): readonly string[] =>
  ["PBS_START_SERVER", "PBS_START_SCHED", "PBS_START_COMM"].map((key) => `${key}=${starts ? 1 : 0}`);

function memberLines(server: string, { host, port, node, pair, standby }: NonNullable<NewConf["member"]>): readonly string[] {
  const own_port = standby?.port ?? port;
  return [
    ...(host === server || pair !== undefined ? [] : [`PBS_SERVER_HOST_NAME=${host}`]),
    ...(own_port === SERVER_PORT_DEFAULT ? [] : [`PBS_BATCH_SERVICE_PORT=${own_port}`]),
    ...(node === undefined ? [] : [`PBS_MOM_NODE_NAME=${node}`]),
    ...(pair === undefined ? [] : [`PBS_PRIMARY=${pair.primary}`, `PBS_SECONDARY=${pair.secondary}`]),
    ...(standby === undefined
      ? ["PBS_START_SERVER=0", "PBS_START_SCHED=0"]
      : ["PBS_START_SERVER=1", "PBS_START_SCHED=1", "PARTITA_STORE=postgres"]),
    "PBS_START_COMM=0",
  ];
}

/** Whether this host has joined a complex whose server is on another host. */
export const isMember = ({ home, start }: Pick<Conf, "home" | "start">): boolean =>
  !start.server && existsSync(join(home, "identity", "host.pem"));

/** The facts from which PBS_HOME is made. file: path of pbs.conf. */
export type HomeFacts = Pick<Conf, "home" | "mode" | "exec" | "file">;

/** Makes what is missing in PBS_HOME. An existing directory keeps its mode. */
export function makeHome({ home, mode, exec, file }: HomeFacts, defaults: string): void {
  for (const [path, system, user] of TREE) {
    const full = join(home, path);
    if (existsSync(full)) continue;
    mkdirSync(full, { recursive: true });
    chmodSync(full, mode === "system" ? system : user);
  }
  for (const [file, source] of SCHED_FILES) {
    const target = join(home, "sched_priv", file);
    if (existsSync(target)) continue;
    // copyFileSync is not used: it would give the copy the owner of the source, and root's scheduler does not trust files of other users.
    writeFileSync(target, readFileSync(join(defaults, source)), { flag: "wx" });
    chmodSync(target, 0o644);
  }
  const environment = join(home, "pbs_environment");
  if (!existsSync(environment)) writeFileSync(environment, jobEnvironmentText(exec, file), { mode: 0o644 });
  writeFileSync(join(home, "pbs_version"), `${PBS_VERSION}\n`, { mode: 0o644 });
  const config = join(home, "mom_priv", "config");
  if (!existsSync(config)) writeFileSync(config, "", { mode: 0o644 });
  const first = join(home, "server_priv", FIRST_START);
  if (!existsSync(first)) writeFileSync(first, FIRST_WISHES, { mode: 0o600 });
}

/** Returns the text of pbs_environment. With it, jobs find the commands of PBS, and these commands find their complex. */
function jobEnvironmentText(exec: string, file: string): string {
  const zone = process.env["TZ"] ?? "";
  const lines = [`PATH=${join(exec, "bin")}:/usr/local/bin:/usr/bin:/bin`];
  if (zone !== "") lines.unshift(`TZ=${zone}`);
  if (file !== CONF_FILE_DEFAULT) lines.push(`PBS_CONF_FILE=${file}`);
  return `${lines.join("\n")}\n`;
}

/** Returns the faults of the directories in PBS_HOME, one sentence for each. A mode that gives fewer rights than ours is not a fault. */
export function homeFaults(home: string, mode: "user" | "system", owner_uid: number): string[] {
  const faults: string[] = [];
  for (const [path, system, user] of TREE) {
    const full = join(home, path);
    const wanted = mode === "system" ? system : user;
    const stat = statSync(full, { throwIfNoEntry: false });
    if (stat === undefined) faults.push(`${full} is missing: partita init makes it`);
    else if (!stat.isDirectory()) faults.push(`${full} is not a directory`);
    else if (stat.uid !== owner_uid) faults.push(`${full} belongs to uid ${stat.uid}, not to ${owner_uid}`);
    else if ((stat.mode & 0o777 & ~wanted) !== 0)
      faults.push(`${full} has mode ${(stat.mode & 0o7777).toString(8)}, should be ${wanted.toString(8)}`);
  }
  return faults;
}

/** Quotes a word for the shell if necessary. */
export function quote(text: string): string {
  return /^[\w/.:@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

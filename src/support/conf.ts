// Reads pbs.conf (docs/reference/files.md 2). Every program does so once at its start, and gets a frozen value. Because
// every command does so, this file loads only node:fs and node:os and makes no network lookup.
//
// C1. If PBS knows a key, an environment variable of the same name overrides its value. Unknown keys are kept (`values`).
// C2. A program that runs with more rights than its caller ignores the environment (option trustEnv: false).

import { readFileSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { present } from "./assert.ts";

export type Env = Readonly<Record<string, string | undefined>>;

/** Where a server is: the name or address of its host, and its TCP port. */
export type ServerAt = { readonly host: string; readonly port: number };

export type Conf = {
  /** path of the configuration file */
  readonly file: string;
  /** PBS_EXEC: directory of the installation */
  readonly exec: string;
  /** PBS_HOME: directory of configuration and state */
  readonly home: string;
  /** PBS_SERVER (or PBS_DEFAULT): the server's name */
  readonly server: string;
  /** the name of the server as the file gives it, without regard to the environment. It names the complex to which PBS_HOME belongs */
  readonly own_server: string;
  /** the host of the server, to which programs connect */
  readonly server_host: string;
  /** the hosts on which a server of the complex may be active: PBS_PRIMARY and PBS_SECONDARY if both are set, otherwise server_host */
  readonly servers: readonly ServerAt[];
  /** PBS_PRIMARY and PBS_SECONDARY; null unless both are set */
  readonly pair: { readonly primary: ServerAt; readonly secondary: ServerAt } | null;
  /**
   * user: the complex runs as one user, who is also its manager. system: the daemons run as root, and jobs run as their owners. Set by the key PARTITA_MODE;
   * without that key, it is `system` if root owns PBS_HOME
   */
  readonly mode: "user" | "system";
  readonly start: { readonly server: boolean; readonly sched: boolean; readonly mom: boolean; readonly comm: boolean };
  readonly port: { readonly server: number; readonly mom: number; readonly manager: number; readonly sched: number };
  readonly mom_home: string;
  /** PBS_MOM_NODE_NAME or the short host name */
  readonly mom_node_name: string;
  readonly environment_file: string;
  readonly tmpdir: string;
  readonly log_highres: boolean;
  /** PBS_SYSLOG: facility number; 0: off */
  readonly syslog: number;
  readonly locallog: boolean;
  /** PBS_DAEMON_SERVICE_USER */
  readonly service_user: string | null;
  /** all keys of the file as text, after environment variables have overridden some */
  readonly values: Readonly<Record<string, string>>;
};

/** The error for a configuration that cannot be used. Commands print its message. */
export class ConfError extends Error {
  override readonly name = "ConfError";
}

/** Default of PBS_BATCH_SERVICE_PORT. */
export const SERVER_PORT_DEFAULT = 15001;
export const CONF_FILE_DEFAULT = "/etc/pbs.conf";
const REQUIRED = ["PBS_HOME", "PBS_EXEC", "PBS_SERVER"] as const;
/** keys whose value must not contain a colon */
const HOST_KEYS = [
  "PBS_SERVER_HOST_NAME",
  "PBS_MAIL_HOST_NAME",
  "PBS_SMTP_SERVER_NAME",
  "PBS_OUTPUT_HOST_NAME",
  "PBS_PUBLIC_HOST_NAME",
  "PBS_MOM_NODE_NAME",
] as const;
const KNOWN = new Set<string>([
  ...REQUIRED,
  ...HOST_KEYS,
  "PBS_DEFAULT",
  "PBS_START_SERVER",
  "PBS_START_SCHED",
  "PBS_START_MOM",
  "PBS_START_COMM",
  "PBS_BATCH_SERVICE_PORT",
  "PBS_BATCH_SERVICE_PORT_DIS",
  "PBS_MOM_SERVICE_PORT",
  "PBS_MANAGER_SERVICE_PORT",
  "PBS_SCHEDULER_SERVICE_PORT",
  "PBS_DATA_SERVICE_PORT",
  "PBS_DATA_SERVICE_HOST",
  "PBS_PRIMARY",
  "PBS_SECONDARY",
  "PBS_LEAF_NAME",
  "PBS_LEAF_ROUTERS",
  "PBS_COMM_ROUTERS",
  "PBS_COMM_THREADS",
  "PBS_COMM_LOG_EVENTS",
  "PBS_AUTH_METHOD",
  "PBS_SUPPORTED_AUTH_METHODS",
  "PBS_INTERACTIVE_AUTH_METHOD",
  "PBS_INTERACTIVE_ENCRYPT_METHOD",
  "PBS_ENCRYPT_METHOD",
  "PBS_AUTH_SERVICE_USERS",
  "PBS_CORE_LIMIT",
  "PBS_CP",
  "PBS_SCP",
  "PBS_SCP_ARGS",
  "PBS_RCP",
  "PBS_ENVIRONMENT",
  "PBS_LOCALLOG",
  "PBS_SYSLOG",
  "PBS_SYSLOGSEVR",
  "PBS_LOG_HIGHRES_TIMESTAMP",
  "PBS_MOM_HOME",
  "PBS_TMPDIR",
  "PBS_SCHED_THREADS",
  "PBS_DAEMON_SERVICE_USER",
  "PBS_LR_SAVE_PATH",
  "PBS_DAEMON_SERVICE_AUTH_USER",
  "PBS_GSS_USER_CREDENTIALS_BIN",
  "PARTITA_MODE",
  "PARTITA_FAILOVER_ANSWER",
  "PARTITA_FAILOVER_WAIT",
  "PARTITA_RESIDENT",
  "PARTITA_RESIDENT_AFTER",
  "PARTITA_RESIDENT_ACCEPT_MS",
  "PARTITA_RESIDENT_IDLE",
  "PARTITA_RESIDENT_COMMANDS",
  "PARTITA_RESIDENT_MEMORY",
  "PARTITA_RESIDENT_AT_ONCE",
]);
/**
 * Variables that are not taken from the environment, because in the environment they mean something else than in pbs.conf: in a job, PBS_ENVIRONMENT is
 * PBS_BATCH.
 */
const NOT_FROM_ENVIRONMENT = new Set(["PBS_ENVIRONMENT"]);

/** Reads the configuration from the file named by PBS_CONF_FILE, or else from /etc/pbs.conf. Throws ConfError. */
export function readConf(env: Env = process.env, options: { readonly trustEnv?: boolean } = {}): Conf {
  const trusted = options.trustEnv ?? true;
  const file = (trusted && env["PBS_CONF_FILE"]) || CONF_FILE_DEFAULT;
  let text: string | null = null;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    // A missing file is no error yet: all keys may come from the environment. makeConf names missing keys, as PBS does.
  }
  try {
    return makeConf(file, text ?? "", trusted ? env : {}, thisMachine());
  } catch (error) {
    if (text !== null || !(error instanceof ConfError)) throw error;
    throw new ConfError(`${error.message}\n${hint(file)}`);
  }
}

/** Returns the advice for a user who has a personal complex but has not set PBS_CONF_FILE in this shell. */
const hint = (file: string): string =>
  `${file} cannot be read. A complex of your own is made known to a shell by: eval "$(partita env --home DIR)"`;

/**
 * Facts about the machine. ownerOf: returns the uid of a path's owner; null: the path does not exist. uid: the user who will own a PBS_HOME that does not exist
 * yet.
 */
export type Machine = { readonly hostname: string; readonly uid: number; readonly ownerOf?: (path: string) => number | null };

export const thisMachine = (): Machine => ({
  hostname: hostname(),
  uid: process.getuid?.() ?? 0,
  ownerOf: (path) => statSync(path, { throwIfNoEntry: false })?.uid ?? null,
});

/** Turns the text of the file and the environment into a Conf. The pure part of readConf. */
export function makeConf(file: string, text: string, env: Env, machine: Machine): Conf {
  const values = parseConfText(text);
  const own = values["PBS_SERVER"] || values["PBS_DEFAULT"];
  for (const name of KNOWN) {
    const value = env[name];
    if (value !== undefined && value !== "" && !NOT_FROM_ENVIRONMENT.has(name)) values[name] = value;
  }
  if (values["PBS_SERVER"] === undefined && values["PBS_DEFAULT"] !== undefined) values["PBS_SERVER"] = values["PBS_DEFAULT"];
  const missing = REQUIRED.filter((name) => !values[name]);
  if (missing.length > 0) throw new ConfError(`pbsconf error: pbs conf variables not found: ${missing.join(" ")}`);
  for (const name of HOST_KEYS) {
    if (values[name]?.includes(":")) throw new ConfError(`pbsconf error: illegal value for: ${name}`);
  }
  return fromValues(file, values, own, machine);
}

/**
 * Parses lines `NAME=value`, also with `export` before the name. Lines that begin with `#` are comments. Blanks around name and value are removed, and so are
 * quotes around a value. If a name occurs several times, its last line counts.
 */
export function parseConfText(text: string): Record<string, string> {
  const values: Record<string, string> = {};
  for (const line of text.split("\n")) {
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#")) continue;
    const equals = trimmed.indexOf("=");
    if (equals <= 0) continue;
    const name = trimmed
      .slice(0, equals)
      .trim()
      .replace(/^export\s+/, "");
    const value = trimmed.slice(equals + 1).trim();
    values[name] = /^(["']).*\1$/.test(value) && value.length >= 2 ? value.slice(1, -1) : value;
  }
  return values;
}

function fromValues(file: string, values: Record<string, string>, own: string | undefined, machine: Machine): Conf {
  const home = present(values["PBS_HOME"], "PBS_HOME");
  const server = present(values["PBS_SERVER"], "PBS_SERVER");
  const flag = (name: string): boolean => Number.parseInt(values[name] ?? "0", 10) > 0;
  const port = (name: string, fallback: number): number => {
    const number = Number(values[name] ?? fallback);
    return Number.isInteger(number) && number > 0 && number < 65536 ? number : fallback;
  };
  const stated = values["PARTITA_MODE"];
  const owner = (): number => machine.ownerOf?.(home) ?? machine.uid;
  const mode = stated === "user" || stated === "system" ? stated : owner() === 0 ? "system" : "user";
  const server_host = values["PBS_SERVER_HOST_NAME"] ?? server;
  const server_port = port("PBS_BATCH_SERVICE_PORT", SERVER_PORT_DEFAULT);
  const pair = pairIn(values, server_port);
  return Object.freeze({
    file,
    exec: present(values["PBS_EXEC"], "PBS_EXEC"),
    home,
    server,
    own_server: own ?? server,
    server_host,
    servers: Object.freeze(pair === null ? [{ host: server_host, port: server_port }] : [pair.primary, pair.secondary]),
    pair,
    mode,
    start: Object.freeze({
      server: flag("PBS_START_SERVER"),
      sched: flag("PBS_START_SCHED"),
      mom: flag("PBS_START_MOM"),
      comm: flag("PBS_START_COMM"),
    }),
    port: Object.freeze({
      server: server_port,
      mom: port("PBS_MOM_SERVICE_PORT", 15002),
      manager: port("PBS_MANAGER_SERVICE_PORT", 15003),
      sched: port("PBS_SCHEDULER_SERVICE_PORT", 15004),
    }),
    mom_home: values["PBS_MOM_HOME"] ?? home,
    mom_node_name: values["PBS_MOM_NODE_NAME"] ?? shortHostName(machine.hostname),
    environment_file: values["PBS_ENVIRONMENT"] ?? `${home}/pbs_environment`,
    // In user mode /var/tmp is not used: it is shared, so jobs with equal ids in two users' complexes would use the same directory.
    tmpdir: values["PBS_TMPDIR"] ?? (mode === "user" ? `${home}/tmp` : "/var/tmp"),
    log_highres: flag("PBS_LOG_HIGHRES_TIMESTAMP"),
    syslog: Number.parseInt(values["PBS_SYSLOG"] ?? "0", 10) || 0,
    locallog: flag("PBS_LOCALLOG"),
    service_user: values["PBS_DAEMON_SERVICE_USER"] || null,
    values: Object.freeze(values),
  });
}

function pairIn(values: Readonly<Record<string, string>>, port: number): Conf["pair"] {
  const [primary, secondary] = [values["PBS_PRIMARY"], values["PBS_SECONDARY"]];
  return primary && secondary ? Object.freeze({ primary: serverAt(primary, port), secondary: serverAt(secondary, port) }) : null;
}

/** Reads HOST or HOST:PORT; an IPv6 address with a port is in brackets. port: the port if none is given. */
function serverAt(text: string, port: number): ServerAt {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+))(?::([0-9]{1,5}))?$/.exec(text.trim()) ?? [];
  const given = Number(digits ?? port);
  return { host: bracketed ?? plain ?? text.trim(), port: given > 0 && given < 65536 ? given : port };
}

/** Returns the part of a host name before the first dot: `svr.example.org` -> `svr`. */
export function shortHostName(name: string): string {
  const dot = name.indexOf(".");
  return dot > 0 ? name.slice(0, dot) : name;
}

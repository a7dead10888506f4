// The settings of a PostgreSQL store: the lines `name = value` of PBS_HOME/server_priv/database.conf, which only the server's
// user may read, because they can contain a password. The names of connection settings are those of PostgreSQL's own tools.

import { readFileSync, statSync } from "node:fs";
import { codeOf, messageOf } from "#support/caught.ts";
import { parseConfText } from "#support/conf.ts";
import { StoreError } from "../store.ts";

export type DatabaseHost = { readonly host: string; readonly port: number };

/** disable: no TLS. require: TLS, whatever certificate the database has. verify-full: TLS, and the certificate must name the host. */
export type TlsMode = "disable" | "require" | "verify-full";

export type DatabaseSettings = {
  /** hosts to try in this order; the first that accepts writes is used. A host that begins with `/` is the directory of a unix socket */
  readonly hosts: readonly DatabaseHost[];
  readonly database: string;
  readonly user: string;
  readonly password: string | null;
  /** the schema of the database that has the tables of this complex */
  readonly schema: string;
  /** undefined: verify-full for hosts that are not this machine */
  readonly tls: TlsMode | undefined;
  /** paths of files in PEM: the certificates to trust (null: the system's certificates), and the server's own certificate and key (null: none) */
  readonly root_cert: string | null;
  readonly cert: string | null;
  readonly key: string | null;
  /** longest time for a connection to be established */
  readonly connect_s: number;
  /** longest time for one statement */
  readonly statement_s: number;
  /** how long a commit waits for a database that cannot be reached, before its requests get an error */
  readonly patience_s: number;
  /** interval at which an idle server confirms that it is the leader */
  readonly beat_s: number;
  /** silence of a leader after which another server may take its place */
  readonly silence_s: number;
  /** two servers (reach.ts): the largest number of hosts with moms that each of them tries to reach; 0: none */
  readonly mom_probes: number;
  /** how long the other server must reach clearly more hosts before the leader gives up its lead */
  readonly mom_silence_s: number;
  /** the shortest time between two changes of the leader for that reason */
  readonly settle_s: number;
};

const DATABASE_PORT_DEFAULT = 5432;

/** The settings that are numbers: default, smallest and largest value of each. */
const NUMBERS = {
  connect_timeout: [5, 1, 600],
  statement_timeout: [30, 1, 3600],
  patience: [60, 1, 86_400],
  beat: [2, 0.05, 60],
  silence: [7, 0.2, 600],
  mom_probes: [32, 0, 256],
  mom_silence: [3, 0.2, 600],
  settle: [60, 0, 86_400],
} as const;
const TEXTS = ["host", "port", "dbname", "user", "password", "schema", "sslmode", "sslrootcert", "sslcert", "sslkey"] as const;
const NAME = /^[a-z_][a-z0-9_]{0,36}$/;

/** Reads settings from a text. Returns them, or a sentence about the first mistake, which never contains the password. */
export function parseSettings(text: string, own_user: string): DatabaseSettings | string {
  const values = parseConfText(text);
  const unknown = Object.keys(values).find((name) => !(name in NUMBERS) && !TEXTS.some((known) => known === name));
  if (unknown !== undefined) return `there is no setting ${unknown}; there are ${[...TEXTS, ...Object.keys(NUMBERS)].join(", ")}`;
  const hosts = hostsOf(values["host"] ?? "/var/run/postgresql", values["port"] ?? String(DATABASE_PORT_DEFAULT));
  if (typeof hosts === "string") return hosts;
  const schema = values["schema"] ?? "partita";
  if (!NAME.test(schema)) return "schema: up to 37 small letters, digits and _, the first one no digit";
  const tls = values["sslmode"];
  if (tls !== undefined && tls !== "disable" && tls !== "require" && tls !== "verify-full")
    return "sslmode: one of disable, require, verify-full";
  if ((values["sslcert"] === undefined) !== (values["sslkey"] === undefined)) return "sslcert and sslkey: one needs the other";
  const numbers = { connect_timeout: 0, statement_timeout: 0, patience: 0, beat: 0, silence: 0, mom_probes: 0, mom_silence: 0, settle: 0 };
  for (const name of Object.keys(NUMBERS) as (keyof typeof NUMBERS)[]) {
    const [usual, least, most] = NUMBERS[name];
    const number = values[name] === undefined ? usual : Number(values[name] || Number.NaN);
    if (!(number >= least && number <= most)) return `${name}: ${name === "mom_probes" ? "a number" : "seconds"} from ${least} to ${most}`;
    numbers[name] = number;
  }
  if (!Number.isInteger(numbers.mom_probes)) return "mom_probes: a whole number";
  if (numbers.silence < 3 * numbers.beat) return "silence: at least three times beat";
  return {
    hosts,
    database: values["dbname"] ?? "partita",
    user: values["user"] ?? own_user,
    password: values["password"] ?? null,
    schema,
    tls,
    root_cert: values["sslrootcert"] ?? null,
    cert: values["sslcert"] ?? null,
    key: values["sslkey"] ?? null,
    connect_s: numbers.connect_timeout,
    statement_s: numbers.statement_timeout,
    patience_s: numbers.patience,
    beat_s: numbers.beat,
    silence_s: numbers.silence,
    mom_probes: numbers.mom_probes,
    mom_silence_s: numbers.mom_silence,
    settle_s: numbers.settle,
  };
}

/** Combines hosts such as `a,b` with their ports: one port for all (`5432`), or one for each (`5432,5433`). Returns a text if they are wrong. */
function hostsOf(hosts: string, ports: string): readonly DatabaseHost[] | string {
  const names = hosts.split(",").map((name) => name.trim());
  const numbers = ports.split(",").map(Number);
  if (names.includes("")) return "host: names or addresses, or the directory of a unix socket, with commas between them";
  if (numbers.some((port) => !Number.isInteger(port) || port < 1 || port > 65_535)) return "port: numbers from 1 to 65535";
  if (numbers.length !== 1 && numbers.length !== names.length) return "port: one number for all hosts, or one for each";
  return names.map((host, at) => ({ host, port: numbers[at] ?? numbers[0] ?? DATABASE_PORT_DEFAULT }));
}

/** Whether a host is this machine, so that its link needs no encryption. */
export const isLocal = (host: string): boolean => host.startsWith("/") || host === "localhost" || host === "::1" || /^127\./.test(host);

/** The name of the store in messages: without user and password. */
export const nameOfDatabase = ({ hosts, database, schema }: DatabaseSettings): string =>
  `PostgreSQL ${hosts.map(({ host, port }) => (host.startsWith("/") ? host : `${host}:${port}`)).join(",")}/${database}.${schema}`;

/** Reads the file of settings. Throws StoreError if the file is missing, if others may read it, or if it has a mistake. */
export function readSettings(file: string, own_user: string): DatabaseSettings {
  let text: string;
  try {
    const stat = statSync(file);
    if ((stat.mode & 0o077) !== 0)
      throw new Error(`its mode is ${(stat.mode & 0o777).toString(8)}; it must be 600, because it can hold a password`);
    if (stat.uid !== process.geteuid?.()) throw new Error(`it belongs to uid ${stat.uid}, not to the user of the server`);
    text = readFileSync(file, "utf8");
  } catch (error) {
    const why =
      codeOf(error) === "ENOENT" ? "it does not exist: write into it how to reach the database (docs/store.md)" : messageOf(error);
    throw new StoreError("permission", `${file}: ${why}`, error);
  }
  const settings = parseSettings(text, own_user);
  if (typeof settings === "string") throw new StoreError("permission", `${file}: ${settings}`);
  return settings;
}

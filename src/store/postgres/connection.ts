// A connection to PostgreSQL with promises, prepared statements, and errors that tell the administrator what to do. Calls on
// one connection run in the order in which they were made.
//
// N1. A statement without an answer in time ends the connection: its outcome is then unknown, like that of a statement during
//     which the connection was lost. isLost() tells these from statements that the database has undone.
// N2. The driver reads nothing from the environment (PGHOST, PGPASSWORD, ~/.pgpass): everything comes from database.conf.

import { readFileSync } from "node:fs";
import pg from "pg";
import type { Parameter, Reader } from "../sql-history.ts";
import { StoreError } from "../store.ts";
import { databaseError, isUndone } from "./faults.ts";
import { type DatabaseHost, type DatabaseSettings, isLocal, nameOfDatabase } from "./settings.ts";

export type Connection = Reader & {
  /** the host that has answered */
  readonly host: DatabaseHost;
  /** runs statements that have no parameters and return no rows. They are one transaction, unless they begin and end transactions themselves */
  exec(sql: string): Promise<void>;
  /** whether the connection is gone. If a statement has failed and the connection is not lost, the statement was undone */
  isLost(): boolean;
  close(): Promise<void>;
};

/** What a connection is for. writer: its query plans always use the indexes, because the plans are made while the tables are still empty. */
export type ConnectionUse = "writer" | "reader";

/** Time that a statement may take beyond its limit in the database before the connection is given up. */
const MARGIN_MS = 3000;
/** Silence after which the kernel probes the database's host; it sends 10 probes, one a second. */
const KEEP_ALIVE_MS = 5000;
/** Object ids of the types that are numbers and truth values; all other values are taken as text. */
const NUMBER_TYPES: ReadonlySet<number> = new Set([20, 21, 23, 26]);
const TRUTH_TYPE = 16;

/** Connects to the first host that accepts writes. Rejects with StoreError; `away`: it may help to try again. */
export async function connectDatabase(settings: DatabaseSettings, use: ConnectionUse): Promise<Connection> {
  const failures: StoreError[] = [];
  for (const host of settings.hosts) {
    try {
      return await connectHost(settings, host, use);
    } catch (error) {
      failures.push(databaseError(nameOfDatabase({ ...settings, hosts: [host] }), error));
    }
  }
  const [first] = failures;
  const away = failures.find(({ fault }) => fault === "away");
  if (failures.length === 1 && first !== undefined) throw first;
  throw new StoreError(away === undefined ? "permission" : "away", failures.map(({ message }) => message).join("; "));
}

async function connectHost(settings: DatabaseSettings, host: DatabaseHost, use: ConnectionUse): Promise<Connection> {
  const client = new pg.Client({
    host: host.host,
    port: host.port,
    database: settings.database,
    user: settings.user,
    password: () => settings.password ?? "",
    ssl: tlsOptions(settings, host),
    application_name: "partita",
    connectionTimeoutMillis: settings.connect_s * 1000,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    types: { getTypeParser: (type: number) => parserOf(type) },
  });
  let lost = false;
  // Without a listener, the error of an idle connection would end the process.
  client.on("error", () => {
    lost = true;
  });
  client.on("end", () => {
    lost = true;
  });
  await client.connect();
  const connection = connectionOf(settings, host, client, () => lost);
  try {
    await prepareSession(connection, settings, use);
    return connection;
  } catch (error) {
    await connection.close();
    throw error;
  }
}

const parserOf = (type: number): ((value: string) => unknown) =>
  NUMBER_TYPES.has(type) ? Number : type === TRUTH_TYPE ? (value) => value === "t" : (value) => value;

function tlsOptions({ tls, root_cert, cert, key }: DatabaseSettings, { host }: DatabaseHost): false | object {
  const mode = tls ?? (isLocal(host) ? "disable" : "verify-full");
  if (mode === "disable" || host.startsWith("/")) return false;
  const read = (name: string, file: string | null): object => (file === null ? {} : { [name]: readFileSync(file) });
  return {
    rejectUnauthorized: mode === "verify-full",
    minVersion: "TLSv1.2",
    ...read("ca", root_cert),
    ...read("cert", cert),
    ...read("key", key),
  };
}

function connectionOf(settings: DatabaseSettings, host: DatabaseHost, client: pg.Client, isGone: () => boolean): Connection {
  const name = nameOfDatabase({ ...settings, hosts: [host] });
  const limit_ms = settings.statement_s * 1000 + MARGIN_MS;
  const statements = new Map<string, { readonly name: string; readonly text: string }>();
  let is_given_up = false;
  let tail: Promise<unknown> = Promise.resolve();
  const isLost = (): boolean => is_given_up || isGone();
  const giveUp = (): void => {
    is_given_up = true;
    void client.end().catch(() => undefined);
  };
  const prepared = (sql: string): { readonly name: string; readonly text: string } => {
    const known = statements.get(sql);
    if (known !== undefined) return known;
    let parameters = 0;
    const made = { name: `s${statements.size}`, text: sql.replaceAll("?", () => `$${++parameters}`) };
    statements.set(sql, made);
    return made;
  };
  /** Waits for an answer, at most for the limit (N1). */
  const timed = async <T>(work: () => Promise<T>): Promise<T> => {
    if (isLost()) throw new StoreError("away", `${name}: the connection to the database was lost`);
    const timer = setTimeout(giveUp, limit_ms);
    try {
      return await work();
    } catch (error) {
      // The database translates the texts of severities, so isUndone() may not recognise an undone statement. A test query
      // then shows whether the connection still works.
      if (!isUndone(error) && !isLost()) await client.query("SELECT 1").catch(giveUp);
      throw databaseError(name, error);
    } finally {
      clearTimeout(timer);
    }
  };
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = tail.then(() => timed(work));
    tail = result.catch(() => undefined);
    return result;
  };
  return {
    name,
    host,
    async all<T>(sql: string, ...values: readonly Parameter[]): Promise<T[]> {
      const { rows } = await inTurn(() => client.query({ ...prepared(sql), values: [...values] }));
      return rows as T[];
    },
    exec: (sql) => inTurn(async () => void (await client.query(sql))),
    isLost,
    async close() {
      is_given_up = true;
      await client.end().catch(() => undefined);
    },
  };
}

/**
 * Refuses a database that accepts no writes, and makes the settings of the session. Commits must survive a crash whatever
 * the database's own setting is; if there are synchronous standbys, commits must be on these as well.
 */
async function prepareSession(connection: Connection, settings: DatabaseSettings, use: ConnectionUse): Promise<void> {
  const statement_ms = String(Math.round(settings.statement_s * 1000));
  const idle_ms = String(Math.round((settings.silence_s * 1000) / 2));
  const values: readonly (readonly [name: string, value: string])[] = [
    ["search_path", settings.schema],
    ["statement_timeout", statement_ms],
    ["client_min_messages", "warning"],
    ["jit", "off"],
    ["tcp_keepalives_idle", "10"],
    ["tcp_keepalives_interval", "2"],
    ["tcp_keepalives_count", "5"],
    ...(use === "writer" ? WRITER_SETTINGS : []),
    // A process that was stopped in a transaction would keep its lock on the row about the leader, and no other server could take over.
    ...(use === "writer" ? ([["idle_in_transaction_session_timeout", idle_ms]] as const) : []),
  ];
  const [standing] = await connection.all<{ readonly standby: boolean; readonly read_only: string; readonly version: number }>(
    `SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only') AS read_only, current_setting('server_version_num')::int AS version,
       ${values.map(([name, value]) => `set_config('${name}', '${value}', false) AS ${name}`).join(", ")},
       set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false) AS durable`,
  );
  if (standing?.standby === true) throw new StoreError("away", `${connection.name}: the database is a standby`);
  if (standing?.read_only === "on")
    throw new StoreError("away", `${connection.name}: the database accepts no writes (default_transaction_read_only)`);
  if ((standing?.version ?? 0) < VERSION_MIN)
    throw new StoreError("permission", `${connection.name}: the database is too old: PostgreSQL 13 or newer is needed`);
}

const VERSION_MIN = 130_000;
const WRITER_SETTINGS: readonly (readonly [name: string, value: string])[] = [
  ["enable_seqscan", "off"],
  ["enable_hashjoin", "off"],
  ["enable_mergejoin", "off"],
  ["plan_cache_mode", "force_generic_plan"],
];

/** The guarantees that a database does not give because of its settings, one sentence for each; for the log of the server and for partita doctor. */
export async function weaknesses(connection: Connection): Promise<readonly string[]> {
  const [found] = await connection.all<{ readonly fsync: string; readonly pages: string; readonly standbys: string }>(
    "SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS pages, current_setting('synchronous_standby_names') AS standbys",
  );
  return [
    ...(found?.fsync === "off" ? [`${connection.name}: fsync is off: acknowledged jobs are lost if the machine crashes`] : []),
    ...(found?.pages === "off" ? [`${connection.name}: full_page_writes is off: a crash of the machine can damage the database`] : []),
  ];
}

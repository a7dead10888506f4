// Opens PBS_HOME for the only server that may use it: makes directories, takes the lock, opens the store. This file is in a
// bundle of its own that is loaded before the service. While V8 loads the service, SQLite's threads already check the store
// and read the first jobs. The driver of PostgreSQL is in a further bundle, which a server with SQLite never loads.

import { chmodSync, existsSync, mkdirSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { type PairRole, pairRole } from "#protocol/failover/pair-role.ts";
import { markFile } from "#store/mark.ts";
import type { ReachLimits } from "#store/postgres/reach.ts";
import type { WaitingSight } from "#store/postgres/servers.ts";
import type { DatabaseSettings } from "#store/postgres/settings.ts";
import { beginSqliteStore } from "#store/sqlite/sqlite-store.ts";
import type { Store, StoreError } from "#store/store.ts";
import { databaseFile, storeFile, storeKind } from "#store/store-choice.ts";
import { messageOf } from "#support/caught.ts";
import type { Conf } from "#support/conf.ts";
import { returnLargeBlocks } from "#support/libc/large-blocks.ts";
import { type HeldLock, takeLock } from "#support/libc/lock-file.ts";
import { systemUsers } from "#support/passwd.ts";
import { AGAIN_ENV } from "./daemon-start.ts";
import { MomProbes } from "./mom-probes.ts";

/**
 * A PBS_HOME that is open. opened: the store; may reject with a StoreError. hear: from now on, passes texts for the log
 * about slow or unusual steps of the store to `note`, first those that came before the call. ended: called if the store can
 * write nothing more, because another server uses it now; the server must then end at once.
 */
export type OpenHome = {
  readonly lock: HeldLock;
  readonly opened: Promise<Store>;
  /** the role of this server in a complex with two servers; null: the complex has one server */
  readonly role: PairRole | null;
  /** which hosts of moms this server reaches; null: the complex has one server */
  readonly reach: Reaching | null;
  /** from now on, while this server leads, passes the servers that wait to `see` */
  hearServers(see: (sights: readonly WaitingSight[]) => void): void;
  hear(note: (text: string) => void, ended: (error: StoreError) => void): void;
};

/** limits: when the leader gives up its lead because the other server reaches more hosts */
export type Reaching = { readonly probes: MomProbes; readonly limits: ReachLimits };

/**
 * Resolves when SQLite's threads have begun to work, or with the reason why this process may not serve. create: the store
 * begins anew, so it does not matter if the old store has lost data.
 */
export async function openHome(conf: Conf, create: boolean): Promise<OpenHome | string> {
  // The process title is set because `ps` shows it and site tools look for the name (docs/reference/files.md 9).
  process.title = ["pbs_server", ...process.argv.slice(2)].join(" ");
  process.umask(0o022);
  // Must be called before SQLite's threads allocate memory.
  returnLargeBlocks();
  let role: PairRole | null;
  try {
    role = pairRole(conf, hostname());
  } catch (error) {
    return messageOf(error);
  }
  if (role !== null && storeKind(conf) !== "postgres")
    return `${conf.file}: two servers need a store in a database (PARTITA_STORE=postgres)`;
  makeHome(conf);
  const lock = await holdLock(conf, role);
  if (typeof lock === "string") return lock;
  const news = storeNews();
  let see: (sights: readonly WaitingSight[]) => void = () => undefined;
  const pair = { role, onServers: (sights: readonly WaitingSight[]): void => see(sights) };
  const { opened, reach = null } = await beginStore(conf, create, news, pair).catch(
    (error: unknown): BegunStore => ({ opened: Promise.reject<Store>(error) }),
  );
  opened.catch(() => undefined);
  return {
    lock,
    opened,
    role,
    reach,
    hear: news.hear,
    hearServers(next) {
      see = next;
    },
  };
}

type News = { readonly onNotice: (text: string) => void; readonly onEnd: (error: StoreError) => void; readonly hear: OpenHome["hear"] };

/** Keeps the messages of the store until hear() is called. */
function storeNews(): News {
  const kept: string[] = [];
  let end: StoreError | null = null;
  let hearer: Parameters<OpenHome["hear"]> | null = null;
  return {
    onNotice: (text) => (hearer === null ? void kept.push(text) : hearer[0](text)),
    onEnd(error) {
      end = error;
      hearer?.[1](error);
    },
    hear(note, ended) {
      hearer = [note, ended];
      for (const text of kept.splice(0)) note(text);
      if (end !== null) ended(end);
    },
  };
}

type PairOptions = { readonly role: PairRole | null; readonly onServers: (sights: readonly WaitingSight[]) => void };

type BegunStore = { readonly opened: Promise<Store>; readonly reach?: Reaching | null };

async function beginStore(conf: Conf, create: boolean, { onNotice, onEnd }: News, pair: PairOptions): Promise<BegunStore> {
  const file = storeFile(conf);
  if (storeKind(conf) === "sqlite") return beginSqliteStore(file, { accept_loss: create, onNotice });
  const { openPostgresStore, readSettings } = await import("#store/postgres/postgres-store.ts");
  const settings = readSettings(databaseFile(conf), systemUsers().userByUid(process.geteuid?.() ?? 0)?.name ?? "root");
  const host = hostname();
  const reach = pair.role === null || settings.mom_probes === 0 ? null : reachingOf(settings);
  return {
    reach,
    opened: openPostgresStore({
      settings,
      holder: holderOf(host, conf.home, pair.role),
      host,
      mark: markFile(file),
      accept_loss: create,
      waits: true,
      stands_by: pair.role !== null,
      ...pair,
      reach: reach?.probes ?? null,
      onNotice,
      onEnd,
    }),
  };
}

const reachingOf = (settings: DatabaseSettings): Reaching => ({
  probes: new MomProbes(settings),
  limits: { mom_silence_ms: settings.mom_silence_s * 1000, settle_ms: settings.settle_s * 1000 },
});

/**
 * The name under which a server holds the database. Only processes that exclude each other by a lock may have the same name, because a server takes over at once
 * from a server with its own name. The two servers of a complex have two locks, although PBS_HOME and even the names of their hosts may be equal (copies of one
 * machine).
 */
export const holderOf = (host: string, home: string, role: PairRole | null): string =>
  role === null ? `${host}:${home}` : `${host}:${home}:${role}`;

/** Makes the directories of the server that are missing (docs/reference/files.md 1). */
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

/** How long a server that its predecessor has started waits for the lock of the predecessor. */
const LOCK_MS_MAX = 30_000;
const LOCK_LOOK_MS = 100;

/** Takes the lock of PBS_HOME. A secondary server has a lock of its own, as in PBS. Returns a text if another process has it. */
async function holdLock(conf: Conf, role: PairRole | null): Promise<HeldLock | string> {
  const path = join(conf.home, "server_priv", role === "secondary" ? "server.lock.secondary" : "server.lock");
  const patience_ms = process.env[AGAIN_ENV] === undefined ? 0 : LOCK_MS_MAX;
  delete process.env[AGAIN_ENV];
  const begin_ms = performance.now();
  try {
    for (;;) {
      const outcome = takeLock(path);
      if ("held" in outcome) return outcome.held;
      if (performance.now() - begin_ms > patience_ms) return `another server is running (pid ${outcome.owner_pid ?? "unknown"})`;
      await new Promise((resolve) => setTimeout(resolve, LOCK_LOOK_MS));
    }
  } catch (error) {
    return `cannot lock ${path}: ${messageOf(error)}`;
  }
}

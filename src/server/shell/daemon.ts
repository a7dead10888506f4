// The service of pbs_server: opens logs, loads the state from the store, and serves until a signal or qterm ends it (docs/reference/files.md 10).

import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { StandbyView } from "#protocol/hosts-view.ts";
import { isStoreError, type Store } from "#store/store.ts";
import { openAccounting } from "#support/accounting-log.ts";
import { messageOf } from "#support/caught.ts";
import { type Conf, parseConfText, shortHostName } from "#support/conf.ts";
import { type Log, openLog } from "#support/log.ts";
import { LOG_EVENT, LOG_MASK } from "#support/log-event.ts";
import { systemUsers, type UserDatabase } from "#support/passwd.ts";
import { PBS_VERSION } from "#support/version.ts";
import { prepareStart } from "../core/first-start.ts";
import type { ServerOptions } from "../core/options.ts";
import type { LoadedState } from "../driver/ports.ts";
import { loadFromStore } from "../driver/store-port.ts";
import type { ServerConfig } from "../engine/transaction.ts";
import { FIRST_START, STANDS_BY, tellStarter, tellWaiting } from "./daemon-start.ts";
import type { OpenHome } from "./open-home.ts";
import { Pair, startAgain } from "./pair.ts";
import { type Service, startService } from "./service.ts";
import { timeZone } from "./time-zone.ts";

/** The mode of the server's log. Only its user and group may read it, because it names jobs and owners. pbs.conf can set another mode (three octal digits). */
export function logMode(stated: string | undefined): number {
  return /^0?[0-7]{3}$/.test(stated ?? "") ? (Number.parseInt(stated as string, 8) & 0o666) | 0o600 : 0o640;
}

/**
 * Serves until the server is ended. Resolves with the exit status of the process. The process that waits for the start gets
 * the word "ready" or the reason of a failure.
 */
export async function serve(options: ServerOptions, conf: Conf, home: OpenHome): Promise<number> {
  const { lock, opened, hear, role } = home;
  const host = shortHostName(conf.server);
  const log = openServerLog(options, conf, host);
  const note = (event: number, text: string): void => log.record(event, "Svr", `Server@${host}`, text);
  note(LOG_EVENT.SYSTEM, `starting, pid ${process.pid}`);
  const unusable = (error: unknown): number => {
    note(LOG_EVENT.ERROR, `store: ${messageOf(error)}`);
    log.close();
    if (isStoreError(error) && error.fault === "dismissed") return 0;
    if (isStoreError(error)) return fail(error.message);
    throw error;
  };
  let starting = true;
  let service: Service | null = null;
  let has_signal = false;
  /** Whether this process starts itself again as the standby if another server has replaced it (pair.ts A3). */
  const standsBy = (): boolean => !options.foreground && !has_signal && service?.isToldToEnd() !== true;
  hear(
    (text) => {
      note(LOG_EVENT.SYSTEM, text);
      if (starting && text.startsWith(STANDS_BY)) tellStarter("ready\n");
      else if (starting && text.startsWith("waiting")) tellWaiting(`pbs_server: ${text}`);
    },
    (error) => {
      // Another server leads now. Not even an answer may be sent: the other server may lack commits that were not confirmed here.
      note(LOG_EVENT.ERROR, `the server ends at once: ${error.message}`);
      log.close();
      if (starting) fail(error.message);
      if (role !== null && error.fault === "deposed" && standsBy()) startAgain();
      process.exit(1);
    },
  );
  let store: Store;
  try {
    store = await opened;
  } catch (error) {
    return unusable(error);
  }
  const accounting = openAccounting({
    dir: join(conf.home, "server_priv/accounting"),
    ...(options.accounting_file === undefined ? {} : { file: options.accounting_file }),
  });
  const users = systemUsers();
  const config = configOf(conf, host, role, users, () => pair?.standbys ?? []);
  let loaded: LoadedState;
  try {
    loaded = await loadFromStore(store, host);
  } catch (error) {
    return unusable(error);
  }
  const fresh = loaded.state.scheds.size === 0;
  const pair = role === null || store.shared === undefined ? null : new Pair(conf, role, store.shared, home.reach);
  let is_giving_way = false;
  return new Promise((resolve) => {
    const ended = (): void => {
      accounting.close();
      pair?.close();
      log.close();
      lock.release();
      if (is_giving_way && standsBy()) startAgain();
      resolve(0);
    };
    startService({
      conf,
      config,
      store,
      log,
      accounting,
      users,
      loaded,
      pair,
      ended,
      prepare: (core) =>
        prepareStart(core, {
          start: options.start,
          fresh,
          node: conf.start.mom ? conf.mom_node_name : null,
          wanted: fresh ? wantedAtFirst(conf) : {},
          ...(options.scheduling === undefined ? {} : { scheduling: options.scheduling }),
        }),
    }).then(
      (started) => {
        service = started;
        home.reach?.probes.serve(() => started.moms());
        pair?.watch((why) => {
          is_giving_way = true;
          note(LOG_EVENT.SYSTEM, why);
          started.stop(true);
        });
        if (pair !== null) home.hearServers((sights) => pair.see(sights));
        heedSignals(started, () => (has_signal = true));
        process.on("uncaughtException", (error) => {
          note(LOG_EVENT.ERROR, `fatal: ${error.stack ?? error.message}`);
          log.close();
          process.exit(1);
        });
        starting = false;
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

function openServerLog(options: ServerOptions, conf: Conf, host: string): Log {
  return openLog({
    dir: join(conf.home, "server_logs"),
    daemon: `Server@${host}`,
    mask: options.log_events ?? LOG_MASK.server,
    highres: conf.log_highres,
    mode: logMode(conf.values["PBS_SERVER_LOG_MODE"]),
    ...(options.log_file === undefined ? {} : { file: options.log_file }),
    header: [`hostname=${hostname()};pbs_leaf_name=N/A;pbs_mom_node_name=${conf.mom_node_name}`],
  });
}

function configOf(
  conf: Conf,
  host: string,
  role: OpenHome["role"],
  users: UserDatabase,
  standbys: () => readonly StandbyView[],
): ServerConfig {
  const other = conf.pair?.[role === "primary" ? "secondary" : "primary"].host ?? "";
  return {
    host,
    machine: hostname(),
    home: conf.home,
    ...(role === null ? {} : { pair: { role, host: conf.mom_node_name, other, standbys } }),
    pbs_version: PBS_VERSION,
    own_user: conf.mode === "user" ? (users.userByUid(process.getuid?.() ?? 0)?.name ?? null) : null,
    ctime,
    timeZone,
    userExists: (name) => users.userByName(name) !== null,
  };
}

/** told: called when a signal tells the server to end */
function heedSignals(service: Service, told: () => void): void {
  const end = (): void => {
    told();
    service.stop();
  };
  process.on("SIGTERM", end);
  process.on("SIGINT", end);
  process.on("SIGHUP", () => service.reopenLogs());
  process.on("SIGUSR2", collectGarbage);
}

/** Called at SIGUSR2: frees as much memory as possible, so that the memory that jobs need can be measured. */
function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as (options: object) => void;
  collect({ type: "major", execution: "sync", flavor: "last-resort" });
}

function fail(why: string): number {
  tellStarter(`pbs_server: ${why}\n`);
  return 1;
}

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

let second = Number.NaN;
let text_of_second = "";

/** Local time as ctime(3) writes it: `Fri Nov 20 09:26:28 2026`. The last text is kept, because thousands of jobs may start in one second. */
function ctime(epoch_s: number): string {
  if (epoch_s === second) return text_of_second;
  const date = new Date(epoch_s * 1000);
  const two = (value: number): string => String(value).padStart(2, "0");
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  second = epoch_s;
  text_of_second = `${DAYS[date.getDay()]} ${MONTHS[date.getMonth()]} ${String(date.getDate()).padStart(2, " ")} ${time} ${date.getFullYear()}`;
  return text_of_second;
}

/** The attributes in the file FIRST_START. If the file cannot be read, there are none. */
function wantedAtFirst(conf: Conf): Record<string, string> {
  try {
    return parseConfText(readFileSync(join(conf.home, "server_priv", FIRST_START), "utf8"));
  } catch {
    return {};
  }
}

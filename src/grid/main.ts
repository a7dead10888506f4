// pbs_grid: the daemon of campaigns. `partita grid start` starts it; it takes no arguments. It ends at SIGTERM; jobs of campaigns continue on their clusters, and the
// next daemon finds them again.

import { createHash } from "node:crypto";
import { mkdirSync, statSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { join } from "node:path";
import { tellStarter } from "#server/shell/daemon-start.ts";
import { mailer } from "#server/shell/mailer.ts";
import { nobody, unprivilegedUser } from "#server/shell/unprivileged.ts";
import { openSqliteStore } from "#store/sqlite/sqlite-store.ts";
import { messageOf, stackOf } from "#support/caught.ts";
import { type Conf, readConf } from "#support/conf.ts";
import { closeForeignDescriptors } from "#support/descriptors.ts";
import { takeLock } from "#support/libc/lock-file.ts";
import { openLog } from "#support/log.ts";
import { LOG_EVENT, LOG_MASK } from "#support/log-event.ts";
import { systemUsers } from "#support/passwd.ts";
import { homeFault } from "#support/trusted-home.ts";
import { POLICY_DEFAULT } from "./cycle/grid-cycle.ts";
import { admission } from "./shell/admission.ts";
import { startService } from "./shell/service.ts";
import { settingsFile } from "./shell/settings-file.ts";
import { readState, textsNeeded } from "./state/rows.ts";
import { GridCore } from "./work/core.ts";

const READY_FD = 3;

async function main(): Promise<number> {
  closeForeignDescriptors(...(process.env["PARTITA_READY_FD"] === undefined ? [] : [READY_FD]));
  process.title = "pbs_grid";
  process.umask(0o022);
  const conf = readConf();
  const refusal = mayRun(conf);
  if (refusal !== null) return refused(refusal);
  const directory = join(conf.home, "grid_priv");
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const lock = takeLock(join(directory, "grid.lock"), 0o644);
  if ("owner_pid" in lock) return refused(`another pbs_grid runs (pid ${lock.owner_pid ?? "unknown"})`);
  mkdirSync(join(conf.home, "grid_logs"), { recursive: true, mode: 0o755 });
  const log = openLog({ dir: join(conf.home, "grid_logs"), daemon: "pbs_grid", mask: LOG_MASK.server, highres: conf.log_highres });
  const note = (text: string, event: number = LOG_EVENT.SYSTEM): void => log.record(event, "Svr", "pbs_grid", text);
  note(`starting, pid ${process.pid}`);
  process.on("SIGHUP", () => log.reopen());
  try {
    await serve(conf, directory, note);
    return 0;
  } catch (error) {
    note(`ended by an error: ${stackOf(error)}`, LOG_EVENT.ERROR);
    return refused(messageOf(error));
  } finally {
    note("ends");
    log.close();
    lock.held.release();
  }
}

/** Serves until a signal ends this process. */
async function serve(conf: Conf, directory: string, note: (text: string) => void): Promise<void> {
  const ended = Promise.withResolvers<void>();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => ended.resolve());
  const store = await openSqliteStore(join(directory, "grid.db"), { onNotice: note });
  try {
    const loaded = await store.load();
    const state = readState(loaded, await store.scripts(textsNeeded(loaded)));
    const user = conf.mode === "user" ? userInfo().username : null;
    const key = gridKey(conf);
    const core = new GridCore({ state, policy: POLICY_DEFAULT, key, user, settle_s: SETTLE_S });
    const everyone = conf.mode === "system";
    const rules = admission({
      directory: join(directory, "admission_rules"),
      nobody: process.getuid?.() === 0 ? nobody(systemUsers()) : null,
      note,
    });
    const service = await startService({
      admission: rules,
      settings: settingsFile(join(directory, "grid.conf"), note),
      mailer: mailPort(conf, note),
      home: conf.home,
      everyone,
      host: hostname(),
      core,
      store,
      key,
      busy_ms: BUSY_MS,
      note,
    });
    tellStarter("ready\n");
    await ended.promise;
    await service.close();
  } finally {
    await store.close();
  }
}

/** The mail program runs without the rights of root (PBS_MAIL_USER), as the server's does. */
const mailPort = ({ mode, values }: Conf, problem: (text: string) => void): ReturnType<typeof mailer> =>
  mailer({
    domain: values["PBS_MAIL_HOST_NAME"],
    identity: mode === "system" ? unprivilegedUser(systemUsers(), "PBS_MAIL_USER", values["PBS_MAIL_USER"]) : null,
    setting: "mailer in grid.conf",
    problem,
  });

/** Time that released jobs have to start before they count as waiting, and the pause between looks at a cluster that has work. */
const SETTLE_S = 5;
const BUSY_MS = 1000;

/** Identifies the grid among all that use the same clusters. */
const gridKey = ({ home }: Conf): string => `g${createHash("sha256").update(`${hostname()}\0${home}`).digest("hex").slice(0, 11)}`;

function mayRun(conf: Conf): string | null {
  const uid = process.getuid?.() ?? 0;
  if (conf.mode === "system" && uid !== 0) return "must be run by root";
  const owner = statSync(conf.home, { throwIfNoEntry: false })?.uid;
  if (owner === undefined) return `PBS_HOME ${conf.home} does not exist`;
  if (owner !== uid && uid !== 0) return `PBS_HOME ${conf.home} belongs to another user`;
  return homeFault(conf, conf.home);
}

function refused(text: string): number {
  tellStarter(`pbs_grid: ${text}\n`);
  return 1;
}

main().then(
  (status) => process.exit(status),
  (error: unknown) => process.exit(refused(stackOf(error))),
);

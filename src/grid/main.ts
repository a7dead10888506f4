// pbs_grid: the daemon of campaigns. `partita grid start` starts it; it takes no arguments. It ends at SIGTERM; jobs of campaigns continue on their clusters, and the
// next daemon finds them again.

import { createHash } from "node:crypto";
import { hostname, userInfo } from "node:os";
import { join } from "node:path";
import { ownerFault, runSideDaemon, tellStarter } from "#server/shell/daemon-start.ts";
import { mailer } from "#server/shell/mailer.ts";
import { nobody, unprivilegedUser } from "#server/shell/unprivileged.ts";
import { openSqliteStore } from "#store/sqlite/sqlite-store.ts";
import type { Conf } from "#support/conf.ts";
import { systemUsers } from "#support/passwd.ts";
import { homeFault } from "#support/trusted-home.ts";
import { POLICY_DEFAULT } from "./cycle/grid-cycle.ts";
import { admission } from "./shell/admission.ts";
import { startService } from "./shell/service.ts";
import { settingsFile } from "./shell/settings-file.ts";
import { readState, textsNeeded } from "./state/rows.ts";
import { GridCore } from "./work/core.ts";

/** Serves until a signal ends this process. */
async function serve(conf: Conf, note: (text: string) => void, ended: Promise<void>): Promise<void> {
  const directory = join(conf.home, "grid_priv");
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
    await ended;
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
  if (conf.mode === "system" && process.getuid?.() !== 0) return "must be run by root";
  return ownerFault(conf, true) ?? homeFault(conf, conf.home);
}

runSideDaemon({ name: "pbs_grid", word: "grid", lock_mode: 0o644, mayRun, serve });

// `partita start` and `partita upgrade` on a host that has joined: start the schedulers whose sched_host is this host. They
// listen, and the server connects to them.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { schedDirectories } from "#model/tables/sched-attributes.ts";
import { schedsOfHost } from "#protocol/host-questions.ts";
import type { HostSched } from "#protocol/join-link.ts";
import { KEEPER_LOCK, schedPlaceOfRoot } from "#protocol/sched-link.ts";
import { makeSchedDirectories } from "#server/shell/sched-directories.ts";
import { messageOf } from "#support/caught.ts";
import type { Conf } from "#support/conf.ts";
import { isLocked } from "#support/libc/lock-file.ts";
import { systemUsers } from "#support/passwd.ts";
import { AdminError, programTree } from "./complex-home.ts";
import { lockHolder, programOf, runToEnd } from "./daemons.ts";

/**
 * Starts the schedulers that do not run, and returns their names. If one cannot be started, or the server does not answer,
 * the reason goes to `warn`, and the rest continues.
 */
export async function startHostScheds(conf: Conf, warn: (text: string) => void): Promise<readonly string[]> {
  const scheds = await schedsOfHost({ home: conf.home, places: conf.servers, server: conf.own_server, own: conf.mode === "user" }).catch(
    (error: unknown) => {
      warn(`schedulers of this host are not started, because the server did not name them: ${messageOf(error)}`);
      return [];
    },
  );
  const started: string[] = [];
  for (const sched of scheds) {
    try {
      if (await startSched(conf, sched)) started.push(sched.name);
    } catch (error) {
      warn(`pbs_sched -I ${sched.name} did not start: ${messageOf(error)}`);
    }
  }
  return started;
}

/** Starts a scheduler. Returns false if it is already running. */
async function startSched(conf: Conf, { name, port, user }: HostSched): Promise<boolean> {
  const named = schedDirectories(name, conf.home);
  if (isLocked(join(named.sched_priv, "sched.lock"))) return false;
  const keeper = lockHolder(join(schedPlaceOfRoot(conf.home, name), KEEPER_LOCK)) ?? lockHolder(join(named.sched_priv, KEEPER_LOCK));
  if (keeper !== null) {
    // The scheduler has crashed several times, and its keeper waits before the next start.
    process.kill(keeper, "SIGHUP");
    return true;
  }
  const own = join(conf.exec, "etc");
  const defaults = existsSync(join(own, "pbs_sched_config")) ? own : join(programTree(), "etc");
  const runner = conf.mode === "system" && user !== undefined ? systemUsers().userByName(user) : undefined;
  if (runner === null) throw new AdminError(`sched_user is ${user}, and this host has no such user`);
  makeSchedDirectories({ name, home: conf.home, ...named, defaults, owner: runner ?? null });
  const { status, output } = await runToEnd(
    programOf(conf, "pbs_sched"),
    ["-I", name, ...(port === null ? [] : ["-S", String(port)]), ...(runner === undefined ? [] : ["-U", runner.name])],
    conf,
  );
  if (status !== 0) throw new AdminError(output.trim() || `exit ${status}, see ${named.sched_log}`);
  return true;
}

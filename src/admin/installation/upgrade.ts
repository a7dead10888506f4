// `partita upgrade`: replaces the programs of a running complex by the programs of this checkout.
//
// G1. A copy of the store is made first: the new program may convert the store to a newer version, which the old program
//     would refuse.
// G2. Server, schedulers and pbs_comm are restarted while jobs continue to run. A mom that has jobs is not restarted: it
//     keeps its old program until `partita upgrade` is called again after the end of these jobs.
// G3. A host that has joined a complex is upgraded separately: the records of its mom say whether it has jobs. Its schedulers are restarted as well.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readRecords } from "#mom/driver/record-log.ts";
import { connectServer } from "#protocol/client.ts";
import { storeBytes } from "#store/sqlite/sqlite-mark.ts";
import { storeFile, storeKind } from "#store/store-choice.ts";
import { codeOf } from "#support/caught.ts";
import type { Conf } from "#support/conf.ts";
import { homeFault } from "#support/trusted-home.ts";
import { PARTITA_VERSION } from "#support/version.ts";
import { AdminError, isMember, programTree } from "../complex/complex-home.ts";
import { daemonPid, enabledDaemons, keeperPids, schedPids, startDaemons, stopDaemons, waitUntilUp } from "../complex/daemons.ts";
import { startHostScheds } from "../complex/host-scheds.ts";
import { backup } from "../store/backup.ts";
import { updateInstallation } from "./init.ts";

/** Upgrades the complex. say: called with a line for each step. replaced: a package has put the new programs into PBS_EXEC already. */
export async function upgrade(conf: Conf, say: (text: string) => void, replaced = false): Promise<void> {
  const tree = programTree();
  if (!replaced) mustBeNew(conf, tree);
  // If the new daemons would refuse to start, that must be known before the old ones are ended.
  const unsafe = homeFault(conf);
  if (unsafe !== null) throw new AdminError(`${unsafe}: the new daemons would not start, nothing was changed`);
  if (storeKind(conf) === "postgres" || (storeBytes(storeFile(conf)) ?? 0) > 0) {
    const copy = join(conf.home, "server_priv", `before-upgrade-${new Date().toISOString().replace(/[-:]|\.\d+/g, "")}.db`);
    await backup(conf, copy);
    say(`The store is saved: ${copy}`);
  }
  if (conf.mode === "system" && !replaced) {
    updateInstallation(conf);
    say(`Programs of partita ${PARTITA_VERSION} are in ${conf.exec}.`);
  }
  const restarted = await restart(conf, say);
  if (restarted.length > 0) say(`Restarted ${restarted.map((name) => `pbs_${name}`).join(", ")}.`);
  else if (enabledDaemons(conf).every((name) => daemonPid(conf, name) === null)) say("No daemon runs. Start them: partita start");
  const left = enabledDaemons(conf).filter((name) => !restarted.includes(name) && daemonPid(conf, name) !== null);
  if (left.length > 0) say("pbs_mom has jobs and goes on with the program of before: call partita upgrade again when they have ended.");
}

/** Throws AdminError if this program is not one that the complex can be upgraded to. */
function mustBeNew(conf: Conf, tree: string): void {
  if (conf.mode === "system" && join(conf.exec, "lib/partita") === tree)
    throw new AdminError("this is the installed program itself: run bin/partita upgrade of the checkout that has the new version");
  if (conf.mode === "user" && conf.exec !== tree)
    throw new AdminError(`this complex uses the programs of ${conf.exec}: bring that checkout up to date and run its bin/partita upgrade`);
}

/**
 * Restarts those running daemons that can end without harm to a job. Returns their names. say: called with a text about each
 * daemon that does not run afterwards
 */
async function restart(conf: Conf, say: (text: string) => void): Promise<readonly string[]> {
  const running = enabledDaemons(conf).filter((name) => daemonPid(conf, name) !== null);
  const busy = running.includes("mom") && (isMember(conf) ? hasRecordedRuns(conf) : await hasRunningJobs(conf));
  const wanted = running.filter((name) => name !== "mom" || !busy);
  const scheds = isMember(conf) ? new Set([...schedPids(conf), ...keeperPids(conf)].map(({ name }) => name)) : new Set<string>();
  if (wanted.length + scheds.size === 0) return [];
  // A job may have started since the check. SIGINT does not end it: the next mom takes it over.
  await stopDaemons(conf, say_nothing, scheds.size === 0 ? wanted : [...wanted, "server"], "SIGINT");
  await startDaemons(conf, wanted);
  if (!isMember(conf)) (await waitUntilUp(conf)).forEach(say);
  if (scheds.size === 0) return wanted;
  const started = await startHostScheds(conf, say);
  return [...wanted, ...started.map((name) => `sched -I ${name}`)];
}

const say_nothing = (): void => undefined;

/** Whether the mom of this host has runs whose end the server has not acknowledged. If its records cannot be read, returns true. */
function hasRecordedRuns(conf: Conf): boolean {
  try {
    return readRecords(readFileSync(join(conf.mom_home, "mom_priv/jobs/records"), "utf8")).size > 0;
  } catch (error) {
    return codeOf(error) !== "ENOENT";
  }
}

/** Whether a mom may have running jobs. If the server does not answer, returns true. */
async function hasRunningJobs(conf: Conf): Promise<boolean> {
  try {
    const link = await connectServer(conf);
    const states: unknown[] = [];
    const onPart = (part: readonly unknown[]): void => {
      for (const item of part as readonly { readonly attrs?: { readonly job_state?: string } }[]) states.push(item.attrs?.job_state);
    };
    const reply = await link.request({ kind: "status", object: "job", ids: [] }, { onPart });
    link.close();
    return !reply.ok || states.some((state) => ["R", "E", "S", "U", "B"].includes(String(state)));
  } catch {
    return true;
  }
}

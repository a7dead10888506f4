// `partita uninstall`: removes the files that init created. Programs are always removed; jobs, logs and configuration only
// with --purge.

import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync, rmdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { codeOf } from "#support/caught.ts";
import { CONF_FILE_DEFAULT, type Conf } from "#support/conf.ts";
import { AdminError, quote } from "../complex/complex-home.ts";
import { runningProcesses } from "../complex/daemons.ts";
import { PROFILES } from "./init.ts";
import { installed } from "./install.ts";

/** Files outside PBS_EXEC and PBS_HOME that init creates for /etc/pbs.conf. */
const SERVICE_FILES = ["/etc/init.d/pbs", "/etc/systemd/system/pbs.service", ...PROFILES.map((name) => `/etc/profile.d/${name}`)];

/** Removes the files. Returns the text to print. Throws AdminError while a process of the complex runs. */
export function uninstall(conf: Conf, purge: boolean): string {
  const running = [...runningProcesses(conf).keys()];
  if (running.length > 0) throw new AdminError(`${running.join(", ")} still run: stop them first: partita stop`);
  if (conf.mode === "user" && !purge)
    throw new AdminError(
      `a complex in user mode consists of ${conf.home} and ${conf.file} only: say --purge to remove them, with all jobs and logs`,
    );
  if (purge) mustBeHome(conf);
  const done: string[] = [];
  if (conf.mode === "system") {
    if (existsSync(join(conf.exec, "lib/partita"))) {
      removePrograms(conf.exec);
      done.push(`Removed: the programs in ${conf.exec}`);
    } else if (!purge) throw new AdminError(`${conf.exec} holds no programs of an installation`);
    for (const path of conf.file === CONF_FILE_DEFAULT ? SERVICE_FILES : []) {
      if (!isOurs(path, conf.exec)) continue;
      rmSync(path);
      done.push(`Removed: ${path}`);
    }
  }
  if (!purge)
    return [
      ...done,
      `Kept: ${conf.file} and ${conf.home}, with jobs, logs and configuration.`,
      `Remove them, too, from a checkout:  bin/partita uninstall --purge${conf.file === CONF_FILE_DEFAULT ? "" : ` --home ${quote(dirname(conf.file))}`}`,
    ].join("\n");
  if (conf.mom_home !== conf.home && removeMomHome(conf.mom_home)) done.push(`Removed: what pbs_mom kept in ${conf.mom_home}`);
  rmSync(conf.home, { recursive: true, force: true });
  rmSync(conf.file, { force: true });
  removeEmpty(dirname(conf.file));
  return [...done, `Removed: ${conf.home}`, `Removed: ${conf.file}`].join("\n");
}

const OF_MOM = ["aux", "checkpoint", "mom_logs", "mom_priv", "spool", "undelivered"] as const;

/**
 * Removes the files of a mom from PBS_MOM_HOME. Other files in it are kept, because PBS_MOM_HOME is often a directory on a local disk that is also used for
 * something else. Returns false if no mom has used it.
 */
function removeMomHome(home: string): boolean {
  if (!existsSync(join(home, "mom_priv"))) return false;
  for (const name of OF_MOM) rmSync(join(home, name), { recursive: true, force: true });
  removeEmpty(home);
  return true;
}

/** Throws AdminError unless the directory is a PBS_HOME. Called before the directory is removed with everything in it. */
function mustBeHome({ home }: Conf): void {
  if (existsSync(home) && !(existsSync(join(home, "server_priv")) && existsSync(join(home, "pbs_version"))))
    throw new AdminError(`${home} does not look like a PBS_HOME: remove it yourself: rm -r ${quote(home)}`);
}

function removePrograms(exec: string): void {
  for (const path of installed(exec).map((below) => join(exec, below))) {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) continue;
    if (stat.isDirectory() && path !== join(exec, "lib/partita")) removeEmpty(path);
    else rmSync(path, { recursive: true });
    if (path.endsWith(".py")) removeCompiled(path);
  }
}

/** Removes what Python has compiled from a file of ours: __pycache__/NAME.VERSION.pyc beside it. */
function removeCompiled(path: string): void {
  const cache = join(dirname(path), "__pycache__");
  const start = `${basename(path, ".py")}.`;
  for (const name of existsSync(cache) ? readdirSync(cache) : [])
    if (name.startsWith(start) && name.endsWith(".pyc")) rmSync(join(cache, name));
  removeEmpty(cache);
}

/** Removes a directory unless something is still in it. */
function removeEmpty(path: string): void {
  try {
    rmdirSync(path);
  } catch (error) {
    if (!["ENOTEMPTY", "EEXIST", "EBUSY", "ENOENT"].includes(codeOf(error) ?? "")) throw error;
  }
}

/** Whether a service file was made for this PBS_EXEC. */
function isOurs(path: string, exec: string): boolean {
  try {
    return readFileSync(realpathSync(path), "utf8").includes(exec);
  } catch {
    return false;
  }
}

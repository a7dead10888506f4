// `partita init`: a complex in user mode in one directory, or an installation in system mode: PBS_EXEC, PBS_HOME, pbs.conf, init script and unit. Run
// again in system mode it updates the programs and makes what is missing; configuration and state are kept.

import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { CONF_FILE_DEFAULT, type Conf } from "#support/conf.ts";
import { AdminError, complexDirectory, confFile, confOf, makeConfFile, makeHome, programTree, quote } from "./complex-home.ts";
import { fromTemplate, install, replaceFile } from "./install.ts";

export type InitOptions = {
  readonly home: string | undefined;
  readonly system: boolean;
  readonly prefix: string | undefined;
  readonly server: string | undefined;
};

const EXEC_DEFAULT = "/opt/pbs";
const HOME_DEFAULT = "/var/spool/pbs";

/** Returns what is to be said. */
export function init(options: InitOptions): string {
  process.umask(0o022);
  if (!options.system && options.prefix !== undefined) throw new AdminError("--prefix goes with --system");
  return options.system ? initSystem(options) : initUser(options);
}

function initUser(options: InitOptions): string {
  const dir = complexDirectory(options.home, process.env);
  makeConfFile({ file: confFile(dir), home: join(dir, "pbs"), exec: programTree(), mode: "user", server: options.server });
  makeHome(confOf(confFile(dir)), join(programTree(), "etc"));
  const home = quote(dir);
  return `Complex in user mode made in ${dir}.\nStart it:  partita start --home ${home}\nUse it:    eval "$(partita env --home ${home})"`;
}

/** --home DIR: everything but PBS_EXEC in DIR, nothing in /etc. Without it: /etc/pbs.conf, /var/spool/pbs, init script, systemd unit. */
function initSystem(options: InitOptions): string {
  if (process.geteuid?.() !== 0) throw new AdminError("system mode needs root");
  const given = options.home ?? process.env["PARTITA_HOME"];
  const dir = given === undefined ? null : resolve(given);
  const file = dir === null ? CONF_FILE_DEFAULT : confFile(dir);
  const before = existsSync(file) ? confOf(file) : null;
  if (before?.mode === "user") throw new AdminError(`${file} belongs to a complex in user mode`);
  const exec = resolve(options.prefix ?? before?.exec ?? EXEC_DEFAULT);
  install(exec, file);
  if (before === null)
    makeConfFile({ file, home: dir === null ? HOME_DEFAULT : join(dir, "pbs"), exec, mode: "system", server: options.server });
  else if (before.exec !== exec) setConfValue(file, "PBS_EXEC", exec);
  const conf = confOf(file);
  habitat(conf);
  const service = dir === null ? installService(exec, file) : [];
  const done = before === null ? "Installed" : "Updated";
  return [
    `${done}: programs in ${exec}, PBS_HOME ${conf.home}, configuration ${file}.`,
    ...service,
    `Start it:  ${quote(exec)}/libexec/pbs_init.d start`,
    ...(dir === null ? [] : [`Use it:    eval "$(${quote(exec)}/bin/partita env --home ${quote(dir)})"`]),
  ].join("\n");
}

/** What pbs_habitat does: makes what is missing of PBS_HOME. */
export function habitat(conf: Conf): void {
  process.umask(0o022);
  makeHome(conf, join(programTree(), "etc"));
}

/** One value of pbs.conf in place; everything else stays as it is. */
function setConfValue(file: string, name: string, value: string): void {
  const lines = readFileSync(file, "utf8").split("\n");
  const changed = lines.map((line) => (line.trim().startsWith(`${name}=`) ? `${name}=${value}` : line));
  replaceFile(file, Buffer.from(changed.join("\n")), 0o644);
}

/** Init script and systemd unit, where the machine has places for them. */
function installService(exec: string, file: string): string[] {
  const done: string[] = [];
  if (existsSync("/etc/init.d")) {
    replaceFile("/etc/init.d/pbs", fromTemplate("pbs_init.d.in", exec, file), 0o755);
    done.push("Init script: /etc/init.d/pbs");
  }
  if (existsSync("/etc/systemd/system")) {
    replaceFile("/etc/systemd/system/pbs.service", fromTemplate("pbs.service.in", exec, file), 0o644);
    done.push("systemd unit: pbs.service (systemctl enable --now pbs)");
  }
  return done;
}

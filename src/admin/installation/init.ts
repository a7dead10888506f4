// `partita init`: creates a complex in user mode in one directory, or an installation in system mode: PBS_EXEC, PBS_HOME,
// pbs.conf, init script and unit. In system mode, a further call updates the programs and makes what is missing.
// Configuration and state are kept.

import { existsSync, readFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { CONF_FILE_DEFAULT, type Conf } from "#support/conf.ts";
import {
  AdminError,
  complexDirectory,
  confFile,
  confOf,
  makeConfFile,
  makeHome,
  type NewConf,
  programTree,
  quote,
} from "../complex/complex-home.ts";
import { DAEMONS, daemonPid } from "../complex/daemons.ts";
import { fromTemplate, install, replaceFile } from "./install.ts";

export type InitOptions = {
  readonly home: string | undefined;
  readonly system: boolean;
  readonly prefix: string | undefined;
  readonly server: string | undefined;
  /** number of vnodes into which the host is divided; undefined: the host is one vnode */
  readonly vnodes?: number | undefined;
};

const EXEC_DEFAULT = "/opt/pbs";
export const HOME_DEFAULT = "/var/spool/pbs";

const VNODES_MAX = 1000;

/** Creates a complex. Returns the text to print. */
export function init(options: InitOptions): string {
  process.umask(0o022);
  const { vnodes } = options;
  if (vnodes !== undefined && !(Number.isInteger(vnodes) && vnodes >= 1 && vnodes <= VNODES_MAX))
    throw new AdminError(`--vnodes: must be a whole number from 1 to ${VNODES_MAX}`);
  if (!options.system && options.prefix !== undefined) throw new AdminError("--prefix goes with --system");
  return options.system ? initSystem(options) : initUser(options);
}

function initUser(options: InitOptions): string {
  const dir = complexDirectory(options.home, process.env);
  makeConfFile({ file: confFile(dir), home: join(dir, "pbs"), exec: programTree(), mode: "user", server: options.server });
  const conf = confOf(confFile(dir));
  makeHome(conf, join(programTree(), "etc"));
  if (options.vnodes !== undefined) divideHost(conf, options.vnodes);
  const home = quote(dir);
  return `Complex in user mode made in ${dir}.\nStart it:  partita start --home ${home}\nUse it:    eval "$(partita env --home ${home})"`;
}

/**
 * Creates an installation in system mode. With --home DIR, everything except PBS_EXEC is in DIR, and nothing in /etc. Without it, there are /etc/pbs.conf,
 * /var/spool/pbs, init script and systemd unit.
 */
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
  if (before === null && options.vnodes !== undefined) divideHost(conf, options.vnodes);
  const service = dir === null ? installService(exec, file) : [];
  const done = before === null ? "Installed" : "Updated";
  return [
    `${done}: programs in ${exec}, PBS_HOME ${conf.home}, configuration ${file}.`,
    ...service,
    ...nextStep(conf),
    ...(dir === null ? [] : [`Use it:    eval "$(${quote(exec)}/bin/partita env --home ${quote(dir)})"`]),
  ].join("\n");
}

/** A host without a server. server.host: name or address of the server's host. node: the name of this host in the complex; undefined: its short host name. */
export type Member = {
  readonly file: string;
  readonly home: string;
  /** true: everything is in one directory, and nothing in /etc */
  readonly own: boolean;
  readonly mode: "user" | "system";
  /** PBS_EXEC to install into in system mode; undefined: the default */
  readonly exec: string | undefined;
  readonly server: { readonly name: string; readonly host: string; readonly port: number };
  readonly node: string | undefined;
  /** true: the host runs no mom */
  readonly login: boolean;
  readonly pair?: NonNullable<NewConf["member"]>["pair"];
  readonly standby?: NonNullable<NewConf["member"]>["standby"];
};

/** Sets up a host that has joined a complex: programs (system mode), pbs.conf, PBS_HOME. An existing pbs.conf is kept. */
export function setUpMember({ file, home, own, mode, exec, server, node, login, pair, standby }: Member): void {
  const before = existsSync(file) ? confOf(file) : null;
  const programs = mode === "user" ? programTree() : resolve(exec ?? before?.exec ?? EXEC_DEFAULT);
  if (mode === "system") install(programs, file);
  if (before === null)
    makeConfFile({ file, home, exec: programs, mode, server: server.name, member: { ...server, node, login, pair, standby } });
  habitat(confOf(file));
  if (mode === "system" && !own) installService(programs, file);
}

/** Installs the new programs in PBS_EXEC of this complex, whatever directory its pbs.conf is in. No other complex is changed, and none is created. */
export function updateInstallation(conf: Conf): void {
  process.umask(0o022);
  install(conf.exec, conf.file);
  habitat(conf);
  if (conf.file === CONF_FILE_DEFAULT) installService(conf.exec, conf.file);
}

/** Returns the lines that tell the user how to start the new programs. Daemons that run still use the old ones. */
function nextStep(conf: Conf): string[] {
  const running = DAEMONS.filter((daemon) => daemonPid(conf, daemon) !== null).map((daemon) => `pbs_${daemon}`);
  const script = `${quote(conf.exec)}/libexec/pbs_init.d`;
  if (running.length === 0) return [`Start it:  ${script} start`];
  return [
    `${running.join(", ")} still run the programs of before. partita upgrade restarts what can be restarted without harm to running jobs;`,
    `${script} restart restarts everything, and ends the jobs of this host.`,
  ];
}

/** Does what pbs_habitat does: makes what is missing in PBS_HOME. */
export function habitat(conf: Conf): void {
  process.umask(0o022);
  makeHome(conf, join(programTree(), "etc"));
}

/** Writes the vnode definition file that `pbs_mom -s insert` would make. Each vnode gets an equal share of the host's cpus and memory, but at least one cpu. */
function divideHost(conf: Conf, count: number): void {
  const share = { cpus: Math.max(1, Math.floor(availableParallelism() / count)), mem_kb: Math.floor(totalmem() / 1024 / count) };
  replaceFile(join(conf.mom_home, "mom_priv/config.d/vnodes"), Buffer.from(vnodeDefinition(conf.mom_node_name, count, share)), 0o644);
}

/** Returns the definitions of the vnodes HOST[0], HOST[1], ... The natural vnode gets no resources. mem_kb null: memory is not divided. */
export function vnodeDefinition(host: string, count: number, share: { readonly cpus: number; readonly mem_kb: number | null }): string {
  const each = Array.from({ length: count }, (_, at) => [
    `${host}[${at}]: resources_available.ncpus = ${share.cpus}`,
    ...(share.mem_kb === null ? [] : [`${host}[${at}]: resources_available.mem = ${share.mem_kb}kb`]),
  ]).flat();
  const none = [`${host}: resources_available.ncpus = 0`, `${host}: resources_available.mem = 0`];
  return `${["$configversion 2", ...none, ...each].join("\n")}\n`;
}

/** Changes one value in pbs.conf and keeps everything else. */
function setConfValue(file: string, name: string, value: string): void {
  const lines = readFileSync(file, "utf8").split("\n");
  const changed = lines.map((line) => (line.trim().startsWith(`${name}=`) ? `${name}=${value}` : line));
  replaceFile(file, Buffer.from(changed.join("\n")), 0o644);
}

/** The login files in /etc/profile.d. */
export const PROFILES = ["pbs.sh", "pbs.csh"] as const;

/** Installs the init script, the login files and the systemd unit, each if the machine has the directory for it. Returns what was installed. */
function installService(exec: string, file: string): string[] {
  const done: string[] = [];
  if (existsSync("/etc/init.d")) {
    replaceFile("/etc/init.d/pbs", fromTemplate("pbs_init.d.in", exec, file), 0o755);
    done.push("Init script: /etc/init.d/pbs");
  }
  if (existsSync("/etc/profile.d")) {
    for (const name of PROFILES) replaceFile(join("/etc/profile.d", name), fromTemplate(`${name}.in`, exec, file), 0o644);
    done.push("Login shells: /etc/profile.d/pbs.sh, pbs.csh");
  }
  if (existsSync("/etc/systemd/system")) {
    replaceFile("/etc/systemd/system/pbs.service", fromTemplate("pbs.service.in", exec, file), 0o644);
    done.push("systemd unit: pbs.service (systemctl enable --now pbs)");
  }
  return done;
}

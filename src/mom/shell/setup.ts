// Reads what a mom finds on its host: directories, mom_priv/config, vnode definitions.

import { chmodSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { hostname, networkInterfaces } from "node:os";
import { join } from "node:path";
import type { MomVnode } from "#protocol/mom-link.ts";
import { codeOf, messageOf } from "#support/caught.ts";
import { CONF_FILE_DEFAULT, type Conf } from "#support/conf.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { trustedDirectory, trustedFile } from "#support/trusted-file.ts";
import { DEFAULT_SETTINGS, type MomSettings, parseMomConfig } from "../config/config.ts";
import type { MomOptions } from "../config/options.ts";
import { type HostFacts, reportedVnodes } from "../config/vnode-def.ts";
import { type CgroupSettings, parseCpuList } from "../job/cgroup-limits.ts";
import { siteEnvironment } from "../job/environment.ts";
import { ownNames } from "../job/own-names.ts";
import type { MomConfig } from "../run/state.ts";
import { readDefinitions } from "./vnode-files.ts";

/** The error for a configuration that cannot be used. Its message is shown to the caller. */
export class MomStartError extends Error {
  override readonly name = "MomStartError";
}

export type Note = (text: string, event?: number) => void;

function machineNames(): readonly string[] {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
  return ownNames({ hostname: hostname(), addresses, hosts_file: readText("/etc/hosts") });
}

export function momConfig(conf: Conf, home: string, settings: MomSettings, options: MomOptions, boot: string): MomConfig {
  const host = conf.mom_node_name;
  return {
    host,
    boot,
    facts: {
      home,
      hosts: [host, ...machineNames(), ...(conf.server === host ? [conf.server_host] : [])],
      server_host: conf.server_host,
      tmpdir: settings.tmpdir ?? conf.tmpdir,
      jobdir_root: settings.jobdir_root,
      usecp: settings.usecp,
      far: namesCopyProgram(conf) ? null : farFacts(conf, settings),
      scp: copyProgram(conf),
      port: options.manager_port ?? conf.port.manager,
      site: siteEnvironment(readText(conf.environment_file), process.env),
      commands: conf.file === CONF_FILE_DEFAULT ? null : join(conf.exec, "bin"),
    },
    cgroups: cgroupsOf(settings),
    cpus: parseCpuList(/^Cpus_allowed_list:\s*(.*)$/m.exec(readText("/proc/self/status"))?.[1] ?? ""),
    enforce: { mem: settings.enforce_mem, cputmult: settings.cputmult, wallmult: settings.wallmult, cpu: settings.enforce_cpu },
    weights: { up: settings.weight_up, down: settings.weight_down },
    suspend_signal: settings.suspend_signal,
    resume_signal: settings.resume_signal,
    node: {
      load: settings.load,
      suspend_on_load: settings.suspend_on_load,
      kbd_idle: settings.kbd_idle,
      multinode_requeue: settings.multinode_requeue,
    },
    actions: settings.actions,
    restart_transmogrify: settings.restart_transmogrify,
    checkpoint_path: options.checkpoint ?? settings.checkpoint_path ?? `${home}/checkpoint`,
    own: { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 },
    prologalarm_s: settings.prologalarm_s,
    reject_root_scripts: settings.reject_root_scripts,
    tasks_max: settings.tasks_max,
    task_text_max: settings.task_text_max,
    server: conf.server,
    kill_found: options.kill_found,
  };
}

/** Returns the settings of control groups. With $enforce mem, the kernel enforces mem if groups are used. */
function cgroupsOf({ cgroups, enforce_mem }: MomSettings): CgroupSettings {
  return enforce_mem && cgroups.track ? { ...cgroups, enforce: new Set([...cgroups.enforce, "memory"]) } : cgroups;
}

const namesCopyProgram = ({ values }: Conf): boolean => values["PBS_SCP"] !== undefined || values["PBS_RCP"] !== undefined;

function farFacts(conf: Conf, { copy_patience_s }: MomSettings): MomConfig["facts"]["far"] {
  const { home, own_server, server_host, servers, port, mode } = conf;
  const server = { server: own_server, server_host, servers };
  return { home, ...server, port: port.manager, own: mode === "user", patience_s: copy_patience_s };
}

/** Returns the copy program (PBS_SCP, else PBS_RCP, else scp). The arguments of scp keep it from asking for a password. */
function copyProgram({ values }: Conf): readonly string[] {
  const rcp = values["PBS_SCP"] === undefined ? values["PBS_RCP"] : undefined;
  const program = rcp ?? values["PBS_SCP"] ?? "/usr/bin/scp";
  const args = rcp === undefined ? (values["PBS_SCP_ARGS"] ?? "-Brp").split(/\s+/).filter((word) => word !== "") : ["-rp"];
  return program.startsWith("/") ? [program, ...args] : [];
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/**
 * Checks that only trusted users can write a file that root's mom obeys, or its directory of checkpoints. A missing file or
 * directory is not checked. Throws MomStartError.
 */
function checkTrusted(check: () => void, what: string): void {
  try {
    check();
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw new MomStartError(`${what} is not safe: ${messageOf(error)}`);
  }
}

/**
 * Reads mom_priv/config. A missing file counts as empty. Throws MomStartError if others can change the file, if a value is wrong, or if the root directory of
 * sandboxes is missing.
 */
export function readSettings(path: string, note: (text: string) => void, system = false): MomSettings {
  if (system) checkTrusted(() => trustedFile(path, [0]), path);
  const text = readText(path);
  if (text === "") return DEFAULT_SETTINGS;
  const { settings, notes, errors } = parseMomConfig(text);
  if (errors.length > 0) throw new MomStartError(`${path}: ${errors.join("; ")}`);
  for (const each of notes) note(each);
  const { jobdir_root, checkpoint_path } = settings;
  if (system && checkpoint_path !== null) checkTrusted(() => trustedDirectory(checkpoint_path, [0]), `${path}: $checkpoint_path`);
  if (jobdir_root !== null && !isDirectory(jobdir_root)) throw new MomStartError(`${path}: $jobdir_root ${jobdir_root} is not a directory`);
  return settings;
}

/** Whether the path is a directory, or a link to one: what matters is that sandboxes can be made in it. */
function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** Returns a reader of the vnodes of this host. With $vnodedef_additive, a vnode that is no longer defined stays until the mom restarts. */
export function vnodeReporter(
  { directory, system }: { readonly directory: string; readonly system: boolean },
  facts: HostFacts,
  note: Note,
): { read(additive: boolean): MomVnode[] } {
  const kept = new Map<string, MomVnode>();
  return {
    read(additive) {
      const { defs, problems } = readDefinitions(directory, system);
      for (const problem of problems) note(problem, LOG_EVENT.ERROR);
      const now = reportedVnodes(facts, defs);
      if (!additive) return now;
      for (const vnode of now) kept.set(vnode.name, vnode);
      return [...kept.values()];
    },
  };
}

/** Makes the directories of the mom, with the modes of docs/reference/files.md 1. */
export function makeDirectories(home: string, mode: "user" | "system"): void {
  const shared = mode === "system" ? 0o1777 : 0o700;
  const modes: readonly (readonly [name: string, mode: number])[] = [
    ["mom_priv", 0o751],
    ["mom_priv/jobs", 0o751],
    ["mom_priv/config.d", 0o751],
    ["mom_priv/hooks", 0o750],
    ["mom_priv/hooks/tmp", 0o750],
    ["aux", 0o755],
    ["mom_logs", 0o755],
    ["spool", shared],
    ["undelivered", shared],
    ["checkpoint", 0o700],
  ];
  for (const [name, bits] of modes) {
    try {
      mkdirSync(`${home}/${name}`);
      chmodSync(`${home}/${name}`, bits);
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw new MomStartError(`${home}/${name}: ${messageOf(error)}`);
    }
  }
}

// The files of a sched_priv (pbs/sched.md 11, 12): checked, read and parsed into what a cycle needs, with what is wrong with them for the log.

import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseResourceGroup } from "#model/resource-group.ts";
import { parseDedicatedTime } from "../dedicated-time.ts";
import { ALWAYS_PRIME, parseHolidays } from "../holidays.ts";
import type { PolicyBook } from "../policy.ts";
import { messageText, parseSchedConfig } from "../sched-config.ts";
import { MACHINE_TIME } from "./machine-time.ts";
import type { ChainConfig } from "./module-host.ts";

/** Files that a sched_priv must hold. */
const FILES = ["sched_config", "resource_group", "holidays", "dedicated_time"] as const;
const GROUP_OR_WORLD_WRITES = 0o022;

/** Lines for the log, class Fil. */
export type SettingsMessage = { readonly object: string; readonly text: string };
/** book: without the site's own modules, which have to be loaded first. */
export type Settings = { readonly book: PolicyBook; readonly chain: ChainConfig; readonly messages: readonly SettingsMessage[] };

/** What is wrong with a sched_priv: it must be a directory of ours that nobody else can write, with all its files. null: nothing. */
export function checkPrivate(dir: string): string | null {
  const fault = checkOwn(dir, true);
  if (fault !== null) return fault;
  for (const file of FILES) {
    const wrong = checkOwn(join(dir, file), false);
    if (wrong !== null) return wrong;
  }
  return null;
}

/** What is wrong with a directory for logs. null: nothing. */
export function checkLogDirectory(dir: string): string | null {
  try {
    return statSync(dir).isDirectory() ? null : `${dir} is not a directory`;
  } catch (error) {
    return (error as Error).message;
  }
}

function checkOwn(path: string, directory: boolean): string | null {
  try {
    const stat = statSync(path);
    if (directory ? !stat.isDirectory() : !stat.isFile()) return `${path} is not a ${directory ? "directory" : "file"}`;
    const uid = process.getuid?.() ?? 0;
    if (stat.uid !== uid && stat.uid !== 0) return `${path} belongs to another user`;
    return (stat.mode & GROUP_OR_WORLD_WRITES) === 0 ? null : `${path} can be written by group or others`;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Reads all files. Never throws: what cannot be read is told and counts as empty. */
export function readSettings(dir: string): Settings {
  const messages: SettingsMessage[] = [];
  const config = parseSchedConfig(textOf(dir, "sched_config", messages) ?? "");
  for (const message of config.messages) messages.push({ object: "sched_config", text: messageText(message) });
  const dedicated = parseDedicatedTime(textOf(dir, "dedicated_time", messages) ?? "", MACHINE_TIME);
  for (const { line } of dedicated.messages) messages.push({ object: "dedicated_time", text: `Error on line ${line}.` });
  const groups = parseResourceGroup(textOf(dir, "resource_group", messages) ?? "", config.config.unknown_shares);
  for (const { line, text } of groups.messages) {
    if (text !== "") messages.push({ object: "resource_group", text });
    messages.push({ object: "resource_group", text: `resgroup: error on line ${line}.` });
  }
  if (groups.messages.length > 0)
    messages.push({ object: "resource_group", text: "Warning: resource group file error, fair share will not work" });
  const { prime, non_prime, modules, site_modules, module_options, module_alarm_s, module_work_alarm_s, dyn_res } = config.config;
  const holidays = holidaysOf(dir, messages);
  return {
    book: {
      prime,
      non_prime,
      modules,
      module_options,
      holidays,
      dedicated: dedicated.times,
      fairshare: groups.tree,
      dyn_res,
      local: MACHINE_TIME,
    },
    chain: { modules, site_modules, module_options, module_alarm_s, module_work_alarm_s },
    messages,
  };
}

/** Changes whenever one of the files does. */
export function versionOfFiles(dir: string): string {
  return FILES.map((file) => {
    try {
      const { ino, size, mtimeNs } = statSync(join(dir, file), { bigint: true });
      return `${ino} ${size} ${mtimeNs}`;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code;
    }
  }).join(";");
}

function holidaysOf(dir: string, messages: SettingsMessage[]): PolicyBook["holidays"] {
  try {
    const { holidays, messages: wrong } = parseHolidays(readFileSync(join(dir, "holidays"), "utf8"));
    for (const { line, text } of wrong)
      messages.push({ object: "holidays", text: `Error on line ${line}: ${text}; 24hr primetime assumed where it says nothing` });
    return holidays;
  } catch {
    messages.push({ object: "holidays", text: "Warning: cannot open holidays file; assuming 24hr primetime" });
    return ALWAYS_PRIME;
  }
}

function textOf(dir: string, file: string, messages: SettingsMessage[]): string | null {
  try {
    return readFileSync(join(dir, file), "utf8");
  } catch (error) {
    messages.push({ object: file, text: `cannot be read: ${(error as Error).message}` });
    return null;
  }
}

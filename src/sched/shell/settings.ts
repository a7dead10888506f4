// The files of a sched_priv (pbs/sched.md 11, 12): checked and read. What they say: ../settings-text.ts.

import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Settings, type SettingsMessage, type SettingsTexts, settingsOf } from "../settings-text.ts";
import { MACHINE_TIME } from "./machine-time.ts";

/** Files that a sched_priv must hold. */
const FILES = ["sched_config", "resource_group", "holidays", "dedicated_time"] as const;
const GROUP_OR_WORLD_WRITES = 0o022;

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
  const texts = readPrivate(dir, (object, text) => messages.push({ object, text }));
  const settings = settingsOf(texts, MACHINE_TIME);
  return { ...settings, messages: [...messages, ...settings.messages] };
}

/** The texts of a sched_priv's files; null: it cannot be read. tell: what is wrong, but for the holidays (settingsOf tells of those). */
export function readPrivate(dir: string, tell: (object: string, text: string) => void = () => undefined): SettingsTexts {
  const text = (file: (typeof FILES)[number]): string | null => {
    try {
      return readFileSync(join(dir, file), "utf8");
    } catch (error) {
      if (file !== "holidays") tell(file, `cannot be read: ${(error as Error).message}`);
      return null;
    }
  };
  return {
    sched_config: text("sched_config"),
    dedicated_time: text("dedicated_time"),
    resource_group: text("resource_group"),
    holidays: text("holidays"),
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

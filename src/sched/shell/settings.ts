// Reads the files of a sched_priv (docs/reference/scheduler.md 11, 12). ../policy/settings-text.ts interprets their
// contents; #support/sched-directory.ts checks them.

import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { codeOf, messageOf } from "#support/caught.ts";
import { SCHED_FILES } from "#support/sched-directory.ts";
import { type Settings, type SettingsMessage, type SettingsTexts, settingsOf } from "../policy/settings-text.ts";
import { MACHINE_TIME } from "./machine-time.ts";

/** Reads all files. Never throws: a file that cannot be read is reported and counts as empty. */
export function readSettings(dir: string): Settings {
  const messages: SettingsMessage[] = [];
  const texts = readPrivate(dir, (object, text) => messages.push({ object, text }));
  const settings = settingsOf(texts, MACHINE_TIME);
  return { ...settings, messages: [...messages, ...settings.messages] };
}

/**
 * Returns the texts of the files of a sched_priv; null: a file cannot be read. tell: called with each fault, except those of
 * the holidays file, which settingsOf reports.
 */
export function readPrivate(dir: string, tell: (object: string, text: string) => void = () => undefined): SettingsTexts {
  const text = (file: (typeof SCHED_FILES)[number]): string | null => {
    try {
      return readFileSync(join(dir, file), "utf8");
    } catch (error) {
      if (file !== "holidays") tell(file, `cannot be read: ${messageOf(error)}`);
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

/** Returns a text that changes whenever one of the files changes. */
export function versionOfFiles(dir: string): string {
  return SCHED_FILES.map((file) => {
    try {
      const { ino, size, mtimeNs } = statSync(join(dir, file), { bigint: true });
      return `${ino} ${size} ${mtimeNs}`;
    } catch (error) {
      return codeOf(error);
    }
  }).join(";");
}

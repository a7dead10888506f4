// Reads the settings of the grid from grid_priv/grid.conf. The directory belongs to the user of the daemon, so only the administrator can write the file.
//
// F1. The file is read again whenever the settings are needed, so that a change counts at once. While the file has a mistake, the last good settings count, and the log
//     names the mistake once.

import { readFileSync } from "node:fs";
import { codeOf, messageOf } from "#support/caught.ts";
import { parseConfText } from "#support/conf.ts";
import { type GridSettings, SETTING_NUMBERS, SETTINGS_DEFAULT } from "../shapes/settings.ts";

const TEXTS = ["mailer", "mail_from", "webhooks"] as const;
const WEBHOOKS_MAX = 1000;

/** Returns a function that reads the settings from a file. A file that does not exist has no settings. */
export function settingsFile(file: string, note: (text: string) => void): () => GridSettings {
  let last = SETTINGS_DEFAULT;
  let told = "";
  return () => {
    const read = parsed(file);
    if (typeof read !== "string") last = read;
    const fault = typeof read === "string" ? read : "";
    if (fault !== "" && fault !== told) note(`${file}: ${fault}; the last settings without a mistake are used`);
    told = fault;
    return last;
  };
}

function parsed(file: string): GridSettings | string {
  try {
    return parseGridSettings(readFileSync(file, "utf8"));
  } catch (error) {
    return codeOf(error) === "ENOENT" ? SETTINGS_DEFAULT : messageOf(error);
  }
}

/** Reads settings from a text. Returns them, or a sentence about the first mistake. */
export function parseGridSettings(text: string): GridSettings | string {
  const values = parseConfText(text);
  const names: readonly string[] = [...TEXTS, ...Object.keys(SETTING_NUMBERS)];
  const unknown = Object.keys(values).find((name) => !names.includes(name));
  if (unknown !== undefined) return `there is no setting ${unknown}; there are ${names.join(", ")}`;
  for (const [name, [, least, most]] of Object.entries(SETTING_NUMBERS)) {
    const number = Number(values[name] ?? least);
    if (values[name] === "" || !(number >= least && number <= most)) return `${name}: a number from ${least} to ${most}`;
  }
  const number = (name: keyof typeof SETTING_NUMBERS): number => Number(values[name] ?? SETTING_NUMBERS[name][0]);
  for (const name of ["notify_attempts", "resubmissions_max"] as const)
    if (!Number.isInteger(number(name))) return `${name}: a whole number`;
  const { mailer = SETTINGS_DEFAULT.mailer, mail_from = SETTINGS_DEFAULT.mail_from } = values;
  if (!mailer.startsWith("/")) return "mailer: the absolute path of a program";
  if (!/^[A-Za-z0-9_.+@][A-Za-z0-9_.+@-]*$/.test(mail_from)) return "mail_from: an address";
  const webhooks = (values["webhooks"] ?? "").split(/\s+/).filter((url) => url !== "");
  if (webhooks.length > WEBHOOKS_MAX) return `webhooks: at most ${WEBHOOKS_MAX} URLs`;
  const wrong = webhooks.findIndex((url) => !isWebUrl(url));
  if (wrong >= 0) return `webhooks: URL ${wrong + 1} is not an http: or https: URL without user, query and fragment`;
  return {
    mailer,
    mail_from,
    webhooks,
    notify_pause_s: number("notify_pause"),
    notify_attempts: number("notify_attempts"),
    notify_retry_s: number("notify_retry"),
    webhook_timeout_s: number("webhook_timeout"),
    resubmissions_max: number("resubmissions_max"),
  };
}

function isWebUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && username + password + search + hash === "";
}

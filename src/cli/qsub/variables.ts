// Makes Variable_List, which has the environment variables that a job gets, as text (docs/reference/commands.md 1,
// docs/reference/files.md 6).

import { userInfo } from "node:os";

export type Env = Readonly<Record<string, string | undefined>>;

/** Puts a backslash before a comma, a quote or a backslash in a value. */
export const escapeValue = (value: string): string => (/[\\,"']/.test(value) ? value.replace(/[\\,"']/g, "\\$&") : value);

/** Returns the variables `PBS_O_NAME=value` from the environment of qsub. The server adds PBS_O_QUEUE and PBS_O_HOST. */
export function originVariables(env: Env, directory: string, conf: Readonly<Record<string, string>>): string[] {
  const login = env["LOGNAME"] ?? env["USER"] ?? userInfo().username;
  const rows: readonly (readonly [string, string | undefined])[] = [
    ["PBS_O_HOME", env["HOME"] ?? userInfo().homedir],
    ["PBS_O_LANG", env["LANG"]],
    ["PBS_O_LOGNAME", login],
    ["PBS_O_PATH", env["PATH"]],
    ["PBS_O_MAIL", env["MAIL"]],
    ["PBS_O_SHELL", env["SHELL"]],
    ["PBS_O_TZ", env["TZ"]],
    ["PBS_O_INTERACTIVE_AUTH_METHOD", conf["PBS_INTERACTIVE_AUTH_METHOD"] ?? "resvport"],
    ["PBS_O_INTERACTIVE_ENCRYPT_METHOD", conf["PBS_INTERACTIVE_ENCRYPT_METHOD"] ?? ""],
    ["PBS_O_WORKDIR", directory],
    ["PBS_O_SYSTEM", "Linux"],
  ];
  return rows.flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${escapeValue(value)}`]));
}

/**
 * Returns the variables of a -v list as `NAME=value`. Quotes and backslashes protect commas. A NAME without value gets its value from the environment. Empty
 * items (`A=1,`) are skipped. Returns null if the list is malformed, or if a NAME without value is not set.
 */
export function namedVariables(list: string, env: Env): string[] | null {
  const items = splitList(list);
  if (items === null) return null;
  const variables: string[] = [];
  for (const item of items) {
    if (item === "") continue;
    const equals = item.indexOf("=");
    const name = equals < 0 ? item : item.slice(0, equals);
    const value = equals < 0 ? env[name] : item.slice(equals + 1);
    if (name === "" || value === undefined) return null;
    variables.push(`${name}=${escapeValue(value)}`);
  }
  return variables;
}

/** Returns the whole environment, for -V, without the PBS_O_ variables, which qsub sets itself. */
export function allVariables(env: Env): string[] {
  return Object.keys(env).flatMap((name) =>
    env[name] === undefined || name.startsWith("PBS_O_") ? [] : [`${name}=${escapeValue(env[name])}`],
  );
}

/** Joins lists of variables, in order. If a name occurs several times, its last value takes the place of the first. */
export function joinVariables(...groups: readonly (readonly string[])[]): string {
  const byName = new Map<string, string>();
  for (const variable of groups.flat()) byName.set(variable.slice(0, variable.indexOf("=")), variable);
  return [...byName.values()].join(",");
}

/** Splits a list at its commas, and removes quotes and backslashes. */
function splitList(list: string): string[] | null {
  const items: string[] = [];
  let [item, quote] = ["", ""];
  for (let at = 0; at < list.length; at++) {
    const char = list.charAt(at);
    if (char === "\\" && at + 1 < list.length) item += list[++at];
    else if (quote !== "") {
      if (char === quote) quote = "";
      else item += char;
    } else if (char === '"' || char === "'") quote = char;
    else if (char === ",") {
      items.push(item.trim());
      item = "";
    } else item += char;
  }
  if (quote !== "") return null;
  items.push(item.trim());
  return items;
}

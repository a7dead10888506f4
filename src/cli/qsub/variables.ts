// Variable_List: what of the environment goes with a job, and how it is written (docs/reference/commands.md 1, docs/reference/files.md 6).

import { userInfo } from "node:os";

export type Env = Readonly<Record<string, string | undefined>>;

/** A comma, a quote or a backslash in a value gets a backslash. */
export const escapeValue = (value: string): string => (/[\\,"']/.test(value) ? value.replace(/[\\,"']/g, "\\$&") : value);

/** `PBS_O_NAME=value` of qsub's own environment, in their order. PBS_O_QUEUE and PBS_O_HOST are the server's. */
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
 * The variables of a -v list as `NAME=value`: quotes and backslashes protect commas; a bare NAME takes its value from the environment. An empty list
 * and empty items (`A=1,`) name nothing. null: a name that is not there, or a malformed list.
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

/** -V: the whole environment, without what a job gets of its own. */
export function allVariables(env: Env): string[] {
  return Object.keys(env).flatMap((name) =>
    env[name] === undefined || name.startsWith("PBS_O_") ? [] : [`${name}=${escapeValue(env[name])}`],
  );
}

/** The list in its order; of a name that occurs twice the later value stands, in the earlier place. */
export function joinVariables(...groups: readonly (readonly string[])[]): string {
  const byName = new Map<string, string>();
  for (const variable of groups.flat()) byName.set(variable.slice(0, variable.indexOf("=")), variable);
  return [...byName.values()].join(",");
}

/** Items between commas, quotes and backslashes taken off. */
function splitList(list: string): string[] | null {
  const items: string[] = [];
  let [item, quote] = ["", ""];
  for (let at = 0; at < list.length; at++) {
    const char = list[at] as string;
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

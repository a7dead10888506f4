// The script that a cluster manager runs for each runner. Pure.
//
// S1. Every text of the order is quoted; nothing of it is read by the shell.
// S2. The script has no token; it names the file that has it.

import { RUNNER_ENV, type RunnerOrder } from "./backend.ts";

export type ScriptParts = {
  readonly order: Pick<RunnerOrder, "tag" | "argv" | "env">;
  /** the directory with the token files of the tag: each is named after the index of its runner */
  readonly token_dir: string;
  /** the index of this runner as an arithmetic expression of the shell, such as `SGE_TASK_ID - 1` */
  readonly index: string;
};

export function runnerScript({ order, token_dir, index }: ScriptParts): string {
  const env = Object.entries(order.env).map(([name, value]) => `export ${nameOf(name)}=${quoted(value)}`);
  return [
    "#!/bin/sh",
    "unset LC_ALL",
    ...env,
    `export ${RUNNER_ENV.TAG}=${quoted(order.tag)}`,
    `export ${RUNNER_ENV.INDEX}=$((${index}))`,
    `export ${RUNNER_ENV.TOKEN_FILE}=${quoted(`${token_dir}/`)}"$${RUNNER_ENV.INDEX}"`,
    `exec ${order.argv.map(quoted).join(" ")}`,
    "",
  ].join("\n");
}

/** Quotes a text so that it is one word of the shell. */
export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

export function nameOf(name: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw new RangeError(`no name of an environment variable: ${JSON.stringify(name)}`);
  return name;
}

// Starts and stops a daemon beside the server, such as pbs_grid and pbs_web (src/server/shell/daemon-start.ts).

import { spawn } from "node:child_process";
import { join } from "node:path";
import { READY_ENV, READY_FD } from "#server/shell/daemon-start.ts";
import { nth } from "#support/assert.ts";
import type { Conf } from "#support/conf.ts";
import { AdminError, programTree } from "./complex-home.ts";
import { complexEnv, lockHolder } from "./daemons.ts";
import { gone, isStopped, kill } from "./processes.ts";

/** name: for example pbs_grid. word: the beginning of the names of its files in PBS_HOME. */
export type SideDaemonNames = { readonly name: string; readonly word: string };

/** The pid of the daemon; null: it does not run. */
export const sidePid = ({ home }: Conf, { word }: SideDaemonNames): number | null => lockHolder(join(home, `${word}_priv`, `${word}.lock`));

/** Starts the daemon in the background. Returns what it said before it was ready. Throws AdminError if it does not start. */
export async function startSide(conf: Conf, { name, word }: SideDaemonNames, env: NodeJS.ProcessEnv = {}): Promise<string> {
  const child = spawn(process.execPath, [join(programTree(), "dist", `${name}.mjs`)], {
    argv0: name,
    detached: true,
    cwd: "/",
    stdio: ["ignore", "ignore", "ignore", "pipe"],
    env: { ...complexEnv(conf), ...env, [READY_ENV]: String(READY_FD) },
  });
  const channel = nth(child.stdio, READY_FD);
  const told = await new Promise<{ readonly said: string } | { readonly fault: string }>((resolve) => {
    let said = "";
    channel.on("data", (text: Buffer) => {
      said += text.toString();
      if (said.endsWith("ready\n")) resolve({ said: said.slice(0, -"ready\n".length) });
    });
    child.once("error", (error) => resolve({ fault: error.message }));
    child.once("exit", () => setImmediate(() => resolve({ fault: said.trim() === "" ? `see ${conf.home}/${word}_logs` : said.trim() })));
  });
  child.unref();
  channel.destroy();
  if ("fault" in told) throw new AdminError(`${name} did not start: ${told.fault}`);
  return told.said;
}

/** Stops the daemon. Returns whether it ran. */
export async function stopSide(conf: Conf, names: SideDaemonNames): Promise<boolean> {
  const pid = sidePid(conf, names);
  if (pid === null) return false;
  if (isStopped(pid)) kill(pid, "SIGCONT");
  kill(pid, "SIGTERM");
  await gone([[names.name, pid]], { burial: true });
  return true;
}

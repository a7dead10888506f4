// Command `partita grid` with its verbs: starts and stops the daemon of campaigns.

import { spawn } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { CommandModule } from "yargs";
import type { Conf } from "#support/conf.ts";
import {
  AdminError,
  complexConf,
  complexDirectory,
  confFile,
  confOf,
  makeConfFile,
  mustBeRoot,
  programTree,
} from "../complex/complex-home.ts";
import { complexEnv, lockHolder } from "../complex/daemons.ts";
import { gone, isStopped, kill } from "../complex/processes.ts";

type Common = { readonly home?: string | undefined };

const say = (text: string): void => void process.stdout.write(`${text}\n`);

export const gridCommand: CommandModule<Common, Common> = {
  command: "grid",
  describe: "the daemon of campaigns over many clusters (pbs_grid)",
  builder: (y) =>
    y
      .command(
        "start",
        "start the daemon, beside a complex or without one; returns when it answers",
        (options) =>
          options.option("system", {
            type: "boolean",
            default: false,
            describe: "for a new directory without a complex: as root, jobs run as the users of their campaigns",
          }),
        async (argv) => say(await startGrid(argv.home, argv.system)),
      )
      .command(
        "stop",
        "stop the daemon; jobs of campaigns continue on their clusters, and the next daemon finds them again",
        (options) => options,
        async (argv) => say(await stopGrid(complexConf(argv.home))),
      )
      .command(
        "status",
        "whether the daemon runs; exit status 1 if it does not",
        (options) => options,
        (argv) => {
          const pid = gridPid(complexConf(argv.home));
          say(pid === null ? "pbs_grid does not run." : `pbs_grid runs (pid ${pid}).`);
          process.exitCode = pid === null ? 1 : 0;
        },
      )
      .demandCommand(1, "what to do with the grid is missing"),
  handler: () => undefined,
};

const gridPid = ({ home }: Conf): number | null => lockHolder(join(home, "grid_priv", "grid.lock"));

async function startGrid(home: string | undefined, system: boolean): Promise<string> {
  const conf = gridConf(home, system);
  mustBeRoot(conf);
  if (gridPid(conf) !== null) return "pbs_grid runs already.";
  const fault = await started(conf);
  if (fault !== null) throw new AdminError(`pbs_grid did not start: ${fault}`);
  return "Started pbs_grid.";
}

/** Returns the configuration of the complex. If there is none, makes one that starts nothing but a grid. */
function gridConf(home: string | undefined, system: boolean): Conf {
  if (home === undefined) return complexConf(home);
  const dir = complexDirectory(home, process.env);
  const file = confFile(dir);
  if (!existsSync(file)) {
    makeConfFile({ file, home: join(dir, "pbs"), exec: programTree(), mode: system ? "system" : "user", server: undefined, starts: false });
    mkdirSync(join(dir, "pbs"), { recursive: true, mode: 0o755 });
  }
  return confOf(file);
}

/** Starts the daemon in the background. Returns null when it answers, otherwise what it said. */
function started(conf: Conf): Promise<string | null> {
  const child = spawn(process.execPath, [join(programTree(), "dist", "pbs_grid.mjs")], {
    argv0: "pbs_grid",
    detached: true,
    cwd: "/",
    stdio: ["ignore", "ignore", "ignore", "pipe"],
    env: { ...complexEnv(conf), PARTITA_READY_FD: "3" },
  });
  return new Promise((resolve) => {
    let said = "";
    const settle = (outcome: string | null): void => {
      child.unref();
      child.stdio[3]?.destroy();
      resolve(outcome);
    };
    child.stdio[3]?.on("data", (text: Buffer) => {
      said += text.toString();
      if (said.includes("ready\n")) settle(null);
    });
    child.once("error", (error) => settle(error.message));
    child.once("exit", () => setImmediate(() => settle(said.trim() === "" ? `see ${conf.home}/grid_logs` : said.trim())));
  });
}

async function stopGrid(conf: Conf): Promise<string> {
  mustBeRoot(conf);
  const pid = gridPid(conf);
  if (pid === null) return "pbs_grid was not running.";
  if (isStopped(pid)) kill(pid, "SIGCONT");
  kill(pid, "SIGTERM");
  await gone([["pbs_grid", pid]], { burial: true });
  return "Stopped pbs_grid.";
}

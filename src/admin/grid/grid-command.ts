// Command `partita grid` with its verbs: starts and stops the daemon of campaigns.

import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { CommandModule } from "yargs";
import type { Conf } from "#support/conf.ts";
import { complexConf, complexDirectory, confFile, confOf, makeConfFile, mustBeRoot, programTree } from "../complex/complex-home.ts";
import { sidePid, startSide, stopSide } from "../complex/side-daemon.ts";

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
          const pid = sidePid(complexConf(argv.home), GRID);
          say(pid === null ? "pbs_grid does not run." : `pbs_grid runs (pid ${pid}).`);
          process.exitCode = pid === null ? 1 : 0;
        },
      )
      .demandCommand(1, "what to do with the grid is missing"),
  handler: () => undefined,
};

const GRID = { name: "pbs_grid", word: "grid" };

async function startGrid(home: string | undefined, system: boolean): Promise<string> {
  const conf = gridConf(home, system);
  mustBeRoot(conf);
  if (sidePid(conf, GRID) !== null) return "pbs_grid runs already.";
  await startSide(conf, GRID);
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

async function stopGrid(conf: Conf): Promise<string> {
  mustBeRoot(conf);
  return (await stopSide(conf, GRID)) ? "Stopped pbs_grid." : "pbs_grid was not running.";
}

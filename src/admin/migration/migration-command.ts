// Commands `partita import-pbs` and `partita translate` with their options. Their code is loaded only when they are called.

import type { CommandModule } from "yargs";
import { complexConf, mustBeRoot } from "../complex/complex-home.ts";

type Common = { readonly home?: string | undefined };
type ImportArgs = Common & {
  readonly dump: readonly string[];
  readonly check: boolean;
  readonly all: boolean;
  readonly F: "json" | undefined;
};

export const importPbsCommand: CommandModule<Common, ImportArgs> = {
  command: "import-pbs",
  describe:
    "take over the configuration of another PBS from what its qmgr prints; says for each line whether it is taken, changed or refused",
  builder: (y) =>
    y
      .option("dump", {
        type: "string",
        array: true,
        demandOption: true,
        requiresArg: true,
        describe: 'files with the output of qmgr -c "print server", "print node @default", "print hook"; -: standard input',
      })
      .option("check", { type: "boolean", default: false, describe: "change nothing, only say what would happen; needs no complex" })
      .option("all", { type: "boolean", default: false, describe: "also show the lines that are taken as they are" })
      .option("F", { choices: ["json"] as const, requiresArg: true, describe: "json: as JSON, with all lines" }),
  handler: async (argv) => {
    const ownConf = () => {
      const conf = complexConf(argv.home);
      mustBeRoot(conf);
      return conf;
    };
    const { importPbs } = await import("./import-pbs.ts");
    const { text, status } = await importPbs(ownConf, { dumps: argv.dump, check: argv.check, all: argv.all, json: argv.F === "json" });
    process.stdout.write(text);
    process.exitCode = status;
  },
};

type TranslateArgs = Common & { readonly script: string; readonly F: "json" | undefined };

export const translateCommand: CommandModule<Common, TranslateArgs> = {
  command: "translate <script>",
  describe: "translate a batch script of Slurm: the script for qsub on standard output, every option explained on standard error",
  builder: (y) =>
    y
      .positional("script", { type: "string", demandOption: true, describe: "a script with lines #SBATCH; -: standard input" })
      .option("F", { choices: ["json"] as const, requiresArg: true, describe: "json: script and explanations as JSON" }),
  handler: async (argv) => {
    const { translate } = await import("./translate.ts");
    const { script, explanation } = translate(argv.script, argv.F === "json");
    process.stderr.write(explanation);
    process.stdout.write(script);
  },
};

// Command `partita store` with its verbs. The code of a verb is loaded only when it is called.

import type { CommandModule } from "yargs";
import { complexConf, mustBeRoot } from "../complex/complex-home.ts";

type Common = { readonly home?: string | undefined };

const say = (text: string): void => void process.stdout.write(`${text}\n`);

export const storeCommand: CommandModule<Common, Common> = {
  command: "store",
  describe:
    "where the server keeps its state: a file of SQLite or a PostgreSQL database; what is in it, and moving it from one to the other",
  builder: (y) =>
    y
      .command(
        "status",
        "the kind and place of the store, the number of jobs, the server that uses it",
        (options) => options.option("json", { type: "boolean", default: false, describe: "as JSON" }),
        async (argv) => {
          const conf = complexConf(argv.home);
          mustBeRoot(conf);
          const { storeStatus } = await import("./store-status.ts");
          say(await storeStatus(conf, argv.json));
        },
      )
      .command(
        "migrate <to>",
        "move the store of a stopped complex; copies all rows, compares them and changes pbs.conf; the former store is kept",
        (options) =>
          options.positional("to", { choices: ["sqlite", "postgres"] as const, demandOption: true, describe: "the kind of the new store" }),
        async (argv) => {
          const conf = complexConf(argv.home);
          mustBeRoot(conf);
          const { migrateStore } = await import("./migrate.ts");
          await migrateStore(conf, argv.to, say);
        },
      )
      .demandCommand(1, "what to do with the store is missing"),
  handler: () => undefined,
};

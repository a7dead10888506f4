// The call `partita tune` for yargs. The code is loaded only when it is called.

import type { CommandModule } from "yargs";

type TuneArgs = {
  readonly trace: string | undefined;
  readonly procs: number | undefined;
  readonly accounting: string | undefined;
  readonly goal: string;
  readonly picture: string | undefined;
  readonly json: boolean;
};

export const tuneCommand: CommandModule<object, TuneArgs> = {
  command: "tune [trace]",
  describe: "replay a trace (SWF), or the accounting files of a complex, under many settings, and show which would have served whom better",
  builder: (y) =>
    y
      .positional("trace", { type: "string", describe: "a file in the Standard Workload Format, also gzipped" })
      .option("procs", { type: "number", requiresArg: true, describe: "processors of the machine" })
      .option("accounting", { type: "string", requiresArg: true, describe: "instead of a trace: a directory of accounting files of PBS" })
      .option("goal", {
        type: "string",
        requiresArg: true,
        default: "slowdown:110",
        describe:
          "FIGURE[:PERCENT]: the figure to be lowest (slowdown, wait, longest), and the longest wait allowed, in percent of that of easy",
      })
      .option("picture", {
        type: "string",
        requiresArg: true,
        describe: "where a picture goes: SVG, mean waits by size of job and by user",
      })
      .option("json", { type: "boolean", default: false, describe: "figures as JSON" }),
  handler: async (options) => {
    const { tune } = await import("./tune.ts");
    const tell = (text: string): void => void process.stderr.write(`partita tune: ${text}\n`);
    process.stdout.write(`${tune(options, tell)}\n`);
  },
};

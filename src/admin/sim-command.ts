// Options of partita sim. What it does is loaded only when it is called.

import type { Argv, CommandModule } from "yargs";

export type SimOptions = {
  readonly trace: string;
  readonly procs?: number | undefined;
  readonly partition?: readonly string[] | undefined;
  readonly algo: string;
  readonly engine: "pool" | "cycle";
  readonly reservations?: string | undefined;
  readonly out?: string | undefined;
  readonly picture?: string | undefined;
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly json: boolean;
};

export const simCommand: CommandModule<object, SimOptions> = {
  command: "sim <trace>",
  describe: "replay a trace (SWF, also gzipped) with the scheduler on a virtual clock",
  builder: (y) => options(y) as unknown as Argv<SimOptions>,
  handler: async (argv) => {
    const { sim } = await import("./sim.ts");
    process.stdout.write(`${sim(argv)}\n`);
  },
};

const options = (y: Argv<object>): Argv =>
  y
    .positional("trace", { type: "string", demandOption: true, describe: "a file in the Standard Workload Format" })
    .option("procs", { type: "number", describe: "processors of the machine" })
    .option("partition", { type: "string", array: true, describe: "instead of --procs, once a partition: its NUMBER in the trace=PROCS" })
    .option("algo", {
      type: "string",
      default: "easy",
      describe: "fcfs, easy, sjbf, depthN, depthinf or cons; several with commas between them are compared",
    })
    .option("engine", {
      choices: ["pool", "cycle"] as const,
      default: "pool",
      describe:
        "pool: passes over a pool of slots; cycle: the scheduler's own cycles on a vnode of as many cpus, slower (fcfs, easy, depthN, depthinf)",
    })
    .option("reservations", { type: "string", describe: "file with lines start_s,duration_s,procs" })
    .option("out", { type: "string", describe: "where the starts go: CSV job,start" })
    .option("picture", { type: "string", describe: "where a picture of the schedule goes: SVG" })
    .option("from", { type: "number", describe: "with --picture: the first second shown" })
    .option("to", { type: "number", describe: "with --picture: the last second shown" })
    .option("json", { type: "boolean", default: false, describe: "metrics as JSON" });

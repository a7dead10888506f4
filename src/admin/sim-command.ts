// Options of partita sim. What it does is loaded only when it is called.

import type { Argv, CommandModule } from "yargs";

export type SimOptions = {
  readonly home?: string | undefined;
  readonly trace?: string | undefined;
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
  readonly live?: boolean | undefined;
  readonly state?: string | undefined;
  readonly save?: string | undefined;
  readonly qmgr?: readonly string[] | undefined;
  readonly schedConfig?: readonly string[] | undefined;
  readonly reserve?: readonly string[] | undefined;
  readonly until?: string | undefined;
};

export const simCommand: CommandModule<object, SimOptions> = {
  command: "sim [trace]",
  describe: "replay a trace (SWF, also gzipped), or let the jobs of a complex go on, with the scheduler on a virtual clock",
  builder: (y) => options(y) as unknown as Argv<SimOptions>,
  handler: async (argv) => {
    if (argv.live === true || argv.state !== undefined || argv.save !== undefined) {
      const { whatIf } = await import("./what-if.ts");
      process.stdout.write(`${await whatIf(argv)}\n`);
      return;
    }
    const { sim } = await import("./sim.ts");
    const tell = (text: string): void => void process.stderr.write(`partita sim: ${text}\n`);
    process.stdout.write(`${await sim(argv, tell)}\n`);
  },
};

const options = (y: Argv<object>): Argv =>
  y
    .positional("trace", { type: "string", describe: "a file in the Standard Workload Format" })
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
    .option("live", { type: "boolean", describe: "instead of a trace: the jobs of the complex as it is now" })
    .option("state", { type: "string", describe: "instead of a trace: the jobs of a complex that was saved in this file" })
    .option("save", { type: "string", describe: "save the complex as it is now in this file" })
    .option("qmgr", {
      type: "string",
      array: true,
      nargs: 1,
      describe: 'what if: a line of qmgr, as "set queue workq max_run=[u:PBS_GENERIC=2]"',
    })
    .option("sched-config", { type: "string", array: true, nargs: 1, describe: "what if: [SCHEDULER:]KEY=VALUE in sched_config" })
    .option("reserve", {
      type: "string",
      array: true,
      nargs: 1,
      describe: "what if: a reservation, start=+HH:MM:SS,duration=HH:MM:SS,select=...[,place=...][,partition=...]",
    })
    .option("until", { type: "string", describe: "with --live, --state: how long it goes on (default 30 days)" })
    .option("json", { type: "boolean", default: false, describe: "metrics as JSON" });

// The call `partita sim` for yargs. The code of the simulation is loaded only when it is called.

import type { Argv, CommandModule } from "yargs";
import { AdminError } from "../complex/complex-home.ts";
import { optionsFault, SIM_OPTIONS, type SimOptions } from "./sim-options.ts";

export const simCommand: CommandModule<object, SimOptions> = {
  command: "sim [trace]",
  describe: "replay a trace (SWF, also gzipped), or let the jobs of a complex go on, with the scheduler on a virtual clock",
  builder: (y) =>
    y
      .positional("trace", { type: "string", describe: "a file in the Standard Workload Format" })
      .options(SIM_OPTIONS) as unknown as Argv<SimOptions>,
  handler: playSim,
};

/** Runs partita sim. Before any work, it refuses options that would have no effect together. */
export async function playSim(options: SimOptions): Promise<void> {
  const fault = optionsFault(options);
  if (fault !== null) throw new AdminError(fault);
  const tell = (text: string): void => void process.stderr.write(`partita sim: ${text}\n`);
  if (options.live === true || options.state !== undefined || options.save !== undefined) {
    const { whatIf } = await import("./what-if.ts");
    process.stdout.write(`${await whatIf(options)}\n`);
    return;
  }
  if (options.grid !== undefined) {
    const { simGrid } = await import("./grid.ts");
    process.stdout.write(`${simGrid(options, tell)}\n`);
    return;
  }
  const { sim } = await import("./sim.ts");
  process.stdout.write(`${await sim(options, tell)}\n`);
}

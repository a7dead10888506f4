// The command line of `npm run sim`: the seeds, what is simulated, and the output.

import { parseArgs } from "node:util";
import { FAULTS, type Fault } from "./drawn/scenario.ts";
import type { RunOptions } from "./run.ts";

export const USAGE = `usage: npm run sim -- [--seconds N | --seeds A-B | --seed N] [--scale N] [--all] [--trace]
                      [--jobs N] [--faults A,B | --no-faults] [--promises] [--cuts] [--pair] [--no-ops] [--last N]
  --seconds N   new seeds for so long (default 10)
  --seeds A-B   these seeds
  --seed N      this seed
  --scale N     worlds with N times as many jobs, and more hosts (default 1)
  --all         does not end with the first failure
  --trace       every event as it happens
  --last N      events printed after a failure (default 60)
  --jobs N      at most so many jobs
  --faults A,B  only these kinds of faults: ${FAULTS.join(" ")}
  --no-faults   nothing breaks
  --promises    only worlds in which it can be judged whether published starts of top jobs hold
  --cuts        only worlds whose hosts are cut off again and again, for long times
  --pair        only worlds with two servers on a database, and with such cuts
  --no-ops      jobs are submitted, and nothing else is asked
`;

export type Args = {
  readonly help: boolean;
  readonly all: boolean;
  readonly trace: boolean;
  readonly options: Omit<RunOptions, "onLine">;
  /** the options that change the scenario of a seed, as a text for repeating it, each after a blank */
  readonly given: string;
  /** the first and the last seed; undefined: seeds are chosen from the clock */
  readonly seeds: readonly [first: number, last: number] | undefined;
  /** seconds for which new seeds are tested; undefined: not given */
  readonly seconds: number | undefined;
};

/** Parses the arguments. Throws an Error with a text for the user. */
export function readArgs(args: readonly string[]): Args {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: "string" },
      seeds: { type: "string" },
      seed: { type: "string" },
      trace: { type: "boolean" },
      last: { type: "string" },
      jobs: { type: "string" },
      scale: { type: "string" },
      all: { type: "boolean" },
      faults: { type: "string" },
      "no-faults": { type: "boolean" },
      promises: { type: "boolean" },
      cuts: { type: "boolean" },
      pair: { type: "boolean" },
      "no-ops": { type: "boolean" },
      help: { type: "boolean" },
    },
  });
  const options = {
    keep: Number(values.last ?? 60),
    jobs_max: Number(values.jobs ?? Number.POSITIVE_INFINITY),
    faults: values["no-faults"] === true ? false : values.faults === undefined ? true : faultsNamed(values.faults),
    scale: Number(values.scale ?? 1),
    ops: values["no-ops"] !== true,
    promises: values.promises === true,
    cuts: values.cuts === true,
    pair: values.pair === true,
  };
  const given = [
    values.jobs === undefined ? "" : ` --jobs ${values.jobs}`,
    options.scale === 1 ? "" : ` --scale ${options.scale}`,
    typeof options.faults === "boolean" ? (options.faults ? "" : " --no-faults") : ` --faults ${options.faults.join()}`,
    options.ops ? "" : " --no-ops",
    options.promises ? " --promises" : "",
    options.cuts ? " --cuts" : "",
    options.pair ? " --pair" : "",
  ].join("");
  return {
    help: values.help === true,
    all: values.all === true,
    trace: values.trace === true,
    options,
    given,
    seeds: seedsOf(values),
    seconds: values.seconds === undefined ? undefined : Number(values.seconds),
  };
}

function faultsNamed(text: string): Fault[] {
  return text.split(",").map((name) => {
    const fault = FAULTS.find((known) => known === name);
    if (fault === undefined) throw new Error(`--faults: there is no ${name}`);
    return fault;
  });
}

function seedsOf(values: { readonly seed?: string | undefined; readonly seeds?: string | undefined }): Args["seeds"] {
  if (values.seed !== undefined) return [Number(values.seed), Number(values.seed)];
  if (values.seeds === undefined) return undefined;
  const match = /^(\d+)-(\d+)$/.exec(values.seeds);
  if (match === null) throw new Error(`--seeds wants A-B, not ${values.seeds}`);
  return [Number(match[1]), Number(match[2])];
}

// `npm run sim -- [--seconds N | --seeds A-B | --seed N] [--scale N] [--all] [--trace] [--jobs N] [--faults A,B | --no-faults]
// [--no-ops] [--last N]`: whole complexes in virtual time, a seed each,
// until one breaks. README.md explains what is printed.

import { parseArgs } from "node:util";
import { failureText } from "./failure.ts";
import { type RunOptions, runSeed } from "./run.ts";
import { FAULTS, type Fault } from "./scenario.ts";
import { traceText } from "./world.ts";

const USAGE = `usage: npm run sim -- [--seconds N | --seeds A-B | --seed N] [--scale N] [--all]
                      [--trace] [--jobs N] [--faults A,B | --no-faults] [--no-ops] [--last N]
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
  --promises    published starts of top jobs must hold, too
  --no-ops      jobs are submitted, and nothing else is asked
`;

async function main(): Promise<number> {
  const { values } = parseArgs({
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
      "no-ops": { type: "boolean" },
      help: { type: "boolean" },
    },
  });
  if (values.help === true) {
    process.stdout.write(USAGE);
    return 0;
  }
  const options: RunOptions = {
    keep: Number(values.last ?? 60),
    onLine: values.trace === true ? (line) => void process.stdout.write(`${traceText(line)}\n`) : null,
    jobs_max: Number(values.jobs ?? Number.POSITIVE_INFINITY),
    faults: values["no-faults"] === true ? false : values.faults === undefined ? true : faultsNamed(values.faults),
    scale: Number(values.scale ?? 1),
    ops: values["no-ops"] !== true,
  };
  const given = [
    values.jobs === undefined ? "" : ` --jobs ${values.jobs}`,
    options.scale === 1 ? "" : ` --scale ${options.scale}`,
    typeof options.faults === "boolean" ? (options.faults ? "" : " --no-faults") : ` --faults ${options.faults.join()}`,
    options.ops ? "" : " --no-ops",
  ].join("");
  const [first, last] = range(values);
  const end_ms =
    first === last ? Number.POSITIVE_INFINITY : Date.now() + Number(values.seconds ?? (values.seeds === undefined ? 10 : 1e9)) * 1000;
  const begin_ms = Date.now();
  const sums = { seeds: 0, failures: 0, jobs: 0, runs: 0, requests: 0, faults: 0, virtual_s: 0, steps: 0 };
  for (let seed = first; seed <= last && Date.now() < end_ms; seed++) {
    const result = await runSeed(seed, options);
    if (!result.ok) {
      process.stdout.write(failureText(values.trace === true ? { ...result, trace: [] } : result, given));
      sums.failures++;
      if (values.all !== true) return 1;
    }
    sums.seeds++;
    sums.steps += result.step;
    for (const name of ["jobs", "runs", "requests", "faults", "virtual_s"] as const) sums[name] += result.counts[name];
  }
  const { seeds, failures, jobs, runs, requests, faults, virtual_s, steps } = sums;
  const took_s = (Date.now() - begin_ms) / 1000;
  process.stdout.write(
    `${seeds} seeds from ${first}${options.scale === 1 ? "" : ` at scale ${options.scale}`}, ${failures === 0 ? "none" : failures} failed, in ${took_s.toFixed(1)} s: ${jobs} jobs submitted, ${runs} runs, ${requests} requests, ${faults} faults, ${steps} events, ${Math.round(virtual_s / 3600)} virtual hours\n`,
  );
  return failures === 0 ? 0 : 1;
}

function faultsNamed(text: string): Fault[] {
  return text.split(",").map((name) => {
    const fault = FAULTS.find((known) => known === name);
    if (fault === undefined) throw new Error(`--faults: there is no ${name}`);
    return fault;
  });
}

/** First and last seed. Without a word about them: from one that the clock gives, so that every run looks at new ones. */
function range(values: { readonly seed?: string | undefined; readonly seeds?: string | undefined }): readonly [number, number] {
  if (values.seed !== undefined) return [Number(values.seed), Number(values.seed)];
  if (values.seeds === undefined) return [Date.now(), Number.MAX_SAFE_INTEGER];
  const match = /^(\d+)-(\d+)$/.exec(values.seeds);
  if (match === null) throw new Error(`--seeds wants A-B, not ${values.seeds}`);
  return [Number(match[1]), Number(match[2])];
}

// `... | head` has seen enough.
process.stdout.on("error", () => process.exit(0));
main().then(
  (status) => {
    process.exitCode = status;
  },
  (error: Error) => {
    process.stderr.write(`${error.message}\n${USAGE}`);
    process.exitCode = 2;
  },
);

// `npm run sim` (options.ts): simulates whole complexes in virtual time, one for each seed, until one fails. README.md explains
// the output.

import { failureText } from "./failure.ts";
import { type Args, readArgs, USAGE } from "./options.ts";
import { runSeed } from "./run.ts";
import { type TraceLine, traceText } from "./world.ts";

async function main(): Promise<number> {
  const args = readArgs(process.argv.slice(2));
  if (args.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const { all, trace, given } = args;
  const options = { ...args.options, onLine: trace ? (line: TraceLine) => void process.stdout.write(`${traceText(line)}\n`) : null };
  const [first, last, end_ms] = span(args);
  const begin_ms = Date.now();
  const sums = { seeds: 0, failures: 0, jobs: 0, runs: 0, requests: 0, faults: 0, promises: 0, takeovers: 0, virtual_s: 0, steps: 0 };
  for (let seed = first; seed <= last && Date.now() < end_ms; seed++) {
    const result = await runSeed(seed, options);
    if (!result.ok) {
      process.stdout.write(failureText(trace ? { ...result, trace: [] } : result, given));
      sums.failures++;
      if (!all) return 1;
    }
    sums.seeds++;
    sums.steps += result.step;
    for (const name of ["jobs", "runs", "requests", "faults", "promises", "takeovers", "virtual_s"] as const)
      sums[name] += result.counts[name];
  }
  const { seeds, failures, jobs, runs, requests, faults, promises, takeovers, virtual_s, steps } = sums;
  const took_s = (Date.now() - begin_ms) / 1000;
  process.stdout.write(
    `${seeds} seeds from ${first}${options.scale === 1 ? "" : ` at scale ${options.scale}`}, ${failures === 0 ? "none" : failures} failed, in ${took_s.toFixed(1)} s: ${jobs} jobs submitted, ${runs} runs, ${requests} requests, ${faults} faults, ${promises} promises,${options.pair ? ` ${takeovers} take-overs,` : ""} ${steps} events, ${Math.round(virtual_s / 3600)} virtual hours\n`,
  );
  return failures === 0 ? 0 : 1;
}

/**
 * Returns the first and last seed, and the time after which no further seed begins. If no seeds are given, they start from
 * the clock, so that every call tests new ones.
 */
function span({ seeds, seconds }: Args): readonly [first: number, last: number, end_ms: number] {
  const [first, last] = seeds ?? [Date.now(), Number.MAX_SAFE_INTEGER];
  if (first === last) return [first, last, Number.POSITIVE_INFINITY];
  return [first, last, Date.now() + (seconds ?? (seeds === undefined ? 10 : 1e9)) * 1000];
}

// The program that reads the output (`... | head`) has closed the pipe.
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

// The report about a failed seed: the last events, the violation, and the command that repeats it.

import { execFileSync } from "node:child_process";
import type { RunResult } from "./run.ts";
import { traceText } from "./world.ts";

/** Returns the report. options: the options of the command line that reduced the scenario, each after a blank. */
export function failureText(result: RunResult, options: string): string {
  const { hosts, queues, setup, policy: _, ...rest } = result.scenario;
  return [
    ...result.trace.map(traceText),
    "",
    `FAILED seed ${result.seed} at step ${result.step}, commit ${commit()}`,
    result.text,
    `scenario: ${JSON.stringify({ hosts: hosts.length, queues: queues.length, setup: setup.length, ...rest })}`,
    `replay: npm run sim -- --seed ${result.seed} --trace${options}`,
    "",
  ].join("\n");
}

function commit(): string {
  try {
    return execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return "unknown";
  }
}

// Simulates one seed from its first to its last event: draws the scenario, carries it out (script.ts), and reports the
// result.

import { stackOf } from "#support/caught.ts";
import { prng } from "#support/prng.ts";
import { Checks } from "./checks/checks.ts";
import { createPromiseCheck } from "./checks/promises.ts";
import { Violation } from "./checks/violation.ts";
import { type Complex, createComplex } from "./complex.ts";
import { judgedScenario } from "./drawn/plan-workload.ts";
import { drawScenario, type Limits, type Scenario } from "./drawn/scenario.ts";
import { type Counts, Script } from "./script.ts";
import { createWorld, START_MS, type TraceLine } from "./world.ts";

export type RunOptions = Limits & {
  /** true: published starts are also checked (checks/promises.ts) */
  readonly promises?: boolean;
  /** number of lines of the trace that are kept for the report of a failure */
  readonly keep: number;
  readonly onLine: ((line: TraceLine) => void) | null;
};

export type RunResult = {
  readonly seed: number;
  readonly ok: boolean;
  readonly text: string;
  readonly step: number;
  readonly trace: readonly TraceLine[];
  readonly scenario: Scenario;
  readonly counts: Counts;
};

export async function runSeed(seed: number, options: RunOptions): Promise<RunResult> {
  const random = prng(seed);
  const world = createWorld(random.split("world"), options.keep, options.onLine);
  const drawn = drawScenario(random.split("scenario"), options);
  const scenario = options.promises === true ? judgedScenario(drawn) : drawn;
  const promises = options.promises === true ? createPromiseCheck(scenario, () => world.wall_ms) : null;
  const checks = new Checks(options.scale, promises?.look);
  const counts: Counts = { jobs: 0, runs: 0, requests: 0, refused: 0, faults: 0, virtual_s: 0, waiting: 0, promises: 0, takeovers: 0 };
  let text = "";
  let ok = true;
  let complex: Complex | null = null;
  try {
    complex = createComplex(world, scenario, checks);
    const script = new Script(complex, checks, counts);
    await script.setUp();
    await script.disturb();
    await script.settle();
  } catch (error) {
    ok = false;
    text = error instanceof Violation ? error.message : stackOf(error);
  }
  counts.jobs = checks.accepted.size;
  counts.takeovers = complex?.pair?.database.takeovers ?? 0;
  counts.promises = promises?.counts.promises ?? 0;
  counts.virtual_s = Math.round((world.now_ms - START_MS) / 1000);
  return { seed, ok, text, step: world.step, trace: world.trace.lines, scenario, counts };
}

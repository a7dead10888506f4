// partita sim --grid FILE: campaigns over simulated clusters with local users (docs/campaigns.md). src/sim/grid computes; this
// file handles files and options.

import { readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { type GridPolicy, POLICY_DEFAULT } from "#grid/cycle/grid-cycle.ts";
import { STRATEGIES, type StrategyName } from "#grid/plan/offers.ts";
import { PREDICTORS, type PredictorName } from "#grid/plan/prediction.ts";
import { parseTrace, TraceError, type TraceJob } from "#replay/trace.ts";
import { gridPicture } from "#sim/grid/grid-picture.ts";
import { type ClusterSpec, type GridScenario, parseScenario, ScenarioError } from "#sim/grid/grid-scenario.ts";
import { GridSim } from "#sim/grid/grid-sim.ts";
import { figuresOf, gridTable } from "#sim/grid/grid-table.ts";
import { AdminError } from "../complex/complex-home.ts";
import type { SimOptions } from "./sim-options.ts";
import { traceText } from "./trace-text.ts";

/** Runs a scenario under each policy, and returns the table (or JSON). tell: called before each run. */
export function simGrid({ grid, predictor, strategy, workload = [], picture, json }: SimOptions, tell: (text: string) => void): string {
  if (grid === undefined) throw new AdminError("--grid: a file");
  const scenario = expected(grid, () => parseScenario(readFileSync(grid, "utf8")));
  const workloads = workloadsOf(scenario, workload, dirname(grid));
  const policies = policiesOf(scenario, predictor, strategy);
  const reports = policies.map((policy) => {
    if (policies.length > 1) tell(`${policy.predictor}, ${policy.strategy}`);
    return new GridSim(scenario, policy, workloads).run();
  });
  if (picture !== undefined) {
    const slots = scenario.clusters.reduce((sum, { resources }) => sum + resources, 0);
    writeFileSync(picture, gridPicture(reports, slots, basename(grid)));
  }
  const rows = reports.map((report) => ({ ...figuresOf(report), campaigns: report.campaigns, clusters: report.clusters }));
  return json ? JSON.stringify(rows.length === 1 ? rows[0] : rows, null, 2) : gridTable(rows);
}

function policiesOf({ flood_rate, canary, copies }: GridScenario, predictors?: string, strategies?: string): GridPolicy[] {
  const chosen = <Name extends string>(option: string, text: string, names: readonly Name[]): Name[] =>
    text.split(",").map((word) => {
      const name = names.find((one) => one === word);
      if (name === undefined) throw new AdminError(`--${option} ${word}: not one of ${names.join(", ")}`);
      return name;
    });
  const by_predictor: readonly PredictorName[] = chosen("predictor", predictors ?? POLICY_DEFAULT.predictor, PREDICTORS);
  const by_strategy: readonly StrategyName[] = chosen("strategy", strategies ?? POLICY_DEFAULT.strategy, STRATEGIES);
  const common = { flood_rate, hasCanary: canary, hasCopies: copies };
  return by_predictor.flatMap((predictor) => by_strategy.map((strategy) => ({ predictor, strategy, ...common })));
}

/** Reads the local jobs of each cluster: the jobs of the workload from day `from_day` on, shifted to time 0. */
function workloadsOf({ clusters, days }: GridScenario, named: readonly string[], directory: string): Map<string, readonly TraceJob[]> {
  const files = new Map(
    named.map((text) => {
      const [, name, file] = /^([^=]+)=(.+)$/.exec(text) ?? [];
      if (name === undefined || file === undefined) throw new AdminError(`--workload ${text}: not NAME=FILE`);
      return [name, file];
    }),
  );
  const texts = new Map<string, string>();
  return new Map(
    clusters.map((cluster) => {
      const { workload } = cluster;
      if (workload === undefined) return [cluster.name, []];
      const file = files.get(workload) ?? resolve(directory, workload);
      const text = texts.get(file) ?? traceText(file);
      texts.set(file, text);
      return [cluster.name, expected(file, () => windowOf(text, cluster, days))];
    }),
  );
}

function windowOf(text: string, { resources, from_day }: ClusterSpec, days: number): TraceJob[] {
  const from_s = from_day * 86_400;
  const jobs = parseTrace(text, resources).filter(({ submit_s }) => submit_s >= from_s && submit_s < from_s + days * 86_400);
  return jobs.map((job) => ({ ...job, submit_s: job.submit_s - from_s }));
}

/** Turns errors in the input into AdminErrors, which are printed without a stack. */
function expected<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof ScenarioError || error instanceof TraceError) throw new AdminError(`${file}: ${error.message}`);
    if (error instanceof Error && "code" in error && error.code === "ENOENT") throw new AdminError(`${file}: there is no such file`);
    throw error;
  }
}

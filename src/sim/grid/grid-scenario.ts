// The file of `partita sim --grid`: clusters with their local users, and campaigns (docs/campaigns.md). Every fault is told with
// its place in the file.

import { z } from "zod";
import type { Campaign } from "#grid/shapes/campaign.ts";

const name = z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, "a name of letters, digits, dots, dashes and underscores");
const positive = z.number().int().positive().max(1e9);
const run = z.union([
  positive,
  z.tuple([positive, positive]).refine(([low, high]) => low <= high, "the first number is larger than the second"),
]);

const cluster = z.strictObject({
  name,
  /** slots of the cluster; a job of a campaign takes as many as it requests */
  resources: positive,
  /** the workload of the local users: the name of a file given by --workload, or none */
  workload: z.string().optional(),
  from_day: z.number().nonnegative().default(0),
  /** run times of campaigns are divided by it */
  speed: z.number().positive().default(1),
  /** best-effort: a local job that needs the slots ends jobs of campaigns. normal: it waits for them */
  grid_jobs: z.enum(["best-effort", "normal"]).default("best-effort"),
  /** users whose campaigns prefer this cluster */
  users: z.array(name).default([]),
});

const campaign = z.strictObject({
  name,
  user: name,
  type: z.enum(["test", "default"]).default("default"),
  submit_s: z.number().int().nonnegative().default(0),
  jobs: positive,
  run_s: run,
  resources: positive.default(1),
  walltime_s: positive.default(86_400),
  max_jobs: positive.optional(),
  clusters: z.array(name).min(1).optional(),
});

const scenario = z.strictObject({
  seed: z.union([z.number(), z.string()]).default(1),
  days: z.number().positive().max(3650).default(30),
  cycle_s: positive.default(60),
  flood_rate: z.number().min(0).max(1).default(0.1),
  canary: z.boolean().default(false),
  copies: z.boolean().default(true),
  clusters: z.array(cluster).min(1).max(1000),
  campaigns: z.array(campaign).min(1).max(10_000),
});

export type GridScenario = z.infer<typeof scenario>;
export type ClusterSpec = GridScenario["clusters"][number];
export type CampaignSpec = GridScenario["campaigns"][number];

/** The error of a file that cannot be used. */
export class ScenarioError extends Error {}

/** Reads the text of a scenario. Throws a ScenarioError that names every fault and its place. */
export function parseScenario(text: string): GridScenario {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new ScenarioError(`not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  const parsed = scenario.safeParse(json);
  if (!parsed.success) {
    const faults = parsed.error.issues.map(({ path, message }) => `${path.length === 0 ? "the file" : path.join(".")}: ${message}`);
    throw new ScenarioError(faults.join("\n"));
  }
  const faults = [...doubleNames(parsed.data), ...unknownClusters(parsed.data), ...tooLarge(parsed.data)];
  if (faults.length > 0) throw new ScenarioError(faults.join("\n"));
  return parsed.data;
}

function* doubleNames({ clusters, campaigns }: GridScenario): Generator<string> {
  for (const [what, all] of [["clusters", clusters] as const, ["campaigns", campaigns] as const]) {
    const seen = new Set<string>();
    for (const [at, one] of all.entries()) {
      if (seen.has(one.name)) yield `${what}.${at}.name: ${one.name} is there twice`;
      seen.add(one.name);
    }
  }
}

function* unknownClusters({ clusters, campaigns }: GridScenario): Generator<string> {
  const known = new Set(clusters.map((one) => one.name));
  for (const [at, { clusters: wanted = [] }] of campaigns.entries())
    for (const one of wanted) if (!known.has(one)) yield `campaigns.${at}.clusters: there is no cluster ${one}`;
}

function* tooLarge({ clusters, campaigns }: GridScenario): Generator<string> {
  for (const [at, one] of campaigns.entries())
    for (const { name: on, resources } of clusters)
      if (one.resources > resources && one.clusters?.includes(on) !== false)
        yield `campaigns.${at}.resources: a job of ${one.resources} does not fit ${on}, which has ${resources}`;
}

/** Returns the campaigns of a scenario as the planner sees them. Their ids are their places in the file, from 1. */
export function campaignsOf({ campaigns, clusters }: GridScenario): Campaign[] {
  return campaigns.map((spec, at) => {
    const on = { resources: spec.resources, walltime_s: spec.walltime_s, jobs_max: spec.max_jobs ?? null };
    const names = spec.clusters ?? clusters.map((one) => one.name);
    return { id: at + 1, user: spec.user, kind: spec.type, clusters: new Map(names.map((one) => [one, on])) };
  });
}

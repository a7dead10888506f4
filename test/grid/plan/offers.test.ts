// Which campaign is offered which cluster, by each strategy.

import assert from "node:assert/strict";
import { test } from "node:test";
import { offersOf, type Standing, type StrategyName } from "#grid/plan/offers.ts";
import type { Campaign, CampaignKind } from "#grid/shapes/campaign.ts";

type Spec = { readonly user?: string; readonly kind?: CampaignKind; readonly clusters: string };

const campaign = (id: number, { user = `u${id}`, kind = "default", clusters }: Spec): Campaign => {
  const on = { resources: 1, walltime_s: 3600, jobs_max: null };
  return { id, user, kind, clusters: new Map(clusters.split(",").map((name) => [name, on])) };
};

/** Returns the offers as text: `1@a+b` is campaign 1 on clusters a and b. */
function offers(strategy: StrategyName, campaigns: readonly Campaign[], standing: Partial<Standing> = {}): string {
  const all = new Set(campaigns.flatMap(({ clusters }) => [...clusters.keys()]));
  const rest = { affinity: () => new Set<string>(), priority: () => 0, userUsage: () => 0, campaignUsage: () => 0, hasResults: () => true };
  return offersOf(strategy, campaigns, { open: all, ...rest, ...standing })
    .map((offer) => `${offer.campaign.id}@${offer.clusters.join("+")}`)
    .join(" ");
}

test("affinity: preferred clusters first, then what is left, in the order of submission", () => {
  const preferred: Readonly<Record<string, readonly string[]>> = { u1: ["cl1"], u2: ["cl1", "cl2"], u3: [] };
  const campaigns = [1, 2, 3].map((id) => campaign(id, { clusters: "cl1,cl2" }));
  assert.equal(offers("affinity", campaigns, { affinity: (user) => new Set(preferred[user]) }), "1@cl1 2@cl1+cl2 1@cl2 3@cl1+cl2");
});

test("fifo: a cluster belongs to the first campaign that wants it", () => {
  assert.equal(offers("fifo", [campaign(1, { clusters: "1,2,3" }), campaign(2, { clusters: "2,4" })]), "1@1+2+3 2@4");
  assert.equal(offers("fifo", [campaign(1, { clusters: "1,2" }), campaign(2, { clusters: "2" })]), "1@1+2");
});

test("test campaigns come first and leave their clusters to others", () => {
  const campaigns = [campaign(1, { clusters: "a,b" }), campaign(2, { clusters: "a", kind: "test" })];
  for (const strategy of ["fifo", "affinity", "fairshare"] as const) assert.equal(offers(strategy, campaigns), "2@a 1@a+b", strategy);
});

test("priority of users; closed clusters; usage; first jobs early", () => {
  const campaigns = [campaign(1, { clusters: "a,b" }), campaign(2, { clusters: "a" }), campaign(3, { clusters: "b" })];
  assert.equal(offers("fifo", campaigns, { priority: (user) => (user === "u2" ? 1 : 0) }), "2@a 1@b");
  assert.equal(offers("fifo", campaigns, { open: new Set(["b"]) }), "1@b");
  const userUsage = (user: string): number => ({ u1: 50, u2: 10, u3: 30 })[user] ?? 0;
  assert.equal(offers("fairshare", campaigns, { userUsage }), "2@a 3@b 1@a+b");
  const own = [1, 2].map((id) => campaign(id, { user: "u", clusters: "a" }));
  assert.equal(offers("fairshare", own, { campaignUsage: ({ id }) => 10 - id }), "2@a 1@a");
  assert.equal(offers("fairshare", campaigns, { userUsage, hasResults: ({ id }) => id !== 1 }), "1@a+b 2@a 3@b");
});

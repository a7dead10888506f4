// How many jobs an offer becomes, which jobs are copied, which are taken back, and when a campaign will end.

import assert from "node:assert/strict";
import { test } from "node:test";
import { takenBack } from "#grid/plan/excess.ts";
import { endOf } from "#grid/plan/forecast.ts";
import { type Launch, type LaunchPolicy, launchesOf } from "#grid/plan/launches.ts";
import { newTap } from "#grid/plan/tap.ts";
import type { CampaignKind } from "#grid/shapes/campaign.ts";
import type { CampaignView, LiveJob, PairView } from "#grid/shapes/universe.ts";

const live = (id: number, task: number, started_s: number | null = null, submitted_s = 0): LiveJob => ({
  id,
  task,
  submitted_s,
  started_s,
});
const pair = (more: Partial<PairView> = {}): PairView => ({
  ...{
    ratio: 1,
    batch: null,
    tap: newTap(),
    waiting: [],
    running: [],
    batch_running: 0,
    batch_started: 0,
    results: 20,
    results_run_s: 2000,
  },
  ...more,
});

type Spec = {
  readonly left: number;
  readonly kind?: CampaignKind;
  readonly jobs_max?: number | null;
  readonly pairs: Readonly<Record<string, PairView>>;
};
const view = (id: number, { left, kind = "default", jobs_max = null, pairs }: Spec): CampaignView => {
  const on = { resources: 1, walltime_s: 3600, jobs_max };
  const clusters = new Map(Object.keys(pairs).map((name) => [name, on]));
  return { campaign: { id, user: "u", kind, clusters }, tasks_left: left, pairs: new Map(Object.entries(pairs)) };
};

function launches(
  campaigns: readonly CampaignView[],
  free: Readonly<Record<string, number>>,
  policy: Partial<LaunchPolicy> = {},
): Launch[] {
  const clusters = new Map(Object.entries(free).map(([name, slots]) => [name, { name, resources: 64, free: slots, isOpen: true }]));
  const offers = campaigns.map(({ campaign }) => ({ campaign, clusters: [...campaign.clusters.keys()] }));
  return launchesOf(offers, { now_s: 1000, clusters, campaigns }, { predictor: "two-way", hasCanary: false, hasCopies: true, ...policy });
}
const text = (all: readonly Launch[]): string =>
  all
    .map(({ campaign, cluster, jobs, copies }) => `${campaign}@${cluster}:${jobs}${copies.length > 0 ? `+${copies.join(",")}` : ""}`)
    .join(" ");

test("free resources of a cluster are shared in the order of offers", () => {
  const two = [view(1, { left: 10, pairs: { a: pair() } }), view(2, { left: 100, pairs: { a: pair() } })];
  assert.equal(text(launches(two, { a: 30 })), "1@a:10 2@a:20");
  const wide = [view(1, { left: 5, pairs: { a: pair({ ratio: 0.25 }) } }), view(2, { left: 100, pairs: { a: pair() } })];
  assert.equal(text(launches(wide, { a: 30 })), "1@a:5 2@a:10");
  assert.equal(text(launches(two, { a: 0 })), "");
});

test("max_jobs, canary and tap bound a launch", () => {
  const running = [live(1, 0, 10), live(2, 1, 10)];
  assert.equal(text(launches([view(1, { left: 99, jobs_max: 5, pairs: { a: pair({ running }) } })], { a: 30 })), "1@a:3");
  const canary = (results: number): string =>
    text(launches([view(1, { left: 99, pairs: { a: pair({ results }) } })], { a: 30 }, { hasCanary: true }));
  assert.deepEqual([0, 1, 9, 10].map(canary), ["1@a:1", "1@a:10", "1@a:10", "1@a:30"]);
  const tap = { rate: 7, closed_s: null, submitted: 0 };
  assert.equal(text(launches([view(1, { left: 99, pairs: { a: pair({ tap }) } })], { a: 0 }, { predictor: "tap" })), "1@a:7");
});

test("a test campaign tries each cluster once", () => {
  const fresh = { results: 0, results_run_s: 0 };
  const pairs = { a: pair(fresh), b: pair({ ...fresh, waiting: [live(1, 0)] }), c: pair() };
  assert.equal(text(launches([view(1, { left: 3, kind: "test", pairs })], { a: 9, b: 9, c: 9 })), "1@a:1");
});

test("the last jobs are copied, the oldest first, never more than two of a task, none beside its waiting twin", () => {
  const a = pair({ running: [live(1, 0, 500), live(2, 1, 300)], waiting: [live(3, 2, null, 900)] });
  const b = pair({ running: [live(4, 0, 600)] });
  assert.equal(text(launches([view(1, { left: 0, pairs: { a, b } })], { a: 0, b: 9 })), "1@b:0+1,2");
  assert.equal(text(launches([view(1, { left: 0, pairs: { a, b } })], { a: 9, b: 0 })), "1@a:0+1");
  assert.equal(text(launches([view(1, { left: 0, pairs: { a, b } })], { a: 0, b: 9 }, { hasCopies: false })), "");
});

test("a task is copied once in a cycle, whatever number of clusters has room for it", () => {
  const a = pair({ running: [live(1, 0, 500), live(2, 1, 600)] });
  assert.equal(text(launches([view(1, { left: 0, pairs: { a, b: pair(), c: pair() } })], { a: 0, b: 1, c: 9 })), "1@b:0+0 1@c:0+1");
});

test("a job that runs three times the median is copied although tasks are left", () => {
  const running = [live(1, 0, 600), live(2, 1, 800)];
  assert.equal(text(launches([view(1, { left: 2, pairs: { a: pair({ running }) } })], { a: 9 })), "1@a:2+0");
});

test("jobs that wait too long or beyond the allowance are taken back, the newest first", () => {
  const waiting = [live(1, 0, null, 50), live(2, 1, null, 900), live(3, 2, null, 950), live(4, 3, null, 960)];
  const back = takenBack(waiting, 1, 1000).map(({ job, why }) => `${job.id} ${why}`);
  assert.deepEqual(back, ["4 excess", "3 excess", "1 too old"]);
  assert.deepEqual(takenBack(waiting.slice(1), 3, 1000), []);
});

test("the end of a campaign: by the mean run time while it is young, then by throughput", () => {
  const progress = { begun_s: 0, now_s: 100, remaining: 50, running: 10, mean_s: 60, ended_in_window: 7 };
  assert.equal(endOf(progress), 100 + (50 * 60) / 10);
  assert.equal(endOf({ ...progress, now_s: 7200, ended_in_window: 36 }), 7200 + 50 / (36 / 3600));
  assert.equal(endOf({ ...progress, mean_s: 0 }), null);
  assert.equal(endOf({ ...progress, now_s: 7200, ended_in_window: 0 }), null);
  assert.equal(endOf({ ...progress, remaining: 0 }), 100);
});

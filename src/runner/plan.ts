// Computes how many runners of each bucket are wanted, and which backend is asked for them. Pure: the plan follows from the present picture alone, never from
// earlier plans.
//
// P1. A backend never has more than max_runners runners, including those that have not connected yet; of each bucket, at most n_max_queued_jobs runners have not
//     connected.
// P2. A bucket wants a runner for each waiting and each running job. If all buckets together want more than there may be, runners are dealt out one by one, the
//     bucket with the highest priority first, so that no bucket is left without one because of the size of another. Among buckets of the same priority, the owners
//     of the jobs take turns.
// P3. Runners beyond that number are cancelled if they have not connected yet. Connected ones are drained only if another bucket waits for their place; otherwise
//     they leave by themselves.
// P4. A bucket that no backend can run takes no place from the others. When it is tried again, it gets the next place that is left, but nobody gives up a runner for it.

import { type Bucket, inTurns } from "#model/request/bucket.ts";
import type { Demand, RunnerWork } from "#protocol/runner-link.ts";

export type PlanBackend = {
  readonly name: string;
  readonly partition: string;
  readonly enabled: boolean;
  readonly max_runners: number;
  readonly n_max_queued: number;
  /** keys of buckets that it cannot run */
  readonly refused: ReadonlySet<string>;
  /** false: it is not asked now, because it failed a moment ago */
  readonly asks: boolean;
};

export type PlanInput = {
  readonly backends: readonly PlanBackend[];
  readonly demands: readonly Demand[];
  readonly runners: readonly RunnerWork[];
};

export type Plan = {
  readonly asks: readonly { readonly backend: string; readonly bucket: Bucket; readonly count: number; readonly priority: number }[];
  /** names of runners that have not connected and are not wanted any more */
  readonly cancels: readonly string[];
  /** names of runners that take no further job */
  readonly drains: readonly string[];
};

export function planOf({ backends, demands, runners }: PlanInput): Plan {
  const asks: Plan["asks"][number][] = [];
  const cancels: string[] = [];
  const drains: string[] = [];
  const partitionOf = new Map(backends.map(({ name, partition }) => [name, partition]));
  for (const partition of new Set(backends.map((backend) => backend.partition))) {
    const part = planPartition({
      backends: backends.filter((backend) => backend.partition === partition),
      demands: demands.filter((demand) => demand.partition === partition),
      runners: runners.filter(({ backend }) => partitionOf.get(backend) === partition),
    });
    asks.push(...part.asks);
    cancels.push(...part.cancels);
    drains.push(...part.drains);
  }
  return { asks, cancels, drains };
}

/** What is known of a bucket. useful: its runners that take jobs. */
type Line = {
  readonly bucket: Bucket;
  readonly priority: number;
  readonly useful: RunnerWork[];
  readonly isTrial: boolean;
  wanted: number;
  target: number;
};

const isUseful = ({ doing, draining }: RunnerWork): boolean => doing !== "lost" && draining !== true;

function planPartition({ backends, demands, runners }: PlanInput): Plan {
  const enabled = backends.filter((backend) => backend.enabled);
  const counts = new Map(backends.map(({ name }) => [name, runners.filter(({ backend }) => backend === name).length]));
  const lines = linesOf(
    demands.filter(({ bucket }) => enabled.some(({ refused }) => !refused.has(bucket.key))),
    runners,
  );
  const places = enabled.reduce((sum, { max_runners }) => sum + max_runners, 0) - runners.filter((runner) => !isUseful(runner)).length;
  deal(lines, places);
  const trials = lines.filter(({ isTrial, useful }) => isTrial && useful.length === 0).length;
  const cancels = lines.flatMap((line) => surplusOf(line, trials));
  const asks: Plan["asks"][number][] = [];
  let starved = 0;
  for (const line of lines) {
    let missing = line.target - line.useful.length;
    for (const backend of enabled) {
      if (missing <= 0) break;
      const count = Math.min(missing, roomAt(backend, line, counts.get(backend.name) ?? 0));
      if (count <= 0) continue;
      asks.push({ backend: backend.name, bucket: line.bucket, count, priority: line.priority });
      counts.set(backend.name, (counts.get(backend.name) ?? 0) + count);
      missing -= count;
    }
    if (missing > 0 && !line.isTrial && enabled.some(({ name, max_runners }) => (counts.get(name) ?? 0) >= max_runners)) starved += missing;
  }
  const leaving = cancels.length + runners.filter(({ draining }) => draining === true).length;
  return { asks, cancels, drains: drainsOf(lines, starved - leaving) };
}

function linesOf(demands: readonly Demand[], runners: readonly RunnerWork[]): Line[] {
  const lines = new Map<string, Line>();
  for (const { bucket, ready, priority, trial = false } of demands)
    lines.set(bucket.key, { bucket, priority, useful: [], isTrial: trial, wanted: ready, target: 0 });
  for (const runner of runners) {
    if (!isUseful(runner)) continue;
    const { bucket } = runner;
    let line = lines.get(bucket.key);
    if (line === undefined) lines.set(bucket.key, (line = { bucket, priority: 0, useful: [], isTrial: false, wanted: 0, target: 0 }));
    line.useful.push(runner);
    if (runner.doing === "busy") line.wanted++;
  }
  return inTurns([...lines.values()]);
}

/** Deals the places out (P2): every line gets the same number, unless it wants less; what is left over goes to the first lines. */
function deal(lines: readonly Line[], places: number): void {
  let left = Math.max(0, places);
  let open = lines.filter(({ wanted }) => wanted > 0);
  while (left > 0 && open.length > 0) {
    const each = Math.max(1, Math.floor(left / open.length));
    for (const line of open) {
      const given = Math.min(each, line.wanted - line.target, left);
      line.target += given;
      left -= given;
    }
    open = open.filter(({ wanted, target }) => target < wanted);
  }
}

/** Returns the runners of a line that are cancelled: some that have not connected, the newest first. spared: how many stay although others want their places (P4). */
function surplusOf({ useful, wanted, target }: Line, spared: number): string[] {
  const asked = useful.filter(({ doing }) => doing === "asked").sort((a, b) => b.serial - a.serial || b.index - a.index);
  return asked.slice(0, Math.max(0, useful.length - Math.max(target, Math.min(wanted, target + spared)))).map(({ name }) => name);
}

function roomAt({ asks, refused, max_runners, n_max_queued, name }: PlanBackend, { bucket, useful }: Line, count: number): number {
  if (!asks || refused.has(bucket.key)) return 0;
  const queued = useful.filter(({ backend, doing }) => backend === name && doing === "asked").length;
  return Math.min(max_runners - count, n_max_queued - queued);
}

/** Returns the connected runners that are drained to make room for `starved` others (P3): idle ones first. */
function drainsOf(lines: readonly Line[], starved: number): string[] {
  let wanted = starved;
  const drains: string[] = [];
  for (const { useful, target } of lines) {
    const connected = useful.filter(({ doing }) => doing !== "asked");
    const beyond = Math.min(connected.length - target, wanted);
    if (beyond <= 0) continue;
    connected.sort((a, b) => Number(a.doing === "busy") - Number(b.doing === "busy"));
    for (const { name } of connected.slice(0, beyond)) drains.push(name);
    wanted -= beyond;
  }
  return drains;
}

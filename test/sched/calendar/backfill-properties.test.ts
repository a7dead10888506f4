// Random clusters, jobs and reservations on a virtual clock under strict_ordering: plans fit at every future moment, a
// published start moves back only because of preceding work, and a job that nothing blocks runs.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SchedJob, SchedResv } from "#protocol/sched-link.ts";
import { createUniverse } from "#sched/mirror/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import type { Prng } from "#support/prng.ts";
import { prng } from "#support/prng.ts";
import { describeUniverse } from "../describe.ts";
import type { Node, ResvWorld } from "../resv/resv-world.ts";
import { check, createWorld, endJob, endOf, goTo, nextTime, putJob, putResv, schedule, spotsOf, tellNodes } from "../resv/resv-world.ts";
import { book, jobOf } from "../world.ts";

const WORLDS = Number(process.env["PARTITA_SEEDS"] ?? 40);
const STEPS = 40;
const USERS = ["alice", "bob"];
const CONS = { module_options: new Map([["backfill", new Map([["policy", "cons"]])]]) };

/** cons: plans are kept, for every job. run: max_run of each user */
type Limits = { readonly depth: number; readonly run: number | null; readonly cons: boolean };

test("plans fit at every moment, no start moves back for lower work, nothing waits without need", () => {
  const seen = { plans: 0, slides: 0, backfilled: 0, improved: 0 };
  for (let seed = 1; seed <= WORLDS; seed++) {
    const random = prng(`backfill ${seed}`);
    const limits: Limits = { depth: random.int(1, 4), run: random.chance(0.3) ? random.int(1, 3) : null, cons: random.chance(0.25) };
    const policy = { strict_ordering: true, resources: new Set(["ncpus", "mem", "host", "vnode"]) };
    const server = {
      ...(limits.cons ? {} : { backfill_depth: limits.depth }),
      ...(limits.run === null ? {} : { max_run: { "u:PBS_GENERIC": limits.run } }),
    };
    const world = createWorld(randomNodes(random), book(policy, limits.cons ? CONS : {}), { server, sched: { opt_backfill_fuzzy: "off" } });
    try {
      for (let step = 0; step < STEPS; step++) randomStep(random, world, { step, limits, seen });
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
  }
  // Ensures that the worlds contain enough events.
  assert.ok(seen.plans > 20 * WORLDS && seen.backfilled > WORLDS && seen.improved > 10, JSON.stringify(seen));
});

type Step = {
  readonly step: number;
  readonly limits: Limits;
  readonly seen: { plans: number; slides: number; backfilled: number; improved: number };
};

function randomStep(random: Prng, world: ResvWorld, { step, limits, seen }: Step): void {
  const before = published(world);
  const kind = random.int(0, 9);
  let disturbed = false;
  if (kind <= 4) for (let count = random.int(1, 3); count > 0; count--) putJob(world, randomJob(random, world, `${step}${count}`));
  else if (kind === 5) disturbed = askResv(random, world, step);
  else if (kind === 6) disturbed = loseSome(random, world);
  else if (kind === 7) endSome(random, world);
  look(world, { before, disturbed, limits, seen });
  const planned = published(world);
  if (kind > 7 || random.chance(0.4)) goTo(world, Math.min(nextTime(world), nextStart(planned), world.now_s + random.int(1, 40)));
  look(world, { before: planned, disturbed: false, limits, seen });
}

type Look = { readonly before: Map<string, Published>; readonly disturbed: boolean; readonly limits: Limits; readonly seen: Step["seen"] };

/** Runs a cycle and checks the result. disturbed: vnodes or reservations have changed since `before` was published. */
function look(world: ResvWorld, { before, disturbed, limits, seen }: Look): void {
  const started = schedule(world).decisions.flatMap((decision) => (decision.kind === "run" ? [decision.job] : []));
  check(world);
  const after = published(world);
  seen.plans += after.size;
  if (started.some((id) => [...after].some(([top]) => rankOf(world, top) < rankOf(world, id)))) seen.backfilled++;
  if (!limits.cons) checkDepth(after, limits);
  checkPlans(world);
  if (limits.run !== null) checkRuns(world, limits.run);
  for (const [id, { start_s }] of after) {
    const old = before.get(id);
    if (old === undefined) continue;
    if (start_s < old.start_s) seen.improved++;
    if (start_s <= old.start_s) continue;
    seen.slides++;
    const excuse = disturbed || (!limits.cons && higherChanged(world, id, { before, after }));
    assert.ok(excuse, `${id} was to start at ${old.start_s}, now at ${start_s}, and nothing before it has changed`);
  }
  // Kept plans move up one after the other: space left by a later plan goes to an earlier one when something is next released.
  if (!limits.cons) checkNobodyIdle(world, limits);
  const fresh = createUniverse({ ...snapshotOf(world), revision: world.universe.revision }, mirrorOptions(world.book));
  assert.deepEqual(describeUniverse(world.universe), describeUniverse(fresh));
}

const nextStart = (plans: ReadonlyMap<string, Published>): number => Math.min(...[...plans.values()].map(({ start_s }) => start_s));

type Published = { readonly start_s: number; readonly exec_vnode: string };

function published({ jobs }: ResvWorld): Map<string, Published> {
  const all = new Map<string, Published>();
  for (const { id, topjob, estimated } of jobs.values())
    if (topjob === true && estimated?.start_time !== undefined)
      all.set(id, { start_s: estimated.start_time, exec_vnode: estimated.exec_vnode ?? "" });
  return all;
}

const rankOf = ({ jobs }: ResvWorld, id: string): number => jobs.get(id)?.rank ?? Number.POSITIVE_INFINITY;

/** A preceding job arrived, ended, or is planned differently. */
function higherChanged(
  world: ResvWorld,
  id: string,
  { before, after }: { readonly before: Map<string, Published>; readonly after: Map<string, Published> },
): boolean {
  const rank = rankOf(world, id);
  for (const [other, plan] of before) {
    if (other === id || Number(other.split(".")[0]) >= rank) continue;
    const now = after.get(other);
    const runs = world.jobs.get(other);
    const asPlanned = runs?.state === "R" && runs.stime_s === plan.start_s && runs.exec_vnode === plan.exec_vnode;
    if (!asPlanned && (now === undefined || now.start_s !== plan.start_s || now.exec_vnode !== plan.exec_vnode)) return true;
  }
  for (const other of world.jobs.values()) if (other.rank < rank && !before.has(other.id) && other.qtime_s === world.now_s) return true;
  for (const other of world.jobs.values()) if (other.rank < rank && !before.has(other.id) && other.stime_s === world.now_s) return true;
  for (const other of after.keys()) if (rankOf(world, other) < rank && !before.has(other)) return true;
  return false;
}

function checkDepth(plans: ReadonlyMap<string, Published>, { depth }: Limits): void {
  assert.ok(plans.size <= depth, `${plans.size} top jobs with depth ${depth}`);
}

type Interval = { readonly id: string; readonly user: string; readonly from_s: number; readonly to_s: number; readonly exec_vnode: string };

/** Running and planned jobs, with their longest durations. */
function intervals({ jobs, now_s }: ResvWorld): Interval[] {
  return [...jobs.values()].flatMap((job): Interval[] => {
    const length_s = Number(job.resources["walltime"]);
    const { id, user } = job;
    if (job.state === "R") return [{ id, user, from_s: now_s, to_s: endOf(job), exec_vnode: job.exec_vnode ?? "" }];
    if (job.topjob !== true || job.estimated?.start_time === undefined) return [];
    const from_s = job.estimated.start_time;
    return [{ id, user, from_s, to_s: from_s + length_s, exec_vnode: job.estimated.exec_vnode ?? "" }];
  });
}

/** No vnode gives more than it has if everything happens as planned. */
function checkPlans(world: ResvWorld): void {
  const all = intervals(world);
  for (const resv of world.resvs.values())
    for (const { start_s, end_s, place } of resv.held)
      all.push({ id: resv.id, user: "", from_s: start_s, to_s: end_s, exec_vnode: resv.places[place] ?? "" });
  for (const node of world.nodes) {
    for (const { from_s: at_s } of all) {
      if (at_s < world.now_s) continue;
      const there = all.filter(({ from_s, to_s }) => from_s <= at_s && at_s < to_s);
      const cpus = sumOn(there, node.name, "ncpus");
      assert.ok(cpus <= node.ncpus, `${node.name} at ${at_s}: ${there.map(({ id }) => id).join(" ")} need ${cpus} of ${node.ncpus} cpus`);
      assert.ok(sumOn(there, node.name, "mem") <= node.mem_kb, `${node.name} at ${at_s}: too little memory`);
    }
  }
}

function sumOn(all: readonly Interval[], vnode: string, amount: "ncpus" | "mem"): number {
  let sum = 0;
  for (const { exec_vnode } of all) for (const spot of spotsOf(exec_vnode)) if (spot.vnode === vnode) sum += spot.taken[amount];
  return sum;
}

/** No plan exceeds its owner's limit. */
function checkRuns(world: ResvWorld, most: number): void {
  const all = intervals(world);
  for (const { from_s: at_s } of all) {
    for (const user of USERS) {
      const there = all.filter((one) => one.user === user && one.from_s <= at_s && at_s < one.to_s);
      assert.ok(there.length <= most, `${user} would have ${there.length} jobs at ${at_s}: ${there.map(({ id }) => id).join(" ")}`);
    }
  }
}

/** No waiting job has a place now that is free of running jobs, reservations and the plans of preceding jobs. */
function checkNobodyIdle(world: ResvWorld, { run }: Limits): void {
  for (const job of world.jobs.values()) {
    if (job.state !== "Q") continue;
    const others = intervals(world).filter(({ id }) => world.jobs.get(id)?.state === "R" || rankOf(world, id) < job.rank);
    if (run !== null && others.filter(({ user }) => user === job.user).length >= run) continue;
    const length_s = Number(job.resources["walltime"]);
    for (const resv of world.resvs.values())
      for (const { start_s, end_s, place } of resv.held)
        others.push({ id: resv.id, user: "", from_s: Math.max(start_s, world.now_s), to_s: end_s, exec_vnode: resv.places[place] ?? "" });
    const inTheWay = others.filter(({ from_s, to_s }) => from_s < world.now_s + length_s && to_s > world.now_s);
    assert.ok(!fitsNow(world, job, inTheWay), `${job.id} waits although nothing is in its way`);
  }
}

/** Jobs of this test request one kind of chunk. */
function fitsNow(world: ResvWorld, job: SchedJob, others: readonly Interval[]): boolean {
  const [, count = "", cpus = "", mem = "0"] = /^(\d+):ncpus=(\d+)(?::mem=(\d+)mb)?$/.exec(job.schedselect) ?? [];
  let copies = 0;
  for (const node of world.nodes) {
    if (!node.up) continue;
    const moments = [world.now_s, ...others.map(({ from_s }) => Math.max(from_s, world.now_s))];
    const peak = (amount: "ncpus" | "mem"): number =>
      Math.max(
        ...moments.map((at_s) =>
          sumOn(
            others.filter(({ from_s, to_s }) => from_s <= at_s && at_s < to_s),
            node.name,
            amount,
          ),
        ),
      );
    const here = Math.min(
      Math.floor((node.ncpus - peak("ncpus")) / Number(cpus)),
      Number(mem) === 0 ? Number.POSITIVE_INFINITY : Math.floor((node.mem_kb - peak("mem")) / (Number(mem) * 1024)),
    );
    copies += job.place === "scatter" ? Math.min(1, here) : here;
  }
  return copies >= Number(count);
}

// --- worlds

function randomNodes(random: Prng): Node[] {
  return Array.from({ length: random.int(1, 5) }, (_, at) => ({
    name: `n${at}`,
    host: `n${at}`,
    ncpus: random.int(1, 6),
    mem_kb: random.int(2, 8) * 1024,
    up: true,
  }));
}

let last = 0;
/** Ids begin with the rank, so some jobs precede existing ones. */
function randomJob(random: Prng, world: ResvWorld, id: string): SchedJob {
  last++;
  const rank = random.chance(0.2) ? last - random.int(1, 20) + random.int(1, 99) / 100 : last;
  const mem = random.chance(0.4) ? `:mem=${random.int(1, 3)}mb` : "";
  const text = `${rank}.${id} ${random.int(1, 3)}:ncpus=${random.int(1, 3)}${mem} ${random.pick(["free", "free", "scatter"])} walltime=${random.int(1, 80)} u=${random.pick(USERS)}`;
  return { ...jobOf(text, rank), qtime_s: world.now_s };
}

/** Returns true if the reservation was confirmed. */
function askResv(random: Prng, world: ResvWorld, step: number): boolean {
  const start_s = world.now_s + random.int(0, 60);
  const occurrences = [{ start_s, end_s: start_s + random.int(5, 40) }];
  const attrs = { queue: `R${step}`, schedselect: `1:ncpus=${random.int(1, 3)}`, Resource_List: { place: "free" } };
  const resv: SchedResv = {
    id: `R${step}`,
    attrs,
    running: false,
    held: [],
    places: [],
    ask: { kind: "confirm", asked_s: world.now_s, occurrences },
  };
  putResv(world, resv);
  const before = published(world);
  schedule(world);
  // A new reservation does not break starts published before it.
  for (const [id, { start_s: then_s }] of before) {
    const job = world.jobs.get(id);
    if (job?.state === "Q" && job.topjob === true) assert.ok((job.estimated?.start_time ?? 0) <= then_s, `${id} moved for a reservation`);
  }
  return (world.resvs.get(resv.id)?.held.length ?? 0) > 0;
}

function loseSome(random: Prng, world: ResvWorld): boolean {
  const node = random.pick(world.nodes);
  node.up = !node.up;
  for (const job of [...world.jobs.values()])
    if (!node.up && job.state === "R" && job.exec_vnode?.includes(`${node.name}:`)) endJob(world, job.id);
  tellNodes(world);
  return true;
}

function endSome(random: Prng, world: ResvWorld): void {
  const running = [...world.jobs.values()].filter(({ state }) => state === "R");
  if (running.length > 0) endJob(world, random.pick(running).id);
}

function snapshotOf({ universe }: ResvWorld) {
  const { server, sched, resources, nodes, jobs } = universe;
  return {
    server,
    sched,
    resources: [...resources.values()],
    queues: [...universe.queues.values()].sort((a, b) => a.order - b.order).map(({ name, order, attrs }) => ({ name, order, attrs })),
    nodes: [...nodes.values()],
    jobs: [...jobs.values()],
    resvs: [...universe.resvs.values()].map(({ source }) => source),
  };
}

// Random clusters, jobs and reservations on a virtual clock: no reservation is broken, nothing is oversubscribed at any moment,
// and every promise is kept.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SchedJob, SchedResv } from "#protocol/sched-link.ts";
import { createUniverse } from "#sched/mirror/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import type { Prng } from "#support/prng.ts";
import { prng } from "#support/prng.ts";
import { describeUniverse } from "../describe.ts";
import { book, jobOf } from "../world.ts";
import type { Node, ResvWorld } from "./resv-world.ts";
import { check, createWorld, endJob, goTo, nextTime, putJob, putResv, schedule } from "./resv-world.ts";

const WORLDS = 25;
const STEPS = 40;

test("no reservation is broken, nothing is oversubscribed, a standing reservation keeps all its occurrences", () => {
  const told = new Map<string, number>();
  for (let seed = 1; seed <= WORLDS; seed++) {
    const random = prng(seed);
    const policy = { strict_ordering: random.chance(0.4), resources: new Set(["ncpus", "mem", "host", "vnode"]) };
    const world = createWorld(randomNodes(random), book(policy));
    try {
      for (let step = 0; step < STEPS; step++) randomStep(random, world, step);
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
    for (const answer of world.told) told.set(answer, (told.get(answer) ?? 0) + 1);
  }
  // Ensures that the worlds contain enough events: every kind of question gets both answers.
  for (const answer of ["confirm yes", "confirm no", "alter yes", "alter no", "reconfirm yes", "reconfirm no"])
    assert.ok((told.get(answer) ?? 0) > 3, `${answer}: ${told.get(answer)}`);
});

function randomStep(random: Prng, world: ResvWorld, step: number): void {
  const kind = random.int(0, 9);
  if (kind <= 3) for (let count = random.int(1, 3); count > 0; count--) putJob(world, randomJob(random, world, `${step}${count}`, step));
  else if (kind <= 5) ask(world, randomResv(random, world, step));
  else if (kind === 6) alterSome(random, world);
  else if (kind === 7) loseSome(random, world);
  else if (kind === 8) endSome(random, world);
  else goTo(world, Math.min(nextTime(world), world.now_s + random.int(1, 60)));
  const before = promises(world);
  schedule(world);
  check(world);
  // Reservations without a question have not changed.
  for (const [id, promise] of promises(world)) if (before.has(id)) assert.equal(promise, before.get(id));
  const fresh = { ...snapshotOf(world), revision: world.universe.revision };
  assert.deepEqual(describeUniverse(world.universe), describeUniverse(createUniverse(fresh, mirrorOptions(world.book))));
  if (random.chance(0.5)) goTo(world, Math.min(nextTime(world), world.now_s + random.int(1, 60)));
  check(world);
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

/** Reservations without a question, and what they hold. */
function promises({ resvs }: ResvWorld): Map<string, string> {
  return new Map(
    [...resvs.values()].filter((resv) => resv.ask === undefined).map(({ id, held, places }) => [id, JSON.stringify([held, places])]),
  );
}

/** The holdings of a reservation survive a question, whatever the answer; a new reservation is confirmed as a whole. */
function ask(world: ResvWorld, resv: SchedResv): void {
  putResv(world, resv);
  schedule(world);
  const after = world.resvs.get(resv.id);
  if (resv.ask?.kind === "confirm" && after !== undefined) {
    const asked = resv.ask.occurrences;
    if (asked.length > 0)
      assert.deepEqual(
        after.held.map(({ start_s, end_s }) => ({ start_s, end_s })),
        asked,
      );
    else assert.equal(after.held.length, 1);
  }
  if (resv.ask?.kind !== "confirm") assert.equal(after?.held.length, resv.held.length);
  check(world);
}

function randomNodes(random: Prng): Node[] {
  return Array.from({ length: random.int(1, 5) }, (_, at) => ({
    name: `n${at}`,
    host: random.chance(0.3) ? "h" : `n${at}`,
    ncpus: random.int(1, 6),
    mem_kb: random.int(2, 8) * 1024,
    up: true,
  }));
}

const randomSelect = (random: Prng): string =>
  Array.from(
    { length: random.int(1, 2) },
    () => `${random.int(1, 2)}:ncpus=${random.int(1, 3)}${random.chance(0.4) ? `:mem=${random.int(1, 3)}mb` : ""}`,
  ).join("+");
const randomPlace = (random: Prng): string =>
  random.pick(["free", "free", "pack", "scatter", "free:excl", "scatter:excl", "free:exclhost"]);

function randomJob(random: Prng, world: ResvWorld, id: string, rank: number): SchedJob {
  const resvs = [...world.resvs.values()].filter(({ held }) => held.length > 0);
  const inside = resvs.length > 0 && random.chance(0.4) ? random.pick(resvs).id : undefined;
  const text = `${id} ${randomSelect(random)} ${randomPlace(random)} walltime=${random.int(1, 80)}${inside === undefined ? "" : ` in=${inside}`}`;
  return { ...jobOf(text, rank), qtime_s: world.now_s };
}

function randomResv(random: Prng, world: ResvWorld, step: number): SchedResv {
  const length_s = random.int(5, 40);
  const count = random.chance(0.3) ? random.int(2, 4) : random.chance(0.2) ? 0 : 1;
  const start_s = world.now_s + random.int(0, 60);
  const occurrences = Array.from({ length: count }, (_, at) => ({ start_s: start_s + at * 60, end_s: start_s + at * 60 + length_s }));
  const id = `${count > 1 ? "S" : "R"}${step}`;
  const attrs = { queue: id, schedselect: randomSelect(random), Resource_List: { place: randomPlace(random) } };
  const soon = count === 0 ? { duration_s: length_s } : {};
  return { id, attrs, running: false, held: [], places: [], ask: { kind: "confirm", asked_s: world.now_s, occurrences, ...soon } };
}

const askedNothing = (world: ResvWorld): SchedResv[] =>
  [...world.resvs.values()].filter((resv) => resv.held.length > 0 && resv.ask === undefined);

function alterSome(random: Prng, world: ResvWorld): void {
  const resvs = askedNothing(world);
  if (resvs.length === 0) return;
  const resv = random.pick(resvs);
  const [first, second] = resv.held;
  if (first === undefined) return;
  const start_s = resv.running ? first.start_s : Math.max(world.now_s, first.start_s + random.int(-10, 10));
  const end_s = Math.min(Math.max(start_s, world.now_s) + random.int(1, 80), second?.start_s ?? Number.POSITIVE_INFINITY);
  if (end_s <= Math.max(start_s, world.now_s)) return;
  ask(world, { ...resv, ask: { kind: "alter", asked_s: world.now_s, occurrences: [{ start_s, end_s }] } });
}

/** A vnode goes down or comes back; the scheduler is asked about reservations on vnodes that are down. */
function loseSome(random: Prng, world: ResvWorld): void {
  const node = random.pick(world.nodes);
  node.up = !node.up;
  for (const job of [...world.jobs.values()])
    if (!node.up && job.state === "R" && job.exec_vnode?.includes(`${node.name}:`)) endJob(world, job.id);
  const down = world.nodes.filter(({ up }) => !up).map(({ name }) => `${name}:`);
  for (const resv of askedNothing(world)) {
    const lost = resv.held.filter(({ place }) => down.some((name) => resv.places[place]?.includes(name)));
    if (lost.length === 0) continue;
    const occurrences = lost.map(({ start_s, end_s }) => ({ start_s, end_s }));
    ask(world, { ...resv, ask: { kind: "reconfirm", asked_s: world.now_s, occurrences } });
  }
}

function endSome(random: Prng, world: ResvWorld): void {
  const running = [...world.jobs.values()].filter(({ state }) => state === "R");
  if (running.length > 0) endJob(world, random.pick(running).id);
}

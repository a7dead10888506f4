// A published start is a promise: in random worlds it moves back only for work that precedes the job in the order, for
// reservations, for lost vnodes, for an administrator's command, or for a job that runs past its walltime and kill_delay. To
// test 100,000 worlds:
//
//     PARTITA_PROMISE_WORLDS=100000 npm test -- test/sched/calendar/promise-properties.test.ts
//
// PARTITA_PROMISE_FIRST gives the first seed. One world is PARTITA_PROMISE_FIRST=17 PARTITA_PROMISE_WORLDS=1.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SchedJob } from "#protocol/sched-link.ts";
import type { CycleResult } from "#sched/cycle/result.ts";
import type { Prng } from "#support/prng.ts";
import { prng } from "#support/prng.ts";
import { type Cause, causeOf, type Seen, see } from "./promise-causes.ts";
import { drawJob, drawResv, drawWorld } from "./promise-draws.ts";
import { describeCycle, describeWorld } from "./promise-story.ts";
import type { PromiseWorld } from "./promise-world.ts";
import { endJob, goTo, hardEnd, killDelayOf, nextTime, putJob, putResv, schedule, tellQueue, tellVnode } from "./promise-world.ts";

const WORLDS = Number(process.env["PARTITA_PROMISE_WORLDS"] ?? 400);
const FIRST = Number(process.env["PARTITA_PROMISE_FIRST"] ?? 1);
const STEPS = 14;

const noCounts = (): Counts => ({
  promises: 0,
  kept: 0,
  sooner: 0,
  backfilled: 0,
  higher: 0,
  reservation: 0,
  vnode: 0,
  command: 0,
  overrun: 0,
});
type Counts = Record<Cause["kind"], number> & { promises: number; kept: number; sooner: number; backfilled: number };

test("no promised start moves back but for higher work, reservations, vnodes, commands, or a job past its walltime and kill_delay", (t) => {
  const counts = noCounts();
  for (let seed = FIRST; seed < FIRST + WORLDS; seed++) {
    try {
      oneWorld(prng(`promises ${seed}`), counts, null);
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}\n${storyOf(seed).join("\n")}`, { cause: error });
    }
  }
  t.diagnostic(`${WORLDS} worlds: ${JSON.stringify(counts)}`);
  // Ensures that the worlds contain enough events.
  if (WORLDS >= 100)
    for (const [what, count] of Object.entries(counts)) assert.ok(count > WORLDS / 200, `${what}: ${JSON.stringify(counts)}`);
});

/** The events of a failed world, cycle by cycle. */
function storyOf(seed: number): string[] {
  const story: string[] = [];
  try {
    oneWorld(prng(`promises ${seed}`), noCounts(), story);
  } catch {
    // The failure itself is reported elsewhere.
  }
  return story;
}

/** story: collects the events; null: they are not needed */
function oneWorld(random: Prng, counts: Counts, story: string[] | null): void {
  const { world, calm } = drawWorld(random);
  if (story !== null) story.push(...describeWorld(world));
  let seen = see(world);
  for (let step = 0; step < STEPS; step++) {
    something(random, world, { step, calm });
    seen = look(world, { seen, counts, story });
    if (random.chance(0.5)) {
      goTo(world, Math.min(nextTime(world), wakeOf(seen, world), world.now_s + random.int(1, 60)));
      seen = look(world, { seen, counts, story });
    }
  }
}

/** A scheduler wakes for the first of its promises. */
function wakeOf({ promises }: Seen, { now_s }: PromiseWorld): number {
  return Math.max(now_s + 1, Math.min(...[...promises.values()].map(({ start_s }) => start_s)));
}

/** calm: only jobs and time change */
function something(random: Prng, world: PromiseWorld, { step, calm }: { readonly step: number; readonly calm: boolean }): void {
  const kind = random.int(0, calm ? 9 : 13);
  if (kind <= 7) for (let count = random.int(1, 3); count > 0; count--) putJob(world, drawJob(random, world, `${step}${count}`));
  else if (kind <= 9) return;
  else if (kind === 10) putResv(world, drawResv(random, world, step));
  else if (kind === 11) {
    const vnode = random.pick(world.vnodes);
    vnode.up = !vnode.up;
    for (const job of [...world.jobs.values()])
      if (!vnode.up && job.state === "R" && job.exec_vnode?.includes(`${vnode.name}:`) === true) endJob(world, job.id);
    tellVnode(world, vnode);
  } else if (kind === 12) {
    const queue = random.pick(world.queues);
    queue.kill_delay = random.int(0, 20);
    tellQueue(world, queue);
  } else {
    const waiting = [...world.jobs.values()].filter(({ state }) => state === "Q");
    if (waiting.length > 0) deleteJob(world, random.pick(waiting));
  }
}

function deleteJob(world: PromiseWorld, { id }: SchedJob): void {
  world.happened.push({ kind: "command", what: `${id} was deleted` });
  endJob(world, id);
}

type Look = { readonly seen: Seen; readonly counts: Counts; readonly story: string[] | null };

/** Runs a cycle and checks the result. */
function look(world: PromiseWorld, { seen: before, counts, story }: Look): Seen {
  const results = schedule(world);
  const after = see(world);
  story?.push(...describeCycle(world, results, before));
  for (const [id, promise] of before.promises) {
    const now = after.promises.get(id);
    const started = after.jobs.get(id)?.state !== "Q" && !(after.jobs.get(id)?.state === "B" && after.jobs.get(id) === before.jobs.get(id));
    counts.promises++;
    if (now !== undefined && now.start_s < promise.start_s) counts.sooner++;
    if (started || (now !== undefined && now.start_s <= promise.start_s)) {
      counts.kept++;
      continue;
    }
    const cause = causeOf(world, id, before, after);
    assert.ok(
      cause !== null,
      `at ${world.now_s} ${id}, promised ${promise.start_s} on ${promise.exec_vnode}, is to start at ${now?.start_s} on ${now?.exec_vnode}`,
    );
    counts[cause.kind]++;
  }
  if (overtakes(results, after)) counts.backfilled++;
  checkFuture(world, after, results);
  world.happened = [];
  return after;
}

const overtakes = (results: readonly CycleResult[], { promises, jobs }: Seen): boolean =>
  results.some(({ decisions }) =>
    decisions.some(
      (decision) =>
        decision.kind === "run" && [...promises.keys()].some((top) => (jobs.get(top)?.rank ?? 0) < (jobs.get(decision.job)?.rank ?? 0)),
    ),
  );

/** No promise lies in the past, and the scheduler asks to be woken for the first promise, or soon if a job is overdue. */
function checkFuture(world: PromiseWorld, { promises }: Seen, results: readonly CycleResult[]): void {
  const { now_s } = world;
  let first_s = Number.POSITIVE_INFINITY;
  for (const [id, { start_s }] of promises) {
    assert.ok(start_s > now_s, `${id} is promised ${start_s} at ${now_s}`);
    first_s = Math.min(first_s, start_s);
  }
  const overdue = [...world.ends.keys()].some((id) => {
    const job = world.jobs.get(id) as SchedJob;
    return (hardEnd(job) ?? Number.POSITIVE_INFINITY) + killDelayOf(world, job) <= now_s;
  });
  const wake_s = results.at(-1)?.bound_s ?? Number.POSITIVE_INFINITY;
  assert.ok(
    wake_s <= first_s || (overdue && wake_s <= now_s + 60),
    `at ${now_s} the first promise is ${first_s}, the scheduler wakes at ${wake_s}`,
  );
}

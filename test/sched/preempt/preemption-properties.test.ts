// Preemption in random worlds, compared with rules and with a slow and simple scheduler (docs/reference/scheduler.md 8).

import assert from "node:assert/strict";
import { test } from "node:test";
import { sizeKb } from "#model/values/size.ts";
import type { AttrRecord, SchedJob, SchedNode, Snapshot } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import type { CycleResult } from "#sched/cycle/result.ts";
import { createUniverse } from "#sched/mirror/mirror.ts";
import type { Prng } from "#support/prng.ts";
import { prng } from "#support/prng.ts";
import { describeUniverse } from "../describe.ts";
import { randomPolicy, randomSnapshot, taking } from "../random-world.ts";
import { book, jobOf, queue, snapshotOf } from "../world.ts";

const SEEDS = Number(process.env["PARTITA_SEEDS"] ?? 600);
const INPUT = { now_s: 1_000_000, command: SCHED_COMMAND.TIME } as const;
const PRIORITIES: Readonly<Record<string, number>> = { workq: 0, high: 2, express: 150, urgent: 151, own: 0 };
const QUEUES = Object.entries(PRIORITIES)
  .slice(0, 4)
  .map(([name, Priority]) => queue(name, { Priority }));

function forSeeds(label: string, check: (random: Prng) => void): void {
  for (let seed = 1; seed <= SEEDS; seed++) {
    try {
      check(prng(`${label} ${seed}`));
    } catch (error) {
      throw new Error(`seed=${label} ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
  }
}

/** Express queues are above all others, by their Priority; the others are equal. */
const level = ({ queue: name }: SchedJob): number => Math.max(149, PRIORITIES[name] ?? 0);

// --- one vnode: the same victims as a search that tries every job by itself

/**
 * The victims for a job with that many cpus: lowest level and latest start first, until they suffice; then unnecessary victims
 * are spared, last ones first.
 */
function naiveVictims(running: readonly SchedJob[], free: number, job: SchedJob): string[] | null {
  const cpus = (one: SchedJob): number => Number(one.resources["ncpus"]);
  const may = running.filter((one) => level(one) < level(job));
  may.sort((a, b) => level(a) - level(b) || (b.stime_s ?? 0) - (a.stime_s ?? 0));
  const gone: SchedJob[] = [];
  let room = free;
  for (const victim of may) {
    if (room >= cpus(job)) break;
    gone.push(victim);
    room += cpus(victim);
  }
  if (room < cpus(job)) return null;
  for (const victim of [...gone].reverse()) {
    if (room - cpus(victim) < cpus(job)) continue;
    room -= cpus(victim);
    gone.splice(gone.indexOf(victim), 1);
  }
  return gone.map(({ id }) => id);
}

test("properties: on one vnode the victims are those of a search job by job", () => {
  let preempted = 0;
  forSeeds("one", (random) => {
    let free = random.int(4, 24);
    const texts = [`a ncpus=${free}`];
    const running: string[] = [];
    for (let at = 1; free > 0 && random.chance(0.95); at++) {
      const ncpus = random.int(1, Math.min(4, free));
      free -= ncpus;
      running.push(`${at} R (a:ncpus=${ncpus}) @${random.pick(QUEUES).name} stime=${random.int(1, 5) * 100 + at}`);
    }
    const asks = `90 ncpus=${random.int(1, 12)} @${random.pick(["express", "urgent"])}`;
    const snapshot = snapshotOf({ nodes: texts.join(), queues: QUEUES, jobs: [...running, asks].join("; ") });
    const universe = createUniverse(snapshot, { policy: book().prime, times_matter: false });
    const result = cycle(universe, book(), INPUT);
    const [job, others] = [jobOf(asks, 90), snapshot.jobs.filter(({ state }) => state === "R")];
    const expected = naiveVictims(others, free, job);
    const victims = result.decisions.flatMap((decision) => (decision.kind === "preempt" ? [decision.job] : []));
    assert.deepEqual([...victims].sort(), [...(expected ?? [])].sort());
    assert.equal(
      result.decisions.some((decision) => decision.kind === "run" && decision.job === "90"),
      expected !== null,
    );
    if (victims.length > 0) preempted++;
  });
  assert.ok(preempted > SEEDS / 5, `only ${preempted} of ${SEEDS} preempted`);
});

// --- any world

function preemptingWorld(random: Prng, limited: boolean): Snapshot {
  const first = randomSnapshot(random);
  const unlimited = limited ? {} : { max_run: undefined, max_run_res: undefined };
  const queues = [...first.queues.filter(({ name }) => name !== "workq" && name !== "high"), ...QUEUES];
  const jobs = first.jobs.map((job, at) => ({
    ...job,
    queue: job.queue === "own" ? "own" : random.pick(QUEUES).name,
    rerunable: random.chance(0.7),
    ...(job.state === "R" ? { substate: 42, stime_s: 100 * random.int(1, 5) + at } : {}),
  }));
  return {
    ...first,
    server: { ...first.server, attrs: { ...first.server.attrs, ...unlimited } },
    // Hosts of mixed sharing or with several queues are left to the properties of placement.
    nodes: first.nodes.map((node) => ({ ...node, attrs: { ...node.attrs, sharing: "default_shared", queue: undefined } })),
    sched: { name: "default", attrs: { log_events: 767, preempt_order: random.pick(["SCR", "R", "SRD", "D"]) } },
    queues: queues.map((one) => ({ ...one, attrs: { ...one.attrs, ...unlimited } })),
    jobs,
  };
}

/** The jobs on a vnode after some have gone, and the resources left. */
function without(snapshot: Snapshot, gone: ReadonlySet<string>): Snapshot {
  const nodes = snapshot.nodes.map((node) => {
    const bare: SchedNode = {
      ...node,
      assigned: {},
      jobs: [],
      attrs: { ...node.attrs, state: (node.attrs["state"] as string[]).filter(isOwnState) },
    };
    return node.jobs
      .filter((id) => !gone.has(id))
      .reduce<SchedNode>((one, id) => {
        const job = snapshot.jobs.find((other) => other.id === id) as SchedJob;
        return taking(one, job, isAlone(job));
      }, bare);
  });
  return { ...snapshot, nodes, jobs: snapshot.jobs.filter(({ id }) => !gone.has(id)) };
}
const resourcesOf = (node: SchedNode | undefined): AttrRecord => (node?.attrs["resources_available"] ?? {}) as AttrRecord;
const isOwnState = (word: string): boolean => !word.startsWith("job-");
const isAlone = ({ place }: SchedJob): boolean => place.includes("excl");

/** Puts a job on its vnodes; an exclhost job takes all vnodes of its hosts. Returns null if it does not fit there. */
function put(snapshot: Snapshot, id: string, exec_vnode: string): Snapshot | null {
  const job: SchedJob = { ...(snapshot.jobs.find((one) => one.id === id) as SchedJob), state: "R", exec_vnode };
  const hostOf = (name: string): unknown => resourcesOf(snapshot.nodes.find((node) => node.name === name))["host"];
  const names = new Set([...exec_vnode.matchAll(/[(+]([^:()+]+)/g)].map((match) => match[1] ?? ""));
  const hosts = new Set([...names].map(hostOf));
  let fits = true;
  const nodes = snapshot.nodes.map((node) => {
    const here = names.has(node.name) || (job.place.includes("exclhost") && hosts.has(hostOf(node.name)));
    if (!here) return node;
    const alone = isAlone(job);
    const states = node.attrs["state"] as string[];
    const taken = taking(node, job, alone);
    const available = node.attrs["resources_available"] as { ncpus: number; mem: string };
    const much = (taken.assigned["ncpus"] ?? 0) > available.ncpus || (taken.assigned["mem"] ?? 0) > sizeKb(available.mem);
    if (much || states.includes("job-exclusive") || (alone && node.jobs.length > 0)) fits = false;
    return taken;
  });
  return fits ? { ...snapshot, nodes, jobs: [...snapshot.jobs.filter((one) => one.id !== id), job] } : null;
}

type Step = {
  readonly victims: readonly SchedJob[];
  readonly job: SchedJob;
  readonly exec_vnode: string;
  readonly before: Snapshot;
  readonly after: Snapshot;
};

/** The preemptions of a cycle, each with the state before and after it. Every start is checked to fit at its place. */
function carryOut(snapshot: Snapshot, { decisions }: CycleResult): Step[] {
  const steps: Step[] = [];
  let now = snapshot;
  let gone: string[] = [];
  for (const decision of decisions) {
    if (decision.kind === "preempt") gone.push(decision.job);
    if (decision.kind !== "run") {
      assert.ok(decision.kind === "preempt" || gone.length === 0, `${decision.kind} between a preemption and its start`);
      continue;
    }
    const victims = gone.map((id) => snapshot.jobs.find((job) => job.id === id) as SchedJob);
    const before = now;
    const after = put(without(now, new Set(gone)), decision.job, decision.exec_vnode);
    assert.ok(after !== null, `${decision.job} does not fit at ${decision.exec_vnode}`);
    const job = snapshot.jobs.find(({ id }) => id === decision.job) as SchedJob;
    if (gone.length > 0) steps.push({ victims, job, exec_vnode: decision.exec_vnode, before, after });
    [now, gone] = [after, []];
  }
  assert.deepEqual(gone, [], "preempted for nobody");
  return steps;
}

const hostsOf = (snapshot: Snapshot, exec_vnode = ""): Set<string> =>
  new Set(
    snapshot.nodes.flatMap(({ name, attrs }) =>
      new RegExp(`[(+]${name}:`).test(exec_vnode) ? [(attrs["resources_available"] as { host: string }).host] : [],
    ),
  );

test("properties: victims ran and stood lower, allow a method, are named with their job, which starts right behind them", () => {
  let preempted = 0;
  forSeeds("level", (random) => {
    const snapshot = preemptingWorld(random, true);
    const policies = book(randomPolicy(random));
    const universe = createUniverse(snapshot, { policy: policies.prime, times_matter: false });
    const before = describeUniverse(universe);
    const result = cycle(universe, policies, INPUT);
    assert.deepEqual(describeUniverse(universe), before, "the universe is as it was");
    for (const decision of result.decisions) {
      if (decision.kind !== "preempt") continue;
      const victim = snapshot.jobs.find(({ id }) => id === decision.job) as SchedJob;
      assert.notEqual(decision.methods, "");
      assert.ok(victim.rerunable || !decision.methods.includes("R"));
    }
    for (const { victims, job } of carryOut(snapshot, result)) {
      for (const victim of victims) {
        assert.equal(victim.state, "R");
        assert.ok(level(victim) < level(job), `${victim.id} of ${victim.queue} for ${job.id} of ${job.queue}`);
      }
      preempted++;
    }
    const named = result.decisions.filter((decision) => decision.kind === "preempt");
    assert.equal(new Set(named.map(({ job }) => job)).size, named.length, "nobody goes twice");
  });
  assert.ok(preempted > SEEDS / 10, `only ${preempted} preemptions in ${SEEDS} worlds`);
});

test("properties: nobody goes who could stay, nor where there was room without, and the job runs where its victims were", () => {
  let preempted = 0;
  forSeeds("needed", (random) => {
    const snapshot = preemptingWorld(random, false);
    const policies = book(randomPolicy(random));
    const universe = createUniverse(snapshot, { policy: policies.prime, times_matter: false });
    for (const { victims, job, exec_vnode, before, after } of carryOut(snapshot, cycle(universe, policies, INPUT))) {
      preempted++;
      assert.equal(put(before, job.id, exec_vnode), null, `${job.id} had room`);
      for (const victim of victims) {
        const back = put({ ...after, jobs: [...after.jobs, victim] }, victim.id, victim.exec_vnode ?? "");
        assert.equal(back, null, `${victim.id} could stay at ${victim.exec_vnode} beside ${job.id} at ${exec_vnode}`);
        const [hosts, own] = [hostsOf(snapshot, exec_vnode), hostsOf(snapshot, victim.exec_vnode)];
        assert.ok(
          [...own].some((host) => hosts.has(host)),
          `${victim.id} was at ${victim.exec_vnode}, ${job.id} starts at ${exec_vnode}`,
        );
      }
    }
  });
  assert.ok(preempted > SEEDS / 10, `only ${preempted} preemptions in ${SEEDS} worlds`);
});

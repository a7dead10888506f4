// The order of jobs by formula, shares and keys, maintained over deltas and time, compared with a sort of all jobs at every
// cycle.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as shares from "#model/fairshare.ts";
import { compileFormula, JOB_FORMULA_NAMES, readFormula } from "#model/formula/formula.ts";
import { parseResourceGroup } from "#model/resource-group.ts";
import type { Change, SchedClock, SchedJob, Snapshot } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import { applyDelta, createUniverse } from "#sched/mirror/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import { eligibleAt } from "#sched/order/eligible-time.ts";
import type { Policy } from "#sched/shapes/policy.ts";
import type { Universe } from "#sched/shapes/universe.ts";
import type { Prng } from "#support/prng.ts";
import { prng } from "#support/prng.ts";
import { describeUniverse } from "../describe.ts";
import { book, jobOf, queue, snapshotOf } from "../world.ts";

const SEEDS = Number(process.env["PARTITA_SEEDS"] ?? 400);
const UNDER = "Not Running: Job is under job_sort_formula threshold value";
const GROUPS = parseResourceGroup("g1 10 root 60\ng2 11 root 40\nalice 20 g1 50\nbob 21 g1 50\ncarol 22 g2 100\nnobody 23 g2 0\n", 7).tree;

const requestedTime = ({ resources }: SchedJob): number => Number(resources["walltime"] ?? 5 * 365 * 86_400);

const FORMULAS = [
  undefined,
  "ncpus*10+job_priority",
  "walltime/ncpus",
  "eligible_time",
  "100*ncpus - eligible_time/7 + queue_priority",
  "queue_priority*ncpus + job_priority",
  "ncpus * eligible_time**2 / walltime**3",
  "min(50, eligible_time/10) + 3*ncpus",
  "fairshare_factor*100 + eligible_time*.5 + ncpus",
  "fairshare_factor + walltime/ncpus",
  "fairshare_tree_usage * ncpus - fairshare_perc",
  "eligible_time if accrue_type == 2 else -job_priority",
  "1/(eligible_time - 30)",
  "pow(eligible_time, .5) * job_priority",
  "pressure",
  "-submit_time - 3600 * log2(max(1, requested_time) / 60)",
  "expansion_factor",
  "expansion_factor * ncpus + eligible_time / 100",
  "job_priority - 2 * expansion_factor + area / 1000",
  "pressure/ncpus + eligible_time/3 + queue_priority*pressure",
];

function randomSnapshot(random: Prng): Snapshot {
  const jobs = Array.from({ length: random.int(1, 30) }, (_, at) => randomJob(random, at + 1));
  const formula = random.pick(FORMULAS);
  return {
    ...snapshotOf({
      nodes: "big ncpus=100000",
      jobs: "",
      queues: [
        queue("workq", { Priority: random.int(0, 2) }),
        queue("high", { Priority: 2 }),
        queue("own", { Priority: random.int(0, 3) }),
      ],
      sched: {
        log_events: 767,
        ...(formula === undefined ? {} : { job_sort_formula: formula }),
        ...(random.chance(0.4) ? { job_sort_formula_threshold: random.int(-5, 60) } : {}),
      },
    }),
    jobs,
    clocks: ["c1", "c2"].map((id) => ({ id, value_s: random.int(0, 50), at_s: 1_000_000, goes: random.chance(0.6) })),
  };
}

/** A clock stops or continues; it never jumps. */
function turned(clock: SchedClock, now_s: number, goes: boolean): SchedClock {
  return { id: clock.id, value_s: clock.value_s + (clock.goes ? now_s - clock.at_s : 0), at_s: now_s, goes };
}

function randomJob(random: Prng, rank: number): SchedJob {
  const ncpus = random.int(1, 3);
  const words = `${rank} ncpus=${ncpus} walltime=${random.pick([60, 60, 600])} prio=${random.int(-2, 2)}`;
  const job = jobOf(
    `${words} u=${random.pick(["alice", "bob", "carol", "dave", "erin", "nobody"])} @${random.pick(["workq", "high", "own"])}`,
    rank,
  );
  const clock = random.pick([undefined, "c1", "c1", "c2"]);
  const base = random.int(0, 200);
  return {
    ...job,
    pressure_s: random.int(1, 40),
    eligible_time_s: base,
    ...(clock === undefined ? { accrue_type: random.int(0, 2) } : { clock }),
  };
}

function randomPolicy(random: Prng): Partial<Policy> {
  return {
    by_queue: random.chance(0.5),
    fair_share: random.chance(0.5),
    fairshare_usage_res: "ncpus*10",
    fairshare_enforce_no_shares: random.chance(0.5),
    job_sort_key: random.pick([[], [{ key: "ncpus", high: true }], [{ key: "fairshare_perc", high: true }]]),
  };
}

/** The starts of a cycle in order, and the jobs under the threshold, computed by considering every job before every start. */
function naive(universe: Universe, policy: Policy, fairshare: shares.Fairshare, now_s: number): { started: string[]; under: string[] } {
  const { attrs } = universe.sched;
  const text = attrs["job_sort_formula"] as string | undefined;
  const formula =
    text === undefined ? null : readFormula(text, (name) => (JOB_FORMULA_NAMES.includes(name) ? undefined : "number"), JOB_FORMULA_NAMES);
  const evaluate = formula === null || "fault" in formula ? null : { names: formula.names, code: compileFormula(formula) };
  const node = (job: SchedJob): shares.ShareNode => shares.entity(fairshare, job.user);
  const input = (job: SchedJob, name: string): number =>
    ({
      eligible_time: eligibleAt(universe.clocks, job, now_s).eligible_s,
      accrue_type: eligibleAt(universe.clocks, job, now_s).accrue_type,
      queue_priority: universe.queues.get(job.queue)?.priority ?? 0,
      job_priority: job.priority,
      pressure: job.pressure_s ?? 0,
      submit_time: job.ctime_s,
      requested_time: requestedTime(job),
      area: requestedTime(job) * Math.max(1, Number(job.resources["ncpus"] ?? 1)),
      expansion_factor: 1 + Math.max(0, now_s - job.ctime_s) / Math.max(1, requestedTime(job)),
      fairshare_perc: node(job).percentage,
      fairshare_tree_usage: shares.treeUsage(fairshare, node(job)),
      fairshare_factor: shares.shareFactor(fairshare, node(job)),
    })[name] ?? Number(job.resources[name] ?? 0);
  const value = (job: SchedJob): number => evaluate?.code(evaluate.names.map((name) => input(job, name))).value ?? 0;
  const queued = [...universe.jobs.values()].filter((job) => job.state === "Q");
  for (const job of queued) node(job);
  const values = new Map(queued.map((job) => [job, value(job)]));
  const threshold = evaluate === null ? undefined : (attrs["job_sort_formula_threshold"] as number | undefined);
  const under = queued.filter((job) => threshold !== undefined && (values.get(job) as number) <= threshold);
  const key = (job: SchedJob, name: string): number =>
    name === "fairshare_perc"
      ? ({ alice: 0.6 * 0.5, bob: 0.6 * 0.5, carol: 0.4, nobody: 0 }[job.user] ?? 0.07) / 1.07
      : Number(job.resources[name] ?? 0);
  const compare = (a: SchedJob, b: SchedJob): number => {
    const order = (values.get(b) as number) - (values.get(a) as number);
    if (order !== 0) return order;
    const claim = policy.fair_share ? shares.compareShares(node(a), node(b)) : 0;
    if (claim !== 0) return claim;
    for (const { key: name, high } of evaluate === null ? policy.job_sort_key : []) {
      const difference = key(a, name) - key(b, name);
      if (Math.abs(difference) > 1e-9) return high ? -difference : difference;
    }
    return a.rank - b.rank;
  };
  const queues = [...universe.queues.values()].sort((a, b) => b.priority - a.priority || a.order - b.order).map(({ name }) => name);
  const started: string[] = [];
  for (const group of policy.by_queue ? queues.map((name) => [name]) : [queues]) {
    const waiting = queued.filter((job) => group.includes(job.queue) && !under.includes(job));
    while (waiting.length > 0) {
      const best = waiting.reduce((first, job) => (compare(job, first) < 0 ? job : first));
      waiting.splice(waiting.indexOf(best), 1);
      const barred = policy.fair_share && policy.fairshare_enforce_no_shares && node(best).percentage <= 0;
      if (barred) continue;
      started.push(best.id);
      if (policy.fair_share) shares.addTemporary(fairshare, best.user, Number(best.resources["ncpus"]) * 10);
    }
  }
  shares.forgetTemporary(fairshare);
  return { started, under: under.map((job) => job.id).sort() };
}

test("jobs start in the order of a sort of all jobs, while time passes and jobs, clocks, shares and attributes change", () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const random = prng(`ranking ${seed}`);
    const snapshot = randomSnapshot(random);
    const policies = book(randomPolicy(random), { fairshare: GROUPS });
    const universe = createUniverse(snapshot, mirrorOptions(policies));
    const fairshare = shares.createFairshare(GROUPS, null, 0);
    let now_s = 1_000_000;
    let rank = 100;
    for (let step = 0; step < 8; step++) {
      const expected = naive(universe, policies.prime, fairshare, now_s);
      const before = describeUniverse(universe);
      const result = cycle(universe, policies, { now_s, command: SCHED_COMMAND.TIME, fairshare });
      const started = result.decisions.flatMap((decision) => (decision.kind === "run" ? [decision.job] : []));
      const told = result.decisions.flatMap((decision) =>
        decision.kind === "comment" && decision.comment === UNDER ? [decision.job] : [],
      );
      const where = `seed=ranking ${seed} step ${step} formula=${String(universe.sched.attrs["job_sort_formula"])}`;
      assert.deepEqual(started, expected.started, where);
      const already = expected.under.filter((id) => universe.jobs.get(id)?.comment === UNDER);
      assert.deepEqual([...told, ...already].sort(), expected.under, where);
      if (universe.ranking.threshold === null) assert.deepEqual(describeUniverse(universe), before, where);
      now_s += random.pick([0, 1, 5, 40, 100]);
      const changes = randomChanges(random, universe, now_s, () => ++rank);
      for (const id of told) changes.push({ put: "job", value: { ...(universe.jobs.get(id) as SchedJob), comment: UNDER } });
      applyDelta(universe, { revision: universe.revision + 1, changes });
      if (random.chance(0.3)) shares.addUsage(fairshare, random.pick(["alice", "bob", "carol", "zoe"]), random.int(1, 50));
      if (random.chance(0.1)) shares.decay(fairshare, 0.5);
    }
  }
});

function randomChanges(random: Prng, universe: Universe, now_s: number, nextRank: () => number): Change[] {
  const jobs = [...universe.jobs.values()];
  const changes: Change[] = [];
  for (let count = random.int(0, 4); count > 0; count--) {
    const job = jobs.length === 0 ? undefined : random.pick(jobs);
    const kind = random.int(0, 7);
    if (kind <= 1) changes.push({ put: "job", value: randomJob(random, nextRank()) });
    else if (kind === 2 && job !== undefined) changes.push({ drop: "job", id: job.id });
    else if (kind === 3 && job !== undefined) changes.push({ put: "job", value: { ...job, eligible_time_s: random.int(0, 300) } });
    else if (kind === 4) {
      const clock = random.pick([...universe.clocks.values()]);
      changes.push({ put: "clock", value: turned(clock, now_s, random.chance(0.5)) });
    } else if (kind === 5)
      changes.push({ put: "queue", value: { name: "own", attrs: { ...universe.queues.get("own")?.attrs, Priority: random.int(0, 3) } } });
    else if (kind === 6 && random.chance(0.4)) {
      const { job_sort_formula: _old, ...attrs } = universe.sched.attrs as { job_sort_formula?: string };
      const formula = random.pick(FORMULAS);
      changes.push({
        put: "sched",
        value: { name: "default", attrs: { ...attrs, ...(formula === undefined ? {} : { job_sort_formula: formula }) } },
      });
    } else if (kind === 7 && job !== undefined) changes.push({ put: "job", value: { ...job, comment: random.pick(["x", UNDER]) } });
  }
  return changes;
}

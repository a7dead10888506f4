// Placement sets (docs/reference/scheduler.md 5) in random worlds: a grouped job runs where it would run if the complex had
// only the vnodes of the smallest set with room.

import assert from "node:assert/strict";
import { test } from "node:test";
import { sizeKb } from "#model/values/size.ts";
import type { SchedJob, SchedNode, Snapshot } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import { applyDelta, createUniverse } from "#sched/mirror/mirror.ts";
import type { Policy } from "#sched/shapes/policy.ts";
import type { Prng } from "#support/prng.ts";
import { prng } from "#support/prng.ts";
import { describeUniverse } from "../describe.ts";
import { randomPolicy, randomSnapshot, taking } from "../random-world.ts";
import { book, QUEUE } from "../world.ts";

const KEY = { node_group_enable: true, node_group_key: ["rack"] };
const DEFINED = [
  { name: "rack", type: "string_array", flags: "h" },
  { name: "cab", type: "string_array", flags: "h" },
  { name: "sw", type: "string", flags: "h" },
];

const SEEDS = Number(process.env["PARTITA_SEEDS"] ?? 150);

function forSeeds(check: (random: Prng) => void): void {
  for (let seed = 1; seed <= SEEDS; seed++) {
    try {
      check(prng(`psets ${seed}`));
    } catch (error) {
      throw new Error(`seed=psets ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
  }
}

/** A random world of one queue without limits, with racks. */
function randomWorld(random: Prng): { snapshot: Snapshot; policy: Policy } {
  const base = randomSnapshot(random);
  const nodes = base.nodes.map((node): SchedNode => {
    const { queue: _, ...attrs } = node.attrs;
    const rack = random.pick([{}, { rack: ["A"] }, { rack: ["B"] }, { rack: ["A", "B"] }, { rack: ["C"] }]);
    return { ...node, attrs: { ...attrs, resources_available: { ...(attrs["resources_available"] as object), ...rack } } };
  });
  const group = random.pick(["", ":group=rack"]);
  // If one job has a host in several sets exclusively, all sets see it, but a universe with one set's vnodes does not. The
  // worlds therefore have no exclhost.
  const jobs = base.jobs
    .filter(({ state, rank }) => state === "R" || rank <= 10)
    .map((job): SchedJob => {
      const place = job.state === "Q" ? `${job.place.replace("exclhost", "excl")}${group}` : job.place;
      return { ...job, queue: "workq", user: "alice", group: "users", place };
    });
  const snapshot: Snapshot = {
    ...base,
    nodes,
    jobs,
    queues: [QUEUE],
    resources: [...base.resources, ...DEFINED],
    server: { ...base.server, attrs: random.chance(0.7) ? KEY : {} },
    sched: { name: "default", attrs: { do_not_span_psets: random.chance(0.3), only_explicit_psets: random.chance(0.3) } },
  };
  return { snapshot, policy: { ...book(randomPolicy(random)).prime, job_sort_key: [], by_queue: true } };
}

const INPUT = { now_s: 1_000_000, command: SCHED_COMMAND.TIME } as const;

function startsOf(snapshot: Snapshot, policy: Policy): Map<string, string> {
  const policies = book(policy);
  const universe = createUniverse(snapshot, { policy: policies.prime, times_matter: false });
  const { decisions } = cycle(universe, policies, INPUT);
  return new Map(decisions.flatMap((decision) => (decision.kind === "run" ? [[decision.job, decision.exec_vnode]] : [])));
}

type Set1 = { readonly nodes: readonly SchedNode[]; readonly rank: readonly number[] };

const availableOf = (node: SchedNode) =>
  node.attrs["resources_available"] as { ncpus: number; mem: string; host: string; rack?: readonly string[]; fast?: boolean };
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const isFree = (node: SchedNode): boolean => (node.attrs["state"] as string[]).length === 0;

/** The placement sets, smallest first, computed from all vnodes. */
function naiveSets({ nodes, sched }: Snapshot): Set1[] {
  const inOrder = [...nodes].sort((a, b) => a.order - b.order);
  const names = [...new Set(inOrder.flatMap((node) => availableOf(node).rack ?? []))].sort();
  const groups = names.map((name) => inOrder.filter((node) => availableOf(node).rack?.includes(name) === true));
  if (sched.attrs["only_explicit_psets"] !== true) groups.push(inOrder.filter((node) => availableOf(node).rack === undefined));
  const left = (node: SchedNode) => [
    availableOf(node).ncpus - (node.assigned["ncpus"] ?? 0),
    sizeKb(availableOf(node).mem) - (node.assigned["mem"] ?? 0),
  ];
  return groups
    .filter((members) => members.length > 0)
    .map((members) => ({
      nodes: members,
      rank: [
        sum(members.map((node) => availableOf(node).ncpus)),
        sum(members.map((node) => sizeKb(availableOf(node).mem))),
        sum(members.filter(isFree).map((node) => left(node)[0] as number)),
        sum(members.filter(isFree).map((node) => left(node)[1] as number)),
        Math.min(...members.map((node) => node.order)),
        names.findIndex((name) => members.every((node) => availableOf(node).rack?.includes(name) === true)),
      ],
    }))
    .sort((a, b) => {
      const at = a.rank.findIndex((value, index) => value !== b.rank[index]);
      return at < 0 ? 0 : (a.rank[at] as number) - (b.rank[at] as number);
    });
}

/** Whether the vnodes together could hold a job if they were empty. */
function couldHold(nodes: readonly SchedNode[], job: SchedJob): boolean {
  const chunks = job.schedselect.split("+").map((chunk) => chunk.split(":"));
  const count = sum(chunks.map(([copies]) => Number(copies)));
  if (/scatter/.test(job.place) && count > nodes.length) return false;
  const total = (name: string, value: (text: string) => number): number =>
    sum(
      chunks.map(
        ([copies, ...parts]) =>
          Number(copies) * sum(parts.filter((part) => part.startsWith(`${name}=`)).map((part) => value(part.slice(name.length + 1)))),
      ),
    );
  if (total("ncpus", Number) > sum(nodes.map((node) => availableOf(node).ncpus))) return false;
  if (total("mem", sizeKb) > sum(nodes.map((node) => sizeKb(availableOf(node).mem)))) return false;
  return chunks.every((parts) =>
    parts.every((part) => !part.startsWith("fast=") || nodes.some((node) => (availableOf(node).fast === true) === (part === "fast=True"))),
  );
}

const isGrouped = ({ server }: Snapshot, job: SchedJob): boolean =>
  job.place.includes("group=") || server.attrs["node_group_enable"] === true;
const alone = (snapshot: Snapshot, nodes: readonly SchedNode[], job: SchedJob): Snapshot => ({
  ...snapshot,
  nodes,
  server: { ...snapshot.server, attrs: {} },
  jobs: [...snapshot.jobs.filter((other) => other.state === "R"), { ...job, place: job.place.replace(":group=rack", "") }],
});

/** The place where a job should run now, found by trying a universe of each set's vnodes alone; undefined: none. */
function naivePlace(snapshot: Snapshot, policy: Policy, job: SchedJob): string | undefined {
  const inAll = startsOf(alone(snapshot, snapshot.nodes, job), policy).get(job.id);
  if (!isGrouped(snapshot, job)) return inAll;
  const sets = naiveSets(snapshot);
  // A job that does not fit the free amounts of all vnodes together is not tried.
  if (inAll === undefined && !fitsFree(snapshot, job)) return undefined;
  for (const { nodes } of sets) {
    const where = startsOf(alone(snapshot, nodes, job), policy).get(job.id);
    if (where !== undefined) return where;
  }
  if (sets.some(({ nodes }) => couldHold(nodes, job)) || snapshot.sched.attrs["do_not_span_psets"] === true) return undefined;
  return inAll;
}

const fitsFree = ({ nodes }: Snapshot, job: SchedJob): boolean => couldHold(nodes.filter(isFree), job);

function carryOut(snapshot: Snapshot, id: string, exec_vnode: string): Snapshot {
  const jobs = snapshot.jobs.map((job) => (job.id === id ? { ...job, state: "R", exec_vnode } : job));
  const started = jobs.find((job) => job.id === id) as SchedJob;
  const names = new Set([...exec_vnode.matchAll(/[(+]([^:()+]+)/g)].map((match) => match[1]));
  const excl = started.place.includes("excl");
  const nodes = snapshot.nodes.map((node) =>
    names.has(node.name) ? taking(node, started, excl && node.attrs["sharing"] !== "ignore_excl") : node,
  );
  return { ...snapshot, jobs, nodes };
}

test("placement sets: in any world a job runs in the smallest set that has room, as if that were all there is", () => {
  let [grouped, spanned] = [0, 0];
  forSeeds((random) => {
    let { snapshot, policy } = randomWorld(random);
    const starts = startsOf(snapshot, policy);
    const blocked = new Set<string>();
    for (const job of snapshot.jobs.filter((one) => one.state === "Q").sort((a, b) => a.rank - b.rank)) {
      const request = `${job.schedselect} ${job.place}`;
      const where = blocked.has(request) ? undefined : naivePlace(snapshot, policy, job);
      assert.equal(starts.get(job.id), where, job.id);
      if (where === undefined) blocked.add(request);
      else {
        if (isGrouped(snapshot, job)) grouped++;
        if (isGrouped(snapshot, job) && !naiveSets(snapshot).some(({ nodes }) => couldHold(nodes, job))) spanned++;
        snapshot = carryOut(snapshot, job.id, where);
      }
    }
  });
  assert.ok(grouped > SEEDS && spanned > SEEDS / 40, `${grouped} grouped jobs started, ${spanned} of them over sets`);
});

test("placement sets: kept by deltas they are what a snapshot gives, and a cycle leaves them as they were", () => {
  forSeeds((random) => {
    const { snapshot, policy } = randomWorld(random);
    const policies = book(policy);
    const universe = createUniverse(snapshot, { policy: policies.prime, times_matter: false });
    for (let step = 0; step < 4; step++) {
      const before = describeUniverse(universe);
      cycle(universe, policies, INPUT);
      assert.deepEqual(describeUniverse(universe), before);
      const node = random.pick([...universe.nodes.values()]);
      const attrs = { ...node.attrs, resources_available: { ...availableOf(node), rack: random.pick([["A"], ["B", "C"], undefined]) } };
      const kind = random.int(0, 4);
      const change =
        kind === 0
          ? ({ put: "node", value: { ...node, attrs } } as const)
          : kind === 1
            ? ({ put: "node", value: { ...node, attrs: { ...node.attrs, state: random.chance(0.5) ? [] : ["offline"] } } } as const)
            : kind === 2
              ? ({ put: "sched", value: { name: "default", attrs: { only_explicit_psets: random.chance(0.5) } } } as const)
              : kind === 3
                ? ({
                    put: "server",
                    value: { ...universe.server, attrs: random.pick([KEY, {}, { ...KEY, node_group_key: ["rack", "sw"] }]) },
                  } as const)
                : universe.nodes.size > 1
                  ? ({ drop: "node", id: node.name } as const)
                  : ({ put: "node", value: node } as const);
      applyDelta(universe, { revision: universe.revision + 1, changes: [change] });
      const fresh = createUniverse(
        {
          ...snapshot,
          server: universe.server,
          sched: universe.sched,
          nodes: [...universe.nodes.values()],
          jobs: [...universe.jobs.values()],
        },
        { policy: policies.prime, times_matter: false },
      );
      assert.deepEqual(describeUniverse(universe), describeUniverse(fresh));
    }
  });
});

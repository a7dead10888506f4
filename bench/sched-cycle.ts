// The scheduler's cycle alone (docs/bench.md): the pure function on universes of several sizes. Not measured: the link, the server, the log's file.

import { createFairshare } from "#model/fairshare.ts";
import { parseResourceGroup } from "#model/resource-group.ts";
import type { Change, SchedClock, SchedJob, SchedNode, Snapshot } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import type { CycleResult } from "#sched/cycle/result.ts";
import { applyDelta, createUniverse } from "#sched/mirror/mirror.ts";
import { MODULES_DEFAULT, mirrorOptions } from "#sched/modules/index.ts";
import { comesBefore, worth } from "#sched/order/ranking.ts";
import { ALWAYS_PRIME } from "#sched/shapes/holidays.ts";
import { UTC } from "#sched/shapes/local-time.ts";
import type { Policy } from "#sched/shapes/policy.ts";
import { POLICY_DEFAULT } from "#sched/shapes/policy.ts";
import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import type { Universe } from "#sched/shapes/universe.ts";

/** work: description of the work. value, limit: seconds; limit null: for information only. */
export type BenchRow = { readonly name: string; readonly value: number; readonly unit: "s"; readonly limit: number | null };

const BOOK: PolicyBook = {
  prime: POLICY_DEFAULT,
  non_prime: POLICY_DEFAULT,
  holidays: ALWAYS_PRIME,
  dedicated: [],
  fairshare: parseResourceGroup("", 0).tree,
  modules: MODULES_DEFAULT,
  local: UTC,
};
const REPEATS = 7;

/** All rows, each the median of several cycles. */
export async function rows(): Promise<BenchRow[]> {
  return [
    ...blocked("10,000 queued jobs, 1,000 shapes, 1,000 vnodes, nothing can run", { jobs: 10_000, shapes: 1000, nodes: 1000 }, 0.03),
    ...blocked("100,000 queued jobs, 1,000 shapes, 10,000 vnodes, nothing can run", { jobs: 100_000, shapes: 1000, nodes: 10_000 }, 0.5),
    ...blocked(
      "10,000 queued jobs, 1,000 shapes, 1,000 vnodes of which some lack cpus and some memory, nothing can run",
      { jobs: 10_000, shapes: 1000, nodes: 1000 },
      0.03,
      lopsided,
    ),
    ...planned(
      "10,000 queued jobs, 1,000 shapes, 1,000 vnodes, strict_ordering and backfill_depth 10",
      { jobs: 10_000, shapes: 1000, nodes: 1000 },
      0.05,
    ),
    ...starting("50,000 one-cpu jobs started on 50,000 vnodes", 50_000, 1, 1),
    ...starting("50,000 one-cpu jobs started on 2,000 vnodes of 25 cpus", 2000, 25, null),
    ...mirrored(),
    ...ranked("a sum", "ncpus*10 + job_priority + eligible_time/3600", 0.5),
    ...ranked("eligible time squared over walltime", "ncpus * eligible_time**2 / walltime**2", 0.5),
    ...shared(),
  ];
}

/** Jobs ordered by a formula whose value changes every second: a quiet cycle must not compute it for each of them. */
function ranked(what: string, formula: string, limit: number): BenchRow[] {
  const size = 100_000;
  const nodes = Array.from({ length: 1000 }, (_, at) => littleLeft(at));
  const jobs = Array.from({ length: size }, (_, at): SchedJob => {
    const one = job(at, `1:ncpus=${5 + (at % 50)}:mem=${1024 * (1 + (Math.floor(at / 50) % 20))}kb`);
    const resources = { ...one.resources, walltime: 60 + (at % 9973) };
    return { ...one, resources, priority: at % 100, clock: "c", eligible_time_s: -(at % 86_400) };
  });
  const sched = { log_events: 767, job_sort_formula: formula };
  const clocks = [{ id: "c", value_s: 100_000, at_s: NOW_S, goes: true }];
  const { seconds: made, result: universe } = timed(() => universeOf(nodes, jobs, { sched, clocks }));
  let now_s = NOW_S;
  const first = timed(() => go(universe, now_s));
  expect(first.result.decisions.length === size, `${what}: every job is told why`);
  takeComments(universe, jobs, first.result);
  const cycles = Array.from({ length: 200 }, () => timed(() => go(universe, ++now_s)).seconds).sort((a, b) => a - b);
  const name = `100,000 queued jobs by a formula (${what}), 1,000 shapes, nothing can run`;
  return [
    { name: `${name}: mirror made`, value: made, unit: "s", limit: null },
    { name: `${name}: median of 200 cycles a second apart`, value: cycles[100] as number, unit: "s", limit },
    { name: `${name}: longest of them`, value: cycles[199] as number, unit: "s", limit: null },
    {
      name: `${name}: what valuing and sorting all jobs anew would add to each`,
      value: sortedAnew(universe, now_s),
      unit: "s",
      limit: null,
    },
  ];
}

/** The least cost of a cycle that keeps no order between cycles (src/sched: strands, track cursors, bounds of values in time). */
function sortedAnew(universe: Universe, now_s: number): number {
  const ranks = { universe, fairshare: createFairshare(BOOK.fairshare, null, now_s), now_s, errors: new Map<string, string>() };
  return median(() => {
    const { seconds, result } = timed(() =>
      [...universe.entries.values()]
        .map((entry) => ({ entry, value: worth(ranks, entry.job).value }))
        .sort((a, b) => (comesBefore(ranks, a, b) ? -1 : 1)),
    );
    expect(result.length === universe.entries.size, "all jobs are in order");
    return seconds;
  });
}

/** Every start changes the claims of one of a thousand users in a hundred groups. */
function shared(): BenchRow[] {
  const groups = Array.from({ length: 100 }, (_, at) => `g${at} ${at + 10} root 10`);
  const users = Array.from({ length: 1000 }, (_, at) => `u${at} ${at + 1000} g${at % 100} ${1 + (at % 7)}`);
  const tree = parseResourceGroup([...groups, ...users].join("\n"), 0).tree;
  const policy: Policy = { ...POLICY_DEFAULT, fair_share: true, fairshare_usage_res: "ncpus*60" };
  const shares: PolicyBook = { ...BOOK, prime: policy, non_prime: policy, fairshare: tree };
  const jobs = Array.from({ length: 50_000 }, (_, at) => ({ ...job(at, "1:ncpus=1"), user: `u${(at * 7919) % 1000}` }));
  const nodes = Array.from({ length: 2000 }, (_, at) => node(at, 25, {}));
  const universe = createUniverse(snapshotOf(nodes, jobs, {}), mirrorOptions(shares));
  const value = median(() => {
    const { seconds, result } = timed(() => cycle(universe, shares, { now_s: NOW_S, command: SCHED_COMMAND.TIME }));
    expect(result.stats.jobs_started === 50_000, "fairshare: all start");
    return seconds;
  });
  return [{ name: "50,000 one-cpu jobs of 1,000 users started by fairshare on 2,000 vnodes of 25 cpus", value, unit: "s", limit: null }];
}

/** The work of a scheduler when the server sends many changes at once. */
function mirrored(): BenchRow[] {
  const nodes = Array.from({ length: 50_000 }, (_, at) => node(at, 1, {}));
  const jobs = Array.from({ length: 50_000 }, (_, at) => job(at, "1:ncpus=1"));
  const { seconds: snapshot_s, result: universe } = timed(() => universeOf(nodes, jobs));
  const changes = go(universe).decisions.flatMap((decision, at): Change[] => {
    if (decision.kind !== "run") return [];
    const [value, there] = [jobs[at] as SchedJob, nodes[at] as SchedNode];
    return [
      { put: "job", value: { ...value, state: "R", substate: 42, exec_vnode: decision.exec_vnode } },
      { put: "node", value: { ...there, attrs: { ...there.attrs, state: ["job-busy"] }, assigned: { ncpus: 1 }, jobs: [value.id] } },
    ];
  });
  expect(changes.length === 100_000, "all start");
  const { seconds: delta_s } = timed(() => applyDelta(universe, { revision: universe.revision + 1, changes }));
  expect(go(universe).decisions.length === 0, "nothing is left to start");
  return [
    { name: "mirror of 50,000 jobs and 50,000 vnodes made from a snapshot", value: snapshot_s, unit: "s", limit: null },
    { name: "delta of 50,000 started jobs and their vnodes applied", value: delta_s, unit: "s", limit: null },
  ];
}

export type Size = { readonly jobs: number; readonly shapes: number; readonly nodes: number };

/** Every vnode has a little left, each differently. */
const littleLeft = (at: number): SchedNode => node(at, 64, { ncpus: 60 + (at % 3), mem: (at % 40) * 1024 });

/** Some have no memory left, the others too few cpus. */
const lopsided = (at: number): SchedNode =>
  at % 2 === 0 ? littleLeft(at) : node(at, 64, { ncpus: at % 3, mem: NODE_KB - (at % 41) * 20 });

/** The world of `blocked` after its comments have been sent, for measurements. */
export function blockedWorld(size: Size): { go(): CycleResult } {
  const jobs = queued(size);
  const universe = universeOf(
    Array.from({ length: size.nodes }, (_, at) => littleLeft(at)),
    jobs,
  );
  takeComments(universe, jobs, go(universe));
  return { go: () => go(universe) };
}

/** Every job asks more than any vnode has left: nothing runs, and no total tells so at once. */
function blocked(name: string, size: Size, limit: number, nodeAt = littleLeft): BenchRow[] {
  const nodes = Array.from({ length: size.nodes }, (_, at) => nodeAt(at));
  const jobs = queued(size);
  const universe = universeOf(nodes, jobs);
  const first = timed(() => go(universe));
  expect(first.result.decisions.length === size.jobs && first.result.stats.jobs_started === 0, `${name}: every job is told why`);
  expect(first.result.stats.classes === size.shapes, `${name}: ${first.result.stats.classes} classes`);
  takeComments(universe, jobs, first.result);
  const again = median(() => {
    const { seconds, result } = timed(() => go(universe));
    expect(result.decisions.length === 0, `${name}: comments are not repeated`);
    return seconds;
  });
  return [
    { name: `${name}: first cycle, with all comments`, value: first.seconds, unit: "s", limit: null },
    { name, value: again, unit: "s", limit },
  ];
}

const STRICT: PolicyBook = {
  ...BOOK,
  prime: { ...POLICY_DEFAULT, strict_ordering: true },
  non_prime: { ...POLICY_DEFAULT, strict_ordering: true },
};

/** The same with jobs that run on every vnode and end at different times: the first ten that wait are planned, in every cycle anew. */
function planned(name: string, size: Size, limit: number): BenchRow[] {
  const world = plannedWorld(size);
  const first = timed(() => world.go());
  const estimates = first.result.decisions.flatMap((decision) => (decision.kind === "estimate" ? [decision] : []));
  expect(estimates.length === 10 && first.result.stats.jobs_started === 0, `${name}: ${estimates.length} top jobs`);
  world.publish(first.result);
  const again = median(() => {
    const { seconds, result } = timed(() => world.go());
    expect(result.decisions.length === 0, `${name}: comments and estimates are not repeated`);
    return seconds;
  });
  return [
    { name: `${name}: first cycle, with all comments`, value: first.seconds, unit: "s", limit: null },
    { name, value: again, unit: "s", limit },
  ];
}

type PlannedWorld = { go(): CycleResult /** the server applies the decisions */; publish(result: CycleResult): void };

/** Jobs that wait for vnodes on which others run. */
export function plannedWorld(size: Size): PlannedWorld {
  const running = Array.from({ length: size.nodes }, (_, at): SchedJob => {
    const ncpus = 60 + (at % 3);
    const one = job(-2 - at, `1:ncpus=${ncpus}`);
    const resources = { ...one.resources, walltime: 1000 + ((at * 7919) % 50_000) };
    return { ...one, id: `r${at}.svr`, state: "R", substate: 42, stime_s: NOW_S - 500, exec_vnode: `(n${at}:ncpus=${ncpus})`, resources };
  });
  const nodes = running.map((one, at) => ({ ...node(at, 64, { ncpus: 60 + (at % 3), mem: (at % 40) * 1024 }), jobs: [one.id] }));
  const waiting = queued(size).map((one) => ({ ...one, resources: { ...one.resources, walltime: 3600 } }));
  const snapshot = snapshotOf(nodes, [...running, ...waiting], {});
  const server = { ...snapshot.server, attrs: { backfill_depth: 10 } };
  const universe = createUniverse({ ...snapshot, server }, mirrorOptions(STRICT));
  return {
    go: () => cycle(universe, STRICT, { now_s: NOW_S, command: SCHED_COMMAND.TIME }),
    publish(result) {
      const changed = new Map(waiting.map((one) => [one.id, one as SchedJob]));
      for (const decision of result.decisions) {
        const before = "job" in decision ? changed.get(decision.job) : undefined;
        if (before === undefined) continue;
        if (decision.kind === "comment") changed.set(before.id, { ...before, comment: decision.comment });
        if (decision.kind === "estimate" && decision.start_s !== null && decision.exec_vnode !== null)
          changed.set(before.id, { ...before, topjob: true, estimated: { start_time: decision.start_s, exec_vnode: decision.exec_vnode } });
      }
      applyDelta(universe, { revision: universe.revision + 1, changes: [...changed.values()].map((value) => ({ put: "job", value })) });
    },
  };
}

function queued(size: Size): SchedJob[] {
  return Array.from({ length: size.jobs }, (_, at) => {
    const shape = at % size.shapes;
    return job(at, `1:ncpus=${5 + (shape % 50)}:mem=${1024 * (1 + Math.floor(shape / 50))}kb`);
  });
}

function starting(name: string, nodes: number, ncpus: number, limit: number | null): BenchRow[] {
  const universe = universeOf(
    Array.from({ length: nodes }, (_, at) => node(at, ncpus, {})),
    Array.from({ length: 50_000 }, (_, at) => job(at, "1:ncpus=1")),
  );
  const value = median(() => {
    const { seconds, result } = timed(() => go(universe));
    expect(result.stats.jobs_started === 50_000, `${name}: all start`);
    return seconds;
  });
  return [{ name, value, unit: "s", limit }];
}

const NOW_S = 1_800_000_000;

function go(universe: Universe, now_s = NOW_S): CycleResult {
  return cycle(universe, BOOK, { now_s, command: SCHED_COMMAND.TIME });
}

/** The server takes over the comments and says so. */
function takeComments(universe: Universe, jobs: readonly SchedJob[], result: CycleResult): void {
  const comments = new Map(result.decisions.flatMap((decision) => (decision.kind === "comment" ? [[decision.job, decision.comment]] : [])));
  const changes = jobs.map((value) => ({ put: "job" as const, value: { ...value, comment: comments.get(value.id) ?? "" } }));
  applyDelta(universe, { revision: universe.revision + 1, changes });
}

type More = { readonly sched?: Record<string, unknown>; readonly clocks?: readonly SchedClock[] };

function universeOf(nodes: SchedNode[], jobs: SchedJob[], more: More = {}): Universe {
  return createUniverse(snapshotOf(nodes, jobs, more), mirrorOptions(BOOK));
}

function snapshotOf(nodes: SchedNode[], jobs: SchedJob[], { sched = { log_events: 767 }, clocks = [] }: More): Snapshot {
  return {
    revision: 1,
    server: { name: "svr", attrs: {}, assigned: {} },
    sched: { name: "default", attrs: sched },
    resources: [],
    queues: [{ name: "workq", attrs: { queue_type: "Execution", started: true } }],
    nodes,
    jobs,
    resvs: [],
    clocks,
  };
}

/** of memory that each has */
const NODE_KB = 256 * 1024 * 1024;

function node(at: number, ncpus: number, assigned: Record<string, number>): SchedNode {
  const name = `n${at}`;
  const available = { arch: "linux", host: name, vnode: name, ncpus, mem: "256gb" };
  return {
    name,
    order: at,
    attrs: { resources_available: available, state: [], sharing: "default_shared" },
    assigned,
    jobs: assigned["ncpus"] === undefined ? [] : ["1.svr"],
  };
}

function job(at: number, schedselect: string): SchedJob {
  return {
    id: `${at + 2}.svr`,
    state: "Q",
    substate: 10,
    queue: "workq",
    rank: at,
    user: `u${at % 20}`,
    group: "g",
    project: "_pbs_project_default",
    name: "j",
    priority: 0,
    schedselect,
    place: "free",
    resources: { ncpus: Number(/ncpus=(\d+)/.exec(schedselect)?.[1]), nodect: 1 },
    ctime_s: 0,
    qtime_s: 0,
    run_count: 0,
    rerunable: true,
  };
}

function timed<T>(work: () => T): { readonly seconds: number; readonly result: T } {
  const start = performance.now();
  const result = work();
  return { seconds: (performance.now() - start) / 1000, result };
}

function median(measure: () => number): number {
  const values = Array.from({ length: REPEATS }, measure).sort((a, b) => a - b);
  return values[Math.floor(REPEATS / 2)] as number;
}

function expect(condition: boolean, what: string): void {
  if (!condition) throw new Error(what);
}

if (import.meta.main) {
  for (const row of await rows()) {
    const verdict = row.limit === null ? "" : row.value <= row.limit ? `  (limit ${row.limit})` : `  OVER ITS LIMIT ${row.limit}`;
    console.log(`${row.value.toFixed(4).padStart(9)} s  ${row.name}${verdict}`);
  }
}

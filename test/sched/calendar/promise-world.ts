// A minimal server for one scheduler that promises starts: hosts of several vnodes, exclusive jobs, arrays, reservations, jobs
// that end early, on time or up to kill_delay late. The scheduler's decisions take effect here, states of vnodes are computed
// as in the server, and all events are recorded. A promise that moves is judged by these events (promise-causes.ts).

import { indexListText, parseIndexList, rangesOf } from "#model/array-indices.ts";
import { arrayIdOf, subjobIndex } from "#model/job-id.ts";
import type { Change, Decision, SchedJob, SchedNode, SchedResv, Snapshot } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import type { CycleResult } from "#sched/cycle/result.ts";
import { applyDelta, createUniverse } from "#sched/mirror/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import type { Universe } from "#sched/shapes/universe.ts";
import { queue } from "../world.ts";

export const AMOUNTS = ["ncpus", "mem", "gpus"] as const;
export type Amounts = { ncpus: number; mem: number; gpus: number };
export type VnodeOf = Amounts & {
  readonly name: string;
  readonly host: string;
  readonly sharing: string;
  readonly limits: { readonly max_running?: number; readonly max_user_run?: number };
  up: boolean;
};
export type QueueOf = { readonly name: string; readonly priority: number; kill_delay: number };

/** Events since the last cycle, other than time. */
export type Happening =
  | { readonly kind: "vnode"; readonly name: string }
  | { readonly kind: "resv"; readonly id: string }
  | { readonly kind: "command"; readonly what: string };

export type PromiseWorld = {
  now_s: number;
  readonly vnodes: readonly VnodeOf[];
  readonly queues: readonly QueueOf[];
  readonly jobs: Map<string, SchedJob>;
  /** the actual end times of running jobs */
  readonly ends: Map<string, number>;
  /**
   * behaviour of a job once it runs: 0 ends at once, 1 at the end of its walltime, 2 at the end of its kill_delay, larger:
   * later
   */
  readonly behaviour: Map<string, number>;
  readonly resvs: Map<string, SchedResv>;
  readonly book: PolicyBook;
  readonly universe: Universe;
  happened: Happening[];
  revision: number;
};

const RESOURCES = [{ name: "gpus", type: "long", flags: "nh" }];

export function createPromiseWorld(
  parts: { readonly vnodes: readonly VnodeOf[]; readonly queues: readonly QueueOf[]; readonly book: PolicyBook },
  attrs: { readonly server: Record<string, unknown>; readonly sched: Record<string, unknown> },
): PromiseWorld {
  const { vnodes, queues, book } = parts;
  const empty = { vnodes, jobs: new Map(), resvs: new Map() };
  const snapshot: Snapshot = {
    revision: 1,
    server: { name: "svr", attrs: attrs.server, assigned: {} },
    sched: { name: "default", attrs: { log_events: 0, ...attrs.sched } },
    resources: RESOURCES,
    queues: queues.map(queueOf),
    nodes: nodesOf(empty),
    jobs: [],
    resvs: [],
  };
  const universe = createUniverse(snapshot, mirrorOptions(book));
  return {
    now_s: 1000,
    ...{ vnodes, queues, book, universe },
    jobs: new Map(),
    ends: new Map(),
    behaviour: new Map(),
    resvs: new Map(),
    happened: [],
    revision: 1,
  };
}

const queueOf = ({ name, priority, kill_delay }: QueueOf) => queue(name, { Priority: priority, kill_delay });

// --- vnodes as the server tells them

type Present = Pick<PromiseWorld, "vnodes" | "jobs" | "resvs">;
type Spot = Amounts & { exclusive: boolean };

const placeOf = ({ attrs }: SchedResv): string => String((attrs["Resource_List"] as { readonly place: string }).place);

function isExclusive({ sharing }: VnodeOf, words: ReadonlySet<string>): boolean {
  if (sharing === "ignore_excl") return false;
  if (sharing.startsWith("force_")) return true;
  if (words.has("excl") || words.has("exclhost")) return true;
  return !words.has("shared") && sharing !== "default_shared";
}

function takesWholeHost({ sharing }: VnodeOf, words: ReadonlySet<string>): boolean {
  if (sharing === "ignore_excl") return false;
  if (sharing === "force_exclhost" || words.has("exclhost")) return true;
  return sharing === "default_exclhost" && !words.has("shared") && !words.has("excl");
}

/** The resources that each vnode gives, by name. */
export function spotsOf(vnodes: readonly VnodeOf[], exec_vnode: string, place: string): Map<string, Spot> {
  const words = new Set(place.split(":"));
  const spots = new Map<string, Spot>();
  const named = new Map(vnodes.map((vnode) => [vnode.name, vnode]));
  const spotOf = (vnode: VnodeOf): Spot => {
    let spot = spots.get(vnode.name);
    if (spot === undefined) spots.set(vnode.name, (spot = { ncpus: 0, mem: 0, gpus: 0, exclusive: isExclusive(vnode, words) }));
    return spot;
  };
  for (const piece of exec_vnode.replaceAll(/[()]/g, "").split("+")) {
    const [name = "", ...pairs] = piece.split(":");
    const vnode = named.get(name);
    if (vnode === undefined) continue;
    const spot = spotOf(vnode);
    for (const pair of pairs) {
      const [resource, value = ""] = pair.split("=");
      for (const amount of AMOUNTS) if (amount === resource) spot[amount] += Number.parseInt(value, 10);
    }
  }
  for (const name of [...spots.keys()]) {
    const vnode = named.get(name) as VnodeOf;
    if (!takesWholeHost(vnode, words)) continue;
    for (const other of vnodes) if (other.host === vnode.host && other.sharing !== "ignore_excl") spotOf(other).exclusive = true;
  }
  return spots;
}

function nodesOf(world: Present): SchedNode[] {
  const taken = [...world.jobs.values()].flatMap((job) =>
    job.state === "R" ? [{ id: job.id, spots: spotsOf(world.vnodes, job.exec_vnode ?? "", job.place) }] : [],
  );
  const reserved = [...world.resvs.values()].flatMap((resv) =>
    resv.running ? [spotsOf(world.vnodes, resv.places[resv.held[0]?.place ?? 0] ?? "", placeOf(resv))] : [],
  );
  return world.vnodes.map((vnode, order): SchedNode => {
    const { name, host, sharing, limits, ncpus, mem, gpus } = vnode;
    const assigned = { ncpus: 0, mem: 0, gpus: 0 };
    const jobs: string[] = [];
    const words = new Set(vnode.up ? [] : ["down"]);
    let cpus = 0;
    for (const { id, spots } of taken) {
      const spot = spots.get(name);
      if (spot === undefined) continue;
      jobs.push(id);
      cpus += spot.ncpus;
      if (spot.exclusive) words.add("job-exclusive");
      for (const amount of AMOUNTS) assigned[amount] += spot[amount];
    }
    if (jobs.length > 0 && ncpus > 0 && cpus >= ncpus && !words.has("job-exclusive")) words.add("job-busy");
    for (const spots of reserved) {
      const spot = spots.get(name);
      if (spot?.exclusive === true) words.add("resv-exclusive");
      for (const amount of AMOUNTS) assigned[amount] += spot?.[amount] ?? 0;
    }
    const resources_available = { host, vnode: name, ncpus, gpus, mem: `${mem}kb` };
    return { name, order, attrs: { resources_available, state: [...words], sharing, ...limits }, assigned, jobs };
  });
}

// --- changes

function tell(world: PromiseWorld, changes: readonly Change[]): void {
  const nodes = nodesOf(world).map((value) => ({ put: "node", value }) as const);
  applyDelta(world.universe, { revision: ++world.revision, changes: [...changes, ...nodes] });
}

export function tellVnode(world: PromiseWorld, vnode: VnodeOf): void {
  world.happened.push({ kind: "vnode", name: vnode.name });
  tell(world, []);
}

export function tellQueue(world: PromiseWorld, one: QueueOf): void {
  world.happened.push({ kind: "command", what: `kill_delay of ${one.name}` });
  tell(world, [{ put: "queue", value: queueOf(one) }]);
}

export function putJob(world: PromiseWorld, ...jobs: readonly SchedJob[]): void {
  for (const job of jobs) world.jobs.set(job.id, job);
  tell(
    world,
    jobs.map((value) => ({ put: "job", value })),
  );
}

/** The job has ended or was deleted. An array is removed when its last subjob has ended. */
export function endJob(world: PromiseWorld, id: string): void {
  const array = world.jobs.get(arrayIdOf(id) ?? "");
  world.jobs.delete(id);
  world.ends.delete(id);
  const changes: Change[] = [{ drop: "job", id }];
  if (array?.array !== undefined) {
    const next = { ...array, array: { ...array.array, running: array.array.running - 1 } };
    const over = next.array.running === 0 && next.array.indices_remaining === "-";
    if (over) world.jobs.delete(array.id);
    else world.jobs.set(array.id, next);
    changes.push(over ? { drop: "job", id: array.id } : { put: "job", value: next });
  }
  tell(world, changes);
}

export function putResv(world: PromiseWorld, resv: SchedResv): void {
  world.resvs.set(resv.id, resv);
  tell(world, [
    { put: "queue", value: queue(resv.id, { started: resv.running }) },
    { put: "resv", value: resv },
  ]);
}

function dropResv(world: PromiseWorld, id: string): void {
  world.resvs.delete(id);
  tell(world, [
    { drop: "resv", id },
    { drop: "queue", id },
  ]);
}

// --- cycles

/** Runs cycles until one confirms nothing, and applies their decisions. Returns all results. */
export function schedule(world: PromiseWorld): CycleResult[] {
  const results: CycleResult[] = [];
  for (;;) {
    const result = cycle(world.universe, world.book, { now_s: world.now_s, command: SCHED_COMMAND.TIME });
    results.push(result);
    const changes: Change[] = [];
    for (const decision of result.decisions) changes.push(...carryOut(world, decision));
    if (changes.length > 0) tell(world, changes);
    if (!result.decisions.some(({ kind }) => kind === "confirm-resv")) return results;
    if (results.length > 5) throw new Error("one cycle after another confirms");
  }
}

function carryOut(world: PromiseWorld, decision: Decision): Change[] {
  switch (decision.kind) {
    case "run":
      return start(world, decision);
    case "estimate": {
      const { estimated: _estimated, topjob: _topjob, ...job } = world.jobs.get(decision.job) as SchedJob;
      const { start_s, exec_vnode } = decision;
      const estimated = start_s === null || exec_vnode === null ? {} : { estimated: { start_time: start_s, exec_vnode } };
      return [keep(world, { ...job, ...estimated, ...(decision.topjob ? { topjob: true } : {}) })];
    }
    case "extend": {
      const job = world.jobs.get(decision.job) as SchedJob;
      return [keep(world, { ...job, estimated: { ...job.estimated, soft_walltime: decision.soft_walltime_s } })];
    }
    case "confirm-resv": {
      const { ask: _ask, ...resv } = world.resvs.get(decision.resv) as SchedResv;
      world.happened.push({ kind: "resv", id: resv.id });
      const value = { ...resv, held: decision.occurrences, places: decision.places };
      world.resvs.set(resv.id, value);
      return [{ put: "resv", value }];
    }
    case "deny-resv":
      dropResv(world, decision.resv);
      return [];
    default:
      return [];
  }
}

function keep(world: PromiseWorld, value: SchedJob): Change {
  world.jobs.set(value.id, value);
  return { put: "job", value };
}

function start(world: PromiseWorld, { job: id, exec_vnode, walltime_s }: Extract<Decision, { kind: "run" }>): Change[] {
  const changes: Change[] = [];
  const array_id = arrayIdOf(id);
  const { estimated: _estimated, topjob: _topjob, array, ...job } = world.jobs.get(array_id ?? id) as SchedJob;
  if (array_id !== null && array !== undefined) {
    const left = (parseIndexList(array.indices_remaining) ?? []).flatMap((range) =>
      rangesOf(range, (at) => range.first + at * range.step !== subjobIndex(id)),
    );
    const indices_remaining = left.length === 0 ? "-" : indexListText(left);
    changes.push(keep(world, { ...job, state: "B", array: { ...array, indices_remaining, running: array.running + 1 } }));
  }
  const resources = walltime_s === undefined ? job.resources : { ...job.resources, walltime: walltime_s };
  const running: SchedJob = { ...job, id, resources, state: "R", substate: 42, exec_vnode, stime_s: world.now_s };
  changes.push(keep(world, array_id === null ? running : { ...running, array_id }));
  world.ends.set(id, actualEnd(world, running, world.behaviour.get(array_id ?? id) ?? 1));
  return changes;
}

export const killDelayOf = ({ queues }: Pick<PromiseWorld, "queues">, job: SchedJob): number =>
  queues.find(({ name }) => name === job.queue)?.kill_delay ?? 0;

const timeOf = ({ resources }: SchedJob, name: string): number | null => {
  const value = resources[name];
  return typeof value === "number" ? value : null;
};

/** The end of its walltime; null: it has none. */
export function hardEnd(job: SchedJob): number | null {
  const walltime_s = timeOf(job, "walltime");
  return walltime_s === null ? null : (job.stime_s ?? 0) + walltime_s;
}
export const softTime = (job: SchedJob): number | null => timeOf(job, "soft_walltime");

function actualEnd(world: PromiseWorld, job: SchedJob, behaviour: number): number {
  const walltime_s = timeOf(job, "walltime") ?? 500;
  const grace_s = killDelayOf(world, job);
  const late_s = behaviour <= 1 ? 0 : behaviour <= 2 ? Math.round((behaviour - 1) * grace_s) : grace_s + Math.round((behaviour - 2) * 30);
  return world.now_s + Math.max(1, Math.round(Math.min(1, behaviour) * walltime_s)) + late_s;
}

// --- time

/** The time of the next event that needs no decision. */
export function nextTime({ now_s, ends, resvs }: PromiseWorld): number {
  const begins = [...resvs.values()].map(({ running, held }) => (running ? held[0]?.end_s : held[0]?.start_s) ?? Number.POSITIVE_INFINITY);
  return Math.max(now_s, Math.min(...ends.values(), ...begins));
}

/** Advances the time: jobs end, reservations begin and end. */
export function goTo(world: PromiseWorld, now_s: number): void {
  world.now_s = now_s;
  for (const [id, end_s] of [...world.ends]) if (end_s <= now_s) endJob(world, id);
  for (const resv of [...world.resvs.values()]) {
    const [first] = resv.held;
    if (first === undefined) continue;
    if (resv.running && first.end_s <= now_s) dropResv(world, resv.id);
    else if (!resv.running && first.start_s <= now_s && first.end_s > now_s) putResv(world, { ...resv, running: true });
    else if (!resv.running && first.end_s <= now_s) dropResv(world, resv.id);
  }
}

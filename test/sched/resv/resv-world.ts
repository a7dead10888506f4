// A minimal server for one scheduler and its reservations, on a virtual clock: the scheduler's decisions take effect here, and
// jobs and reservations begin and end at their times. The server accepts every decision; check() finds the wrong ones.

import assert from "node:assert/strict";
import type { Change, Decision, Occurrence, SchedJob, SchedNode, SchedResv, Snapshot } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import type { CycleResult } from "#sched/cycle/result.ts";
import { applyDelta, createUniverse } from "#sched/mirror/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import type { Universe } from "#sched/shapes/universe.ts";
import { queue } from "../world.ts";

export type Node = { readonly name: string; readonly host: string; readonly ncpus: number; readonly mem_kb: number; up: boolean };
type Taken = { ncpus: number; mem: number };
export type Spot = { readonly vnode: string; readonly taken: Taken };

export type ResvWorld = {
  now_s: number;
  readonly nodes: readonly Node[];
  readonly jobs: Map<string, SchedJob>;
  readonly resvs: Map<string, SchedResv>;
  readonly book: PolicyBook;
  readonly universe: Universe;
  /** answers so far */
  readonly told: string[];
};

/** attrs: of server and scheduler */
export function createWorld(
  nodes: readonly Node[],
  book: PolicyBook,
  attrs: { readonly server?: Record<string, unknown>; readonly sched?: Record<string, unknown> } = {},
): ResvWorld {
  const snapshot: Snapshot = {
    revision: 1,
    server: { name: "svr", attrs: attrs.server ?? {}, assigned: {} },
    sched: { name: "default", attrs: { log_events: 0, ...attrs.sched } },
    resources: [],
    queues: [queue("workq")],
    nodes: nodes.map((node, at) => nodeOf(node, at, { jobs: new Map(), resvs: new Map() })),
    jobs: [],
    resvs: [],
  };
  const universe = createUniverse(snapshot, mirrorOptions(book));
  return { now_s: 0, nodes, jobs: new Map(), resvs: new Map(), book, universe, told: [] };
}

/** `(a:ncpus=2:mem=1kb)+(b:ncpus=1)` */
export function spotsOf(exec_vnode: string): Spot[] {
  return exec_vnode
    .replaceAll(/[()]/g, "")
    .split("+")
    .map((piece) => {
      const [vnode = "", ...parts] = piece.split(":");
      const taken = { ncpus: 0, mem: 0 };
      for (const part of parts) {
        const [name = "", value = ""] = part.split("=");
        if (name === "ncpus" || name === "mem") taken[name] += Number.parseInt(value, 10);
      }
      return { vnode, taken };
    });
}

type Present = Pick<ResvWorld, "jobs" | "resvs">;

function nodeOf(node: Node, order: number, world: Present): SchedNode {
  const { sums, jobs, exclusive } = presentOn(node.name, world);
  const cpus = jobs.reduce(
    (sum, { exec_vnode = "" }) =>
      sum +
      spotsOf(exec_vnode)
        .filter(({ vnode }) => vnode === node.name)
        .reduce((own, { taken }) => own + taken.ncpus, 0),
    0,
  );
  const state = [...(node.up ? [] : ["down"]), ...(cpus >= node.ncpus ? ["job-busy"] : []), ...exclusive];
  const resources_available = { ncpus: node.ncpus, mem: `${node.mem_kb}kb`, host: node.host, vnode: node.name };
  return {
    name: node.name,
    order,
    attrs: { resources_available, state, sharing: "default_shared" },
    assigned: sums,
    jobs: jobs.map(({ id }) => id),
  };
}

/**
 * The amounts assigned on a vnode: jobs outside reservations, running reservations, and what jobs inside use beyond their
 * reservation.
 */
function presentOn(
  name: string,
  { jobs, resvs }: Present,
): { readonly sums: Taken; readonly jobs: SchedJob[]; readonly exclusive: string[] } {
  const sums = { ncpus: 0, mem: 0 };
  const here: SchedJob[] = [];
  const exclusive = new Set<string>();
  for (const resv of resvs.values()) {
    if (!resv.running) continue;
    for (const { vnode, taken } of spotsOf(resv.places[resv.held[0]?.place ?? 0] ?? "")) {
      if (vnode !== name) continue;
      add(sums, taken);
      if (placeOf(resv).includes("excl")) exclusive.add("resv-exclusive");
    }
  }
  for (const job of jobs.values()) {
    if (job.state !== "R") continue;
    const spots = spotsOf(job.exec_vnode ?? "").filter(({ vnode }) => vnode === name);
    if (spots.length > 0) here.push(job);
    if (spots.length > 0 && job.resv === undefined && job.place.includes("excl")) exclusive.add("job-exclusive");
    for (const { taken } of spots) add(sums, beside(resvs.get(job.resv ?? ""), taken));
  }
  return { sums, jobs: here, exclusive: [...exclusive] };
}

/** The part of a job's resources that its running reservation does not hold. */
function beside(resv: SchedResv | undefined, { ncpus, mem }: Taken): Taken {
  if (resv?.running !== true) return { ncpus, mem };
  const asked = String(resv.attrs["schedselect"]);
  return { ncpus: asked.includes("ncpus=") ? 0 : ncpus, mem: asked.includes("mem=") ? 0 : mem };
}

const placeOf = ({ attrs }: SchedResv): string => String((attrs["Resource_List"] as { readonly place: string }).place);

function add(sums: Taken, taken: Taken): void {
  sums.ncpus += taken.ncpus;
  sums.mem += taken.mem;
}

/** Sends changed jobs and reservations and all vnodes to the mirror. */
function tell(world: ResvWorld, changes: readonly Change[]): void {
  const nodes = world.nodes.map((node, at) => ({ put: "node", value: nodeOf(node, at, world) }) as const);
  applyDelta(world.universe, { revision: world.universe.revision + 1, changes: [...changes, ...nodes] });
}

/** Vnodes went down or came back. */
export function tellNodes(world: ResvWorld): void {
  tell(world, []);
}

export function putJob(world: ResvWorld, job: SchedJob): void {
  world.jobs.set(job.id, job);
  tell(world, [{ put: "job", value: job }]);
}

export function endJob(world: ResvWorld, id: string): void {
  world.jobs.delete(id);
  tell(world, [{ drop: "job", id }]);
}

/** Includes its queue, which runs jobs while the reservation runs. */
export function putResv(world: ResvWorld, resv: SchedResv): void {
  world.resvs.set(resv.id, resv);
  tell(world, [
    { put: "queue", value: queue(resv.id, { started: resv.running }) },
    { put: "resv", value: resv },
  ]);
}

function dropResv(world: ResvWorld, id: string): void {
  for (const job of [...world.jobs.values()]) if (job.resv === id) endJob(world, job.id);
  world.resvs.delete(id);
  tell(world, [
    { drop: "resv", id },
    { drop: "queue", id },
  ]);
}

/** Runs cycles until one confirms nothing, and applies their decisions. */
export function schedule(world: ResvWorld): CycleResult {
  for (let round = 0; ; round++) {
    const result = cycle(world.universe, world.book, { now_s: world.now_s, command: SCHED_COMMAND.TERM });
    for (const decision of result.decisions) carryOut(world, decision);
    if (!result.decisions.some(({ kind }) => kind === "confirm-resv")) return result;
    assert.ok(round < 5, "one cycle after another confirms");
  }
}

function carryOut(world: ResvWorld, decision: Decision): void {
  switch (decision.kind) {
    case "run": {
      const job = world.jobs.get(decision.job) as SchedJob;
      const { estimated: _estimated, topjob: _topjob, ...rest } = job;
      putJob(world, { ...rest, state: "R", exec_vnode: decision.exec_vnode, stime_s: world.now_s });
      return;
    }
    case "estimate": {
      const { estimated: _estimated, topjob: _topjob, ...job } = world.jobs.get(decision.job) as SchedJob;
      const { start_s, exec_vnode } = decision;
      const estimated = start_s === null || exec_vnode === null ? {} : { estimated: { start_time: start_s, exec_vnode } };
      putJob(world, { ...job, ...estimated, ...(decision.topjob ? { topjob: true } : {}) });
      return;
    }
    case "confirm-resv": {
      const { ask, ...resv } = world.resvs.get(decision.resv) as SchedResv;
      world.told.push(`${ask?.kind} yes`);
      const { occurrences, places } = decision;
      const others = ask?.kind === "confirm" ? [] : resv.held.filter((old) => !ask?.occurrences.some((asked) => isSame(asked, old)));
      const rest = ask?.kind === "alter" ? others.filter((old) => old !== resv.held[0]) : others;
      const held = [...occurrences, ...rest.map((old) => ({ ...old, place: old.place + places.length }))].sort(
        (a, b) => a.start_s - b.start_s,
      );
      putResv(world, { ...resv, held, places: [...places, ...resv.places] });
      return;
    }
    case "deny-resv": {
      const { ask, ...resv } = world.resvs.get(decision.resv) as SchedResv;
      world.told.push(`${ask?.kind} no`);
      if (ask?.kind === "confirm") dropResv(world, resv.id);
      else putResv(world, resv);
      return;
    }
    default:
      return;
  }
}

const isSame = (a: Occurrence, b: Occurrence): boolean => a.start_s === b.start_s && a.end_s === b.end_s;

/** The time of the next event that needs no decision. */
export function nextTime(world: ResvWorld): number {
  const times = [
    ...[...world.jobs.values()].map((job) => (job.state === "R" ? endOf(job) : Number.POSITIVE_INFINITY)),
    ...[...world.resvs.values()].map(({ running, held }) => (running ? held[0]?.end_s : held[0]?.start_s) ?? Number.POSITIVE_INFINITY),
  ];
  return Math.max(world.now_s, Math.min(...times));
}

export const endOf = ({ stime_s = 0, resources }: SchedJob): number => stime_s + Number(resources["walltime"]);

/** Advances the time: jobs end at their walltime, occurrences end and begin. */
export function goTo(world: ResvWorld, now_s: number): void {
  world.now_s = now_s;
  for (const job of [...world.jobs.values()]) if (job.state === "R" && endOf(job) <= now_s) endJob(world, job.id);
  for (const resv of [...world.resvs.values()]) if (resv.running && (resv.held[0]?.end_s ?? 0) <= now_s) endOccurrence(world, resv);
  for (const resv of [...world.resvs.values()])
    if (!resv.running && (resv.held[0]?.start_s ?? Number.POSITIVE_INFINITY) <= now_s) putResv(world, { ...resv, running: true });
}

function endOccurrence(world: ResvWorld, resv: SchedResv): void {
  for (const job of [...world.jobs.values()]) if (job.resv === resv.id && job.state === "R") endJob(world, job.id);
  const held = resv.held.slice(1);
  if (held.length === 0) dropResv(world, resv.id);
  else putResv(world, { ...resv, held, running: false });
}

/** No vnode is oversubscribed, now or in the future, if everything lasts as long as it may. */
export function check(world: ResvWorld): void {
  const times = new Set([world.now_s]);
  for (const { held } of world.resvs.values()) for (const { start_s } of held) times.add(Math.max(world.now_s, start_s));
  for (const node of world.nodes) for (const at_s of times) checkAt(world, node, at_s);
  for (const resv of world.resvs.values()) if (resv.running) checkInside(world, resv);
}

function checkAt(world: ResvWorld, node: Node, at_s: number): void {
  const sums = { ncpus: 0, mem: 0 };
  const who: string[] = [];
  let exclusive = 0;
  const count = (id: string, text: string, place: string): void => {
    const spots = spotsOf(text).filter(({ vnode }) => vnode === node.name);
    if (spots.length === 0) return;
    who.push(id);
    if (place.includes("excl")) exclusive++;
    for (const { taken } of spots) add(sums, taken);
  };
  for (const resv of world.resvs.values()) {
    const during = resv.held.find(({ start_s, end_s }) => start_s <= at_s && at_s < end_s);
    if (during !== undefined) count(resv.id, resv.places[during.place] ?? "", placeOf(resv));
  }
  for (const job of world.jobs.values()) {
    if (job.state !== "R") continue;
    if (job.resv === undefined && endOf(job) > at_s) count(job.id, job.exec_vnode ?? "", job.place);
    const resv = world.resvs.get(job.resv ?? "");
    if (resv === undefined || Math.min(endOf(job), resv.held[0]?.end_s ?? 0) <= at_s) continue;
    for (const { vnode, taken } of spotsOf(job.exec_vnode ?? "")) if (vnode === node.name) add(sums, beside(resv, taken));
  }
  const what = `${node.name} at ${at_s}: ${who.join(" ")}`;
  assert.ok(sums.ncpus <= node.ncpus, `${what} have ${sums.ncpus} of ${node.ncpus} cpus`);
  assert.ok(sums.mem <= node.mem_kb, `${what} have ${sums.mem} of ${node.mem_kb} kb`);
  assert.ok(exclusive === 0 || who.length === 1, `${what}, of whom one is alone there`);
}

/** Jobs inside use no more than the reservation holds. */
function checkInside(world: ResvWorld, resv: SchedResv): void {
  const granted = new Map<string, Taken>();
  for (const { vnode, taken } of spotsOf(resv.places[resv.held[0]?.place ?? 0] ?? "")) {
    const sum = granted.get(vnode) ?? { ncpus: 0, mem: 0 };
    add(sum, taken);
    granted.set(vnode, sum);
  }
  for (const job of world.jobs.values()) {
    if (job.resv !== resv.id || job.state !== "R") continue;
    for (const { vnode, taken } of spotsOf(job.exec_vnode ?? "")) {
      const left = granted.get(vnode);
      assert.ok(left !== undefined, `job ${job.id} runs on ${vnode}, which ${resv.id} does not hold`);
      left.ncpus -= taken.ncpus;
      if (String(resv.attrs["schedselect"]).includes("mem=")) left.mem -= taken.mem;
      assert.ok(left.ncpus >= 0 && left.mem >= 0, `jobs of ${resv.id} use more of ${vnode} than it holds`);
    }
  }
}

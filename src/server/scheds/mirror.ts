// The part of the state that each scheduler sees. The scheduler has a copy of it, its mirror. The server sends a snapshot
// first and then deltas in order, which keep the mirror up to date (src/protocol/sched-link.ts).
//
// I1. A scheduler sees the execution queues and vnodes of its partitions, the jobs in those queues and on those vnodes, and
//     all global objects. A job array stands for its waiting subjobs; running subjobs are sent as jobs of their own.
// I2. When a scheduler may no longer see an object that it was sent, it is told to drop the object.
// I3. If the decisions of a cycle come in several frames, no deltas are sent until the last frame. Then the changes are sent
//     in their latest form, before the verdicts on the last frame. If a subjob has ended by then, only its usage is sent.
//     Because large deltas take time, the last decisions are committed before the deltas are made.

import { arrayIdOf } from "#model/job-id.ts";
import { schedDirectories } from "#model/tables/sched-attributes.ts";
import type { Change, SchedClock, SchedJob, SchedNode, SchedQueue, SchedResource, SchedResv, Snapshot } from "#protocol/sched-link.ts";
import type { SchedFrame } from "../engine/batch.ts";
import type { Kernel } from "../engine/kernel.ts";
import type { SchedRuntime } from "../engine/sched-runtime.ts";
import { headsOfChains, pressuresNow } from "../jobs/pressure.ts";
import { killDelayOf } from "../jobs/queue-defaults.ts";
import { type AskSource, askOf } from "../resv/asking.ts";
import { addHeard, type Heard, hasRows, noChanges } from "../state/changes.ts";
import type { Clock } from "../state/entity-sums.ts";
import { isWithMom } from "../state/job-phase.ts";
import { isElastic, isRemote, partitionOf, partitionsOf } from "../state/partitions.ts";
import { hostOf, placedHost } from "../state/placement.ts";
import { isBegun } from "../state/resv-holding.ts";
import { NO_PLACE } from "../state/resv-occurrences.ts";
import type { Job, Queue, Resv, Sched, ServerState, Vnode } from "../state/state.ts";
import { remainingText, type Subjobs } from "../state/subjobs.ts";

/**
 * The frames that bring every connected scheduler up to date with the pending changes. If the changes for a scheduler are
 * kept back (I3), its other frames are taken out of `out` and follow later.
 */
export function deltas(kernel: Kernel): SchedFrame[] {
  const frames: SchedFrame[] = [];
  for (const runtime of kernel.scheds.by_name.values()) {
    const sched = kernel.state.scheds.get(runtime.name);
    if (runtime.link === null || sched === undefined) continue;
    const last = !runtime.more && runtime.untold !== null && runtime.held === null && hasRows(kernel.changes);
    if ((runtime.more || last) && !runtime.needs_snapshot) {
      runtime.untold ??= noChanges();
      addHeard(runtime.untold, kernel.changes);
      noteBegun(kernel, sched, runtime);
      if (last) runtime.held = takeOut(kernel.out.scheds, runtime.link);
      continue;
    }
    const { untold, held } = runtime;
    runtime.untold = null;
    runtime.held = null;
    if (runtime.needs_snapshot) {
      runtime.needs_snapshot = false;
      runtime.revision++;
      frames.push({ link: runtime.link, type: "sched-snapshot", data: snapshot(kernel, sched, runtime) });
    } else {
      if (untold !== null) addHeard(untold, kernel.changes);
      const changes = changesFor(kernel, sched, runtime, untold ?? kernel.changes);
      if (changes.length > 0) frames.push({ link: runtime.link, type: "sched-delta", data: { revision: ++runtime.revision, changes } });
    }
    if (held !== null) frames.push(...held);
    runtime.own_comments.clear();
    runtime.begun.clear();
  }
  return frames;
}

/**
 * Called when a job has changed. If a scheduler has just written the job's comment, it is nevertheless sent the job, because
 * someone may have overwritten that comment. For a subjob, the same is done for its array.
 */
export function jobIsNews({ scheds }: Kernel, id: string): void {
  const array = id.includes("[") ? arrayIdOf(id) : null;
  for (const { own_comments } of scheds.by_name.values()) {
    own_comments.delete(id);
    if (array !== null) own_comments.delete(array);
  }
}

/** Whether a formula of a scheduler uses pressure. */
export function wantsPressure({ server }: ServerState, { attrs }: Sched): boolean {
  const formulas = [attrs["job_sort_formula"] ?? server["job_sort_formula"], attrs["backfill.formula"]];
  return formulas.some((formula) => typeof formula === "string" && /\bpressure\b/.test(formula));
}

function takeOut(frames: SchedFrame[], link: number): SchedFrame[] {
  const found = frames.filter((frame) => frame.link === link);
  frames.splice(0, frames.length, ...frames.filter((frame) => frame.link !== link));
  return found;
}

/** What a snapshot is made from: the state, and what schedulers have answered about reservations. */
export type MirrorSource = AskSource & Pick<Kernel, "config">;

/** Everything that the scheduler sees. The runtime record of the scheduler notes which objects it has been sent. */
export function snapshot(kernel: MirrorSource, sched: Sched, runtime: SchedRuntime): Snapshot {
  const { state } = kernel;
  const { known } = runtime;
  for (const names of Object.values(known)) names.clear();
  const view = viewOf(state, sched);
  const queues = [...state.queues.values()].filter(view.queue);
  const nodes = [...state.vnodes.values()].filter(view.node).sort((a, b) => a.order - b.order);
  const isCrowded = crowding(state, view);
  const jobs: SchedJob[] = [];
  const seen = jobView(state, sched, view);
  for (const job of state.jobs.values()) {
    if (!view.job(job)) continue;
    known.jobs.add(job.id);
    jobs.push(seen(job));
  }
  for (const queue of queues) known.queues.add(queue.name);
  for (const node of nodes) known.nodes.add(node.name);
  return {
    revision: runtime.revision,
    server: schedServer(state),
    sched: schedSelf(kernel, sched),
    resources: [...state.resources.values()].map(schedResource),
    queues: queues.map((queue) => schedQueue(state, queue)),
    nodes: nodes.map((vnode) => schedNode(vnode, isCrowded)),
    jobs,
    clocks: clocksOf(state, view),
    resvs: [...state.resvs.values()].map((resv) => schedResv(kernel, sched, resv)),
  };
}

/**
 * The scheduler's own object. For a scheduler on another host, where PBS_HOME may be another directory, directories with
 * their default names are left out: the scheduler then uses the directories with these names on its own host.
 */
function schedSelf({ config }: MirrorSource, sched: Sched): Snapshot["sched"] {
  const { name, attrs } = sched;
  if (!isRemote(sched, config)) return { name, attrs };
  const named = Object.entries(schedDirectories(name, config.home));
  const left_out = new Set(named.filter(([attribute, directory]) => attrs[attribute] === directory).map(([attribute]) => attribute));
  return { name, attrs: Object.fromEntries(Object.entries(attrs).filter(([attribute]) => !left_out.has(attribute))) };
}

/** Notes the subjobs that have begun while changes for the scheduler are kept back (I3). */
function noteBegun({ state, changes }: Kernel, sched: Sched, { known, begun }: SchedRuntime): void {
  let view: ReturnType<typeof viewOf> | null = null;
  for (const id of changes.jobs) {
    const job = id.includes("[") ? state.jobs.get(id) : undefined;
    if (job?.attrs["array_id"] === undefined || known.jobs.has(id) || begun.has(id)) continue;
    view ??= viewOf(state, sched);
    if (view.job(job)) begun.set(id, schedJob(state, job));
  }
}

function changesFor(kernel: Kernel, sched: Sched, runtime: SchedRuntime, changes: Heard): Change[] {
  const { state } = kernel;
  const { known } = runtime;
  const view = viewOf(state, sched);
  const list: Change[] = [];
  if (changes.server || changes.told.server) list.push({ put: "server", value: schedServer(state) });
  if (changes.scheds.has(sched.name)) list.push({ put: "sched", value: schedSelf(kernel, sched) });
  for (const name of changes.resources) {
    const def = state.resources.get(name);
    list.push(def === undefined ? { drop: "resource", id: name } : { put: "resource", value: schedResource(def) });
  }
  /** jobs that the scheduler may begin or cease to see because of a change of their queue or vnode */
  const moved = new Set<string>();
  for (const name of union(changes.queues, changes.told.queues)) {
    const queue = state.queues.get(name);
    const sees = queue !== undefined && view.queue(queue);
    if (queue !== undefined && sees !== known.queues.has(name)) {
      for (const id of queue.jobs) moved.add(id);
      for (const clock of state.clocks.values())
        if (sees && clock.key?.queue === name) list.push({ put: "clock", value: schedClock(clock) });
    }
    // Jobs of another scheduler's queue that run on this scheduler's vnodes are sent again: each is sent with the kill_delay of its queue.
    if (!sees && changes.queues.has(name)) for (const id of queue?.jobs ?? []) if (known.jobs.has(id)) moved.add(id);
    tell(list, "queue", name, known.queues, sees ? schedQueue(state, queue) : null);
  }
  const isCrowded = crowding(state, view);
  for (const name of withNeighbours(state, view, union(changes.vnodes, changes.told.vnodes))) {
    const vnode = state.vnodes.get(name);
    const sees = vnode !== undefined && view.node(vnode);
    if (vnode !== undefined && sees !== known.nodes.has(name)) for (const id of vnode.jobs.keys()) moved.add(id);
    tell(list, "node", name, known.nodes, sees ? schedNode(vnode, isCrowded) : null);
  }
  const seen = jobView(state, sched, view);
  if (changes.jobs.size > 0 && wantsPressure(state, sched))
    for (const id of headsOfChains(state, union(changes.jobs, changes.left_behind))) moved.add(id);
  for (const id of union(changes.jobs, moved)) {
    const job = state.jobs.get(id);
    const sees = job !== undefined && view.job(job);
    if (sees && runtime.own_comments.has(id) && known.jobs.has(id)) continue;
    const last = changes.last_used.get(id);
    const begun = sees || known.jobs.has(id) ? undefined : runtime.begun.get(id);
    if (begun !== undefined && last !== undefined) list.push({ drop: "job", id, resources_used: last as SchedUsage, untold: begun });
    else if (!sees && last !== undefined && known.jobs.delete(id)) list.push({ drop: "job", id, resources_used: last as SchedUsage });
    else tell(list, "job", id, known.jobs, sees ? seen(job) : null);
  }
  for (const id of changes.clocks) {
    const clock = state.clocks.get(id);
    if (clock === undefined) list.push({ drop: "clock", id });
    else if (seesClock(state, view, clock)) list.push({ put: "clock", value: schedClock(clock) });
  }
  for (const id of union(changes.resvs, changes.told.resvs)) {
    const resv = state.resvs.get(id);
    list.push(resv === undefined ? { drop: "resv", id } : { put: "resv", value: schedResv(kernel, sched, resv) });
  }
  return list;
}

type SchedUsage = NonNullable<SchedJob["resources_used"]>;

function tell(
  list: Change[],
  kind: "queue" | "node" | "job",
  id: string,
  known: Set<string>,
  value: SchedQueue | SchedNode | SchedJob | null,
): void {
  if (value !== null) {
    known.add(id);
    list.push({ put: kind, value } as Change);
  } else if (known.delete(id)) {
    list.push({ drop: kind, id });
  }
}

function* union(a: ReadonlySet<string>, b: ReadonlySet<string>): Iterable<string> {
  yield* a;
  for (const name of b) if (!a.has(name)) yield name;
}

function viewOf(state: ServerState, sched: Sched) {
  const partitions = new Set(partitionsOf(sched));
  const queue = (object: Queue): boolean => object.attrs["queue_type"] === "Execution" && partitions.has(partitionOf(object));
  const node = (object: Vnode): boolean => partitions.has(partitionOf(object));
  const job = (object: Job): boolean => {
    // A requeued subjob counts among the waiting subjobs of its array.
    if (object.attrs["array_id"] !== undefined && !isWithMom(object)) return false;
    const own = state.queues.get(object.attrs.queue);
    if (own !== undefined && queue(own)) return true;
    const placement = state.placements.get(object.id);
    if (placement === undefined) return false;
    for (const name of placement.vnodes.keys()) {
      const vnode = state.vnodes.get(name);
      if (vnode !== undefined && node(vnode)) return true;
    }
    return false;
  };
  return { queue, node, job };
}

// --- objects as schedulers see them

const schedServer = (state: ServerState): Snapshot["server"] => ({
  name: state.name,
  attrs: state.server,
  assigned: Object.fromEntries(state.assigned),
});
const schedClock = ({ id, value_s, at_s, goes }: Clock): SchedClock => ({ id, value_s, at_s, goes });

/** Whether the scheduler sees a clock: it belongs to jobs in a queue of the scheduler, or to no queue. */
function seesClock(state: ServerState, view: ReturnType<typeof viewOf>, { key }: Clock): boolean {
  const queue = key === null ? undefined : state.queues.get(key.queue);
  return key === null || (queue !== undefined && view.queue(queue));
}
const clocksOf = (state: ServerState, view: ReturnType<typeof viewOf>): SchedClock[] =>
  [...state.clocks.values()].filter((clock) => seesClock(state, view, clock)).map(schedClock);

const schedResource = (def: { readonly name: string; readonly type: string; readonly flags: string }): SchedResource => ({
  name: def.name,
  type: def.type,
  flags: def.flags,
});
const schedQueue = (state: ServerState, queue: Queue): SchedQueue => ({
  name: queue.name,
  order: queue.order,
  attrs: {
    ...queue.attrs,
    hasnodes: queue.nodes > 0,
    kill_delay: killDelayOf(queue),
    ...(isElastic(state, partitionOf(queue)) ? { elastic: true } : {}),
  },
});

function schedResv(kernel: MirrorSource, sched: Sched, resv: Resv): SchedResv {
  const ask = askOf(kernel, resv, sched);
  const { promised, alteration: _alteration, standing: _standing, ...attrs } = resv.attrs;
  return {
    id: resv.id,
    attrs,
    running: isBegun(resv),
    held: (promised?.occurrences ?? []).filter(({ place }) => place !== NO_PLACE),
    places: promised?.places ?? [],
    ...(ask === undefined ? {} : { ask }),
  };
}

/**
 * Adds to changed vnodes the other vnodes of their hosts, where this is needed: if the vnodes of a host are in partitions of
 * several schedulers, a change of one vnode changes what is sent about the others.
 */
function withNeighbours(state: ServerState, view: View, names: Iterable<string>): Iterable<string> {
  const all = new Set(names);
  for (const name of [...all]) {
    const vnode = state.vnodes.get(name);
    if (vnode === undefined || view.node(vnode)) continue;
    // All vnodes of the host are added: a vnode with ignore_excl does not disturb the others, but the others disturb it (crowding).
    for (const other of state.hosts.get(hostOf(vnode)) ?? []) all.add(other);
  }
  return all;
}

/**
 * Returns a function that says whether the host of a vnode is crowded: the scheduler does not see all vnodes of the host,
 * and one that it does not see has a job or a running reservation. The vnodes of a mom are examined only once, because a mom
 * may have thousands.
 */
function crowding(state: ServerState, view: View): (vnode: Vnode) => boolean {
  const known = new Map<string, ReadonlySet<string>>();
  return (vnode) => {
    const mom = hostOf(vnode);
    let crowded = known.get(mom);
    if (crowded === undefined) known.set(mom, (crowded = crowdedHosts(state, mom, view)));
    return crowded.has(placedHost(vnode));
  };
}

/** The hosts of a mom that are crowded (see crowding). Vnodes with ignore_excl do not count, because they disturb no other vnode. */
function crowdedHosts(state: ServerState, mom: string, view: View): ReadonlySet<string> {
  const hosts = new Set<string>();
  for (const name of state.hosts.get(mom) ?? []) {
    const vnode = state.vnodes.get(name);
    if (vnode === undefined || view.node(vnode) || vnode.attrs["sharing"] === "ignore_excl") continue;
    const is_reserved = [...vnode.resvs.keys()].some((id) => state.resvs.get(id)?.counted === true);
    if (is_reserved || [...vnode.jobs.values()].some(({ suspended }) => !suspended)) hosts.add(placedHost(vnode));
  }
  return hosts;
}

type View = ReturnType<typeof viewOf>;

/** A vnode in the form for schedulers. isCrowded: made by crowding() from the present state. */
function schedNode(vnode: Vnode, isCrowded: (vnode: Vnode) => boolean): SchedNode {
  return {
    name: vnode.name,
    order: vnode.order,
    attrs: vnode.attrs,
    assigned: Object.fromEntries(vnode.assigned),
    jobs: jobsInSlotOrder(vnode).filter((id) => vnode.jobs.get(id)?.suspended !== true),
    ...(isCrowded(vnode) ? { crowded: true } : {}),
  };
}

/** Ids of the jobs on a vnode: first the jobs with cpu slots, in the order of their first slot, then the jobs without a slot. */
function jobsInSlotOrder(vnode: Vnode): string[] {
  const ids = new Set(vnode.slots);
  ids.delete("");
  for (const id of vnode.jobs.keys()) ids.add(id);
  return [...ids];
}

/** Optional attributes of jobs, under the names that they have in messages to schedulers. */
const OPTIONAL = {
  account: "Account_Name",
  etime_s: "etime",
  stime_s: "stime",
  exec_vnode: "exec_vnode",
  resources_used: "resources_used",
  eligible_time_s: "eligible_time",
  accrue_type: "accrue_type",
  clock: "accrual_clock",
  comment: "comment",
  topjob: "topjob",
  topjob_ineligible: "topjob_ineligible",
  sched_preempted_s: "ptime",
  released: "resources_released",
  estimated: "estimated",
  array_id: "array_id",
  backend_opts: "backend_opts",
} as const;

function schedArray(subjobs: Subjobs, max_run_subjobs: unknown): SchedJob["array"] {
  return {
    indices_remaining: remainingText(subjobs),
    running: (subjobs.live.get("R") ?? 0) + (subjobs.live.get("E") ?? 0),
    ...(typeof max_run_subjobs === "number" ? { max_run_subjobs } : {}),
  };
}

/** Returns a function that gives a job the form for schedulers, from the present state. */
function jobView(state: ServerState, sched: Sched, view: View): (job: Job) => SchedJob {
  const seen = (job: Job): SchedJob => {
    const queue = state.queues.get(job.attrs.queue);
    const value = schedJob(state, job);
    return queue !== undefined && view.queue(queue) ? value : { ...value, kill_delay_s: killDelayOf(queue) };
  };
  if (!wantsPressure(state, sched)) return seen;
  const pressure = pressuresNow(state);
  return (job) => ({ ...seen(job), pressure_s: pressure(job) });
}

function schedJob(state: ServerState, job: Job): SchedJob {
  const { attrs } = job;
  const { select: _select, place, ...resources } = attrs.Resource_List;
  const value: { [name: string]: unknown } = {
    id: job.id,
    state: attrs.job_state,
    substate: attrs.substate,
    queue: attrs.queue,
    rank: attrs.queue_rank,
    user: attrs.euser,
    group: attrs.egroup,
    project: attrs.project,
    name: attrs.Job_Name,
    priority: attrs.Priority,
    schedselect: attrs.schedselect,
    place: typeof place === "string" ? place : "free",
    resources,
    ctime_s: attrs.ctime,
    qtime_s: attrs.qtime,
    run_count: attrs.run_count ?? 0,
    rerunable: attrs.Rerunable,
  };
  if (attrs["Checkpoint"] === "n") value["no_checkpoint"] = true;
  const resv = state.resv_queues.get(attrs.queue);
  if (resv !== undefined) value["resv"] = resv;
  if (job.subjobs !== undefined) value["array"] = schedArray(job.subjobs, attrs["max_run_subjobs"]);
  for (const name in OPTIONAL) {
    const set = attrs[OPTIONAL[name as keyof typeof OPTIONAL]];
    if (set !== undefined) value[name] = set;
  }
  if (job.own.paused !== undefined) value["paused_s"] = job.own.paused;
  return value as SchedJob;
}

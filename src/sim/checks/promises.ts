// K10. A top job's published start moves to a later time only because of jobs that precede it in the order, reservations,
//     vnodes, commands, or a job that runs past its walltime and kill_delay. This file checks whole complexes, cycle by cycle.
//     If a start has moved, the check searches for the cause. Only changes since the beginning of the cycle that published
//     the start can be the cause.
//
// C1. Three states are compared. before: the state when cycle N - 1 began, from which the start was computed. begun: the state
//     when cycle N began, with the start that N - 1 published and N moved. after: the state when N + 1 began, with the
//     decisions of N. The comparison therefore contains every change in between, and no change that N - 1 already knew.
// C2. Only a complex with a simple order of jobs is checked (judgedScenario): jobs are ordered by queue and submission, and
//     there are no preemption, hooks, sort keys or changes of the clock.
// C3. These are causes too: the server refused the start of the job (for an array, of a subjob) or of a preceding job. A job of
//     a reservation keeps its vnodes after the reservation's end. A job was already past its end when the start was planned,
//     and could have ended at any moment, but did not. A job started some time after the cycle that decided its start; the
//     starts of other jobs may then move by that time.

import { listOf } from "#model/attribute-reader.ts";
import { arrayIdOf } from "#model/job-id.ts";
import type { Request } from "#protocol/messages.ts";
import type { Policy } from "#sched/shapes/policy.ts";
import type { Core } from "#server/core/core.ts";
import type { SchedRuntime } from "#server/engine/sched-runtime.ts";
import { killDelayOf } from "#server/jobs/queue-defaults.ts";
import { schedOfQueue } from "#server/state/partitions.ts";
import type { Job, ServerState } from "#server/state/state.ts";
import { remainingText } from "#server/state/subjobs.ts";
import { isDerived } from "#server/state/vnode-states.ts";
import { mustGet } from "#support/assert.ts";

/** What decides whether the starts in a scenario can be checked. */
export type Judged = {
  readonly policy: Policy;
  readonly setup: readonly Request[];
  readonly ops: readonly string[];
  readonly faults: readonly string[];
};
type Promised = { readonly start_s: number; readonly exec_vnode: string };
/** What is known about a job that may affect the starts of other jobs. */
type JobSeen = {
  readonly id: string;
  readonly state: string;
  readonly rank: number;
  readonly queue: string;
  /** the job's request and its holds, as a text */
  readonly own: string;
  readonly run_count: number;
  readonly by_hand: boolean;
  /** true: the server refused its last start */
  readonly refused: boolean;
  /** for an array: the waiting subjobs */
  readonly remaining: string;
  readonly exec_vnode: string;
  readonly stime_s: number;
  /** the time at which its walltime began */
  readonly from_s: number;
  readonly walltime_s: number | null;
  readonly soft_s: number | null;
  readonly grace_s: number;
  /** for a shrink-to-fit job the walltime with which it is planned, for others walltime_s */
  readonly shortest_s: number | null;
  /** the end of its reservation; Infinity: the job is in no reservation */
  readonly resv_end_s: number;
  readonly promised: Promised | null;
};
type Seen = {
  readonly at_s: number;
  readonly jobs: ReadonlyMap<string, JobSeen>;
  /** position of each queue in the order of queues, by name */
  readonly turns: ReadonlyMap<string, number>;
  /** everything else on which starts depend: texts by name */
  readonly world: ReadonlyMap<string, string>;
};
/**
 * What was seen when a scheduler's last cycle began (`begin`), and when the cycle before that one began (`before`). ordered: the
 * jobs that an administrator has run (qrun) since `begin`; ordered_before: those run between `before` and `begin`.
 */
type Track = {
  readonly link: number | null;
  readonly cycle: number;
  readonly begin: Seen;
  readonly before: Seen | null;
  readonly ordered: readonly string[];
  readonly ordered_before: readonly string[];
  /** by job: the time between the beginning of the cycle that decided its start and the start itself */
  readonly late: Map<string, number>;
};

export type PromiseCheck = {
  /** Examines the server after each of its steps. Returns the fault; null: there is none. */
  look(core: Core): string | null;
  readonly counts: { promises: number; moved: number };
};

export function createPromiseCheck(scenario: Judged, now_ms: () => number): PromiseCheck {
  const tracks = new WeakMap<SchedRuntime, Track>();
  const counts = { promises: 0, moved: 0 };
  const judges = isPlain(scenario);
  return {
    counts,
    look(core) {
      if (!judges) return null;
      for (const runtime of core.kernel.scheds.by_name.values()) {
        const track = tracks.get(runtime);
        if (track?.cycle === runtime.cycle && track.link === runtime.link) continue;
        // The cycle of a qrun publishes no starts.
        if (track !== undefined && track.link === runtime.link && runtime.running !== null) {
          tracks.set(runtime, { ...track, cycle: runtime.cycle, ordered: [...track.ordered, runtime.running] });
          continue;
        }
        const begin = see(core, Math.floor(now_ms() / 1000), scenario);
        const follows = track !== undefined && track.link === runtime.link && track.cycle + 1 === runtime.cycle;
        const times = { link: runtime.link, cycle: runtime.cycle, begin, before: follows ? track.begin : null };
        const late = track?.late ?? new Map<string, number>();
        tracks.set(runtime, { ...times, ordered: [], ordered_before: follows ? track.ordered : [], late });
        if (!follows) continue;
        noteLate(late, track.begin, begin);
        if (track.before === null || core.state.queues.size === 0) continue;
        for (const [id, job] of track.begin.jobs) {
          const { promised } = job;
          if (promised === null || !plans(core.state, runtime, job)) continue;
          counts.promises++;
          const now = begin.jobs.get(id);
          if (now?.promised == null || now.promised.start_s <= promised.start_s) continue;
          if (hasBegun(id, track.begin, begin)) continue;
          counts.moved++;
          const slip_s = now.promised.start_s - promised.start_s;
          const ordered = [...track.ordered_before, ...track.ordered];
          if (
            causeOf({ id, before: track.before, begun: track.begin, after: begin, ordered }) !== null ||
            slip_s <= Math.max(0, ...late.values())
          )
            continue;
          return `K10 ${id} of ${runtime.name} was to start at ${promised.start_s} on ${promised.exec_vnode}, now at ${now.promised.start_s} on ${now.promised.exec_vnode}`;
        }
      }
      return null;
    },
  };
}

/** Returns whether a scheduler plans the jobs of a queue. */
function plans(state: ServerState, { name }: SchedRuntime, { queue }: JobSeen): boolean {
  const its = state.queues.get(queue);
  return its !== undefined && schedOfQueue(state, its)?.name === name;
}

/** Returns whether the order of jobs is known (C2). */
function isPlain({ policy, setup, ops, faults }: Judged): boolean {
  if (!policy.strict_ordering || policy.job_sort_key.length > 0 || policy.round_robin || policy.preemptive_sched) return false;
  // When the clock is changed, all times change.
  if (ops.includes("hook") || faults.includes("set-clock")) return false;
  return !setup.some((request) => request.kind === "import-hook" || (request.kind === "manager" && request.object === "hook"));
}

// --- what is observed

function see({ state, kernel: { moms } }: Core, at_s: number, { policy }: Judged): Seen {
  const jobs = new Map<string, JobSeen>();
  for (const job of state.jobs.values()) jobs.set(job.id, seeJob(state, job));
  const queues = [...state.queues.values()].sort(
    (a, b) => Number(b.attrs["Priority"] ?? 0) - Number(a.attrs["Priority"] ?? 0) || a.order - b.order,
  );
  const turns = new Map(queues.map(({ name }, at) => [name, policy.by_queue ? at : 0]));
  const world = seeWorld(state);
  // While a mom was lost, the server refused starts on its host. Afterwards the mom has another link, so that this counts as a change.
  for (const { host, link } of moms.by_host.values()) world.set(`mom ${host}`, String(link));
  return { at_s, jobs, turns, world };
}

function seeJob(state: ServerState, { id, attrs, own, subjobs }: Job): JobSeen {
  const seconds = (name: string): number | null => {
    const value = attrs.Resource_List[name];
    return typeof value === "number" ? value : null;
  };
  const { start_time, exec_vnode } = (attrs["estimated"] ?? {}) as { readonly start_time?: number; readonly exec_vnode?: string };
  const resv = state.resv_queues.get(attrs.queue);
  const promised = attrs["topjob"] === true && start_time !== undefined && "QB".includes(attrs.job_state);
  const asked = [
    attrs.schedselect,
    attrs.Resource_List,
    attrs["Hold_Types"],
    attrs["Execution_Time"],
    attrs["depend"],
    attrs["topjob_ineligible"],
  ];
  return {
    id,
    state: attrs.job_state,
    rank: attrs.queue_rank,
    queue: attrs.queue,
    own: JSON.stringify(asked),
    run_count: attrs.run_count ?? 0,
    by_hand: own.placed_by_hand === true,
    refused: String(attrs["comment"] ?? "").startsWith("Not Running: PBS Error"),
    remaining: subjobs === undefined ? "" : remainingText(subjobs),
    exec_vnode: attrs.exec_vnode ?? "",
    stime_s: attrs.stime ?? 0,
    from_s: (attrs.stime ?? 0) + (own.paused ?? 0),
    walltime_s: seconds("walltime"),
    soft_s: seconds("soft_walltime"),
    grace_s: killDelayOf(state.queues.get(attrs.queue)),
    shortest_s: seconds("min_walltime") ?? seconds("walltime"),
    resv_end_s: resv === undefined ? Number.POSITIVE_INFINITY : (state.resvs.get(resv)?.attrs.reserve_end ?? Number.NEGATIVE_INFINITY),
    promised: promised ? { start_s: start_time, exec_vnode: exec_vnode ?? "" } : null,
  };
}

/** Attributes that change by themselves, and are therefore not compared. */
const VOLATILE =
  /^(state|.*state_count|total_jobs|resources_assigned|jobs|last_.*|.*_time|comment|server_state|pbs_version|license_count|hasnodes|resv)$/;

function seeWorld(state: ServerState): Map<string, string> {
  const world = new Map<string, string>();
  const put = (name: string, attrs: { readonly [name: string]: unknown }, more: unknown = null): void =>
    void world.set(name, JSON.stringify([Object.entries(attrs).filter(([key]) => !VOLATILE.test(key)), more]));
  put("server", state.server);
  for (const { name, attrs } of state.queues.values()) put(`queue ${name}`, attrs);
  for (const { name, attrs } of state.scheds.values()) put(`sched ${name}`, attrs);
  for (const { name, attrs } of state.vnodes.values())
    put(
      `vnode ${name}`,
      attrs,
      listOf(attrs, "state").filter((word) => !isDerived(word)),
    );
  for (const { id, attrs } of state.resvs.values())
    world.set(`reservation ${id}`, JSON.stringify([attrs["promised"], attrs.reserve_state, attrs.reserve_substate]));
  return world;
}

function noteLate(late: Map<string, number>, before: Seen, after: Seen): void {
  // A job that has just ended can still move starts once.
  for (const id of late.keys()) if (before.jobs.get(id)?.state !== "R") late.delete(id);
  for (const { id, state, stime_s } of after.jobs.values())
    if (state === "R" && before.jobs.get(id)?.state !== "R") late.set(id, Math.max(0, stime_s - before.at_s));
}

// --- causes of moved starts

/** The states of C1. before: the state from which the start was computed. begun: the state with the start before it moved. after: the state after it moved */
type Times = { readonly before: Seen; readonly begun: Seen; readonly after: Seen };
type Moved = Times & { readonly id: string; readonly ordered: readonly string[] };

/** A scheduler may get to know of a change this many seconds after the beginning of a cycle. */
const DELAY_S = 2;

/** Returns the cause of a moved start; null: there is none. */
function causeOf({ id, before, begun, after, ordered }: Moved): string | null {
  for (const name of new Set([...before.world.keys(), ...after.world.keys()]))
    if (before.world.get(name) !== begun.world.get(name) || begun.world.get(name) !== after.world.get(name)) return `${name} has changed`;
  const own = mustGet(after.jobs, id);
  if (isOtherwise(before.jobs.get(id), own)) return `${id} has changed`;
  if (own.refused || begun.jobs.get(id)?.refused === true) return `a start of ${id} was refused`;
  for (const other of ordered) {
    const job = after.jobs.get(other) ?? begun.jobs.get(other);
    if (job === undefined || !waits(job)) return `an administrator had ${other} run`;
  }
  const times = { before, begun, after };
  for (const other of new Set([...begun.jobs.keys(), ...after.jobs.keys()])) {
    if (other === id) continue;
    const last = (after.jobs.get(other) ?? begun.jobs.get(other)) as JobSeen;
    const cause = standsBefore(after, last, own) ? higherWork(other, times) : lowerWork(other, times);
    if (cause !== null) return cause;
  }
  // The scheduler saw these jobs when it moved the start, although they may have ended since.
  for (const job of begun.jobs.values()) if (isOverdue(job, begun.at_s + DELAY_S)) return `${job.id} should have been gone`;
  // The start was planned behind a job that could have ended at any moment.
  for (const job of before.jobs.values()) if (isOverdue(job, before.at_s)) return `${job.id} should long have been gone`;
  return null;
}

/** Returns whether a subjob of the array has started. The array may wait again; the published start is then the start of its next subjob. */
function hasBegun(id: string, before: Seen, after: Seen): boolean {
  if (before.jobs.get(id)?.remaining !== after.jobs.get(id)?.remaining) return true;
  for (const job of after.jobs.values()) if (arrayIdOf(job.id) === id && before.jobs.get(job.id)?.run_count !== job.run_count) return true;
  return false;
}

/**
 * Returns whether the request of a job or its position in the order has changed. The walltime of a shrink-to-fit job, which
 * is set when it starts, does not count.
 */
const isOtherwise = (old: JobSeen | undefined, now: JobSeen): boolean =>
  old === undefined || old.queue !== now.queue || old.rank !== now.rank || (waits(old) === waits(now) && old.own !== now.own);

/** Returns whether the job has no vnodes. An array always counts as waiting. */
const waits = ({ state }: JobSeen): boolean => state !== "R" && state !== "E";

function standsBefore({ turns }: Seen, a: JobSeen, b: JobSeen): boolean {
  const [turn, other] = [turns.get(a.queue) ?? 0, turns.get(b.queue) ?? 0];
  return turn < other || (turn === other && a.rank < b.rank);
}

/**
 * Returns a cause among preceding jobs; null: none. A preceding job may have arrived, changed or come back, may have been
 * planned or started differently, could not start, or takes longer than expected.
 */
function higherWork(id: string, { before, begun, after }: Times): string | null {
  const [first, then, now] = [before.jobs.get(id), begun.jobs.get(id), after.jobs.get(id)];
  for (const [old, next] of [
    [first, then],
    [then, now],
  ])
    if (next !== undefined && (isOtherwise(old, next) || (old !== undefined && cameBack(old, next)))) return `${id} has come or changed`;
  if (then?.by_hand === true || now?.by_hand === true) return `${id} was placed by hand`;
  if (then?.refused === true || now?.refused === true) return `a start of ${id} was refused`;
  if (then !== undefined && waits(then)) {
    if (then.remaining !== "" && then.remaining !== now?.remaining) return `subjobs of ${id} were started`;
    if (now === undefined) return `${id} was started and is over`;
    if (waits(now)) {
      const [old, plan] = [then.promised, now.promised];
      if (plan !== null && (old?.start_s !== plan.start_s || old.exec_vnode !== plan.exec_vnode)) return `${id} is planned otherwise`;
    } else if (then.promised?.exec_vnode !== now.exec_vnode || then.promised.start_s > now.stime_s || now.walltime_s !== now.shortest_s)
      return `${id} was started otherwise than planned`;
  }
  return then !== undefined && !waits(then) && then.soft_s !== null && then.from_s + then.soft_s <= begun.at_s + DELAY_S
    ? `${id} runs past its soft_walltime`
    : null;
}

/** Returns whether the job waits again, runs again or was resumed. A job that has run and come back between the two moments also counts as waiting again. */
function cameBack(old: JobSeen, now: JobSeen): boolean {
  if (old.state === "S" || now.state === "S") return old.state !== now.state;
  return waits(now) ? !waits(old) || old.run_count !== now.run_count : !waits(old) && old.run_count !== now.run_count;
}

/**
 * Returns why the job `id`, which is behind the moved job in the order, may have moved its start; null: it has not. Reasons: the job was placed by hand, resumed, or
 * changed while it runs.
 */
function lowerWork(id: string, { before, begun, after }: Times): string | null {
  const [first, then, now] = [before.jobs.get(id), begun.jobs.get(id), after.jobs.get(id)];
  if (then?.by_hand === true || now?.by_hand === true) return `${id} was placed by hand`;
  for (const [old, next] of [
    [first, then],
    [then, now],
  ]) {
    if (old === undefined || next === undefined) continue;
    if (old.state === "S" && next.state === "R") return `${id} goes on`;
    if (!waits(old) && !waits(next) && isOtherwise(old, next)) return `${id} was changed while it runs`;
  }
  return null;
}

/** Returns whether a job keeps its vnodes beyond its walltime and kill_delay, or beyond the end of its reservation. */
function isOverdue(job: JobSeen, at_s: number): boolean {
  const { from_s, walltime_s, grace_s, resv_end_s } = job;
  return !waits(job) && (resv_end_s <= at_s || (walltime_s !== null && from_s + walltime_s + grace_s <= at_s));
}

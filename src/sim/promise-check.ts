// K10. A top job's published start moves back only for work that stands before it in the order, for reservations, vnodes, commands, or for a job that runs
//      past its walltime and kill_delay: in whole complexes, cycle by cycle. Each start that has moved back needs a cause, which is looked for in what is
//      otherwise now than it was when the cycle that published it began.
//
// C1. What is compared: the state when a cycle N begins, with the starts that cycle N - 1 has published; and the state when N - 1 began, which is what those
//     starts were made from. So everything that came in between is seen, and nothing that N - 1 knew.
// C2. Only schedulers are judged whose order is known: by queues and submission, without preemption, hooks and sort keys. Starts that take a while (the server
//     starts a job some time after its cycle began) may move a start by so long.

import { arrayIdOf } from "#model/job-id.ts";
import type { Core } from "#server/core/core.ts";
import type { SchedRuntime } from "#server/engine/sched-runtime.ts";
import { killDelayOf } from "#server/jobs/queue-defaults.ts";
import type { Job, ServerState } from "#server/state/state.ts";
import { remainingText } from "#server/state/subjobs.ts";
import { isDerived } from "#server/state/vnode-states.ts";
import type { Scenario } from "./scenario.ts";

type Promised = { readonly start_s: number; readonly exec_vnode: string };
/** A job as far as it matters for starts of others. */
type JobSeen = {
  readonly id: string;
  readonly state: string;
  readonly rank: number;
  readonly queue: string;
  /** what it asks, its holds, how often it ran */
  readonly own: string;
  readonly by_hand: boolean;
  /** of an array: subjobs that wait */
  readonly remaining: string;
  readonly exec_vnode: string;
  readonly stime_s: number;
  /** from there its walltime counts */
  readonly from_s: number;
  readonly walltime_s: number | null;
  readonly soft_s: number | null;
  readonly grace_s: number;
  readonly promised: Promised | null;
};
type Seen = {
  readonly at_s: number;
  readonly jobs: ReadonlyMap<string, JobSeen>;
  /** queues by name: their place in the order */
  readonly turns: ReadonlyMap<string, number>;
  /** everything else that starts depend on, as text by name */
  readonly world: ReadonlyMap<string, string>;
};
type Track = { readonly link: number | null; readonly cycle: number; readonly begin: Seen; readonly before: Seen | null };

export type PromiseCheck = {
  /** looks at the server after each of its steps. Returns what is wrong; null: nothing */
  look(core: Core): string | null;
  readonly counts: { promises: number; moved: number };
};

export function createPromiseCheck(scenario: Scenario, now_ms: () => number): PromiseCheck {
  const tracks = new WeakMap<SchedRuntime, Track>();
  const counts = { promises: 0, moved: 0 };
  /** by how long a run began after the cycle that decided it: by `job/run_count` */
  const late = new Map<string, number>();
  const judges = isPlain(scenario);
  return {
    counts,
    look(core) {
      if (!judges) return null;
      for (const runtime of core.kernel.scheds.values()) {
        const track = tracks.get(runtime);
        if (track?.cycle === runtime.cycle && track.link === runtime.link) continue;
        const begin = see(core.state, Math.floor(now_ms() / 1000), scenario);
        const follows = track !== undefined && track.link === runtime.link && track.cycle + 1 === runtime.cycle;
        tracks.set(runtime, { link: runtime.link, cycle: runtime.cycle, begin, before: follows ? track.begin : null });
        if (!follows) continue;
        noteLate(late, track.begin, begin);
        if (track.before === null || core.state.queues.size === 0) continue;
        for (const [id, { promised }] of track.begin.jobs) {
          if (promised === null) continue;
          counts.promises++;
          const now = begin.jobs.get(id);
          if (now?.promised == null || now.promised.start_s <= promised.start_s) continue;
          if (hasBegun(id, track.begin, begin)) continue;
          counts.moved++;
          const slip_s = now.promised.start_s - promised.start_s;
          if (causeOf({ id, before: track.before, begun: track.begin, after: begin }) !== null || slip_s <= Math.max(0, ...late.values()))
            continue;
          return `K10 ${id} of ${runtime.name} was to start at ${promised.start_s} on ${promised.exec_vnode}, now at ${now.promised.start_s} on ${now.promised.exec_vnode}`;
        }
      }
      return null;
    },
  };
}

/** Whether who stands before whom is known. */
function isPlain({ policy, setup, ops, faults }: Scenario): boolean {
  if (!policy.strict_ordering || policy.job_sort_key.length > 0 || policy.round_robin) return false;
  // A clock that is set makes every time another one.
  if (ops.includes("hook") || faults.includes("set-clock")) return false;
  return !setup.some((request) => request.kind === "import-hook" || (request.kind === "manager" && request.object === "hook"));
}

// --- what is seen

function see(state: ServerState, at_s: number, { policy }: Scenario): Seen {
  const jobs = new Map<string, JobSeen>();
  for (const job of state.jobs.values()) jobs.set(job.id, seeJob(state, job));
  const queues = [...state.queues.values()].sort(
    (a, b) => Number(b.attrs["Priority"] ?? 0) - Number(a.attrs["Priority"] ?? 0) || a.order - b.order,
  );
  const turns = new Map(queues.map(({ name }, at) => [name, policy.by_queue ? at : 0]));
  return { at_s, jobs, turns, world: seeWorld(state) };
}

function seeJob(state: ServerState, { id, attrs, own, subjobs }: Job): JobSeen {
  const seconds = (name: string): number | null => {
    const value = attrs.Resource_List[name];
    return typeof value === "number" ? value : null;
  };
  const { start_time, exec_vnode } = (attrs["estimated"] ?? {}) as { readonly start_time?: number; readonly exec_vnode?: string };
  const promised = attrs["topjob"] === true && start_time !== undefined && "QB".includes(attrs.job_state);
  const asked = [
    attrs.schedselect,
    attrs.Resource_List,
    attrs["Hold_Types"],
    attrs["Execution_Time"],
    attrs["depend"],
    attrs.run_count,
    attrs["topjob_ineligible"],
  ];
  return {
    id,
    state: attrs.job_state,
    rank: attrs.queue_rank,
    queue: attrs.queue,
    own: JSON.stringify(asked),
    by_hand: own.placed_by_hand === true,
    remaining: subjobs === undefined ? "" : remainingText(subjobs),
    exec_vnode: attrs.exec_vnode ?? "",
    stime_s: attrs.stime ?? 0,
    from_s: (attrs.stime ?? 0) + (own.paused ?? 0),
    walltime_s: seconds("walltime"),
    soft_s: seconds("soft_walltime"),
    grace_s: killDelayOf(state.queues.get(attrs.queue)),
    promised: promised ? { start_s: start_time, exec_vnode: exec_vnode ?? "" } : null,
  };
}

/** Attributes that change by themselves. */
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
      (Array.isArray(attrs["state"]) ? (attrs["state"] as string[]) : []).filter((word) => !isDerived(word)),
    );
  for (const { id, attrs } of state.resvs.values())
    world.set(`reservation ${id}`, JSON.stringify([attrs["promised"], attrs.reserve_state, attrs.reserve_substate]));
  return world;
}

function noteLate(late: Map<string, number>, before: Seen, after: Seen): void {
  // What has just ended has moved starts for a last time.
  for (const id of late.keys()) if (before.jobs.get(id)?.state !== "R") late.delete(id);
  for (const { id, state, stime_s } of after.jobs.values())
    if (state === "R" && before.jobs.get(id)?.state !== "R") late.set(id, Math.max(0, stime_s - before.at_s));
}

// --- causes

/** before: what the start was made from. begun: with the start. after: it has moved */
type Moved = { readonly id: string; readonly before: Seen; readonly begun: Seen; readonly after: Seen };

/** What has moved a start; null: nothing that may. */
function causeOf({ id, before, begun, after }: Moved): string | null {
  for (const name of new Set([...before.world.keys(), ...after.world.keys()]))
    if (before.world.get(name) !== after.world.get(name)) return `${name} has changed`;
  const own = after.jobs.get(id) as JobSeen;
  if (isOtherwise(before.jobs.get(id), own)) return `${id} has changed`;
  for (const job of after.jobs.values()) {
    if (job.id === id) continue;
    const cause = standsBefore(after, job, own) ? higherWork(job, { before, begun, after }) : handMade(job, before);
    if (cause !== null) return cause;
  }
  for (const job of begun.jobs.values())
    if (!after.jobs.has(job.id) && /\d/.test(job.remaining) && standsBefore(after, job, own)) return `subjobs of ${job.id} were started`;
  // The scheduler looked at those when it moved the start, whether they are gone by now or not.
  for (const job of begun.jobs.values()) if (isOverdue(job, after.at_s)) return `${job.id} should have been gone`;
  return null;
}

/** One of an array's subjobs was started, though it may wait again: what is promised now is the next one's. */
function hasBegun(id: string, before: Seen, after: Seen): boolean {
  if (before.jobs.get(id)?.remaining !== after.jobs.get(id)?.remaining) return true;
  for (const job of after.jobs.values()) if (arrayIdOf(job.id) === id && before.jobs.get(job.id)?.own !== job.own) return true;
  return false;
}

const isOtherwise = (old: JobSeen | undefined, now: JobSeen): boolean =>
  old?.own !== now.own || old.queue !== now.queue || old.rank !== now.rank;

function standsBefore({ turns }: Seen, a: JobSeen, b: JobSeen): boolean {
  const [turn, other] = [turns.get(a.queue) ?? 0, turns.get(b.queue) ?? 0];
  return turn < other || (turn === other && a.rank < b.rank);
}

/** A job before it came or changed, is planned or was started otherwise than it was, or takes longer than expected. */
function higherWork(now: JobSeen, { before, begun, after }: Omit<Moved, "id">): string | null {
  const [old, then] = [before.jobs.get(now.id), begun.jobs.get(now.id)];
  if (isOtherwise(old, now) || (old?.state !== now.state && now.state !== "R" && now.state !== "E")) return `${now.id} has come or changed`;
  if (old?.remaining !== now.remaining) return `subjobs of ${now.id} were started`;
  const [planned, plan] = [then?.promised ?? null, now.promised];
  if (plan !== null && (planned === null || planned.start_s !== plan.start_s || planned.exec_vnode !== plan.exec_vnode))
    return `${now.id} is planned otherwise`;
  if (now.state !== "R") return null;
  const as_planned = planned !== null && planned.exec_vnode === now.exec_vnode && planned.start_s <= now.stime_s;
  if (old?.state !== "R" && !as_planned) return `${now.id} was started otherwise than planned`;
  return now.soft_s !== null && now.from_s + now.soft_s <= after.at_s ? `${now.id} runs past its soft_walltime` : null;
}

/** A job behind it whose start no scheduler decided, or that was changed. */
function handMade(now: JobSeen, before: Seen): string | null {
  const old = before.jobs.get(now.id);
  if (now.by_hand) return `${now.id} was placed by hand`;
  if (old?.state === "S" && now.state === "R") return `${now.id} goes on`;
  return old !== undefined && now.state === "R" && old.state === "R" && isOtherwise(old, now)
    ? `${now.id} was changed while it runs`
    : null;
}

/** A job has its vnodes past its walltime and kill_delay, or never had an end. */
function isOverdue({ state, from_s, walltime_s, grace_s }: JobSeen, at_s: number): boolean {
  return (state === "R" || state === "E") && walltime_s !== null && from_s + walltime_s + grace_s <= at_s;
}

// Causes of a moved promise: each cause is derived from the events since the promise was last published, and never assumed.

import { parseIndexList } from "#model/array-indices.ts";
import { arrayIdOf, subjobIndex } from "#model/job-id.ts";
import type { SchedJob } from "#protocol/sched-link.ts";
import type { Happening, PromiseWorld } from "./promise-world.ts";
import { hardEnd, killDelayOf, softTime, spotsOf } from "./promise-world.ts";

export type Promised = { readonly start_s: number; readonly exec_vnode: string };
/** The state when promises were last published, and the state after the cycle that has moved one. */
export type Seen = {
  readonly at_s: number;
  readonly promises: ReadonlyMap<string, Promised>;
  readonly jobs: ReadonlyMap<string, SchedJob>;
  readonly ends: ReadonlyMap<string, number>;
};

export function see(world: PromiseWorld): Seen {
  const promises = new Map<string, Promised>();
  for (const { id, state, topjob, estimated } of world.jobs.values())
    if (state !== "R" && topjob === true && estimated?.start_time !== undefined)
      promises.set(id, { start_s: estimated.start_time, exec_vnode: estimated.exec_vnode ?? "" });
  return { at_s: world.now_s, promises, jobs: new Map(world.jobs), ends: new Map(world.ends) };
}

/** Whether a job precedes another in the order: by queue if the order is by queue, then by submission. */
export function standsBefore({ queues, book }: PromiseWorld, a: SchedJob, b: SchedJob): boolean {
  const turn = ({ queue }: SchedJob): number => (book.prime.by_queue ? queues.findIndex(({ name }) => name === queue) : 0);
  return turn(a) < turn(b) || (turn(a) === turn(b) && a.rank < b.rank);
}

export type Cause = { readonly kind: "higher" | "reservation" | "vnode" | "command" | "overrun"; readonly evidence: string };

/** The cause that has moved a job's promise, or null if there is none. */
export function causeOf(world: PromiseWorld, id: string, before: Seen, after: Seen): Cause | null {
  const job = before.jobs.get(id) as SchedJob;
  for (const happening of world.happened) {
    const cause = causeOfHappening(happening);
    if (cause !== null) return cause;
  }
  for (const other of [...before.jobs.values(), ...after.jobs.values()]) {
    const evidence = standsBefore(world, other, job) ? higherWork(other.id, before, after) : null;
    if (evidence !== null) return { kind: "higher", evidence };
  }
  return outOfDepth(world, job, after) ?? overrun(world, job, before);
}

/** The job is no longer a top job: preceding jobs use up the depth. */
function outOfDepth(world: PromiseWorld, job: SchedJob, { promises, jobs }: Seen): Cause | null {
  if (promises.has(job.id)) return null;
  const depth = Number(world.universe.server.attrs["backfill_depth"] ?? Number.POSITIVE_INFINITY);
  const higher = [...promises.keys()].filter((id) => standsBefore(world, jobs.get(id) as SchedJob, job));
  return higher.length >= depth ? { kind: "higher", evidence: `${higher} are the ${depth} top jobs` } : null;
}

function causeOfHappening(happening: Happening): Cause {
  switch (happening.kind) {
    case "vnode":
      return { kind: "vnode", evidence: `${happening.name} went or came` };
    case "resv":
      return { kind: "reservation", evidence: `${happening.id} was confirmed` };
    case "command":
      return { kind: "command", evidence: happening.what };
  }
}

/** A preceding job arrived, took another place or time than planned, or takes longer than expected. */
function higherWork(id: string, before: Seen, after: Seen): string | null {
  const old = before.jobs.get(id);
  const now = after.jobs.get(id);
  if (now !== undefined && old === undefined && arrayIdOf(id) === null) return `${id} has come`;
  // Only the next subjob of an array is planned.
  const array = before.jobs.get(arrayIdOf(id) ?? "")?.array;
  const is_next = array === undefined || parseIndexList(array.indices_remaining)?.[0]?.first === subjobIndex(id);
  const planned = is_next ? before.promises.get(arrayIdOf(id) ?? id) : undefined;
  const plan = after.promises.get(id);
  if (plan !== undefined && (planned?.start_s !== plan.start_s || planned.exec_vnode !== plan.exec_vnode))
    return `${id} is planned otherwise`;
  if (now?.state === "R" && old?.state !== "R") {
    const as_planned = planned !== undefined && now.stime_s === planned.start_s && now.exec_vnode === planned.exec_vnode;
    if (!as_planned) return `${id} was started otherwise than planned`;
    // Shrink-to-fit jobs are planned with their shortest time.
    if (Number(now.resources["walltime"]) > Number(now.resources["min_walltime"]))
      return `${id} was started for more than its shortest time`;
  }
  if (now?.state === "R" && old?.state === "R") {
    // The job should have ended by now, according to its expected time when the promise was made.
    const soft_s = softTime(now);
    const from_s = now.stime_s ?? 0;
    if (soft_s === null || soft_s <= 0) return null;
    const expected_s = from_s + soft_s * (Math.floor((before.at_s - from_s) / soft_s) + 1);
    if (expected_s <= after.at_s && expected_s < (hardEnd(now) ?? Number.POSITIVE_INFINITY)) return `${id} runs past ${expected_s}`;
  }
  return null;
}

/** A job is on a host of the promised place beyond its walltime and kill_delay. */
function overrun(world: PromiseWorld, job: SchedJob, before: Seen): Cause | null {
  const hosts = (exec_vnode: string, place: string): Set<string> =>
    new Set(
      [...spotsOf(world.vnodes, exec_vnode, place).keys()].map((name) => world.vnodes.find((vnode) => vnode.name === name)?.host ?? ""),
    );
  const wanted = hosts(before.promises.get(job.id)?.exec_vnode ?? "", job.place);
  for (const [id, end_s] of world.ends) {
    const running = world.jobs.get(id) as SchedJob;
    const hard_s = hardEnd(running);
    if (hard_s === null || hard_s + killDelayOf(world, running) > world.now_s || end_s <= world.now_s) continue;
    const { max_run, max_run_res } = world.universe.server.attrs;
    const limited = max_run !== undefined || max_run_res !== undefined;
    if (limited || [...hosts(running.exec_vnode ?? "", running.place)].some((host) => wanted.has(host)))
      return { kind: "overrun", evidence: `${id} should have been gone at ${hard_s + killDelayOf(world, running)}` };
  }
  return null;
}

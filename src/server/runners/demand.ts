// Which jobs wait for a runner, by bucket, and the picture that pbs_runners gets (src/protocol/runner-link.ts). Everything is counted anew from the state in each pass: no count is
// kept from pass to pass, so none can be wrong for ever.
//
// D1. A job counts if it waits only for a place: it is queued in a started execution queue of a partition with an enabled backend.
// D2. The limits on running jobs of queue and server bound the number of runners of a bucket: a job that a limit keeps from running needs no runner.
// D3. However many buckets there are, a picture has a bounded size: owners take turns, and demands that find no room wait for a later picture.
// D4. A bucket whose jobs are held because no backend took a runner of the bucket stays in the picture with one job, so that the backends are asked again.

import { textOf } from "#model/attribute-reader.ts";
import { type Bucket, bucketOf, inTurns } from "#model/request/bucket.ts";
import type { Demand, RunnerWork, ServerToRunners } from "#protocol/runner-link.ts";
import { isRecord } from "#support/guards.ts";
import type { Kernel } from "../engine/kernel.ts";
import { isExecution } from "../jobs/life.ts";
import { isRefused } from "../jobs/retries.ts";
import { isWithMom, phaseName } from "../state/job-phase.ts";
import { backendsFor, doingOf, partitionOf, partitionOfBackend } from "../state/partitions.ts";
import type { Attrs, Job, JobAttrs, Queue, Runner, ServerState } from "../state/state.ts";
import { SUBJOB } from "../state/subjobs.ts";
import { startsRunners } from "./usable.ts";

type Answer = ReturnType<typeof bucketOf>;
/** The bucket of the last job that had this Resource_List. Jobs share their lists (state/intern.ts), so most jobs find here the answer for an earlier job. */
type Kept = {
  readonly euser: string;
  readonly queue: string;
  readonly project: string;
  readonly schedselect: string;
  readonly options: string | undefined;
  readonly answer: Answer;
};
const kept = new WeakMap<ServerState["resources"], WeakMap<object, Kept>>();

/** The bucket of a job, or why no runner can take it. */
export function bucketOfJob(state: ServerState, { attrs }: { readonly attrs: JobAttrs }): Answer {
  const { euser, queue, project, schedselect, Resource_List: list } = attrs;
  const options = textOf(attrs, "backend_opts");
  let known = kept.get(state.resources);
  if (known === undefined) kept.set(state.resources, (known = new WeakMap()));
  const last = known.get(list);
  if (
    last?.euser === euser &&
    last.queue === queue &&
    last.project === project &&
    last.schedselect === schedselect &&
    last.options === options
  )
    return last.answer;
  const answer = bucketOf({ owner: euser, queue, project, schedselect, list, options }, state.resources);
  known.set(list, { euser, queue, project, schedselect, options, answer });
  return answer;
}

export type Counted = {
  readonly demands: readonly Demand[];
  /** jobs that no runner can take, each with the reason */
  readonly impossible: readonly (readonly [job: Job, why: string])[];
};

/** held: whether jobs of the bucket are held because no backend took a runner (D4) */
type Count = { readonly bucket: Bucket; readonly partition: string; ready: number; priority: number; held: boolean };
/** running: how many jobs have vnodes. The key names the limit for which the jobs are counted: `QUEUE o:PBS_ALL`, `QUEUE u:OWNER` or `QUEUE p:PROJECT`. An empty QUEUE means all queues that are counted here. */
type Counting = { readonly counts: Map<string, Count>; readonly running: Map<string, number>; readonly impossible: [Job, string][] };

/** Counts the waiting jobs of all partitions with enabled backends. */
export function countDemands(state: ServerState): Counted {
  const counting: Counting = { counts: new Map(), running: new Map(), impossible: [] };
  for (const queue of state.queues.values()) {
    const partition = partitionOf(queue);
    if (!isExecution(queue) || queue.attrs["started"] !== true || state.resv_queues.has(queue.name)) continue;
    if (backendsFor(state, partition).length > 0) countQueue(state, queue, partition, counting);
  }
  const { counts, running, impossible } = counting;
  const rooms = new Map<string, number>();
  const demands: Demand[] = [];
  for (const { held, ...count } of [...counts.values()].sort((a, b) => b.priority - a.priority)) {
    const ready = withinLimits(state, { ...count, ready: Math.max(count.ready, held ? 1 : 0) }, running, rooms);
    if (ready > 0) demands.push({ ...count, ready, ...(held ? { trial: true } : {}) });
  }
  return { demands, impossible };
}

function countQueue(state: ServerState, queue: Queue, partition: string, { counts, running, impossible }: Counting): void {
  for (const id of queue.jobs) {
    const job = state.jobs.get(id);
    if (job === undefined) continue;
    const phase = phaseName(job);
    const held = phase === "held" && isRefused(job);
    if (phase !== "queued" && phase !== "begun" && !held) {
      if (!isWithMom(job)) continue;
      for (const key of limitsOf(queue.name, job.attrs.euser, job.attrs.project)) running.set(key, (running.get(key) ?? 0) + 1);
      continue;
    }
    if (job.attrs["array_id"] !== undefined) continue;
    const bucket = bucketOfJob(state, job);
    if ("impossible" in bucket) {
      if (!held) impossible.push([job, bucket.impossible]);
      continue;
    }
    const waiting = held ? 0 : job.subjobs === undefined ? 1 : job.subjobs.counts[SUBJOB.QUEUED] + job.subjobs.requeued.size;
    const priority = job.attrs.Priority;
    const count = counts.get(bucket.key);
    if (count === undefined) counts.set(bucket.key, { bucket, partition, ready: waiting, priority, held });
    else {
      count.ready += waiting;
      if (held) count.held = true;
      if (priority > count.priority) count.priority = priority;
    }
  }
}

const limitsOf = (queue: string, owner: string, project: string): readonly string[] => [
  `${queue} o:PBS_ALL`,
  `${queue} u:${owner}`,
  `${queue} p:${project}`,
  " o:PBS_ALL",
  ` u:${owner}`,
  ` p:${project}`,
];

/** How many of the waiting jobs of a bucket the limits on the number of running jobs admit (D2). rooms: what earlier buckets have left of each limit. */
function withinLimits(
  state: ServerState,
  { bucket, ready }: Pick<Count, "bucket" | "ready">,
  running: ReadonlyMap<string, number>,
  rooms: Map<string, number>,
): number {
  const keys = limitsOf(bucket.queue, bucket.owner, bucket.project).flatMap((key) => {
    const at = key.indexOf(" ");
    const queue = key.slice(0, at);
    const attrs = queue === "" ? state.server : state.queues.get(queue)?.attrs;
    const limit = limitIn(attrs ?? {}, key.slice(at + 1));
    if (limit === undefined) return [];
    if (!rooms.has(key)) rooms.set(key, Math.max(0, limit - (running.get(key) ?? 0)));
    return [key];
  });
  const admitted = keys.reduce((least, key) => Math.min(least, rooms.get(key) ?? 0), ready);
  for (const key of keys) rooms.set(key, (rooms.get(key) ?? 0) - admitted);
  return admitted;
}

/** The limit on running jobs for an entity (`u:alice`), in the new or the old style. */
function limitIn(attrs: Attrs, entity: string): number | undefined {
  const limits: unknown = attrs["max_run"];
  const limitOf = (name: string): number | undefined => {
    const limit = isRecord(limits) ? limits[name] : undefined;
    return typeof limit === "number" ? limit : undefined;
  };
  const generic = entity.startsWith("o:") ? undefined : limitOf(`${entity.slice(0, 2)}PBS_GENERIC`);
  const old = entity.startsWith("o:") ? attrs["max_running"] : entity.startsWith("u:") ? attrs["max_user_run"] : undefined;
  return limitOf(entity) ?? generic ?? (typeof old === "number" ? old : undefined);
}

/** Characters of all buckets of one picture (D3). */
const PICTURE_CHARS_MAX = 4 * 1024 * 1024;
/** Characters that a bucket takes in a picture besides its key and the resources that the key names. */
const BUCKET_CHARS = 300;

/** The demands that find room in a picture (D3). */
export function withinRoom(demands: readonly Demand[]): readonly Demand[] {
  let chars = 0;
  return inTurns(demands).filter(({ bucket }) => {
    const more = BUCKET_CHARS + 2 * bucket.key.length;
    if (chars + more > PICTURE_CHARS_MAX) return false;
    chars += more;
    return true;
  });
}

/** The whole picture for pbs_runners. */
export function pictureOf(kernel: Kernel, demands: readonly Demand[]): ServerToRunners["runners-work"] {
  const { state } = kernel;
  return {
    backends: [...state.backends.values()].map((backend) => ({
      name: backend.name,
      partition: partitionOfBackend(backend),
      // A backend that cannot be used is shown as disabled, so that none is asked for runners.
      attrs: startsRunners(kernel.config, backend) ? backend.attrs : { ...backend.attrs, enabled: false },
    })),
    demands: withinRoom(demands),
    runners: [...state.runners.values()].map((runner) => runnerWork(kernel, runner)),
  };
}

function runnerWork({ state, runners, moms }: Kernel, runner: Runner): RunnerWork {
  const { backend, serial, index, bucket, asked_s, life_s, remote } = runner.attrs;
  const doing = doingOf(state, runner);
  return {
    name: runner.name,
    backend,
    serial,
    index,
    bucket,
    doing,
    asked_s,
    life_s,
    ...(remote === undefined ? {} : { remote }),
    ...(runners.draining.has(runner.name) ? { draining: true as const } : {}),
    ...(doing !== "asked" && !moms.by_host.has(runner.name.toLowerCase()) ? { away: true as const } : {}),
  };
}

// The order in which runners get their next jobs (docs/runners.md). At its end, a cycle lists for each bucket of runners the waiting jobs in their order. When a job of a runner
// ends, the server gives the runner the first job of that list, without waiting for a cycle.
//
// H1. A job is listed only if it could start as soon as an equal job of its owner, group, project and queue ends: then everything that the limits count is as
//     before. The server compares the two jobs (src/server/runners/hand-out.ts), so nothing else about limits must be known there.
// H2. A list is valid at any later time until the next cycle: with dedicated time or bounds of prime time, no job is listed, because time decides about jobs then.
// H3. With strict_ordering, only the first waiting jobs are listed, as long as they are of one bucket. Other jobs might delay them.

import type { HandOut } from "#protocol/sched-link.ts";
import { takeFromServer } from "../calendar/ahead.ts";
import { isOffered } from "../order/array-turn.ts";
import { jobsInOrder } from "../order/job-order.ts";
import { count } from "../order/run-count.ts";
import type { JobEntry, JobLine } from "../shapes/job-line.ts";
import { STAGES } from "../shapes/module.ts";
import { bucketKeyOf } from "../shapes/runner-bucket.ts";
import { levelsOf } from "./opening.ts";
import type { Run } from "./run.ts";

/** How many jobs of a bucket are listed: so many, and so many more for each of its runners. A list must last until the next cycle. */
const JOBS_MIN = 50;
const JOBS_EACH = 50;
/** The largest number of jobs in all lists of a cycle. */
const JOBS_MAX = 10_000;

type Line = { readonly jobs: string[]; readonly most: number };

/** Returns the lists, those of buckets without a waiting job left out. */
export function handOuts(run: Run): readonly HandOut[] {
  const lines = linesOf(run);
  if (lines.size === 0 || timeDecides(run)) return [];
  const strict = run.policy.strict_ordering;
  const started = new Set(run.started.map(({ id }) => id));
  const answers = new Map<JobLine, string | null>();
  let first: string | null = null;
  let left = JOBS_MAX;
  for (const jobs = jobsInOrder(run.ranks, run.policy, levelsOf(run)); left > 0; ) {
    const next = jobs.next();
    if (next === null) break;
    const { entry, line } = next;
    if (started.has(entry.job.id)) {
      jobs.advance();
      continue;
    }
    let bucket = answers.get(line);
    if (bucket === undefined) answers.set(line, (bucket = bucketToList(run, entry)));
    const list = bucket === null ? undefined : lines.get(bucket);
    first ??= bucket;
    if (strict && (bucket === null || bucket !== first)) break;
    if (list === undefined || list.jobs.length >= list.most) {
      if (strict) break;
      jobs.skipTrack();
      continue;
    }
    if (entry.under) {
      jobs.advance();
      continue;
    }
    const { entry: turn, array } = run.candidate(entry);
    if (array !== undefined && turn === entry) {
      jobs.advance();
      continue;
    }
    list.jobs.push(turn.job.id);
    left--;
    run.candidates.noteStart(entry);
    if (run.candidates.hasMore(entry)) jobs.stay();
    else jobs.advance();
  }
  return [...lines].flatMap(([bucket, { jobs }]) => (jobs.length === 0 ? [] : [{ bucket, jobs }]));
}

/** Returns an empty list for each bucket of which there are runners. */
function linesOf({ universe }: Run): Map<string, Line> {
  const counts = new Map<string, number>();
  for (const { specs } of universe.sets.values())
    for (const [{ bucket }, runners] of specs) if (bucket !== undefined) counts.set(bucket, (counts.get(bucket) ?? 0) + runners);
  return new Map([...counts].map(([bucket, runners]) => [bucket, { jobs: [], most: JOBS_MIN + JOBS_EACH * runners }]));
}

/** Whether bounds of time decide which jobs may start (H2). */
function timeDecides({ book, now_s, policy, prime }: Run): boolean {
  return book.dedicated.some(({ to_s }) => to_s > now_s) || (policy.backfill_prime && prime.until_s !== null);
}

/** Returns the bucket of a job that could start when an equal job ends (H1); null: it could not. */
function bucketToList(run: Run, entry: JobEntry): string | null {
  const { job, request } = entry;
  const { array, resv, resources } = job;
  const suits = isOffered(job) && job.state !== "S" && resv === undefined && array?.max_run_subjobs === undefined;
  if (!suits || request.fault !== undefined || resources["min_walltime"] !== undefined) return null;
  const bucket = bucketKeyOf(run.universe, job);
  return bucket !== null && mayFollow(run, entry) ? bucket : null;
}

/** All checks but the one whether there are free vnodes: the vnode of the job that ends is free then. */
const WITHOUT_ROOM = STAGES.filter((stage) => stage !== "totals");

/** Whether the checks admit the job if an equal one no longer runs. */
function mayFollow(run: Run, entry: JobEntry): boolean {
  const { universe, server_taken } = run;
  const change = (sign: 1 | -1): void => {
    count(universe, entry.job, sign);
    takeFromServer(universe, server_taken, entry.job, sign);
  };
  change(-1);
  const why = run.check(run, run.candidate(entry), WITHOUT_ROOM);
  change(1);
  return why === null;
}

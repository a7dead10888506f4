// The pressure of a job: the duration of the longest chain of jobs that begins with this job and in which each job waits for
// the end of the previous one. job_sort_formula may use it, so that the jobs that delay others most run first. The duration
// of a job is learned from successful jobs (learning.ts).
//
// W1. While no formula names the pressure, nothing is computed or sent for it.
// W2. A job that may run is sent to its schedulers again whenever the chain behind it changes. A newly learned duration
//     reaches a scheduler only when the job is next sent.

import { idsAhead, isBefore, isDependent, jobOfEntry, parseDependencies } from "#model/depend.ts";
import { isHeld } from "#model/values/hold.ts";
import { mustGet } from "#support/assert.ts";
import { isWaiting } from "../state/job-phase.ts";
import type { Job, ServerState } from "../state/state.ts";
import { learnedTime } from "./learning.ts";

/** The assumed duration of a job about which nothing is known, and the minimum for any job. */
const MOMENT_S = 1;

/** The expected duration of a job. */
function expectedTime(state: ServerState, job: Job): number {
  const { soft_walltime, walltime } = job.attrs.Resource_List;
  const expected = learnedTime(state, job) ?? soft_walltime ?? walltime;
  return typeof expected === "number" ? Math.max(MOMENT_S, expected) : MOMENT_S;
}

/** Returns a function that computes pressures from the present state. It must not be used after the state has changed. */
export function pressuresNow(state: ServerState): (job: Job) => number {
  const known = new Map<string, number>();
  return (job) => {
    const stack: Job[] = [job];
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const behind = known.has(top.id) ? [] : dependents(state, top);
      const open = behind.filter(({ id }) => !known.has(id));
      if (open.length > 0) {
        for (const each of open) stack.push(each);
        continue;
      }
      if (!known.has(top.id))
        known.set(top.id, behind.reduce((most, { id }) => Math.max(most, known.get(id) ?? 0), 0) + expectedTime(state, top));
      stack.pop();
    }
    return mustGet(known, job.id);
  };
}

/** The waiting jobs that depend on the start, the end or the success of this job. Jobs that depend on its failure do not count. */
function dependents(state: ServerState, job: Job): Job[] {
  const items = job.attrs["depend"] as readonly string[] | undefined;
  if (items === undefined) return [];
  return parseDependencies(items, state.name).flatMap((item) => {
    if (item.type === "on" || !isBefore(item.type) || item.type === "beforenotok") return [];
    return item.ids.flatMap((entry) => {
      const other = state.jobs.get(jobOfEntry(entry));
      return other !== undefined && isWaiting(other) && isDependent(other.attrs["depend"]) ? [other] : [];
    });
  });
}

/** The jobs that may run among the given jobs and the jobs that these wait for, directly or indirectly. Their pressure may have changed. */
export function headsOfChains(state: ServerState, ids: Iterable<string>): Set<string> {
  const heads = new Set<string>();
  const seen = new Set<string>();
  const stack = [...ids];
  for (let id = stack.pop(); id !== undefined; id = stack.pop()) {
    const job = state.jobs.get(id);
    if (job === undefined || seen.has(id)) continue;
    seen.add(id);
    if (!isHeld(job.attrs.Hold_Types)) heads.add(id);
    for (const ahead of idsAhead(job.attrs["depend"], state.name)) stack.push(ahead);
  }
  return heads;
}

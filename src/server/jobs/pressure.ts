// Pressure: how long the longest chain of jobs takes that begins with a job, each of which waits for the end of the one before. Offered to job_sort_formula,
// so that what holds up most is run first. How long a job takes is learned from those of its user, project and name that ended well.
//
// W1. Nothing is computed and nothing sent for it while no formula names it.
// W2. A job that may run is told to its schedulers again whenever the chain behind it changes. Learned times count from the next time a job is told.

import { idsAhead, isBefore, isDependent, jobOfEntry, parseDependencies } from "#model/depend.ts";
import { isHeld } from "#model/values/hold.ts";
import type { Transaction } from "../engine/transaction.ts";
import { isWaiting } from "../state/job-phase.ts";
import type { Job, JobAttrs, Sched, ServerState } from "../state/state.ts";

/** Part of a new time in the moving average. */
const WEIGHT = 0.25;
/** A job that nothing is known of, and the least a job counts. */
const MOMENT_S = 1;

/** What jobs have in common that are expected to take the same time. */
const keyOf = ({ euser, project, Job_Name }: JobAttrs): string => `${euser}\n${project}\n${Job_Name}`;

/** A job has ended well. */
export function learnRunTime(tx: Transaction, { attrs }: Job): void {
  const walltime_s = attrs["resources_used"]?.["walltime"];
  if (typeof walltime_s !== "number" || !Number.isFinite(walltime_s)) return;
  const key = keyOf(attrs);
  const known = tx.state.run_times.get(key);
  const next = known === undefined ? walltime_s : known + WEIGHT * (walltime_s - known);
  // What is no news is not written.
  if (known === undefined || Math.abs(next - known) >= 0.01 * Math.max(MOMENT_S, known))
    tx.apply({ kind: "run-time-learned", key, seconds: Math.round(next * 100) / 100 });
}

/** How long jobs took that have the user, project and name of this one; undefined: nothing is known. */
export function learnedTime({ run_times }: ServerState, { attrs }: Job): number | undefined {
  return run_times.get(keyOf(attrs));
}

/** How long a job is expected to take. */
export function expectedTime(state: ServerState, job: Job): number {
  const { soft_walltime, walltime } = job.attrs.Resource_List;
  const expected = learnedTime(state, job) ?? soft_walltime ?? walltime;
  return typeof expected === "number" ? Math.max(MOMENT_S, expected) : MOMENT_S;
}

/** Whether a scheduler orders jobs by it. */
export function wantsPressure({ server }: ServerState, { attrs }: Sched): boolean {
  const formula = attrs["job_sort_formula"] ?? server["job_sort_formula"];
  return typeof formula === "string" && /\bpressure\b/.test(formula);
}

/** Pressures as they are now; whoever asks keeps it for a moment only. */
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
    return known.get(job.id) as number;
  };
}

/** Jobs that wait for this one to start or to end, well or anyhow. Those that wait for it to fail are not counted upon. */
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

/** Jobs that may run and have some of these behind them in their chains: what they are worth may be another now. */
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

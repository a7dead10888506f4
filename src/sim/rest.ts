// Decides whether a complex is at rest, and checks what must be true then: every job has ended, or waits for a good reason.

import { checkMomInvariants } from "#mom/run/core.ts";
import type { Core } from "#server/core/core.ts";
import { isKeptOn } from "#server/jobs/checkpointed.ts";
import { partitionOf, partitionsOf, schedOfQueue } from "#server/state/partitions.ts";
import type { Job, Sched } from "#server/state/state.ts";
import { leftoverOf } from "./checks/leftovers.ts";
import { mirrorFault, startable } from "./checks/mirror.ts";
import { fail } from "./checks/violation.ts";
import type { Complex } from "./complex.ts";
import type { Scenario } from "./drawn/scenario.ts";

/** Time in ms after the faults within which everything that the complex waits for becomes due. It is longer than every delay and interval of the complex. */
export const HORIZON_MS = 3 * 3_600_000;
/** The number of runs that is assumed for each submission: some submissions are arrays, and clients submit further jobs in batches. */
const RUNS_PER_JOB = 3;

/**
 * Returns the longest time in ms that a complex may take to come to rest after the faults: the horizon, and the time of all
 * jobs one after the other, because a limit may let only one of them run at a time.
 */
export const restMs = ({ jobs, run_ms_max }: Scenario): number => HORIZON_MS + jobs * RUNS_PER_JOB * run_ms_max;

/**
 * Returns what is still in progress in the complex; null: nothing is. running: the number of living processes. horizon_ms: a time in epoch
 * ms; reservations and jobs that wait for a later time do not count.
 */
export function activity(complex: Complex, running: number, horizon_ms: number): string | null {
  const { server, network } = complex;
  const { core } = server;
  if (core === null || !server.idle) return "the server is at work";
  if (network.in_flight > 0) return "frames are under way";
  return (
    unrestOfMoms(complex) ??
    unrestOfResvs(core, complex.world.wall_ms, horizon_ms) ??
    (running > 0 ? `${running} processes live` : null) ??
    unrestOfJobs(core, horizon_ms)
  );
}

/**
 * Returns a record of something that should be over (checks/leftovers.ts), or the work that a scheduler still has to do; null:
 * there is neither. Each scheduler is compared with a fresh one that tries all jobs, so the call takes as long as a snapshot and
 * a cycle.
 */
export function unfinished(complex: Complex): string | null {
  const { core } = complex.server;
  const leftover = core === null ? null : leftoverOf(core.kernel);
  if (leftover !== null) return `K12 the server keeps ${leftover}`;
  for (const sched of core?.state.scheds.values() ?? []) {
    const what = core === null || partitionsOf(sched).length === 0 ? null : unrestOfSched(complex, core, sched);
    if (what !== null) return what;
  }
  return null;
}

function unrestOfMoms({ moms }: Complex): string | null {
  for (const { host, state } of moms)
    if (state?.welcomed !== true || state.runs.size > 0) return `mom ${host} has ${[...(state?.runs.keys() ?? [])].join(" ")}`;
  return null;
}

/**
 * Returns a reservation that must begin or end before the complex is at rest; null: none. An as-soon-as-possible reservation
 * begins when the last job has ended. A reservation made from a job ends with the job; if the job has no walltime, that is
 * in five years.
 */
function unrestOfResvs({ state }: Core, wall_ms: number, horizon_ms: number): string | null {
  for (const { id, attrs } of state.resvs.values()) {
    const { reserve_start: start_s = 0, reserve_end: end_s = 0 } = attrs;
    const next_s = start_s * 1000 > wall_ms ? start_s : end_s;
    if (next_s * 1000 < horizon_ms) return `${id} is in state ${attrs.reserve_state} ${attrs.reserve_substate}`;
  }
  return null;
}

function unrestOfJobs({ state }: Core, horizon_ms: number): string | null {
  for (const job of state.jobs.values())
    if (!"QHTB".includes(job.attrs.job_state) && !waitsForLong(job, horizon_ms))
      return `${job.id} is in state ${job.attrs.job_state} ${job.attrs.substate}`;
  return null;
}

/** Returns whether a job waits longer than the simulation: its Execution_Time was drawn while the clock was ahead. */
function waitsForLong({ attrs: { job_state, Execution_Time } }: Job, horizon_ms: number): boolean {
  return job_state === "W" && Number(Execution_Time ?? 0) * 1000 > horizon_ms;
}

function unrestOfSched({ scheds, book, world }: Complex, { kernel }: Core, sched: Sched): string | null {
  const { name, attrs } = sched;
  const runtime = kernel.scheds.by_name.get(name);
  if (scheds.get(name)?.idle !== true || runtime?.link == null || runtime.busy || runtime.pending !== null)
    return `scheduler ${name} is ${attrs["state"]}`;
  if (kernel.timers.at(`accumulate:${name}`) !== undefined) return `scheduler ${name} waits for more jobs`;
  // A change of the attribute `scheduling` may take effect late, because of a hook or a fault.
  if (attrs["scheduling"] !== true) return null;
  const jobs = startable(kernel, sched, book, Math.floor(world.wall_ms / 1000));
  if (jobs.length === 0) return null;
  const universe = scheds.get(name)?.universe;
  const mirror = universe == null ? "none" : (mirrorFault(universe, kernel, sched, book) ?? "right");
  return `${jobs.join(" ")} could run; mirror: ${mirror}`;
}

/**
 * Returns whether no scheduler sees both the job's queue and its vnodes: the queue has moved to another partition, or the
 * partition no longer has a scheduler.
 */
export function isStranded(core: Core | null, { id, attrs }: Job): boolean {
  const queue = core?.state.queues.get(attrs.queue);
  if (core === null || queue === undefined) return false;
  if (schedOfQueue(core.state, queue) === undefined) return true;
  const names = [...(core.state.placements.get(id)?.vnodes.keys() ?? [])];
  return names.some((name) => {
    const vnode = core.state.vnodes.get(name);
    return vnode !== undefined && partitionOf(vnode) !== partitionOf(queue);
  });
}

/** Checks at the end of a simulation: the moms' invariants, what the schedulers know (K7 of checks/checks.ts), and that every waiting job has a reason. */
export function checkEnd(complex: Complex, core: Core): void {
  checkMoms(complex, core);
  for (const sched of core.state.scheds.values()) {
    const universe = complex.scheds.get(sched.name)?.universe;
    if (universe === undefined || universe === null) continue;
    const fault = mirrorFault(universe, core.kernel, sched, complex.book);
    if (fault !== null) fail(`K7 scheduler ${sched.name}: ${fault}`);
  }
  for (const job of core.state.jobs.values()) if (isUnexplained(complex, core, job)) fail(`${job.id} waits and nobody says why`);
}

function checkMoms({ moms }: Complex, core: Core): void {
  for (const { host, state } of moms) {
    if (state === null) continue;
    checkMomInvariants(state);
    for (const id of [...state.kept, ...state.checkpoints]) {
      const job = core.state.jobs.get(id);
      if (job === undefined || !isKeptOn(job, host)) fail(`mom ${host} keeps what is left of ${id}, for which no run waits`);
    }
  }
}

function isUnexplained({ scheds }: Complex, { state }: Core, { attrs }: Job): boolean {
  // A subjob that waits again has no reason of its own: its array has the reason.
  if (attrs.job_state !== "Q" || attrs.comment !== undefined || attrs["array_id"] !== undefined) return false;
  const queue = state.queues.get(attrs.queue);
  const sched = queue === undefined ? undefined : schedOfQueue(state, queue);
  if (queue?.attrs["queue_type"] !== "Execution" || sched?.attrs["scheduling"] !== true) return false;
  // A scheduler without vnodes gives no job a comment.
  return (scheds.get(sched.name)?.universe?.vnodes.size ?? 0) > 0;
}

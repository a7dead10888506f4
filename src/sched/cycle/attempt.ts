// An attempt to start one job: the checks of the chain, then placement. If that fails, a shrink-to-fit job is tried with less time, and at last modules may
// preempt running jobs for it.

import type { Why } from "#protocol/sched-link.ts";
import type { JobEntry } from "../shapes/job-line.ts";
import type { Candidate } from "../shapes/module.ts";
import type { Run } from "./run.ts";
import { shrink } from "./shrink-to-fit.ts";
import { logConsidering } from "./tell.ts";

/** Tries to start a job. Returns null if it has started, otherwise the reason. */
export function attempt(run: Run, entry: JobEntry): Why | null {
  const why = attemptNow(run, entry);
  return why === null ? null : unlessElastic(run.universe, entry.job, why);
}

/** Returns the reason, without `never` if the job's partition can get runners (docs/runners.md): the next runner may have what no vnode has now. */
export function unlessElastic({ queues }: Run["universe"], { queue }: JobEntry["job"], why: Why): Why {
  if (why.never !== true || why.module !== "placement" || queues.get(queue)?.attrs["elastic"] !== true) return why;
  const { never: _never, ...rest } = why;
  return rest;
}

function attemptNow(run: Run, entry: JobEntry): Why | null {
  run.considered++;
  logConsidering(run, entry);
  const { fault } = entry.request;
  if (fault !== undefined) return { code: "NOT_SUPPORTED", where: fault, never: true };
  const candidate = run.candidate(entry);
  let why = run.postpones ? run.whyNot(candidate) : null;
  if (why === null) {
    run.settle();
    why = checkAndPlace(run, candidate);
  }
  if (why !== null && entry.job.resources["min_walltime"] !== undefined) {
    // Jobs earlier in the order get their plans before this job is tried with less time.
    run.settle();
    why = shrink(run, candidate, why, {
      start: (shorter) => checkAndPlace(run, shorter),
      could: (shorter) => run.whyNot(shorter) === null,
    });
  }
  if (why !== null && makeRoom(run, candidate, why)) why = null;
  if (why === null) run.candidates.noteStart(entry);
  return why;
}

/** Tries to start a job with the run time of its candidate. Returns null if it has started, otherwise the reason. */
function checkAndPlace(run: Run, candidate: Candidate): Why | null {
  const why = run.check(run, candidate);
  if (why !== null) return why;
  const result = run.places.place(candidate);
  if ("why" in result) return run.places.whyBooked(candidate, result.why);
  run.start(candidate, result.placed);
  return null;
}

/** Tries to preempt running jobs for this one. Returns true if they make room and the job has started. */
function makeRoom(run: Run, candidate: Candidate, why: Why): boolean {
  for (const module of run.modules) {
    const placed = module.makeRoom?.(run, candidate, why) ?? null;
    if (placed === null) continue;
    run.room.keep(candidate);
    run.start(candidate, placed);
    return true;
  }
  return false;
}

// The reports of a cycle about jobs that cannot start: the log, the job's comment, and the answer to a request to explain one job
// (probe.ts).

import type { Why } from "#protocol/sched-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { agreeComment } from "../order/job-lines.ts";
import { asItWas } from "../preempt/room.ts";
import type { JobEntry, JobLine } from "../shapes/job-line.ts";
import type { Cycle } from "../shapes/module.ts";
import { commentText, kindOf, logText } from "../shapes/reasons.ts";
import type { Holds } from "./holds.ts";
import type { Run } from "./run.ts";

export function logConsidering(cycle: Cycle, entry: JobEntry): void {
  cycle.log({ event: LOG_EVENT.DEBUG, class: "Job", object: entry.job.id, text: "Considering job to run" });
}

/** A job whose turn has come and that cannot start. tried: the job itself was tried in this cycle; otherwise `why` comes from another job. */
export type Blocked = { readonly entry: JobEntry; readonly line: JobLine; readonly why: Why; readonly tried: boolean };

/**
 * Reports why a job is blocked, and the same reason for the other jobs of its line. Returns false if one of them is the job
 * that is to be explained; the cycle then ends.
 */
export function tellBlocked(run: Run, holds: Holds, { entry, line, why, tried }: Blocked): boolean {
  if (run.probe === null) agreeComment(line, commentText(why), kindOf(why), run.now_s);
  else if (isProbedIn(run, line) && !holds.wants(entry) && tellProbe(run, run.universe.entries.get(run.probe.job), why)) return false;
  if (tried) run.tell(entry, why);
  else if (line.differ.has(entry)) {
    logConsidering(run, entry);
    run.tell(entry, why);
  }
  return true;
}

/** Tells the server that a qrun cannot start its job. */
export function refuseQrun(run: Run, job: string, text: string): void {
  run.decide({ kind: "qrun-refused", job, text });
}

/** Reports that a job that was named, and was therefore tried alone, cannot start. */
export function tellNamed(run: Run, entry: JobEntry, job: string, why: Why): void {
  run.tell(entry, why);
  if (run.qrun) refuseQrun(run, job, logText(why));
}

/** Gives jobs that will be suspended a comment with the reason why they will wait, as far as it is known now. */
export function tellVictims(run: Run): void {
  for (const away of run.room.away.values()) {
    if (!away.methods.startsWith("S")) continue;
    const candidate = asItWas(run.universe, away);
    logConsidering(run, candidate.entry);
    const why = run.whyNot(candidate);
    if (why !== null) run.tell(candidate.entry, why);
  }
}

// --- the job that is to be explained (probe.ts)

function isProbedIn({ probe, universe }: Run, line: JobLine): boolean {
  return probe !== null && universe.entries.get(probe.job)?.line === line;
}

/** Hands over the state of the cycle if the job is the one that is to be explained. Returns true if it is; the cycle then ends. */
export function tellProbe(run: Run, entry: JobEntry | undefined, known: Why | null): boolean {
  const { probe } = run;
  if (probe === null || entry === undefined || entry.job.id !== probe.job) return false;
  run.probe = null;
  run.settle();
  const candidate = run.candidate(entry);
  probe.look(run, { known, candidate, entry, context: run.places.context(candidate) });
  return true;
}

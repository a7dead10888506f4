// One scheduling cycle (docs/reference/scheduler.md 3): a function of universe, policy and clock that yields decisions and log records. It places jobs in the
// universe and takes everything back at its end (Y1). Decisions that the server carries out come back as deltas.
//
// Each job in turn passes four stages:
//   order   which job is next                             order/job-order.ts, holds.ts
//   check   whether it may start                          attempt.ts, modules/
//   place   where it starts                               attempt.ts, places.ts
//   tell    a decision, or why it waits                   run.ts, tell.ts
// At its end, the cycle lists the jobs that runners get next (hand-out.ts).
//
// Y1. After the cycle the universe is as it was before.
// Y2. A class of equal jobs is tried until one of its jobs is blocked, and then not again in this cycle; its other jobs get the same reason
//     (shapes/universe.ts U4).
// Y3. A comment is decided only if it differs from the job's comment, so jobs whose comment stays cost nothing. For the jobs behind the first of a long line,
//     a comment that differs only in amounts is sent at most once a minute.

import { forgetTemporary } from "#model/fairshare.ts";
import { setPolicy } from "../mirror/mirror.ts";
import { mirrorOptions } from "../modules/index.ts";
import { jobsInOrder } from "../order/job-order.ts";
import { policyUnder } from "../policy/named-policy.ts";
import { primeStatus } from "../shapes/holidays.ts";
import type { PolicyBook } from "../shapes/policy-book.ts";
import type { Universe } from "../shapes/universe.ts";
import { attempt } from "./attempt.ts";
import { close, endsEarly, logEnd, unlessGivenUp } from "./closing.ts";
import { handOuts } from "./hand-out.ts";
import { Holds } from "./holds.ts";
import { tryAgain, tryQrun } from "./named-jobs.ts";
import { begin, canSchedule, levelsOf, logOpening, logShapes, tellStopped } from "./opening.ts";
import type { InParts } from "./parts.ts";
import type { CycleInput, CycleResult } from "./result.ts";
import { Run } from "./run.ts";
import { refuseQrun, tellBlocked, tellProbe } from "./tell.ts";

/** Runs a cycle. If the universe was indexed for another policy (prime time began, sched_config changed), it is indexed anew first. */
export function cycle(universe: Universe, book: PolicyBook, input: CycleInput): CycleResult {
  const parts = cycleInParts(universe, book, input);
  for (let part = parts.next(); ; part = parts.next()) if (part.done === true) return part.value;
}

/**
 * Runs a cycle like cycle(), but hands out decisions as they are made (parts.ts). Between two parts no other code may read or change the
 * universe. A caller that ends the generator between two parts (return()) must also discard the universe.
 */
export function* cycleInParts(universe: Universe, book: PolicyBook, input: CycleInput): InParts<CycleResult> {
  const prime = primeStatus(book.holidays, book.local, input.now_s);
  const policy = policyUnder(prime.prime ? book.prime : book.non_prime, universe.sched.attrs);
  setPolicy(universe, mirrorOptions(book, policy));
  const run = new Run(universe, book, policy, prime, input);
  try {
    yield* go(run, input);
    run.undo();
  } finally {
    // The fairshare tree stays in use even if the universe is discarded, so it must not keep the temporary usage of this cycle.
    forgetTemporary(run.fairshare);
  }
  return run.result();
}

function* go(run: Run, { job = "", again }: CycleInput): InParts<void> {
  if (again !== undefined) {
    // A further pass: it tries only the jobs that got no room because a preemption failed. The first pass has published the top
    // jobs.
    if (begin(run) === "go on") tryAgain(run, again);
    close(run);
    return;
  }
  logOpening(run);
  if (canSchedule(run)) {
    if (run.traces) logShapes(run);
    const leaves = begin(run) === "leave";
    if (run.qrun) tryQrun(run, job);
    else if (!leaves || run.probe !== null) run.complete = yield* unlessGivenUp(run, tryAll(run));
    close(run);
    if (!run.qrun && !run.probing && run.complete) run.hand_outs = handOuts(run);
  } else if (run.qrun) refuseQrun(run, job, "Problem with creating server data structure");
  logEnd(run);
}

/** Goes through the jobs in order. Returns true if the cycle has tried all the jobs that it should. */
function* tryAll(run: Run): InParts<boolean> {
  if (run.probe === null) tellStopped(run);
  const holds = new Holds(run);
  for (const jobs = jobsInOrder(run.ranks, run.policy, levelsOf(run)); ; ) {
    // Stage `order`.
    const next = jobs.next();
    if (next === null) return true;
    const end = endsEarly(run);
    if (end !== null) return end.complete;
    if (run.parts.isDue()) yield run.parts.take();
    const { entry, line } = next;
    // Behind the last top job, jobs are tried in the order of backfill.order.
    if (holds.putsOff(entry) && jobs.putOff()) continue;
    if (holds.isLeftAlone(entry)) {
      jobs.advance();
      continue;
    }
    const known = holds.whyKnown(entry, line);
    if (tellProbe(run, entry, known)) return false;

    // Stages `check` and `place`.
    const why = known ?? attempt(run, entry);
    if (why === null) {
      if (run.candidates.hasMore(entry)) jobs.stay();
      else jobs.advance();
      continue;
    }

    // Stage `tell`.
    holds.block(entry, line.class, why, known !== null);
    if (!tellBlocked(run, holds, { entry, line, why, tried: known === null })) return false;
    // Jobs behind the first of a class are visited only if a module wants them (as top jobs). Otherwise only jobs that need a comment are visited.
    if (holds.visitsNext(entry)) jobs.advance();
    else jobs.skipToDiffering();
  }
}

// Module `time`: checks the times of prime-time, non-prime-time and dedicated queues, and jobs that would run into dedicated time. With backfill_prime
// it also checks jobs that would run from prime into non-prime time or back (docs/reference/scheduler.md 5, 7, 11).

import type { Why } from "#protocol/sched-link.ts";
import { dedicatedNow } from "../shapes/dedicated-time.ts";
import type { Candidate, Cycle, PolicyModule } from "../shapes/module.ts";

export const time: PolicyModule = {
  name: "time",
  checks: [
    { stage: "time", check: checkPrimeBoundary },
    { stage: "time", check: checkDedicatedQueue },
    { stage: "time", check: checkPrime },
    { stage: "time", check: checkDedicatedBoundary },
  ],
};

/** Returns how long the candidate may run from now on before it crosses a bound of time. Infinity: no bound applies to it. */
export function timeLeft(cycle: Cycle, candidate: Candidate): number {
  return Math.min(primeBound(cycle, candidate), dedicatedBound(cycle)) - cycle.now_s;
}

/** Checks that only jobs of dedicated queues run in dedicated time, and no job of these queues at other times. */
function checkDedicatedQueue({ book, policy, now_s, qrun }: Cycle, { queue }: Candidate): Why | null {
  const inside = dedicatedNow(book.dedicated, now_s) !== null;
  if (inside === isDedicated(policy.dedicated_prefix, queue?.name) || (qrun && !inside)) return null;
  return { code: "DED_TIME", module: "time" };
}

function checkPrime({ policy, prime, qrun }: Cycle, { queue }: Candidate): Why | null {
  if (qrun || queue === undefined) return null;
  if (!prime.prime && hasPrefix(policy.primetime_prefix, queue.name)) return { code: "PRIME_ONLY", module: "time" };
  if (prime.prime && hasPrefix(policy.nonprimetime_prefix, queue.name)) return { code: "NONPRIME_ONLY", module: "time" };
  return null;
}

/** With backfill_prime, checks that a job ends at most prime_spill after the present prime or non-prime time. */
function checkPrimeBoundary(cycle: Cycle, candidate: Candidate): Why | null {
  if (cycle.now_s + candidate.expected_s <= primeBound(cycle, candidate)) return null;
  return { code: "CROSS_PRIME_BOUNDARY", module: "time", where: cycle.prime.prime ? "non-primetime" : "primetime" };
}

function primeBound({ policy, prime, qrun }: Cycle, { queue }: Candidate): number {
  if (qrun || !policy.backfill_prime || prime.until_s === null) return Number.POSITIVE_INFINITY;
  const name = queue?.name ?? "";
  const anytime = !hasPrefix(policy.primetime_prefix, name) && !hasPrefix(policy.nonprimetime_prefix, name);
  return policy.prime_exempt_anytime_queues && anytime ? Number.POSITIVE_INFINITY : prime.until_s + policy.prime_spill_s;
}

/** Checks that a job ends before the next dedicated time begins. A job of a dedicated queue must end before its own dedicated time ends. */
function checkDedicatedBoundary(cycle: Cycle, { most_s }: Candidate): Why | null {
  return cycle.now_s + most_s > dedicatedBound(cycle) ? { code: "CROSS_DED_TIME_BOUNDARY", module: "time" } : null;
}

function dedicatedBound({ book, now_s }: Cycle): number {
  const current = dedicatedNow(book.dedicated, now_s);
  return (current === null ? book.dedicated.find(({ from_s }) => from_s > now_s)?.from_s : current.to_s) ?? Number.POSITIVE_INFINITY;
}

function isDedicated(prefix: string, queue: string | undefined): boolean {
  return queue !== undefined && hasPrefix(prefix, queue);
}

function hasPrefix(prefix: string, queue: string): boolean {
  return prefix !== "" && queue.startsWith(prefix);
}

// The record of one cycle while the server carries it out: decisions, verdicts, the resulting log lines, and comments on jobs
// whose start was refused.

import { arrayIdOf } from "#model/job-id.ts";
import type { Decision, HandOut, SchedCycle, SchedToServer, Verdict } from "#protocol/sched-link.ts";
import { nth } from "#support/assert.ts";
import type { CycleResult } from "../cycle/result.ts";
import { takeComment } from "../mirror/mirror.ts";
import { leftWithoutRoom } from "../preempt/failed-victims.ts";
import { type LogRecord, verdictRecord } from "../shapes/log-record.ts";
import { refusedComment } from "../shapes/reasons.ts";
import type { Universe } from "../shapes/universe.ts";

export type Work = {
  readonly number: number;
  readonly asked: SchedCycle;
  readonly now_s: number;
  /** time of the wall clock when the cycle began; the times of its log records count from here */
  readonly began_ms: number;
  /** time of the steady clock when the cycle began */
  readonly started_ms: number;
  /** result of the present pass (preempt/failed-victims.ts); null: the pass is still deciding */
  result: CycleResult | null;
  pass: number;
  /** the decisions of the present pass that have been sent so far */
  decisions: readonly Decision[];
  verdicts: Verdict[];
  /** number of frames of decisions that are not answered; the changes made by the server arrive before the answer to the last frame */
  open: number;
  /** decisions of the passes that have ended, with their verdicts */
  readonly over: { readonly decisions: Decision[]; readonly verdicts: Verdict[] };
  /** decisions that follow the last pass: comments on refused starts, and starts of jobs whose preemption was of no use */
  readonly last: Decision[];
  followUp: boolean;
  /** the jobs that runners get next, from the first pass */
  hand_outs: readonly HandOut[];
};

/** Returns the record of a cycle that has just begun. */
export const begunWork = (asked: SchedCycle, began_ms: number, started_ms: number): Work => ({
  number: asked.cycle,
  asked,
  now_s: Math.floor(began_ms / 1000),
  began_ms,
  started_ms,
  result: null,
  pass: 1,
  decisions: [],
  verdicts: [],
  open: 0,
  over: { decisions: [], verdicts: [] },
  last: [],
  followUp: false,
  hand_outs: [],
});

const DECISIONS_PER_FRAME = 20_000;

/**
 * Yields the frames in which decisions go to the server, at least one. from: the decisions before this index have been sent.
 * The last frame says that no more follow.
 */
export function* framesOf({ number, decisions }: Work, from: number): Generator<SchedToServer["sched-decisions"]> {
  for (let at = from, more = true; more; at += DECISIONS_PER_FRAME) {
    more = at + DECISIONS_PER_FRAME < decisions.length;
    yield { cycle: number, decisions: decisions.slice(at, at + DECISIONS_PER_FRAME), ...(more ? { more } : {}) };
  }
}

/** Enters our accepted comments in the universe, because the server does not send back comments that we set. */
export function takeOwnComments(universe: Universe, { decisions, verdicts }: Work): void {
  decisions.forEach((decision, at) => {
    if (decision.kind === "comment" && verdicts[at]?.ok === true) takeComment(universe, decision.job, decision.comment);
  });
}

/** A log record with its time in epoch milliseconds; undefined: now. */
export type DatedRecord = LogRecord & { readonly at_ms: number | undefined };

/** Yields the log records of a pass once its verdicts are known. Of the decisions that follow the last pass, only starts are logged. */
export function* logOf({ result, followUp, decisions, verdicts, began_ms }: Work): Generator<DatedRecord> {
  const log: CycleResult["log"] = followUp
    ? decisions.flatMap(({ kind }, at) => (kind === "run" ? [{ decision: at }] : []))
    : (result?.log ?? []);
  for (const [at, entry] of log.entries()) {
    const line = "decision" in entry ? verdictRecord(nth(decisions, entry.decision), nth(verdicts, entry.decision)) : entry;
    const after_s = followUp ? undefined : result?.log_s[at];
    if (line !== null) yield { ...line, at_ms: after_s === undefined ? undefined : began_ms + Math.floor(after_s * 1000) };
  }
}

/** Returns comments for the jobs whose start the server refused. A subjob waits in its array again, so its array gets the comment. */
export function refusalComments(universe: Universe | null, { decisions, verdicts }: Work): Decision[] {
  const roomless = leftWithoutRoom(decisions, verdicts);
  const comments = new Map<string, Decision>();
  for (const [at, decision] of decisions.entries()) {
    const verdict = verdicts[at];
    if (decision.kind !== "run" || verdict === undefined || verdict.ok || roomless.has(decision.job)) continue;
    const job = universe?.jobs.has(decision.job) === false ? (arrayIdOf(decision.job) ?? decision.job) : decision.job;
    const comment = refusedComment(verdict.text);
    const why = { code: "PBS_ERROR", want: verdict.text };
    if (universe?.jobs.get(job)?.comment !== comment) comments.set(job, { kind: "comment", job, comment, why });
  }
  return [...comments.values()];
}

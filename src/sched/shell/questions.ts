// Questions that a client asks through the server (why does this job wait, what are you doing), answered from the mirror as it is.
//
// Q1. An explanation costs a cycle. Answers take no more than a quarter of the scheduler's time, however many ask: cycles come first.

import { pid } from "node:process";
import { createFairshare, type Fairshare } from "#model/fairshare.ts";
import type { SchedAnswer, SchedAsk } from "#protocol/sched-link.ts";
import type { Memory } from "../cycle/result.ts";
import { type Activity, createActivity, noteCycle, noteEvent } from "../explain/activity.ts";
import { type EstimateHistory, forgetEstimates, noteEstimates } from "../explain/estimate-history.ts";
import { explainJob } from "../explain/explain.ts";
import { schedView } from "../explain/view.ts";
import type { CycleReport } from "../shapes/module.ts";
import type { PolicyBook } from "../shapes/policy-book.ts";
import type { Universe } from "../shapes/universe.ts";
import { MACHINE_TIME } from "./machine-time.ts";

export type Knowledge = {
  readonly universe: Universe;
  readonly book: PolicyBook;
  readonly memory: Memory;
  /** null: nobody has used anything */
  readonly shares: Fairshare | null;
  readonly problem: string | null;
};
export type QuestionOptions = {
  /** null: not connected, or in the midst of something */
  know(): Knowledge | null;
  answer(answer: SchedAnswer): void;
};
export type Questions = {
  take(ask: SchedAsk): void;
  cycleOver(report: CycleReport): void;
  event(text: string): void;
};

/** How much longer than an answer took the next one waits. */
const REST = 3;
const RETRY_MS = 50;
const FORGET_CYCLES = 100;

export function questions({ know, answer }: QuestionOptions): Questions {
  const activity: Activity = createActivity();
  const history: EstimateHistory = new Map();
  const since_s = nowS();
  const waiting: SchedAsk[] = [];
  let timer: NodeJS.Timeout | null = null;

  function next(): void {
    timer = null;
    const known = know();
    const ask = known === null ? undefined : waiting.shift();
    const begun_ms = performance.now();
    if (known !== null && ask !== undefined) answer({ token: ask.token, value: answerTo(known, ask) });
    const rest_ms = known === null ? RETRY_MS : REST * (performance.now() - begun_ms);
    if (waiting.length > 0) timer = setTimeout(next, rest_ms);
    else if (ask !== undefined) timer = setTimeout(next, rest_ms).unref();
  }

  function answerTo({ universe, book, memory, problem, shares }: Knowledge, { question }: SchedAsk): unknown {
    const now_s = nowS();
    const fairshare = shares ?? createFairshare(book.fairshare, null, now_s);
    if (question.kind === "view")
      return schedView(universe, book, { now_s, pid, since_s, problem, activity, fairshare, sees_others: question.sees_others });
    const begun_ms = performance.now();
    const elapsed_s = (): number => (performance.now() - begun_ms) / 1000;
    return explainJob(universe, book, {
      now_s,
      job: question.job,
      memory,
      fairshare,
      history,
      sees_others: question.sees_others,
      elapsed_s,
    });
  }

  return {
    take(ask) {
      waiting.push(ask);
      if (timer === null) next();
    },
    cycleOver(report) {
      noteCycle(activity, report, MACHINE_TIME);
      noteEstimates(history, report);
      if (activity.cycles_done % FORGET_CYCLES === 0) forgetEstimates(history, (job) => report.universe.jobs.has(job));
    },
    event: (text) => noteEvent(activity, nowS(), text),
  };
}

const nowS = (): number => Math.floor(Date.now() / 1000);

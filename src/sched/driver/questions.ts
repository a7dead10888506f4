// Answers questions that a client asks through the server: why a job waits (`partita explain`), what the scheduler is doing (`partita
// top`). The answers come from the present state of the scheduler's universe.
//
// Q1. To explain a job takes as long as a cycle. Answers take no more than a quarter of the scheduler's time, however many
//     clients ask, because cycles come first.

import { createFairshare, type Fairshare } from "#model/fairshare.ts";
import type { SchedAnswer, SchedAsk } from "#protocol/sched-link.ts";
import type { Memory } from "../cycle/result.ts";
import { type Activity, createActivity, noteCycle, noteEvent } from "../explain/activity.ts";
import { type EstimateHistory, forgetEstimates, noteEstimates } from "../explain/estimate-history.ts";
import { explainJob } from "../explain/explain.ts";
import { schedView } from "../explain/view.ts";
import type { LocalTime } from "../shapes/local-time.ts";
import type { CycleReport } from "../shapes/module.ts";
import type { PolicyBook } from "../shapes/policy-book.ts";
import type { Universe } from "../shapes/universe.ts";
import type { ClockPort } from "./ports.ts";

export type Knowledge = {
  readonly universe: Universe;
  readonly book: PolicyBook;
  readonly memory: Memory;
  /** the usage of shares; null: no share has been used */
  readonly shares: Fairshare | null;
  readonly problem: string | null;
};
export type QuestionsOptions = {
  readonly clock: ClockPort;
  readonly local: LocalTime;
  /** process id of the scheduler */
  readonly pid: number;
  /** Returns what answers are made from; null: the scheduler is not connected, or it is busy. */
  know(): Knowledge | null;
  answer(answer: SchedAnswer): void;
};

/** The pause before the next answer, as a multiple of the time that the last answer took. */
const REST = 3;
const RETRY_MS = 50;
const FORGET_CYCLES = 100;

export class Questions {
  readonly #options: QuestionsOptions;
  readonly #activity: Activity = createActivity();
  readonly #history: EstimateHistory = new Map();
  readonly #since_s: number;
  readonly #waiting: SchedAsk[] = [];
  /** whether the next answer waits for a timer */
  #is_resting = false;

  constructor(options: QuestionsOptions) {
    this.#options = options;
    this.#since_s = this.#now_s;
  }

  take(ask: SchedAsk): void {
    this.#waiting.push(ask);
    if (!this.#is_resting) this.#next();
  }

  /**
   * Drops the questions that have no answer yet, because the connection is lost. The next server would take an answer to them for an answer to one of its own
   * questions.
   */
  forget(): void {
    this.#waiting.length = 0;
  }

  cycleOver(report: CycleReport): void {
    noteCycle(this.#activity, report, this.#options.local);
    noteEstimates(this.#history, report);
    if (this.#activity.cycles_done % FORGET_CYCLES === 0) forgetEstimates(this.#history, (job) => report.universe.jobs.has(job));
  }

  event(text: string): void {
    noteEvent(this.#activity, this.#now_s, text);
  }

  get #now_s(): number {
    return Math.floor(this.#options.clock.wall_ms() / 1000);
  }

  #next(): void {
    const { clock, know, answer } = this.#options;
    this.#is_resting = false;
    if (this.#waiting.length === 0) return;
    const known = know();
    if (known === null) return this.#rest(RETRY_MS);
    const ask = this.#waiting.shift();
    if (ask === undefined) return;
    const begun_ms = clock.steady_ms();
    answer({ token: ask.token, value: this.#answerTo(known, ask) });
    this.#rest(REST * (clock.steady_ms() - begun_ms));
  }

  #rest(rest_ms: number): void {
    this.#is_resting = true;
    this.#options.clock.after(rest_ms, () => this.#next());
  }

  #answerTo({ universe, book, memory, problem, shares }: Knowledge, { question }: SchedAsk): unknown {
    const { clock, pid } = this.#options;
    const now_s = this.#now_s;
    const fairshare = shares ?? createFairshare(book.fairshare, null, now_s);
    if (question.kind === "view") {
      const told = { now_s, pid, since_s: this.#since_s, problem, activity: this.#activity, fairshare };
      return schedView(universe, book, { ...told, sees_others: question.sees_others });
    }
    const begun_ms = clock.steady_ms();
    return explainJob(universe, book, {
      now_s,
      job: question.job,
      memory,
      fairshare,
      history: this.#history,
      sees_others: question.sees_others,
      elapsed_s: () => (clock.steady_ms() - begun_ms) / 1000,
    });
  }
}

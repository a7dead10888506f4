// Notices that the server does not answer: numbers the reports, knows when each of them left, and says when the mom must ask the server whether its reports still
// arrive, and when it must connect anew. ../run/cut-off.ts says what follows for jobs.
//
// B1. An answer counts from the time at which the mom sent the answered message, not from the time at which the answer arrived: the server may have lost the mom in
//     between.
// B2. The mom asks several times before the grace of its jobs is over, so that a few lost messages end no job.
// B3. If the server answers nothing on a connection for a long time, the mom connects anew: the server may have given up the connection without the mom's knowledge.
//     The mom waits longer than the server does. If the server gives up the mom first, it takes back the starts that the mom has not accepted; if the mom ended its
//     connection first, these starts would wait for the mom.

import type { MomGrace } from "#protocol/mom-link.ts";
import type { ServerContact } from "../job/starter-link.ts";

/** How many times the mom asks in the shortest grace. */
const ASKS = 6;
/** The longest interval at which a mom without reports asks, and the shortest interval at which any mom asks. */
const ASK_MS_MAX = 10_000;
const ASK_MS_MIN = 500;
/** The server answers every report of a mom on another host. Such a mom asks in addition only after so many intervals without an answer to its reports. */
const REPORTS_MISSED = 2.5;
/** Number of reports without an answer that are remembered. */
const UNANSWERED_MAX = 1000;

/** Returns the interval in ms after which a mom without an answer asks its server. every_s: the interval of its reports; null: it sends none */
export function askEvery_ms({ requeue_s, sister_s }: Pick<ServerContact, "requeue_s" | "sister_s">, every_s: number | null): number {
  const shortest_s = requeue_s === 0 ? sister_s : Math.min(requeue_s, sister_s);
  const most_ms = every_s === null ? ASK_MS_MAX : REPORTS_MISSED * 1000 * every_s;
  return Math.max(ASK_MS_MIN, Math.min(most_ms, (shortest_s * 1000) / ASKS));
}

/**
 * The mom connects anew after node_silence_timeout times SILENCES_MAX, but not before the server has given it up, which the server does when REPORTS_GIVEN_UP
 * reports are missing.
 */
const SILENCES_MAX = 2;
const REPORTS_GIVEN_UP = 4;

/** Returns the time in ms without an answer after which the connection is made anew; 0: never. silence_s: node_silence_timeout */
export const anewAfter_ms = (silence_s: number, every_s: number | null): number =>
  1000 * (silence_s === 0 ? 0 : Math.max(SILENCES_MAX * silence_s, REPORTS_GIVEN_UP * (every_s ?? 0) + SILENCES_MAX * ANSWER_S));
/** The default of node_answer_timeout, in seconds. */
const ANSWER_S = 5;

/** Returns what the log says when a mom is told how long its jobs may go on without an answer of the server. */
export function graceText({ requeue_s, sister_s }: Pick<ServerContact, "requeue_s" | "sister_s">): string {
  const requeue = requeue_s === 0 ? "never" : `within ${requeue_s} s`;
  return `without an answer of the server, rerunnable jobs are ended ${requeue}, and parts of jobs of other hosts within ${sister_s} s`;
}

export class ServerSilence {
  /** when each report left that has no answer yet */
  readonly #left_ms = new Map<number, number>();
  #number = 0;
  #hello_ms = 0;
  /** time of the first question without an answer; null: there is none */
  #first_asked_ms: number | null = null;
  #asked_ms = 0;
  #grace = 0;

  /** Returns the number of the newest grace that the server has sent on this connection; 0: none. */
  get grace(): number {
    return this.#grace;
  }

  /** Returns the time at which the mom sent its hello. */
  get hello_ms(): number {
    return this.#hello_ms;
  }

  /** Called when the mom says hello on a new connection. */
  helloLeft(now_ms: number): void {
    this.#hello_ms = now_ms;
    this.#left_ms.clear();
    this.#grace = 0;
    this.#answered();
  }

  /** Returns the number of a report that leaves now. */
  next(now_ms: number): number {
    this.#left_ms.set(++this.#number, now_ms);
    for (const number of this.#left_ms.keys()) {
      if (this.#left_ms.size <= UNANSWERED_MAX) break;
      this.#left_ms.delete(number);
    }
    return this.#number;
  }

  /** Called when a report was answered. Returns when it left (B1); null: no report with this number waits for an answer. */
  heard(number: number): number | null {
    const left_ms = this.#left_ms.get(number) ?? null;
    if (left_ms === null) return null;
    for (const other of [...this.#left_ms.keys()]) if (other <= number) this.#left_ms.delete(other);
    this.#answered();
    return left_ms;
  }

  /** Returns the grace if it is at least as new as the known one; otherwise null. */
  newest(grace: MomGrace | undefined): MomGrace | null {
    if (grace === undefined || grace.number < this.#grace) return null;
    this.#grace = grace.number;
    return grace;
  }

  /**
   * Returns what the mom must do now; null: nothing. answered_ms: when the latest answered message left. anew_ms: as in anewAfter_ms(). ask_ms: as in
   * askEvery_ms(); null: the mom has no welcome yet, so that it cannot ask.
   */
  due(now_ms: number, answered_ms: number, anew_ms: number, ask_ms: number | null): "ask" | "connect anew" | null {
    const silent_ms = now_ms - Math.max(answered_ms, this.#hello_ms);
    const since_ms = this.#first_asked_ms ?? (ask_ms === null ? this.#hello_ms : now_ms);
    if (anew_ms > 0 && silent_ms >= anew_ms && now_ms - since_ms >= anew_ms / 3) return "connect anew";
    if (ask_ms === null || silent_ms < ask_ms || (this.#first_asked_ms !== null && now_ms - this.#asked_ms < ask_ms)) return null;
    this.#first_asked_ms ??= now_ms;
    this.#asked_ms = now_ms;
    return "ask";
  }

  #answered(): void {
    this.#first_asked_ms = null;
  }
}

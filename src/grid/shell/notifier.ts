// Delivers notifications: mail through the site's mail program, and JSON to webhooks. events/judas.ts says what is told to whom.
//
// N1. An event is told after it is durable. What was told is stored after the delivery, so that a daemon that is killed in between tells it twice rather than never.
// N2. A delivery that fails is tried again after pauses that double. After notify_attempts attempts, and at once if the webhook refuses for good, it is given up with
//     an event NOTIFY_FAILED, which nobody is notified of.
// N3. Cycles never wait for a delivery. At most AT_ONCE deliveries are under way.
// N4. A webhook must be allowed when it is used, not only when it was subscribed. Its path appears in no log and no event.

import { ask } from "#backends/shell/http.ts";
import type { Mailer } from "#server/shell/mailer.ts";
import { messageOf } from "#support/caught.ts";
import { addressShown, type Letter, letterFor, mailText, type Watched, webhookBody, webhookFault } from "../events/judas.ts";
import type { Subscription } from "../shapes/event-record.ts";
import type { GridSettings } from "../shapes/settings.ts";
import type { GridCore } from "../work/core.ts";

/** The largest answer of a webhook in bytes. Only its status counts. */
const WEBHOOK_ANSWER_MAX = 1024 * 1024;
const AT_ONCE = 8;
const RETRY_S_MAX = 3600;
/** Answers of a webhook that may be different later: request timeout, too many requests, and all errors of the server. */
const isPassing = (status: number): boolean => status === 408 || status === 429 || status >= 500;

export type NotifierTools = {
  readonly core: GridCore;
  /** resolves when everything that was applied so far is durable */
  readonly settled: () => Promise<void>;
  readonly settings: () => GridSettings;
  readonly mailer: Mailer;
  readonly now_s: () => number;
  readonly note: (text: string) => void;
};

const isoTime = (epoch_s: number): string => new Date(Math.floor(epoch_s) * 1000).toISOString().replace(".000Z", "Z");

/** How the last deliveries of a subscription went. */
type Course = {
  failures: number;
  not_before_s: number;
  isUnderWay: boolean /** events before this one need not be looked at again */;
  looked: number;
};
/** Why a delivery has failed; null: it has not. */
type Failure = { readonly why: string; readonly isFinal: boolean } | null;

export class Notifier {
  readonly #tools: NotifierTools;
  readonly #courses = new Map<string, Course>();
  #under_way = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(tools: NotifierTools) {
    this.#tools = tools;
  }

  /** Tells what is to be told now, and plans the rest. */
  poke(): void {
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    const { core, now_s, settings } = this.#tools;
    const { subscriptions } = core.state;
    if (subscriptions.size === 0) return;
    for (const key of this.#courses.keys()) if (!subscriptions.has(key)) this.#courses.delete(key);
    let next_s = Number.POSITIVE_INFINITY;
    for (const [key, subscription] of subscriptions) {
      const course = this.#courses.get(key) ?? { failures: 0, not_before_s: 0, isUnderWay: false, looked: 0 };
      this.#courses.set(key, course);
      const next_event = Math.max(subscription.next_event, course.looked);
      if (next_event >= core.state.counters.event || course.isUnderWay || this.#under_way >= AT_ONCE) continue;
      if (course.not_before_s > now_s()) {
        next_s = Math.min(next_s, course.not_before_s);
        continue;
      }
      const letter = letterFor({ ...subscription, next_event }, this.#watched());
      if (letter.events.length === 0) course.looked = letter.upto;
      else void this.#tell(key, subscription, letter, course, settings());
    }
    if (next_s === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(() => this.poke(), 1000 * Math.max(0.05, next_s - now_s()));
    this.#timer.unref();
  }

  /** Begins nothing more. Deliveries that are under way are made again by the next daemon. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #watched(): Watched {
    const { campaigns, events, counters } = this.#tools.core.state;
    return { campaigns, events, next_event: counters.event };
  }

  async #tell(key: string, subscription: Subscription, letter: Letter, course: Course, settings: GridSettings): Promise<void> {
    const { core, settled, now_s, note } = this.#tools;
    course.isUnderWay = true;
    this.#under_way++;
    await settled();
    const failure =
      subscription.method === "mail" ? await this.#mail(subscription, letter, settings) : await this.#post(subscription, letter, settings);
    this.#under_way--;
    course.isUnderWay = false;
    if (this.#isClosed) return;
    course.failures = failure === null ? 0 : course.failures + 1;
    const isGivenUp = failure !== null && (failure.isFinal || course.failures >= settings.notify_attempts);
    const retry_s = Math.min(RETRY_S_MAX, settings.notify_retry_s * 2 ** Math.min(20, course.failures - 1));
    course.not_before_s = now_s() + (failure === null || isGivenUp ? settings.notify_pause_s : retry_s);
    if (failure !== null)
      note(`notification of ${subscription.user} to ${addressShown(subscription)}: ${failure.why}${isGivenUp ? "; given up" : ""}`);
    if (isGivenUp) {
      course.failures = 0;
      this.#giveUp(subscription, letter, failure.why);
    }
    if (failure === null || isGivenUp) core.apply({ kind: "notified", key, upto: letter.upto });
    await settled();
    this.poke();
  }

  #mail({ address }: Subscription, letter: Letter, { mailer, mail_from }: GridSettings): Promise<Failure> {
    const text = mailText(letter, this.#watched(), isoTime);
    return new Promise((resolve) => {
      this.#tools.mailer.send({ mailer, from: mail_from, to: [address], to_owner: false, ...text }, (why) =>
        resolve(why === null ? null : { why, isFinal: false }),
      );
    });
  }

  async #post({ address, user }: Subscription, letter: Letter, { webhooks, webhook_timeout_s }: GridSettings): Promise<Failure> {
    const fault = webhookFault(address, webhooks);
    if (fault !== null) return { why: fault, isFinal: true };
    try {
      const { status } = await ask({
        method: "POST",
        url: address,
        headers: {},
        body: webhookBody(letter, this.#watched(), user),
        timeout_ms: webhook_timeout_s * 1000,
        answer_max: WEBHOOK_ANSWER_MAX,
        isPathSecret: true,
      });
      return status >= 200 && status < 300 ? null : { why: `the webhook has answered with status ${status}`, isFinal: !isPassing(status) };
    } catch (error) {
      return { why: messageOf(error), isFinal: false };
    }
  }

  #giveUp(subscription: Subscription, { events, more }: Letter, why: string): void {
    const { core, now_s } = this.#tools;
    const message = `${events.length + more} events could not be told to ${subscription.user} at ${addressShown(subscription)}: ${why}`;
    const none = { campaign: null, cluster: null, job: null, task: null } as const;
    core.apply({ kind: "event-opened", event: { class: "log", code: "NOTIFY_FAILED", ...none, at_s: now_s(), message }, isOpen: false });
  }
}

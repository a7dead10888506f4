// The scheduler's preempt_* attributes compiled (docs/reference/scheduler.md 8, docs/reference/attributes.md 3): which jobs may preempt which, and by which
// methods.
//
// R1. A job may have several properties. Its level is the first level in `levels` of which it has all properties. Levels with more properties (joined by +)
//     come first, then jobs of higher priority. If a job has none of these levels, it is a normal job.
// R2. A level's priority is a number, larger for higher levels. Within the express level the Priority of the queue is added.

import type { AttrRecord } from "#protocol/sched-link.ts";

export type Property = "express_queue" | "fairshare" | "queue_softlimits" | "server_softlimits" | "normal_jobs";
type Level = { readonly properties: ReadonlySet<string>; readonly priority: number };

export type PreemptRules = {
  /** the levels in the order in which they are compared with a job */
  readonly levels: readonly Level[];
  readonly normal: number;
  /** the lowest priority that any job may have */
  readonly lowest: number;
  /** a queue with this Priority or a higher one is an express queue */
  readonly queue_prio: number;
  /** methods for jobs that have at least the percentage `left` of their time left, in descending order */
  readonly orders: readonly { readonly left: number; readonly methods: string }[];
  /** whether preempt_targets of jobs is obeyed */
  readonly targets: boolean;
  /** the resources that a suspended job releases; null: all */
  readonly released: ReadonlySet<string> | null;
};

/** The attributes of schedulers and of the server from which the rules are made. */
export const PREEMPT_ATTRS = [
  "preempt_prio",
  "preempt_queue_prio",
  "preempt_order",
  "preempt_targets_enable",
  "sched_preempt_enforce_resumption",
] as const;
export const PREEMPT_SERVER_ATTRS = ["restrict_res_to_release_on_suspend"] as const;

/** Distance between the priorities of levels. It is so large that the Priority of queues (-1024 to 1023) does not reach from one level to the next. */
const STEP = 10_000;
const PRIO_DEFAULT = "express_queue, normal_jobs";
const QUEUE_PRIO_DEFAULT = 150;
const ORDER_DEFAULT = "SCR";

export function preemptRules(sched: AttrRecord, server: AttrRecord): PreemptRules {
  const text = typeof sched["preempt_prio"] === "string" ? sched["preempt_prio"] : PRIO_DEFAULT;
  const words = text.split(",").map((level) => level.split("+").map((word) => word.trim()));
  // If the rules do not name normal jobs, normal jobs are below all levels that they name.
  if (!words.some((level) => level.length === 1 && level[0] === "normal_jobs")) words.push(["normal_jobs"]);
  const levels = words.map((level, at) => ({ properties: new Set(level), priority: (words.length - at) * STEP }));
  const normal = levels.find(({ properties }) => properties.size === 1 && properties.has("normal_jobs"))?.priority ?? STEP;
  const restricted = server["restrict_res_to_release_on_suspend"];
  return {
    levels: [...levels].sort((a, b) => b.properties.size - a.properties.size || b.priority - a.priority),
    normal,
    lowest: Math.min(...levels.map(({ properties, priority }) => priority - (properties.has("express_queue") ? STEP / 2 : 0))),
    queue_prio: typeof sched["preempt_queue_prio"] === "number" ? sched["preempt_queue_prio"] : QUEUE_PRIO_DEFAULT,
    orders: ordersOf(typeof sched["preempt_order"] === "string" ? sched["preempt_order"] : ORDER_DEFAULT),
    targets: sched["preempt_targets_enable"] !== false,
    released: Array.isArray(restricted) && restricted.length > 0 ? new Set(restricted.map(String)) : null,
  };
}

/** Parses preempt_order. `SCR 80 SC 50 S` means SCR while at least 80 percent of the time are left, SC while at least 50 percent are left, then S. */
function ordersOf(text: string): PreemptRules["orders"] {
  const words = text.trim().split(/\s+/);
  const orders: { left: number; methods: string }[] = [];
  for (let at = 0; at < words.length; at += 2) orders.push({ left: Number(words[at + 1] ?? 0), methods: words[at] ?? "" });
  return orders;
}

/** Returns the priority of a job with these properties. queue_priority: the Priority of its queue. */
export function priorityOf({ levels, normal }: PreemptRules, properties: ReadonlySet<string>, queue_priority: number): number {
  for (const level of levels) {
    if (![...level.properties].every((property) => properties.has(property))) continue;
    return level.priority + (level.properties.has("express_queue") ? queue_priority : 0);
  }
  return normal;
}

/** Returns the methods for a job with this percentage of its time left; null: the percentage is not known. */
export function methodsFor({ orders }: PreemptRules, left: number | null): string {
  const found = left === null ? orders[0] : orders.find((order) => left >= order.left);
  return (found ?? orders.at(-1))?.methods ?? "";
}

/** Returns whether any level depends on a property. */
export function looksAt({ levels }: PreemptRules, property: Property): boolean {
  return levels.some(({ properties }) => properties.has(property));
}

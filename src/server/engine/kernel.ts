// The kernel: data that the files of the core share. It has the state, pending changes and effects, timers, and a runtime
// record for each kind of object. A server has one kernel. Only the state survives a restart; all else is built again from
// the hellos of schedulers and moms.

import type { Reject } from "#model/pbse.ts";
import { hooksOf } from "#model/tables/hook.ts";
import { apply } from "../state/apply.ts";
import { type Changes, noChanges } from "../state/changes.ts";
import type { Event } from "../state/event.ts";
import type { Attrs, Queue, ServerState } from "../state/state.ts";
import { emptyOutbox, type Outbox } from "./batch.ts";
import { type HookRuntime, noHooks } from "./hook-runtime.ts";
import { serverIdentity } from "./identity.ts";
import { type JobRuntime, noJobs } from "./job-runtime.ts";
import { splitToken } from "./joint-answers.ts";
import { connectedMom, type Moms, noMoms } from "./mom-runtime.ts";
import { type Known, NOTHING_KNOWN, noRequests, type RequestRuntime } from "./request-runtime.ts";
import { noResvs, type ResvRuntime } from "./resv-runtime.ts";
import { noRunners, type RunnersRuntime } from "./runner-runtime.ts";
import { noScheds, type Scheds } from "./sched-runtime.ts";
import { createTimers, type Timers } from "./timers.ts";
import type { Action, Answer, HookAsk, Identity, ServerConfig, ShutdownManner, Transaction, Unserved } from "./transaction.ts";

/**
 * Functions of higher folders that the kernel calls: consequences of an event, effects of an action, and whether a scheduler is at work. core/core.ts
 * supplies them.
 */
export type Follow = {
  readonly consequences: (kernel: Kernel, tx: Transaction, event: Event, apply: () => void) => void;
  readonly carryOut: (kernel: Kernel, action: Action) => void;
  readonly unserved: (kernel: Kernel, queue: Queue) => Unserved | null;
  readonly commentNow: (kernel: Kernel) => (attrs: Attrs) => Attrs;
};

export type Kernel = {
  readonly follow: Follow;
  readonly state: ServerState;
  readonly config: ServerConfig;
  /** the identity of the server, for its own transactions */
  readonly own: Identity;
  changes: Changes;
  out: Outbox;
  /** timers in epoch milliseconds; core/tick.ts lists their names */
  readonly timers: Timers;
  now_ms: number;
  readonly requests: RequestRuntime;
  readonly jobs: JobRuntime;
  readonly scheds: Scheds;
  readonly moms: Moms;
  readonly resvs: ResvRuntime;
  readonly hooks: HookRuntime;
  readonly runners: RunnersRuntime;
  readonly ending: Ending;
};

/**
 * The end of the server. stopping: whether it has begun, and in which manner. how: what qterm requested; null: the server
 * does not end. told: whether the core has told the shell to end.
 */
export type Ending = {
  stopping: "no" | "quick" | "delay" | "immediate";
  how: ShutdownManner | null;
  told: boolean;
};

export function createKernel(state: ServerState, config: ServerConfig, now_ms: number, follow: Follow): Kernel {
  return {
    follow,
    state,
    config,
    own: serverIdentity(config.host),
    changes: noChanges(),
    out: emptyOutbox(),
    timers: createTimers(),
    now_ms,
    requests: noRequests(),
    jobs: noJobs(),
    scheds: noScheds(now_ms),
    moms: noMoms(now_ms),
    resvs: noResvs(),
    hooks: noHooks(),
    runners: noRunners(),
    ending: { stopping: "no", how: null, told: false },
  };
}

/** Thrown inside a handler that needs an answer from outside which is not available yet (Transaction.history, hooks, resolved). The core catches it. */
export class AnswerNeeded extends Error {
  readonly what: "job" | "host" | "hooks";
  readonly names: readonly string[];
  readonly asks: readonly HookAsk[];
  constructor(what: "job" | "host" | "hooks", names: readonly string[], asks: readonly HookAsk[] = []) {
    super(`${what} ${names.join(", ")} must be looked up`);
    this.what = what;
    this.names = names;
    this.asks = asks;
  }
}

/** Makes a transaction for the request of `who`, at the kernel's time. known: answers from outside that are already available for the request. */
export function transaction(kernel: Kernel, who: Identity, token: number, known: Known = NOTHING_KNOWN): Transaction {
  const { state, config } = kernel;
  const now_s = Math.floor(kernel.now_ms / 1000);
  const tx: Transaction = {
    state,
    config,
    now_s,
    who,
    token,
    stopping: kernel.ending.stopping !== "no",
    apply(event: Event) {
      kernel.follow.consequences(kernel, tx, event, () => apply(state, event, kernel.changes, now_s));
    },
    act: (action) => kernel.follow.carryOut(kernel, action),
    log: (record) => void kernel.out.logs.push(record),
    account: (record) => void kernel.out.accounting.push(record),
    split: (count) => splitToken(kernel.requests.joint, token, count),
    part: (items) => void kernel.out.clients.push({ kind: "part", token, items }),
    history(id) {
      const job = kernel.changes.ended.get(id) ?? known.jobs.get(id);
      if (job === undefined) throw new AnswerNeeded("job", [id]);
      return job === null || kernel.changes.purged.has(id) ? undefined : job;
    },
    historyOf(ids) {
      const missing = ids.filter((id) => !kernel.changes.ended.has(id) && !known.jobs.has(id));
      if (missing.length > 0) throw new AnswerNeeded("job", missing);
    },
    hooks(asks) {
      const missing = asks.filter(({ key, event }) => !known.hooks.has(key) && hooksOf(state.hooks.values(), event).length > 0);
      if (missing.length > 0)
        throw new AnswerNeeded(
          "hooks",
          missing.map(({ key }) => key),
          missing,
        );
      return asks.map(({ key }) => known.hooks.get(key) ?? null);
    },
    hasMom: (host) => kernel.moms.by_host.has(host.toLowerCase()),
    moms: () => [...kernel.moms.by_host.values()].map((mom) => connectedMom(kernel.now_ms, mom)),
    resolved(host) {
      const found = known.hosts.get(host);
      if (found === undefined) throw new AnswerNeeded("host", [host]);
      return found;
    },
    runnerReason: (name) => kernel.runners.reasons.get(name) ?? "",
    demands: () => kernel.runners.demands,
    unserved: (queue) => kernel.follow.unserved(kernel, queue),
    commentNow: () => kernel.follow.commentNow(kernel),
  };
  return tx;
}

/** A transaction of the server itself. */
export function ownTransaction(kernel: Kernel): Transaction {
  return transaction(kernel, kernel.own, 0);
}

/** The answer of a handler, as frames. */
export function answer(kernel: Kernel, token: number, result: Exclude<Answer, { stream: unknown }>): void {
  if (result === "deferred") return;
  kernel.out.clients.push({
    kind: "ok",
    token,
    ...(result.value === undefined ? {} : { value: result.value }),
    ...(result.text === undefined ? {} : { text: result.text }),
  });
}

export function refuse(kernel: Kernel, token: number, error: Reject): void {
  kernel.out.clients.push({ kind: "error", token, code: error.code, text: error.text });
}

// Data that the parts of the core share: state, pending changes and effects, timers, and knowledge about connections. A server has one kernel.
// Only the state survives a restart; the rest is built again from hellos.

import type { HookChanges, HookInput } from "#hooks/run/hook-input.ts";
import type { Reject } from "#model/pbse.ts";
import { type Hook, type HookEvent, hooksOf } from "#model/tables/hook.ts";
import type { Request } from "#protocol/messages.ts";
import type { MomJob } from "#protocol/mom-link.ts";
import type { PreemptMethod, SchedQuestion, Verdict } from "#protocol/sched-link.ts";
import { apply } from "../state/apply.ts";
import { type Changes, noChanges } from "../state/changes.ts";
import type { Event } from "../state/event.ts";
import type { Attrs, Job, Queue, ServerState } from "../state/state.ts";
import { emptyOutbox, type Outbox } from "./batch.ts";
import { serverIdentity } from "./identity.ts";
import { type JointAnswers, noJointAnswers, splitToken } from "./joint-answers.ts";
import type { Crew, MomQuestion, MomRuntime } from "./mom-runtime.ts";
import type { SchedRuntime } from "./sched-runtime.ts";
import { createTimers, type Timers } from "./timers.ts";
import type { Action, Answer, HookAsk, HookVerdict, Identity, ServerConfig, Stream, Transaction, Unserved } from "./transaction.ts";

/** Answers from outside of the core to a request's questions. */
export type Known = {
  readonly jobs: Map<string, Job | null>;
  readonly hosts: Map<string, boolean>;
  /** by key of the question */
  readonly hooks: Map<string, HookVerdict>;
};
export const nothingKnown = (): Known => ({ jobs: new Map(), hosts: new Map(), hooks: new Map() });
/** A request that waits for such an answer. */
export type WaitingRequest = { readonly who: Identity; readonly request: Request; readonly known: Known; readonly stream?: Stream };

/** A job that a scheduler wants to preempt (jobs/preemption.ts). */
export type Preemption = {
  readonly job: string;
  readonly sched: string;
  /** the method that is tried */
  method: PreemptMethod;
  /** the methods to try if it fails */
  rest: string;
  /** null: not settled */
  verdict: Verdict | null;
};

/** A start that a scheduler waits for, or (token) the client that requested it by hand. until_ms: the latest time; null: none. */
export type StartWait = {
  readonly sched: string | null;
  readonly token?: number;
  readonly until_ms: number | null;
  readonly then: (verdict: Verdict) => void;
};

/** Everything that waits for one start: a job that was requested by hand may be started by a cycle that was under way. */
export type StartWaits = { waits: readonly StartWait[]; exit_status: number | null };

/** Hooks of an event that run one after another (hooks/chain.ts). */
export type Chain = {
  readonly event: HookEvent;
  readonly hooks: readonly Hook[];
  at: number;
  input: HookInput;
  changes: HookChanges;
  by: string;
  readonly then: (verdict: HookVerdict) => void;
};

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
  /** of the server, for its own transactions */
  readonly own: Identity;
  changes: Changes;
  out: Outbox;
  /** names: see core/tick.ts; times: epoch milliseconds */
  readonly timers: Timers;
  now_ms: number;
  readonly scheds: Map<string, SchedRuntime>;
  /** when the next heartbeat of moms is due (moms/heartbeat.ts) */
  heartbeat_ms: number;
  /** when the next heartbeat of schedulers is due (scheds/heartbeat.ts) */
  sched_heartbeat_ms: number;
  /** number of the last mom-ping or sched-ping */
  pings: number;
  /** by host name */
  readonly moms: Map<string, MomRuntime>;
  /** by connection: the mom or scheduler that last said hello there */
  readonly mom_links: Map<number, MomRuntime>;
  /** jobs to start, by connection: the lists of the mom-start frames in `out` */
  readonly starts: Map<number, MomJob[]>;
  readonly waiting: Map<number, WaitingRequest>;
  /** job id -> tokens of wait-job requests */
  readonly waiters: Map<string, number[]>;
  /** job id -> tokens of rerun-job requests not yet answered */
  readonly reruns: Map<string, number[]>;
  /** job id -> token of a qrun that its scheduler must decide */
  readonly qruns: Map<string, number>;
  /** tokens of requests that a scheduler must answer: the scheduler, and the question */
  readonly asked: Map<number, { readonly sched: string; readonly question: SchedQuestion; readonly user: string }>;
  /** reservation id -> tokens of requests that wait for its outcome */
  readonly resv_waiters: Map<string, number[]>;
  /** reservation id -> schedulers that have refused the present question about it */
  readonly refusals: Map<string, Set<string>>;
  /** reservation id -> how often a scheduler's confirmation was refused */
  readonly vain_confirms: Map<string, number>;
  readonly joint: JointAnswers;
  readonly questions: Map<number, MomQuestion>;
  /** runs over several hosts, by job */
  readonly crews: Map<string, Crew>;
  /** preemptions under way, by job */
  readonly preemptions: Map<string, Preemption>;
  /** schedulers whose preemptions have settled: the rest of their decisions is examined before the batch leaves */
  readonly settled: Set<string>;
  /** starts that something waits for, by job */
  readonly starting: Map<string, StartWaits>;
  next_question: number;
  /** hooks that run, by number */
  readonly hook_runs: Map<number, Chain>;
  next_hook_run: number;
  /** jobs whose postqueuejob hooks run: the number of chains, and what waits for their end */
  readonly posting: Map<string, { chains: number; readonly waiting: (() => void)[] }>;
  /** states of vnodes that modifyvnode hooks have seen; empty while there are no such hooks */
  readonly vnode_states: Map<string, { readonly state: string; readonly since: string }>;
  /** a value is being copied between the server and the default scheduler */
  mirroring: boolean;
  /** the vnodes of a mom are being entered; new vnodes among them are not made by an administrator */
  reporting: boolean;
  /** shutting down: new requests are refused */
  stopping: "no" | "quick" | "delay" | "immediate";
  shutdown: { readonly manner: "quick" | "delay" | "immediate"; readonly scheds: boolean; readonly moms: boolean } | null;
  shutdown_told: boolean;
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
    scheds: new Map(),
    heartbeat_ms: now_ms,
    sched_heartbeat_ms: now_ms,
    pings: 0,
    moms: new Map(),
    mom_links: new Map(),
    starts: new Map(),
    waiting: new Map(),
    waiters: new Map(),
    reruns: new Map(),
    qruns: new Map(),
    asked: new Map(),
    resv_waiters: new Map(),
    refusals: new Map(),
    vain_confirms: new Map(),
    joint: noJointAnswers(),
    questions: new Map(),
    crews: new Map(),
    preemptions: new Map(),
    settled: new Set(),
    starting: new Map(),
    next_question: 1,
    hook_runs: new Map(),
    next_hook_run: 1,
    posting: new Map(),
    vnode_states: new Map(),
    mirroring: false,
    reporting: false,
    stopping: "no",
    shutdown: null,
    shutdown_told: false,
  };
}

/** Thrown by a handler that needs an answer which is not available yet (Transaction.history, resolves). Never leaves the core. */
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

/** A transaction of `who` at the kernel's time. known: answers that were already looked up for it. */
export function transaction(kernel: Kernel, who: Identity, token: number, known: Known = NOTHING): Transaction {
  const { state, config } = kernel;
  const now_s = Math.floor(kernel.now_ms / 1000);
  const tx: Transaction = {
    state,
    config,
    now_s,
    who,
    token,
    stopping: kernel.stopping !== "no",
    apply(event: Event) {
      kernel.follow.consequences(kernel, tx, event, () => apply(state, event, kernel.changes, now_s));
    },
    act: (action) => kernel.follow.carryOut(kernel, action),
    log: (record) => void kernel.out.logs.push(record),
    account: (record) => void kernel.out.accounting.push(record),
    split: (count) => splitToken(kernel.joint, token, count),
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
    hasMom: (host) => kernel.moms.has(host.toLowerCase()),
    resolves(host) {
      const found = known.hosts.get(host);
      if (found === undefined) throw new AnswerNeeded("host", [host]);
      return found;
    },
    unserved: (queue) => kernel.follow.unserved(kernel, queue),
    commentNow: () => kernel.follow.commentNow(kernel),
  };
  return tx;
}
const NOTHING: Known = nothingKnown();

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

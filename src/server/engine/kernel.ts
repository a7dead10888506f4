// What the parts of the core share: state, pending changes and effects, timers, and what is known of connections. One kernel a server.
// Nothing here survives a restart but the state; all else is built up again from hellos.

import { hooksOf } from "#model/hook.ts";
import type { Reject } from "#model/pbse.ts";
import type { Request } from "#protocol/messages.ts";
import type { MomHello, MomJob, MomPatience, MomVnode } from "#protocol/mom-link.ts";
import type { PreemptMethod, SchedQuestion, Verdict } from "#protocol/sched-link.ts";
import type { Chain, HookVerdict } from "../hooks/chain.ts";
import type { StartWaits } from "../jobs/start-wait.ts";
import type { Crew } from "../moms/sisters.ts";
import { commentNow, whyUnserved } from "../scheds/unserved.ts";
import { apply } from "../state/apply.ts";
import { type Changes, noChanges } from "../state/changes.ts";
import type { Event } from "../state/event.ts";
import type { Job, ServerState } from "../state/state.ts";
import { emptyOutbox, type Outbox } from "./batch.ts";
import { serverIdentity } from "./identity.ts";
import { type JointAnswers, noJointAnswers, splitToken } from "./joint-answers.ts";
import type { SchedRuntime } from "./sched-runtime.ts";
import { createTimers, type Timers } from "./timers.ts";
import type { Action, Answer, HookAsk, Identity, ServerConfig, Stream, Transaction } from "./transaction.ts";

/** A connected mom. */
export type MomRuntime = {
  readonly host: string;
  link: number;
  hello: MomHello;
  vnodes: readonly MomVnode[];
  patience: MomPatience;
  /** digest of the hooks it has */
  hooks: string;
  /** digests of the files those hooks are made of, by name; unknown for what a mom brings along: empty */
  hook_files: ReadonlyMap<string, string>;
  /** others use its host */
  busy: boolean;
  /** when it last said a word; steady as timers are (core/clock-jump.ts) */
  heard_ms: number;
  /** why it can start nothing; null: it is well */
  ill: string | null;
  /** runs that were sent on this connection and that it has not taken yet, by job */
  readonly sent: Map<string, number>;
};

/** Answers of the world outside to a request's questions. */
export type Known = {
  readonly jobs: Map<string, Job | null>;
  readonly hosts: Map<string, boolean>;
  /** by key of the question */
  readonly hooks: Map<string, HookVerdict>;
};
export const nothingKnown = (): Known => ({ jobs: new Map(), hosts: new Map(), hooks: new Map() });
/** A request that waits for such an answer. */
export type WaitingRequest = { readonly who: Identity; readonly request: Request; readonly known: Known; readonly stream?: Stream };

/** A signal or message on its way to a mom. */
export type MomQuestion = { readonly token: number; readonly job: string; readonly signal: string | null };

/** A job that a scheduler wants out of the way (jobs/preemption.ts). */
export type Preemption = {
  readonly job: string;
  readonly sched: string;
  /** being tried */
  method: PreemptMethod;
  /** to be tried if it fails */
  rest: string;
  /** null: not settled */
  verdict: Verdict | null;
};

/** What follows from an event and what an action does: given by core/core.ts, because both stand above the kernel that calls them. */
export type Follow = {
  readonly consequences: (kernel: Kernel, tx: Transaction, event: Event, apply: () => void) => void;
  readonly carryOut: (kernel: Kernel, action: Action) => void;
};

export type Kernel = {
  readonly follow: Follow;
  readonly state: ServerState;
  readonly config: ServerConfig;
  changes: Changes;
  out: Outbox;
  /** names: see core/tick.ts; times: epoch milliseconds */
  readonly timers: Timers;
  now_ms: number;
  readonly scheds: Map<string, SchedRuntime>;
  /** when the next heartbeat of moms is due (moms/heartbeat.ts) */
  heartbeat_ms: number;
  /** number of the last mom-ping */
  pings: number;
  /** by host name */
  readonly moms: Map<string, MomRuntime>;
  /** by connection: who said hello there last */
  readonly mom_links: Map<number, MomRuntime>;
  /** jobs to be started, by connection: the lists of the mom-start frames in `out` */
  readonly starts: Map<number, MomJob[]>;
  readonly waiting: Map<number, WaitingRequest>;
  /** job id -> tokens of wait-job requests */
  readonly waiters: Map<string, number[]>;
  /** job id -> tokens of rerun-job requests not yet answered */
  readonly reruns: Map<string, number[]>;
  /** job id -> token of a qrun that its scheduler decides */
  readonly qruns: Map<string, number>;
  /** tokens of requests that a scheduler answers: which one, and what it was asked */
  readonly asked: Map<number, { readonly sched: string; readonly question: SchedQuestion; readonly user: string }>;
  /** reservation id -> tokens of requests that wait for what becomes of it */
  readonly resv_waiters: Map<string, number[]>;
  /** reservation id -> schedulers that have refused the present question about it */
  readonly refusals: Map<string, Set<string>>;
  /** reservation id -> how often a scheduler's confirmation of it had to be refused */
  readonly vain_confirms: Map<string, number>;
  readonly joint: JointAnswers;
  readonly questions: Map<number, MomQuestion>;
  /** runs over several hosts, by job */
  readonly crews: Map<string, Crew>;
  /** preemptions under way, by job */
  readonly preemptions: Map<string, Preemption>;
  /** schedulers whose preemptions have settled: the rest of their decisions is looked at before the batch leaves */
  readonly settled: Set<string>;
  /** starts that somebody waits for, by job */
  readonly starting: Map<string, StartWaits>;
  next_question: number;
  /** hooks that run, by number */
  readonly hook_runs: Map<number, Chain>;
  next_hook_run: number;
  /** jobs whose postqueuejob hooks run: how many chains, and what waits for their end */
  readonly posting: Map<string, { chains: number; readonly waiting: (() => void)[] }>;
  /** states of vnodes as modifyvnode hooks know them; empty while there are none */
  readonly vnode_states: Map<string, { readonly state: string; readonly since: string }>;
  /** a value is being copied between the server and the default scheduler */
  mirroring: boolean;
  /** a mom's vnodes are being entered: new ones among them are no administrator's */
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
    changes: noChanges(),
    out: emptyOutbox(),
    timers: createTimers(),
    now_ms,
    scheds: new Map(),
    heartbeat_ms: now_ms,
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

/** Thrown out of a handler that needs an answer which is not at hand yet (Transaction.history, resolves). Never leaves the core. */
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

/** A transaction of `who` at the kernel's time. known: what was looked up for it already. */
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
    unserved: (queue) => whyUnserved(kernel, queue),
    commentNow: () => commentNow(kernel),
  };
  return tx;
}
const NOTHING: Known = nothingKnown();

/** A transaction of the server itself. */
export function ownTransaction(kernel: Kernel): Transaction {
  return transaction(kernel, serverIdentity(kernel.config.host), 0);
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

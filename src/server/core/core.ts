// The server's core is deterministic: a request, message or tick goes in with a time, and effects come out (ARCHITECTURE.md). The shell owns sockets, store,
// clock and child processes. It calls one of these functions for each event, takes the batch, commits its rows, and then releases the effects.
//
// I1. The same calls with the same times give the same batches.
// I2. take() gives everything since the last take; the batch must be committed before any of its effects leaves. It is called until it returns null.

import type { HookOutcome } from "#hooks/run/hook-input.ts";
import { PBSE, Reject, reject } from "#model/pbse.ts";
import type { Request } from "#protocol/messages.ts";
import type { MomToServer } from "#protocol/mom-link.ts";
import type { SchedToServer } from "#protocol/sched-link.ts";
import type { FrameOf } from "#protocol/schema-link.ts";
import { checkAccess, identify } from "../attributes/permission.ts";
import { type Batch, emptyOutbox, isEmptyOutbox } from "../engine/batch.ts";
import type { Peer } from "../engine/identity.ts";
import { joinAnswers } from "../engine/joint-answers.ts";
import { AnswerNeeded, answer, createKernel, type Kernel, refuse, transaction } from "../engine/kernel.ts";
import { nothingKnown, type WaitingRequest } from "../engine/request-runtime.ts";
import type { HookAsk, ServerConfig, Stream, Transaction } from "../engine/transaction.ts";
import { managed, watchVnodes } from "../hooks/afterwards.ts";
import { hookEnded, runHooks } from "../hooks/chain.ts";
import { answerQuery } from "../hooks/objects.ts";
import { settleAccrual } from "../jobs/eligible-time.ts";
import * as moms from "../moms/host.ts";
import { handle } from "../requests/index.ts";
import { awaitVnodes } from "../resv/health.ts";
import { cyclesLeave } from "../scheds/cycles.ts";
import { decideOnSettled } from "../scheds/decisions.ts";
import type { SchedSight } from "../scheds/heartbeat.ts";
import { deltas } from "../scheds/mirror.ts";
import * as scheds from "../scheds/session.ts";
import { commentNow, whyUnserved } from "../scheds/unserved.ts";
import { hasRows, noChanges } from "../state/changes.ts";
import type { Job, ServerState } from "../state/state.ts";
import { carryOut } from "./actions.ts";
import { clockSet } from "./clock-jump.ts";
import { consequences, forgetEntities, rearmAll } from "./consequences.ts";
import { requestNumber } from "./request-number.ts";
import { endWhenReady } from "./shutdown.ts";
import { tick } from "./tick.ts";

export type Core = {
  readonly state: ServerState;
  /** for tests and invariants */
  readonly kernel: Kernel;
  /** a client's request; the answer carries the token. sock: for the log */
  request(peer: Peer, request: Request, token: number, now_ms: number, sock?: number): void;
  /** answers to read-history (null: no such record) and page-history */
  historyRead(token: number, jobs: ReadonlyMap<string, Job | null>, now_ms: number): void;
  historyPage(token: number, jobs: readonly Job[], last: boolean, now_ms: number): void;
  /** answer to go-on: the next slice; returns whether more follow */
  slice(token: number, now_ms: number): boolean;
  historyPurged(count: number): void;
  /** the present number of records, after purges of arrays whose subjobs are not counted one by one */
  historyCounted(count: number): void;
  hostResolved(token: number, host: string, found: boolean, now_ms: number): void;
  /** answer to run-hook */
  hookEnded(run: number, outcome: HookOutcome, now_ms: number): void;
  /** objects that a running hook requests */
  hookQuery(query: { readonly what: string; readonly name: string }): unknown;
  /** the client of these open requests is gone */
  clientLost(tokens: readonly number[]): void;
  /** a scheduler's frame. link: number of the connection, given by the shell; a hello makes it a scheduler's connection */
  sched<T extends keyof SchedToServer>(link: number, type: T, data: SchedToServer[T], now_ms: number): void;
  schedLost(link: number, now_ms: number): void;
  /** a scheduler that the shell started has ended (or could not be started) */
  schedExited(name: string, how: scheds.SchedEnd, now_ms: number): void;
  /** a scheduler was not started, because one of its directories fails its check. text: for its comment */
  schedUnfit(name: string, text: string, now_ms: number): void;
  /** answer to look-at-sched */
  schedSeen(name: string, sight: SchedSight, now_ms: number): void;
  mom<T extends keyof MomToServer>(link: number, type: T, data: MomToServer[T], now_ms: number): void;
  momLost(link: number, now_ms: number, why?: string): void;
  /** the server has started: starts schedulers, sets timers */
  start(now_ms: number): void;
  /** the wall clock was set by this amount; now_ms: its new time */
  clockSet(by_ms: number, now_ms: number): void;
  /** the time of the next tick; null: no timer is set */
  nextTick(): number | null;
  tick(now_ms: number): void;
  /** the batch that has gathered; null: nothing */
  take(): Batch | null;
};

/** state: as loaded from the store (state/load.ts). */
export function createCore(state: ServerState, config: ServerConfig, now_ms: number): Core {
  const kernel = createKernel(state, config, now_ms, { consequences, carryOut, unserved: whyUnserved, commentNow });
  const at = (time_ms: number): void => {
    kernel.now_ms = time_ms;
  };
  return {
    state,
    kernel,
    request(peer, request, token, time_ms, sock = 0) {
      at(time_ms);
      const who = identify(state, peer);
      kernel.out.logs.push({
        event: 0x0100,
        class: "Req",
        object: "",
        text: `Type ${requestNumber(request)} request received from ${who.user}@${who.host}, sock=${sock}`,
      });
      serve(kernel, token, { who, request, known: nothingKnown() });
    },
    historyRead(token, jobs, time_ms) {
      at(time_ms);
      const waiting = kernel.requests.waiting.get(token);
      if (waiting === undefined) return;
      kernel.requests.waiting.delete(token);
      for (const [id, job] of jobs) waiting.known.jobs.set(id, job);
      serve(kernel, token, waiting);
    },
    hostResolved(token, host, found, time_ms) {
      at(time_ms);
      const waiting = kernel.requests.waiting.get(token);
      if (waiting === undefined) return;
      kernel.requests.waiting.delete(token);
      waiting.known.hosts.set(host, found);
      serve(kernel, token, waiting);
    },
    hookEnded(run, outcome, time_ms) {
      at(time_ms);
      hookEnded(kernel, run, outcome);
    },
    hookQuery: (query) => answerQuery(kernel, query),
    historyPage(token, jobs, last, time_ms) {
      at(time_ms);
      const waiting = kernel.requests.waiting.get(token);
      const stream = waiting?.stream;
      if (waiting === undefined || stream === undefined || "slice" in stream) return;
      const isDone = step(kernel, token, waiting, (tx) => {
        stream.page(tx, jobs, last);
        return !last;
      });
      if (isDone) streamOver(kernel, token, waiting, stream);
    },
    slice(token, time_ms) {
      at(time_ms);
      const waiting = kernel.requests.waiting.get(token);
      const stream = waiting?.stream;
      if (waiting === undefined || stream === undefined || !("slice" in stream)) return false;
      const isDone = step(kernel, token, waiting, (tx) => stream.slice(tx));
      if (isDone) streamOver(kernel, token, waiting, stream);
      return kernel.requests.waiting.get(token) === waiting;
    },
    historyPurged(count) {
      state.history_count = Math.max(0, state.history_count - count);
    },
    historyCounted(count) {
      state.history_count = count + kernel.changes.ended.size;
    },
    clientLost: (tokens) => forgetEntities(kernel, tokens),
    sched(link, type, data, time_ms) {
      at(time_ms);
      scheds.frame(kernel, link, { type, data } as FrameOf<"sched-to-server">);
    },
    schedLost(link, time_ms) {
      at(time_ms);
      scheds.lost(kernel, link);
    },
    schedExited(name, how, time_ms) {
      at(time_ms);
      scheds.exited(kernel, name, how);
    },
    schedUnfit(name, text, time_ms) {
      at(time_ms);
      scheds.unfit(kernel, name, text);
    },
    schedSeen(name, sight, time_ms) {
      at(time_ms);
      scheds.seen(kernel, name, sight);
    },
    mom(link, type, data, time_ms) {
      at(time_ms);
      moms.frame(kernel, link, { type, data } as FrameOf<"mom-to-server">);
    },
    momLost(link, time_ms, why = "communication closed") {
      at(time_ms);
      moms.lost(kernel, link, why);
    },
    start(time_ms) {
      at(time_ms);
      awaitVnodes(kernel);
      rearmAll(kernel);
      moms.allSilent(kernel);
      scheds.startAll(kernel);
    },
    clockSet(by_ms, time_ms) {
      at(time_ms);
      clockSet(kernel, by_ms);
    },
    nextTick: () => kernel.timers.next(),
    tick(time_ms) {
      at(time_ms);
      tick(kernel);
    },
    take() {
      if (kernel.scheds.settled.size > 0) decideOnSettled(kernel);
      if (kernel.ending.how !== null) endWhenReady(kernel);
      if (state.hooks.size > 0 || kernel.hooks.vnode_states.size > 0) watchVnodes(kernel);
      if (state.accrual.stale || state.accrual.dirty.size > 0) settleAccrual(kernel);
      const frames = deltas(kernel);
      const { changes, out } = kernel;
      if (!hasRows(changes) && isEmptyOutbox(out) && frames.length === 0) {
        const { told } = changes;
        if (told.server || told.queues.size + told.vnodes.size + told.resvs.size > 0) kernel.changes = noChanges();
        return null;
      }
      kernel.changes = noChanges();
      kernel.out = emptyOutbox();
      cyclesLeave(kernel);
      kernel.moms.starts.clear();
      return {
        ...out,
        changes,
        clients: kernel.requests.joint.last_part < 0 ? joinAnswers(kernel.requests.joint, out.clients) : out.clients,
        scheds: [...frames, ...out.scheds],
      };
    },
  };
}

/** Asks the shell for the next input of a stream. */
function follow(kernel: Kernel, token: number, waiting: WaitingRequest & { readonly stream: Stream }): void {
  const { stream } = waiting;
  kernel.requests.waiting.set(token, waiting);
  if ("slice" in stream) {
    kernel.out.actions.push({ kind: "go-on", token });
    return;
  }
  const { queue, seqs, subjobs } = stream;
  const walk = { subjobs: subjobs === true, ...(queue === undefined ? {} : { queue }), ...(seqs === undefined ? {} : { seqs }) };
  kernel.out.actions.push({ kind: "page-history", token, walk });
}

/** A page or slice. work returns whether more follow. Returns whether this was the last one; a refusal is the answer and ends the stream. */
function step(kernel: Kernel, token: number, waiting: WaitingRequest, work: (tx: Transaction) => boolean): boolean {
  try {
    return !work(transaction(kernel, waiting.who, token, waiting.known));
  } catch (error) {
    if (!(error instanceof Reject)) throw error;
    kernel.requests.waiting.delete(token);
    refuse(kernel, token, error);
    return false;
  }
}

function streamOver(kernel: Kernel, token: number, waiting: WaitingRequest, stream: Stream): void {
  kernel.requests.waiting.delete(token);
  const next = stream.next?.() ?? null;
  if (next !== null) return follow(kernel, token, { ...waiting, stream: next });
  const value = stream.value?.();
  answer(kernel, token, value === undefined ? {} : { value });
}

/** Runs a handler. A refusal becomes an error reply and a log line; a question to the outside makes the request wait. */
function serve(kernel: Kernel, token: number, waiting: WaitingRequest): void {
  const { who, request, known } = waiting;
  const tx = transaction(kernel, who, token, known);
  const clients = kernel.out.clients.length;
  try {
    if (kernel.ending.stopping !== "no" && request.kind !== "status" && request.kind !== "shutdown") throw reject(PBSE.SVRDOWN);
    checkAccess(kernel.state, kernel.config.host, who);
    const result = handle(tx, request);
    if (typeof result === "object" && "stream" in result) {
      follow(kernel, token, { ...waiting, stream: result.stream });
      return;
    }
    answer(kernel, token, result);
    if (request.kind === "manager" || request.kind === "import-hook") {
      const said = kernel.out.clients.slice(clients).find((frame) => frame.token === token);
      if (said?.kind === "error") managed(kernel, who, request, said.code, said.text);
      else managed(kernel, who, request, 0, (said?.kind === "ok" ? said.text : undefined) ?? null);
    }
  } catch (error) {
    // Parts of a handler that did not reach its end are not sent.
    kernel.out.clients.length = clients;
    if (error instanceof AnswerNeeded) {
      kernel.requests.waiting.set(token, waiting);
      if (error.what === "hooks") return askHooks(kernel, token, waiting, error.asks);
      const [name = ""] = error.names;
      kernel.out.actions.push(
        error.what === "job" ? { kind: "read-history", token, ids: error.names } : { kind: "resolve-host", token, host: name },
      );
      return;
    }
    if (!(error instanceof Reject)) throw error;
    refuse(kernel, token, error);
    if (request.kind === "manager" || request.kind === "import-hook") managed(kernel, who, request, error.code, error.text);
    const text = `Reject reply code=${error.code}, aux=0, type=${requestNumber(request)}, from ${who.user}@${who.host}`;
    kernel.out.logs.push({ event: 0x0080, class: "Req", object: "req_reject", text });
  }
}

/** The request is served again when all its hooks have answered, unless its client has gone meanwhile. */
function askHooks(kernel: Kernel, token: number, waiting: WaitingRequest, asks: readonly HookAsk[]): void {
  let left = asks.length;
  for (const { key, event, input } of asks) {
    runHooks(kernel, event, input(), (verdict) => {
      waiting.known.hooks.set(key, verdict);
      left--;
      if (left > 0 || kernel.requests.waiting.get(token) !== waiting) return;
      kernel.requests.waiting.delete(token);
      serve(kernel, token, waiting);
    });
  }
}

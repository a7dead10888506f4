// The core of the server. It is deterministic: a request, message or tick goes in with a time, and effects come out
// (ARCHITECTURE.md). The shell owns sockets, store, clock and child processes. It calls one of these functions for each
// event, takes the batch, commits its rows, and then carries out the effects.
//
// I1. The same calls with the same times give the same batches.
// I2. take() gives everything since the last take; the batch must be committed before any of its effects leaves. It is called until it returns null.

import type { HookOutcome } from "#hooks/run/hook-input.ts";
import type { Request } from "#protocol/messages.ts";
import type { MomGrace, MomToServer } from "#protocol/mom-link.ts";
import type { RunnersToServer } from "#protocol/runner-link.ts";
import type { SchedHello, SchedToServer } from "#protocol/sched-link.ts";
import type { FrameOf } from "#protocol/schema-link.ts";
import { type Batch, emptyOutbox, isEmptyOutbox } from "../engine/batch.ts";
import type { Peer } from "../engine/identity.ts";
import { joinAnswers } from "../engine/joint-answers.ts";
import { createKernel, type Kernel } from "../engine/kernel.ts";
import type { ServerConfig, ShutdownManner } from "../engine/transaction.ts";
import { watchVnodes } from "../hooks/afterwards.ts";
import { hookEnded } from "../hooks/chain.ts";
import { answerQuery } from "../hooks/objects.ts";
import { settleAccrual } from "../jobs/eligible-time.ts";
import * as moms from "../moms/host.ts";
import { awaitVnodes } from "../resv/health.ts";
import { runnerArrives, runnerAway } from "../runners/arrival.ts";
import * as runners from "../runners/controller.ts";
import { cyclesLeave } from "../scheds/cycles.ts";
import { decideOnSettled } from "../scheds/decisions.ts";
import { giveJobs } from "../scheds/freed.ts";
import type { SchedSight } from "../scheds/heartbeat.ts";
import { deltas } from "../scheds/mirror.ts";
import { unreached } from "../scheds/remote.ts";
import * as scheds from "../scheds/session.ts";
import { commentNow, whyUnserved } from "../scheds/unserved.ts";
import { hasRows, noChanges } from "../state/changes.ts";
import type { Job, ServerState } from "../state/state.ts";
import { carryOut } from "./actions.ts";
import { clockSet } from "./clock-jump.ts";
import { consequences } from "./hearing.ts";
import { forgetClients, historyPage, historyRead, hostResolved, serveRequest, slice } from "./serve.ts";
import { endWhenReady, otherOrdered } from "./shutdown.ts";
import { armAll, tick } from "./tick.ts";

export type Core = {
  readonly state: ServerState;
  /** the data of the core, for tests and invariants */
  readonly kernel: Kernel;
  /** a client's request. token: is given back with the answer. sock: number of the connection, for the log */
  request(peer: Peer, request: Request, token: number, now_ms: number, sock?: number): void;
  /** the answers to the actions read-history (null: no such record) and page-history */
  historyRead(token: number, jobs: ReadonlyMap<string, Job | null>, now_ms: number): void;
  historyPage(token: number, jobs: readonly Job[], last: boolean, now_ms: number): void;
  /** the answer to go-on: makes the next slice; returns whether more slices follow */
  slice(token: number, now_ms: number): boolean;
  historyPurged(count: number): void;
  /** the present number of records in the history. Needed after purges of arrays, because their subjobs are not counted one by one */
  historyCounted(count: number): void;
  /** the answer to resolve-host: the name of the host; null: the host is unknown */
  hostResolved(token: number, host: string, name: string | null, now_ms: number): void;
  /** order-other was carried out: the server begins to end */
  otherOrdered(token: number, how: ShutdownManner, now_ms: number): void;
  /** the answer to run-hook */
  hookEnded(run: number, outcome: HookOutcome, now_ms: number): void;
  /** returns the objects that a running hook asks for */
  hookQuery(query: { readonly what: string; readonly name: string }): unknown;
  /** the client of these open requests is gone */
  clientLost(tokens: readonly number[]): void;
  /** a frame of a scheduler. link: the shell's number for the connection; the hello on it says which scheduler it belongs to */
  sched<T extends keyof SchedToServer>(link: number, type: T, data: SchedToServer[T], now_ms: number): void;
  /** the hello of a scheduler on another host, which the server has dialled */
  schedHello(link: number, hello: SchedHello, host: string, now_ms: number): void;
  schedLost(link: number, now_ms: number): void;
  /** a scheduler on another host could not be reached. why: a text for people. The shell continues to try */
  schedUnreached(name: string, why: string, now_ms: number): void;
  /** a scheduler that the shell started has ended (or could not be started) */
  schedExited(name: string, how: scheds.SchedEnd, now_ms: number): void;
  /** a scheduler was not started, because one of its directories fails its check. text: for the scheduler's comment */
  schedUnfit(name: string, text: string, now_ms: number): void;
  /** the answer to look-at-sched */
  schedSeen(name: string, sight: SchedSight, now_ms: number): void;
  mom<T extends keyof MomToServer>(link: number, type: T, data: MomToServer[T], now_ms: number): void;
  /** returns the grace that the mom of this link must be told (protocol/mom-link.ts I7); null: no mom is connected over this link, so its reports get no answer */
  graceOf(link: number): { readonly grace?: MomGrace } | null;
  momLost(link: number, now_ms: number, why?: string): void;
  /** a frame of pbs_runners */
  runners<T extends keyof RunnersToServer>(link: number, type: T, data: RunnersToServer[T], now_ms: number): void;
  runnersLost(link: number, now_ms: number): void;
  /** pbs_runners has ended, or could not be started. why null: nothing is wrong */
  runnersExited(why: string | null, now_ms: number): void;
  /** the server has started: starts schedulers, sets timers */
  start(now_ms: number): void;
  /** the wall clock was set by this amount; now_ms: its new time */
  clockSet(by_ms: number, now_ms: number): void;
  /** the time of the next tick; null: no timer is set */
  nextTick(): number | null;
  tick(now_ms: number): void;
  /** the batch that has gathered; null: there is nothing */
  take(): Batch | null;
};

/** Makes a core. state: the state that was loaded from the store (state/load.ts). */
export function createCore(state: ServerState, config: ServerConfig, now_ms: number): Core {
  const kernel = createKernel(state, config, now_ms, { consequences, carryOut, unserved: whyUnserved, commentNow });
  /** Sets the time of the kernel to the time of a call, and returns the kernel. */
  const at = (time_ms: number): Kernel => {
    kernel.now_ms = time_ms;
    return kernel;
  };
  return {
    state,
    kernel,
    request: (peer, request, token, time_ms, sock = 0) => serveRequest(at(time_ms), peer, request, token, sock),
    historyRead: (token, jobs, time_ms) => historyRead(at(time_ms), token, jobs),
    hostResolved: (token, host, name, time_ms) => hostResolved(at(time_ms), token, host, name),
    otherOrdered: (token, how, time_ms) => otherOrdered(at(time_ms), token, how),
    hookEnded: (run, outcome, time_ms) => hookEnded(at(time_ms), run, outcome),
    hookQuery: (query) => answerQuery(kernel, query),
    historyPage: (token, jobs, last, time_ms) => historyPage(at(time_ms), token, jobs, last),
    slice: (token, time_ms) => slice(at(time_ms), token),
    historyPurged(count) {
      state.history_count = Math.max(0, state.history_count - count);
    },
    historyCounted(count) {
      state.history_count = count + kernel.changes.ended.size;
    },
    clientLost: (tokens) => forgetClients(kernel, tokens),
    sched: (link, type, data, time_ms) => scheds.frame(at(time_ms), link, frameOf<"sched-to-server">(type, data)),
    schedHello: (link, hello, host, time_ms) => scheds.hello(at(time_ms), link, hello, host),
    schedLost: (link, time_ms) => scheds.lost(at(time_ms), link),
    schedUnreached: (name, why, time_ms) => unreached(at(time_ms), name, why),
    schedExited: (name, how, time_ms) => scheds.exited(at(time_ms), name, how),
    schedUnfit: (name, text, time_ms) => scheds.unfit(at(time_ms), name, text),
    schedSeen: (name, sight, time_ms) => scheds.seen(at(time_ms), name, sight),
    mom: (link, type, data, time_ms) => momFrame(at(time_ms), link, frameOf<"mom-to-server">(type, data)),
    momLost: (link, time_ms, why = "communication closed") => momLost(at(time_ms), link, why),
    graceOf: (link) => moms.graceOfLink(kernel, link),
    runners: (link, type, data, time_ms) => runners.frame(at(time_ms), link, frameOf<"runners-to-server">(type, data)),
    runnersLost: (link, time_ms) => runners.lost(at(time_ms), link),
    runnersExited: (why, time_ms) => runners.exited(at(time_ms), why),
    start: (time_ms) => start(at(time_ms)),
    clockSet: (by_ms, time_ms) => clockSet(at(time_ms), by_ms),
    nextTick: () => kernel.timers.next(),
    tick: (time_ms) => tick(at(time_ms)),
    take: () => take(kernel),
  };
}

/** Handles a frame of a mom. A runner gets its vnode first, so that its hello is then handled like any mom's hello. */
function momFrame(kernel: Kernel, link: number, frame: FrameOf<"mom-to-server">): void {
  if (frame.type === "mom-hello") runnerArrives(kernel, frame.data);
  moms.frame(kernel, link, frame);
}

function momLost(kernel: Kernel, link: number, why: string): void {
  const host = kernel.moms.by_link.get(link)?.host;
  moms.lost(kernel, link, why);
  if (host !== undefined) runnerAway(kernel, host);
}

/** Joins the type and the data of a frame. The gate has checked that they belong together. */
const frameOf = <D extends "sched-to-server" | "mom-to-server" | "runners-to-server">(type: string, data: unknown): FrameOf<D> =>
  ({ type, data }) as FrameOf<D>;

function start(kernel: Kernel): void {
  awaitVnodes(kernel);
  armAll(kernel);
  moms.allSilent(kernel);
  scheds.startAll(kernel);
  runners.startAll(kernel);
}

/** Does the work that must be done before a batch leaves. Then returns everything that has gathered (I2). */
function take(kernel: Kernel): Batch | null {
  const { state, requests } = kernel;
  if (kernel.scheds.settled.size > 0) decideOnSettled(kernel);
  if (kernel.runners.freed.length > 0) giveJobs(kernel);
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
  const clients = requests.joint.last_part < 0 ? joinAnswers(requests.joint, out.clients) : out.clients;
  return { ...out, changes, clients, scheds: [...frames, ...out.scheds] };
}

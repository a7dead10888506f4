// Drives the core. Every event is given to the core, and its results are committed in batches. Replies, frames and actions
// of a batch leave after its commit. The daemon, the simulator, what-if and the tests share this driver, each with its own
// ports (ports.ts).
//
// I1. One commit is under way at a time. During a commit, the next batch gathers.
// I2. Nothing of a batch leaves before its commit. If a commit fails, every request of the batch is refused (15010), and the
//     state is loaded again from the store.
// I3. While the store accepts no writes (a full disk), requests that only read are answered from the stored state, changes
//     are refused, and schedulers and moms are kept out.
// I4. Requests of clients are served in turns by user and connection, for a slice of time. Then schedulers, moms and the store get their turn.
// I5. If another server may take over (ports.ts LeasePort), nothing leaves, not even an answer that needs no write, before it is
//     certain that this server still leads.
// I6. Whenever a state is loaded, the accounting records of its last batch that the accounting file lacks are written before
//     anything else is committed (accounting-recovery.ts).

import { limitOf } from "#model/limits/server-limits.ts";
import { PBSE, pbseText } from "#model/pbse.ts";
import type { Request } from "#protocol/messages.ts";
import type { MomToServer } from "#protocol/mom-link.ts";
import type { RunnersToServer } from "#protocol/runner-link.ts";
import type { SchedHello, SchedToServer } from "#protocol/sched-link.ts";
import type { Batch as Rows } from "#store/store.ts";
import { watchedClock } from "#support/clock-jumps.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Core, createCore } from "../core/core.ts";
import { type Batch, emptyOutbox } from "../engine/batch.ts";
import type { Peer } from "../engine/identity.ts";
import type { ServerConfig } from "../engine/transaction.ts";
import { endablePid, type SchedEnd } from "../scheds/session.ts";
import { noChanges } from "../state/changes.ts";
import { remotePlace } from "../state/partitions.ts";
import { type DueRecord, rowsOf } from "../state/rows.ts";
import type { ServerState } from "../state/state.ts";
import { Delivery } from "./delivery.ts";
import { historySteps } from "./history-steps.ts";
import type { Asker, LoadedState, ServerPorts } from "./ports.ts";
import { createTurns, type Turns } from "./turns.ts";

/** Delay of the next commit after a failed one, to spare a full disk. While the core cannot start, the delay is doubled up to FAULT_PAUSE_MS_MAX. */
const FAULT_PAUSE_MS = 200;
const FAULT_PAUSE_MS_MAX = 30_000;
/** Longest delay of the next attempt to load the store: when a database works again, the server soon goes on. */
const LOAD_PAUSE_MS_MAX = 5000;
/** Interval at which a store that refused a write is tried again. */
const PROBE_MS = 1000;
/** Requests that can be answered without a write; shutdown is one of them, because it must always be possible. */
const WITHOUT_STORE: ReadonlySet<Request["kind"]> = new Set(["status", "select-jobs", "locate-job", "backup", "identity", "shutdown"]);
/** Time for which requests are served before their results are written and new requests are read. */
const SLICE_MS = 10;
/**
 * Upper bounds on the work and the text of the requests that may gather while a batch is being written. Text is
 * bounded separately, because the store needs longer for megabytes than the core.
 */
const GATHER_MS = 50;
const GATHER_CHARS = 4 * 1024 * 1024;
/** Time after the loss of a connection until the server checks whether the process still exists. */
const LOOK_AFTER_MS = 200;
/** The longest delay that a timer of Node.js can have. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** A batch that is being committed. at_s: the time of its records in the accounting file. */
type Taken = { readonly batch: Batch; readonly at_s: number; readonly rows: Rows | null };

export class ServerDriver {
  readonly #ports: ServerPorts;
  readonly #config: ServerConfig;
  readonly #now: () => number;
  readonly #turns: Turns;
  readonly #delivery: Delivery;
  #core: Core;
  #phase: "serving" | "reloading" | "over" = "serving";
  /** the server has begun to end; schedulers may still be running */
  #closing = false;
  /** the reason why the store accepts no writes; null: it works (I3) */
  #fault: string | null = null;
  /** number of consecutive starts of the core that failed */
  #failed_starts = 0;
  #writing = false;
  #when_written: (() => void)[] = [];
  #is_pumping = false;
  #is_scheduled = false;
  /** functions to call when the batch of this turn has left */
  #when_pumped: (() => void)[] = [];
  /**
   * Work time and length of the requests whose results have gathered for the next batch. Both are bounded while a batch is
   * being written (GATHER_MS, GATHER_CHARS).
   */
  #gathered_ms = 0;
  #gathered_chars = 0;
  /** the timer of the next tick: its time, and a function that cancels it */
  #tick: { readonly due_ms: number; readonly cancel: () => void } | null = null;
  #cancelProbe: () => void = () => undefined;

  /** state, due: as loaded from the store; the due records are written at once (I6). The driver does nothing else before start(). */
  constructor(ports: ServerPorts, config: ServerConfig, state: ServerState, due: readonly DueRecord[] = []) {
    this.#ports = ports;
    this.#config = config;
    this.#now = watchedClock((by_ms, at_ms) => this.#clockSet(by_ms, at_ms), ports.clock);
    this.#turns = createTurns(ports.clock.steady_ms);
    this.#core = createCore(state, config, ports.clock.wall_ms());
    const history = historySteps({
      history: ports.store.history,
      core: (work) => this.do(work),
      turn: (token, work) => this.#inTurnOf(token, work),
      taken: (token, then) => void this.#when_pumped.push(() => ports.clients.taken(token, then)),
      uidOf: (token) => ports.clients.of(token)?.uid,
      rows_max: () => limitOf(this.#core.state, "max_history_rows"),
      failed: (token, error) => this.#historyFailed(token, error),
    });
    this.#delivery = new Delivery(ports, {
      history,
      core: () => this.#core,
      do: (work) => this.do(work),
      refuse: (token, text) => this.#refuse(token, PBSE.SYSTEM, text),
      end: (scheds) => this.#end(scheds ? "all" : "none"),
    });
    this.#delivery.recover(due);
  }

  /** The present core. It is replaced by a new one when the state is loaded again. */
  get core(): Core {
    return this.#core;
  }

  get isOver(): boolean {
    return this.#phase === "over";
  }

  /** Whether no write is under way and none is due. */
  get isIdle(): boolean {
    return this.#phase === "serving" && this.#fault === null && !this.#writing && !this.#is_scheduled;
  }

  /** Whether schedulers and moms are admitted (I3). */
  get takesDaemons(): boolean {
    return this.#phase === "serving" && this.#fault === null;
  }

  /** Whether it is certain that no other server leads (I5). */
  get leads(): boolean {
    return this.#ports.store.lease?.holds() ?? true;
  }

  start(): void {
    this.#ports.watch?.began?.(this.#core);
    this.#startCore();
    this.#pump();
  }

  /** Whether a person has told the server to end (qterm), even if something else ends it meanwhile. */
  get isToldToEnd(): boolean {
    return this.#core.kernel.ending.how !== null;
  }

  /** Ends the server as qterm -t quick does. scheds: ends the schedulers of this host, too */
  stop(scheds = false): void {
    this.#end(scheds ? "own" : "none");
  }

  // --- input

  /** link: number of the client's connection, for the log. chars: length of the request's text */
  request(peer: Peer, request: Request, token: number, link = 0, chars = 0): void {
    if (this.#ports.clients.of(token) === undefined) return; // the request was refused while the state was being loaded again
    if (this.#fault !== null && !WITHOUT_STORE.has(request.kind)) return this.#refuse(token, PBSE.SYSTEM, this.#fault);
    // The core failed earlier in this slice. This request was opened after #startOver had listed the open requests, so it is refused here.
    if (this.#phase === "reloading") {
      if (this.#fault !== null) return this.#refuse(token, PBSE.SYSTEM, this.#fault);
      return this.#refuse(token, PBSE.INTERNAL, pbseText(PBSE.INTERNAL) ?? "");
    }
    this.#gathered_chars += chars;
    this.do((core, now_ms) => core.request(peer, request, token, now_ms, link));
  }

  sched<T extends keyof SchedToServer>(link: number, type: T, data: SchedToServer[T]): void {
    this.do((core, now_ms) => core.sched(link, type, data, now_ms));
  }

  /** The hello of a scheduler on another host, which the server has dialled. */
  schedHello(link: number, hello: SchedHello, host: string): void {
    this.do((core, now_ms) => core.schedHello(link, hello, host, now_ms));
  }

  mom<T extends keyof MomToServer>(link: number, type: T, data: MomToServer[T]): void {
    this.do((core, now_ms) => core.mom(link, type, data, now_ms));
  }

  runners<T extends keyof RunnersToServer>(link: number, type: T, data: RunnersToServer[T]): void {
    this.do((core, now_ms) => core.runners(link, type, data, now_ms));
  }

  runnersLost(link: number): void {
    this.do((core, now_ms) => core.runnersLost(link, now_ms));
  }

  /** Called when a connection is gone. tokens: its open requests. The loss of a scheduler or mom is reported separately. */
  linkLost(uid: number, link: number, tokens: readonly number[]): void {
    this.#turns.drop(uid, link);
    this.do((core) => core.clientLost(tokens));
  }

  momLost(link: number): void {
    this.do((core, now_ms) => core.momLost(link, now_ms));
  }

  /**
   * Called when the link of a scheduler is lost. If its process is not a child, checks later whether the process still
   * exists, because nothing else reports its end. pid 0: the scheduler is on another host.
   */
  schedLost(link: number, pid: number): void {
    if (this.#phase !== "serving") return;
    const { processes, clock } = this.#ports;
    const name = [...this.#core.kernel.scheds.by_name.values()].find((runtime) => runtime.link === link)?.name;
    this.do((core, now_ms) => core.schedLost(link, now_ms));
    if (name === undefined || pid === 0 || processes.isChild(pid)) return;
    clock.after(LOOK_AFTER_MS, () => {
      if (!processes.isAlive(pid)) this.schedExited(name, { code: null, signal: "unknown", stopped: false, pid });
    });
  }

  schedExited(name: string, how: SchedEnd): void {
    this.do((core, now_ms) => core.schedExited(name, how, now_ms));
  }

  schedUnfit(name: string, text: string): void {
    this.do((core, now_ms) => core.schedUnfit(name, text, now_ms));
  }

  /** Tells the core that a scheduler on another host could not be reached. why: a text for people. */
  schedUnreached(name: string, why: string): void {
    this.do((core, now_ms) => core.schedUnreached(name, why, now_ms));
  }

  /** Does work for a client when its turn comes, unless its connection is gone by then. */
  inTurn({ uid, link }: Asker, work: () => void): void {
    this.#turns.add(uid, link, work);
    this.#soon();
  }

  /** Calls the core. If a programmer's error occurs in it, the server does not end: it discards what was not committed and goes on. */
  do(work: (core: Core, now_ms: number) => void): void {
    if (this.#phase !== "serving") return;
    try {
      work(this.#core, this.#now());
      this.#ports.watch?.stepped?.(this.#core);
      this.#soon();
    } catch (error) {
      this.#failed(error);
    }
  }

  // --- batches

  /** Serves requests in turns (turns.ts). Everything done in this turn of the event loop goes into one batch. */
  #soon(): void {
    if (this.#is_scheduled) return;
    this.#is_scheduled = true;
    this.#ports.clock.soon(() => {
      this.#is_scheduled = false;
      const more = this.#serveTurns();
      this.#pump();
      for (const then of this.#when_pumped.splice(0)) then();
      if (more) this.#soon();
    });
  }

  get #hasGathered(): boolean {
    return this.#gathered_ms >= GATHER_MS || this.#gathered_chars >= GATHER_CHARS;
  }

  #serveTurns(): boolean {
    if (this.#phase !== "serving" || (this.#writing && this.#hasGathered)) return false;
    const { clock } = this.#ports;
    const begin_ms = clock.steady_ms();
    const more = this.#turns.serve(SLICE_MS);
    this.#gathered_ms += clock.steady_ms() - begin_ms;
    return more;
  }

  /** Does work for an open request when the turn of its client comes. */
  #inTurnOf(token: number, work: (is_open: boolean) => void): void {
    const { clients } = this.#ports;
    const asker = clients.of(token);
    if (asker === undefined) return work(false);
    this.#turns.add(
      asker.uid,
      asker.link,
      () => work(clients.of(token) !== undefined),
      () => work(false),
    );
    this.#soon();
  }

  /** Takes the results that have gathered: writes them as a batch, or delivers them at once if nothing must be stored. */
  #pump(): void {
    if (this.#is_pumping) return;
    this.#is_pumping = true;
    try {
      while (!this.#writing && this.#phase === "serving") {
        const taken = this.#take();
        if (taken === null) break;
        const { rows } = taken;
        const done = (fault: Error | null): void => (fault === null ? this.#delivery.deliver(taken) : this.#commitFailed(taken, fault));
        if (rows !== null) this.#write((tell) => this.#ports.store.commit(rows, tell), done);
        else if (this.leads) this.#delivery.deliver(taken);
        else this.#write((tell) => this.#ports.store.lease?.confirm(tell), done);
      }
    } finally {
      this.#is_pumping = false;
    }
    this.#arm();
  }

  #take(): Taken | null {
    const core = this.#core;
    try {
      const batch = core.take();
      this.#gathered_ms = 0;
      this.#gathered_chars = 0;
      if (batch === null) return null;
      this.#ports.watch?.taken?.(core, batch);
      const at_s = Math.floor(this.#ports.clock.wall_ms() / 1000);
      const due = batch.accounting.map((record) => ({ at_s, ...record }));
      return { batch, at_s, rows: rowsOf(core.state, batch.changes, due) };
    } catch (error) {
      this.#failed(error);
      return null;
    }
  }

  /** Writes to the store (I1), or waits until it is certain that this server leads (I5). done: called in any case, also after a failure. */
  #write(work: (tell: (fault: Error | null) => void) => void, done: (fault: Error | null) => void): void {
    this.#writing = true;
    work((fault) => {
      this.#writing = false;
      done(fault);
      for (const then of this.#when_written.splice(0)) then();
      this.#pump();
      this.#soon();
    });
  }

  #whenWritten(then: () => void): void {
    if (this.#writing) this.#when_written.push(then);
    else then();
  }

  #arm(): void {
    const { clock } = this.#ports;
    const due_ms = this.#phase === "over" || this.#fault !== null ? null : this.#core.nextTick();
    if (due_ms === (this.#tick?.due_ms ?? null)) return;
    this.#disarm();
    if (due_ms === null) return;
    const delay_ms = Math.min(Math.max(0, due_ms - clock.wall_ms()), TIMER_MS_MAX);
    const cancel = clock.after(delay_ms, () => {
      this.#tick = null;
      this.do((core, now_ms) => core.tick(now_ms));
    });
    this.#tick = { due_ms, cancel };
  }

  #disarm(): void {
    this.#tick?.cancel();
    this.#tick = null;
  }

  /** Called when the system's clock was set: the delay of the next tick was computed with the old clock, so the tick is timed again. */
  #clockSet(by_ms: number, at_ms: number): void {
    this.#disarm();
    this.#core.clockSet(by_ms, at_ms);
  }

  // --- failures

  #commitFailed({ batch, at_s }: Taken, error: Error): void {
    // A server that cannot write must still be able to end. Nothing else of the batch may leave (I2), and no answer if another server may lead (I5).
    const actions = batch.actions.filter(({ kind }) => kind === "shutdown");
    if (this.#fault !== null && actions.length > 0) {
      const clients = this.leads ? batch.clients : [];
      return this.#delivery.deliver({ batch: { ...emptyOutbox(), changes: noChanges(), logs: batch.logs, clients, actions }, at_s });
    }
    this.#ports.log.note(LOG_EVENT.ERROR, `commit failed: ${error.message}`);
    const text = `${pbseText(PBSE.SYSTEM) ?? ""}${error.message}`;
    for (const frame of batch.clients) if (frame.kind !== "part") this.#refuse(frame.token, PBSE.SYSTEM, text);
    this.#fault = text;
    this.#startOver(PBSE.SYSTEM, text);
  }

  #failed(error: unknown): void {
    this.#ports.onBug(error);
    this.#startOver(PBSE.INTERNAL, pbseText(PBSE.INTERNAL) ?? "");
  }

  /** Discards the state in memory, which has changes that were not stored, and loads the store. Open requests are refused; daemons say hello again. */
  #startOver(code: number, text: string): void {
    if (this.#phase !== "serving") return;
    this.#phase = "reloading";
    const { clients, links } = this.#ports;
    const open = clients.open();
    // A write may be under way. If it succeeds, its answers are sent as they are.
    this.#whenWritten(() => {
      for (const token of open) this.#refuse(token, code, text);
      links.dropDaemons();
      this.#loadSoon(Math.min(FAULT_PAUSE_MS * 2 ** this.#failed_starts, FAULT_PAUSE_MS_MAX));
    });
  }

  /** Loads the store after a pause. If that fails, tries again after twice the pause. told: the fault that the log has already. */
  #loadSoon(pause_ms: number, told = ""): void {
    const { clock, store, log } = this.#ports;
    clock.after(pause_ms, () => {
      if (this.#phase !== "reloading") return;
      store.load((result) => {
        if (result.ok) return this.#goOnWith(result.value);
        const { message } = result.error;
        if (message !== told) log.note(LOG_EVENT.ERROR, `the state cannot be loaded from the store: ${message}`);
        this.#loadSoon(Math.min(2 * pause_ms, LOAD_PAUSE_MS_MAX), message);
      });
    });
  }

  #goOnWith({ state, due }: LoadedState): void {
    if (this.#phase !== "reloading") return;
    this.#delivery.recover(due);
    this.#core = createCore(state, this.#config, this.#ports.clock.wall_ms());
    this.#ports.log.note(LOG_EVENT.SYSTEM, "state loaded again from the store");
    this.#ports.watch?.began?.(this.#core);
    this.#phase = "serving";
    if (this.#fault === null) this.#startCore();
    else this.#probeSoon();
    this.#pump();
    this.#soon();
  }

  #startCore(): void {
    this.#failed_starts++;
    this.do((core, now_ms) => {
      core.start(now_ms);
      this.#failed_starts = 0;
    });
  }

  #probeSoon(): void {
    this.#cancelProbe();
    this.#cancelProbe = this.#ports.clock.after(PROBE_MS, () => this.#whenWritten(() => this.#probe()));
  }

  #probe(): void {
    if (this.#phase !== "serving") return;
    const rows = { counters: { probed: this.#ports.clock.wall_ms() } };
    const write = (tell: (fault: Error | null) => void): void => this.#ports.store.commit(rows, tell);
    this.#write(write, (fault) => {
      if (fault !== null) return this.#probeSoon();
      this.#fault = null;
      this.#ports.log.note(LOG_EVENT.SYSTEM, "the store can be written again");
      this.#startCore();
    });
  }

  #refuse(token: number, code: number, text: string): void {
    this.#ports.clients.answer([{ kind: "error", token, code, text }]);
  }

  #historyFailed(token: number, error: Error): void {
    this.#ports.log.note(LOG_EVENT.ERROR, `history: ${error.message}`);
    if (token === 0) return;
    this.#refuse(token, PBSE.SYSTEM, `${pbseText(PBSE.SYSTEM) ?? ""}${error.message}`);
    this.do((core) => core.clientLost([token]));
  }

  // --- the end

  /** scheds: which schedulers end with the server. own: the schedulers of this host */
  #end(scheds: "all" | "own" | "none"): void {
    if (this.#closing) return;
    this.#closing = true;
    // A scheduler ends after its present cycle. Its link stays open until then, because the cycle needs verdicts.
    const { state, kernel } = this.#core;
    const isFar = (name: string): boolean => {
      const sched = state.scheds.get(name);
      return sched !== undefined && remotePlace(sched, this.#config) !== null;
    };
    const known = scheds === "none" ? [] : [...kernel.scheds.by_name.values()];
    const running = scheds === "own" ? known.filter(({ name }) => !isFar(name)) : known;
    const stopped = running.map((runtime) => ({ name: runtime.name, pid: endablePid(runtime) }));
    this.#ports.processes.stopAll(stopped, () => this.#close());
  }

  /** Closes everything. The answers of this batch were sent; for requests that came later, the connection closes without an answer. */
  #close(): void {
    const { hooks, log, links, store } = this.#ports;
    this.#phase = "over";
    this.#disarm();
    this.#cancelProbe();
    store.hurry?.();
    this.#whenWritten(() => {
      hooks.close();
      log.note(LOG_EVENT.SYSTEM | LOG_EVENT.FORCE, "Server has been shut down");
      links.close(() => store.close(() => this.#ports.ended()));
    });
  }
}

// Drives a scheduler: handles the link to the server, the universe, cycles, questions of clients, and settings. The daemon, the
// simulator and what-if share this driver, each with its own ports (ports.ts).
//
//            connected, snapshot            sched-cycle                   last verdict
//   waiting ---------------------> idle ------------------> deciding ------------------> idle      (deltas wait while it is deciding)
//
// S1. Frames that change the universe are applied in order. During a cycle they wait until its end or until a further pass of the
//     same cycle (cycles.ts C3).
// S2. A gap in revisions, or a frame that cannot be understood, ends the connection; the next connection begins with a snapshot.
// S3. No cycle begins while modules are being loaded, and no modules are loaded while a cycle is deciding.

import { PBSE } from "#model/pbse.ts";
import { ATTRS_FAULT, type Delta, SCHED_COMMAND, type SchedToServer, type Snapshot } from "#protocol/sched-link.ts";
import { type FrameOf, parseFrame } from "#protocol/schema-link.ts";
import { AssertionFailed } from "#support/assert.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { applyDelta, createUniverse } from "../mirror/mirror.ts";
import { mirrorOptions } from "../modules/index.ts";
import { policyUnder } from "../policy/named-policy.ts";
import { notObeyedNews } from "../policy/not-obeyed.ts";
import type { PolicyBook } from "../shapes/policy-book.ts";
import type { Universe } from "../shapes/universe.ts";
import { Cycles } from "./cycles.ts";
import type { SchedPorts } from "./ports.ts";
import { Questions } from "./questions.ts";
import { Reminders } from "./reminders.ts";
import { UsageKeeper } from "./usage-keeper.ts";

export type SchedFrame = FrameOf<"server-to-sched">;
/** What a scheduler process says about itself in its hello. */
/** user: as in SchedHello */
export type SchedSelf = { readonly name: string; readonly pid: number; readonly version: string; readonly user?: string };

const REFUSED_RETRY_MS = 2000;
const LEAVE_MS_MAX = 5000;

export class SchedDriver {
  readonly #ports: SchedPorts;
  readonly #self: SchedSelf;
  #book: PolicyBook;
  /** version of the files from which the settings were read */
  #files_version = "";
  #universe: Universe | null = null;
  /** whether the connection has been given up; what still arrives over it is ignored */
  #is_deaf = false;
  /** number of chains of modules that are being created */
  #loading = 0;
  /** frames that arrived while the scheduler was busy and are not handled yet */
  #waiting: SchedFrame[] = [];
  /** signals that arrived while a cycle was deciding */
  readonly #signals: number[] = [];
  /** the fault reported last; null: the server knows that there is none; undefined: nothing was reported on this connection */
  #told_fault: string | null | undefined;
  #is_unreachable_told = false;
  #whenIdle: (() => void) | null = null;
  /** cancels the timer that connects again after the server has refused the connection */
  #cancelRetry: () => void = () => undefined;
  readonly #newlyNotObeyed = notObeyedNews();
  readonly #usage: UsageKeeper;
  readonly #cycles: Cycles;
  readonly #questions: Questions;
  readonly #reminders: Reminders;

  /** The driver does nothing before start(). */
  constructor(ports: SchedPorts, self: SchedSelf) {
    this.#ports = ports;
    this.#self = self;
    this.#book = ports.settings.read(ports.directories.sched_priv).book;
    this.#usage = new UsageKeeper(ports);
    this.#cycles = new Cycles({
      ports,
      usage: this.#usage,
      mirror: () => this.#universe,
      book: () => this.#book,
      catchUp: () => this.#catchUp(),
      ready: () => {
        if (!this.#isBusy) this.#handleWaiting();
      },
      decided: (bound_s) => {
        this.#reminders.wakeAt(bound_s);
        this.#takeSignals();
      },
      over: (report) => {
        if (report !== null) {
          ports.modules.cycleOver(report);
          this.#questions.cycleOver(report);
        }
        this.#handleWaiting();
        this.#whenIdle?.();
      },
    });
    this.#questions = new Questions({
      clock: ports.clock,
      local: ports.local,
      pid: self.pid,
      know: () => this.#known(),
      answer: (answer) => this.#send("sched-answer", answer),
    });
    this.#reminders = new Reminders({
      clock: ports.clock,
      sendWake: () => this.#send("sched-wake", {}),
      sendProblem: (problem) => this.#send("sched-problem", { problem }),
      problem: () => ports.modules.problem(),
    });
  }

  /** The universe; null: the scheduler is not connected. */
  get universe(): Universe | null {
    return this.#universe;
  }

  /** Whether the scheduler is connected, has nothing to do, and no frame waits. */
  get isIdle(): boolean {
    return this.#universe !== null && !this.#isBusy && this.#waiting.length === 0;
  }

  /** When the driver will request a cycle, in epoch seconds; null: at no certain time. */
  get bound_s(): number | null {
    return this.#reminders.bound_s;
  }

  /** Reads the settings. */
  start(): void {
    this.#readFiles();
  }

  // --- input

  /** Handles SIGHUP: reads the files again and reopens the log. A cycle in progress continues with the files and modules with which it began. */
  reread(signal: number): void {
    if (this.#cycles.isDeciding) {
      this.#signals.push(signal);
      return;
    }
    this.#ports.log.reopen();
    this.#record(LOG_EVENT.SYSTEM, "restart", `restart on signal ${signal}`);
    this.#record(LOG_EVENT.SCHED, "reconfigure", "Scheduler is reconfiguring", "Sched");
    this.#ports.modules.forgive();
    this.#readFiles();
    this.#configure(false);
  }

  /** Ends the scheduler on SIGTERM, SIGINT or quit. done: called after the present cycle has ended and everything is closed. */
  leave(done: () => void): void {
    this.#send("sched-leaving", {});
    if (!this.#cycles.isUnderWay) return this.#close(done);
    const end = (): void => {
      cancel();
      this.#whenIdle = null;
      this.#close(done);
    };
    const cancel = this.#ports.clock.after(LEAVE_MS_MAX, end);
    this.#whenIdle = end;
  }

  /** Must be called when the link to the server was opened. */
  opened(): void {
    this.#is_deaf = false;
    this.#is_unreachable_told = false;
    this.#send("sched-hello", { ...this.#self, pongs: true });
  }

  /** Must be called when there is no connection and an attempt to make one has failed. */
  unreachable(why: string): void {
    if (!this.#is_unreachable_told) this.#record(LOG_EVENT.ERROR, "", `cannot reach the server, trying again: ${why}`);
    this.#is_unreachable_told = true;
  }

  /** Must be called when the connection is lost. */
  lost(why: string): void {
    const under_way = this.#cycles.isUnderWay;
    const text = under_way ? "We lost connection with the server, leaving scheduling cycle" : `lost the server: ${why}`;
    this.#record(LOG_EVENT.ERROR, "", text);
    this.#universe = null;
    this.#cancelRetry();
    this.#reminders.wakeAt(null);
    this.#questions.forget();
    this.#cycles.forget();
    this.#waiting = [];
    this.#takeSignals();
    this.#whenIdle?.();
  }

  /** Takes a frame as it came over the link. */
  frame(type: string, data: unknown): void {
    if (this.#is_deaf) return;
    if (type === "refused") return this.#record(LOG_EVENT.ERROR, "", `the server refuses the connection: ${JSON.stringify(data)}`);
    const parsed = parseFrame("server-to-sched", type, data);
    if (parsed.ok) return this.take(parsed.frame);
    this.#record(LOG_EVENT.ERROR, "", `the server's frame is refused: ${parsed.text}`);
    if (type === "sched-snapshot") {
      this.#record(LOG_EVENT.ERROR, "sched_settings_frm_svr", ATTRS_FAULT);
      this.#send("sched-fault", { fault: ATTRS_FAULT });
    }
    this.#giveUp();
  }

  /** Takes a frame that has been checked by its schema. */
  take(frame: SchedFrame): void {
    if (this.#is_deaf) return;
    if (frame.type === "sched-verdicts") this.#cycles.takeVerdicts(frame.data.cycle, frame.data.verdicts);
    else if (frame.type === "sched-ping") this.#send("sched-pong", frame.data);
    else if (this.#isBusy) this.#waiting.push(frame);
    else this.#handle(frame);
  }

  /** Requests a cycle for a module. */
  wake(): void {
    this.#reminders.wake();
  }

  /** Takes note that the problem of modules has changed; null: there is none any more. */
  moduleProblem(problem: string | null): void {
    this.#questions.event(problem ?? "no problems any more");
    this.#reminders.tellProblem();
  }

  /** Takes note that a module of the site has left the chain. */
  modulesChanged(): void {
    this.#book = { ...this.#book, site_modules: this.#ports.modules.policies() };
  }

  // --- frames

  #record(event: number, object: string, text: string, log_class = "Svr"): void {
    this.#ports.log.record(event, log_class, object, text);
  }

  #send<T extends keyof SchedToServer>(type: T, data: SchedToServer[T]): void {
    this.#ports.link.send(type, data);
  }

  get #isBusy(): boolean {
    return this.#cycles.isUnderWay || this.#loading > 0;
  }

  #takeSignals(): void {
    for (const signal of this.#signals.splice(0)) this.reread(signal);
  }

  /** Returns what answers to clients are made from; null: not available now. */
  #known() {
    if (this.#universe === null || this.#isBusy) return null;
    const { memory, shares } = this.#cycles;
    return { universe: this.#universe, book: this.#book, memory, shares, problem: this.#ports.modules.problem() };
  }

  /** Handles the frames that arrived while the scheduler was busy. */
  #handleWaiting(): void {
    this.#cycles.begin();
    const frames = this.#waiting;
    this.#waiting = [];
    for (const frame of frames) {
      if (this.#isBusy) this.#waiting.push(frame);
      else this.#handle(frame);
    }
  }

  #handle(frame: SchedFrame): void {
    if (this.#is_deaf) return;
    switch (frame.type) {
      case "sched-delta":
        if (this.#universe !== null) this.#takeDelta(this.#universe, frame.data);
        return;
      case "sched-cycle":
        return this.#askedForCycle(frame);
      case "sched-configure":
        return this.#configure(true);
      case "sched-ask":
        return this.#questions.take(frame.data);
      case "sched-quit":
        return this.#ports.quit();
      case "sched-refused":
        return this.#refused(frame.data.code, frame.data.text);
      case "sched-snapshot":
        return this.#takeSnapshot(frame.data);
      case "sched-verdicts":
      case "sched-ping":
        return;
      default: {
        const unreachable: never = frame;
        return unreachable;
      }
    }
  }

  #askedForCycle(frame: Extract<SchedFrame, { type: "sched-cycle" }>): void {
    const switched_on = frame.data.command === SCHED_COMMAND.CMD;
    // When a scheduler is enabled, it uses its directories and files in their present state.
    if (switched_on && typeof this.#told_fault === "string") this.#configure(true);
    else if (switched_on) this.#lookAgain();
    if (this.#loading > 0) this.#waiting.push(frame);
    // While the directory has a fault, its files are not used, so nothing is scheduled.
    else if (typeof this.#told_fault === "string")
      this.#send("sched-cycle-end", { cycle: frame.data.cycle, jobs_considered: 0, cycle_ms: 0 });
    else this.#cycles.start(frame.data);
  }

  #refused(code: number, text: string): void {
    const what = `${text} (${code}) in open_server_conns, Couldn't register the scheduler ${this.#self.name} with connected server`;
    this.#record(LOG_EVENT.ERROR, "", what);
    if (code === PBSE.UNKSCHED) this.#record(LOG_EVENT.ERROR, "sched_settings_frm_svr", ATTRS_FAULT);
    this.#cancelRetry();
    this.#cancelRetry = this.#ports.clock.after(REFUSED_RETRY_MS, () => this.#ports.link.reconnect("refused"));
  }

  /** Ends a connection on which something was missing or not understood; a new one begins with a snapshot (S2). */
  #giveUp(): void {
    this.#is_deaf = true;
    this.#ports.link.reconnect("broken");
  }

  // --- the universe

  /**
   * Takes over a snapshot. The first one comes when the connection begins. If the scheduler's partitions change later, the server waits for the end of the
   * present cycle and then sends another one (S1).
   */
  #takeSnapshot(snapshot: Snapshot): void {
    this.#universe = createUniverse(snapshot, mirrorOptions(this.#book, policyUnder(this.#book.prime, snapshot.sched.attrs)));
    this.#told_fault = undefined;
    this.#record(LOG_EVENT.SYSTEM, "", "Connected to the server");
    this.#reminders.tellProblem();
    this.#configure(false);
  }

  /** Applies a delta. Returns false if the universe is broken. */
  #takeDelta(mirror: Universe, delta: Delta): boolean {
    try {
      applyDelta(mirror, delta);
      return true;
    } catch (error) {
      if (!(error instanceof AssertionFailed)) throw error;
      this.#record(LOG_EVENT.ERROR, "", `the mirror is broken, asking for a new snapshot: ${error.message}`);
      this.#giveUp();
      return false;
    }
  }

  /** Applies the deltas that have arrived, before a further pass of a cycle. */
  #catchUp(): "done" | "new snapshot" | "broken" {
    const mirror = this.#universe;
    if (mirror === null || this.#waiting.some(({ type }) => type === "sched-snapshot")) return "new snapshot";
    const frames = this.#waiting;
    this.#waiting = frames.filter(({ type }) => type !== "sched-delta");
    for (const frame of frames) if (frame.type === "sched-delta" && !this.#takeDelta(mirror, frame.data)) return "broken";
    return "done";
  }

  // --- directories and files

  /**
   * Reads the files again if they have changed. If only the mode of a file changes, for example so that other users may write it, its version stays the same.
   * The directory is therefore checked each time. Files of a directory that fails its check are not read.
   */
  #lookAgain(): void {
    const { settings, directories } = this.#ports;
    const is_changed = settings.version(directories.sched_priv) !== this.#files_version;
    this.#configure(false, true);
    if (!is_changed || typeof this.#told_fault === "string") return;
    this.#record(LOG_EVENT.SCHED, "reconfigure", "Scheduler is reconfiguring", "Sched");
    this.#readFiles();
  }

  /** Applies the attributes of the scheduler object. read: also reads sched_config and related files again. same: no attribute has changed. */
  #configure(read: boolean, same = false): void {
    if (this.#universe === null) return;
    const { log, directories } = this.#ports;
    const { attrs } = this.#universe.sched;
    if (typeof attrs["log_events"] === "number") log.setMask(attrs["log_events"]);
    const { fault, moved } = directories.follow(attrs);
    if (fault === null && (moved || read)) {
      this.#record(LOG_EVENT.SCHED, "reconfigure", "Scheduler is reconfiguring", "Sched");
      this.#readFiles();
    }
    if (!same) this.#record(LOG_EVENT.DEBUG, "", "Updating scheduler attributes", "Req");
    if (fault !== null || this.#told_fault !== null) this.#send("sched-fault", { fault });
    // When the fault ended, the server removed the comment, which may also have shown the problem of modules.
    if (fault === null && typeof this.#told_fault === "string") this.#reminders.tellProblem();
    this.#told_fault = fault;
    this.#tellNotObeyed();
  }

  #tellNotObeyed(): void {
    if (this.#universe === null) return;
    for (const text of this.#newlyNotObeyed(this.#universe, this.#book.prime)) this.#record(LOG_EVENT.SCHED, "", text, "Sched");
  }

  #readFiles(): void {
    const { settings, directories, log, modules } = this.#ports;
    const { sched_priv } = directories;
    this.#files_version = settings.version(sched_priv);
    const { book, chain, messages } = settings.read(sched_priv);
    this.#usage.plant(sched_priv, book.fairshare);
    for (const { object, text } of messages) this.#record(LOG_EVENT.SCHED, object, text, "Fil");
    // The log is flushed first, so that its records are not lost if a module ends the process while it is loaded.
    log.flush();
    this.#loading++;
    modules.load(chain, () => {
      this.#book = { ...book, site_modules: modules.policies() };
      this.#loading--;
      this.#tellNotObeyed();
      if (!this.#isBusy) this.#handleWaiting();
    });
  }

  // --- the end of the scheduler

  #close(done: () => void): void {
    const { programs, modules, link, directories } = this.#ports;
    this.#cycles.forgetAsked();
    programs.stop();
    modules.shutdown(() => {
      this.#usage.flush();
      link.close();
      directories.release();
      done();
    });
  }
}

// A scheduler at work: the link to the server, the mirror, cycles and their log, directories and files. Everything it decides is decided in the core.
//
//            connected, snapshot            sched-cycle                   last verdict
//   waiting ---------------------> idle ------------------> deciding ------------------> idle      (deltas wait while it is deciding)
//
// S1. Frames that change the mirror are applied in order, none of them during a cycle.
// S2. A gap in revisions, or a frame that cannot be understood, ends the connection; the next one begins with a snapshot.
//     But for a further pass of the same cycle, which sees what the pass before has done.
// S3. The log of a cycle is written when all verdicts are there: it says what the server did, not what was wished.
// S4. No cycle begins while modules are being loaded (module-host.ts H1), and none are while one is deciding.
// S5. A cycle's decisions leave part by part while it goes on; the server carries them out meanwhile.

import { hrtime, pid } from "node:process";
import type { Fairshare } from "#model/fairshare.ts";
import { PBSE } from "#model/pbse.ts";
import type { SchedCycle, SchedToServer, Snapshot, Verdict } from "#protocol/sched-link.ts";
import { ATTRS_FAULT, SCHED_COMMAND } from "#protocol/sched-link.ts";
import type { FrameOf } from "#protocol/schema-link.ts";
import { frameTypes, parseFrame } from "#protocol/schema-link.ts";
import type { DaemonLink } from "#protocol/wire/ipc-transport.ts";
import { connectLink } from "#protocol/wire/ipc-transport.ts";
import { serverSocketPath } from "#protocol/wire/socket-path.ts";
import { AssertionFailed } from "#support/assert.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { cycle, cycleInParts } from "../cycle/cycle.ts";
import type { Memory } from "../cycle/result.ts";
import { NO_MEMORY } from "../cycle/result.ts";
import { applyDelta, createUniverse, setDynamic } from "../mirror/mirror.ts";
import { mirrorOptions } from "../modules/index.ts";
import { notObeyedNews } from "../policy/not-obeyed.ts";
import { failedVictims, outcomeOf } from "../preempt/failed-victims.ts";
import type { PolicyBook } from "../shapes/policy-book.ts";
import type { Universe } from "../shapes/universe.ts";
import { begunWork, framesOf, logOf, refusalComments, takeOwnComments, type Work } from "./cycle-work.ts";
import { type DirectoryOptions, schedDirectories } from "./directories.ts";
import { type DynValues, dynPrograms } from "./dyn-programs.ts";
import { moduleHost } from "./module-host.ts";
import { moduleWatch } from "./module-watch.ts";
import { questions } from "./questions.ts";
import { createReminders } from "./reminders.ts";
import { readSettings, versionOfFiles } from "./settings.ts";
import { shareMatters, usageKeeper } from "./usage-keeper.ts";

export type SchedulerOptions = DirectoryOptions & {
  readonly name: string;
  /** PBS_HOME of the server: its socket lies there, wherever this scheduler's own home is */
  readonly server_home: string;
  readonly version: string;
};

type Frame = FrameOf<"server-to-sched">;

const REFUSED_RETRY_MS = 2000;
const LEAVE_MS_MAX = 5000;
/** server_dyn_res_alarm where the scheduler has none */
const DYN_RES_ALARM_S = 30;
const NOTHING_DYNAMIC: DynValues = new Map();

export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #log: SchedulerOptions["log"];
  readonly #name: string;
  readonly #dirs: ReturnType<typeof schedDirectories>;
  #book: PolicyBook;
  /** which the settings were read from */
  #files_version = "";
  #universe: Universe | null = null;
  #memory: Memory = NO_MEMORY;
  #work: Work | null = null;
  /** chains being made */
  #loading = 0;
  #chain: Promise<void> = Promise.resolve();
  /** usage at the last cycle */
  #shares: Fairshare | null = null;
  #waiting: Frame[] = [];
  /** that came while a cycle was deciding */
  readonly #signals: number[] = [];
  /** a cycle whose programs have answered */
  #asked_cycle: (() => void) | null = null;
  /** grows when one is lost: answers for a cycle of an older one are nobody's */
  #connections = 0;
  /** null: the server knows that there is none; undefined: nothing was told on this connection */
  #told_fault: string | null | undefined;
  #unreachable_told = false;
  #whenIdle: (() => void) | null = null;
  #toldToQuit = (): void => undefined;
  /** the server said quit */
  readonly quit = new Promise<void>((resolve) => {
    this.#toldToQuit = resolve;
  });
  readonly #usage = usageKeeper((event, object, text, log_class) => this.#record(event, object, text, log_class));
  readonly #newlyNotObeyed = notObeyedNews();
  readonly #programs = dynPrograms((event, object, text) => this.#record(event, object, text));
  readonly #watch = moduleWatch((text) => this.#record(LOG_EVENT.ERROR, "modules", text, "Sched"));
  readonly #host: ReturnType<typeof moduleHost>;
  readonly #answers = questions({
    know: () => this.#known(),
    answer: (answer) => this.#send("sched-answer", answer),
  });
  readonly #reminders = createReminders({
    sendWake: () => this.#send("sched-wake", {}),
    sendProblem: (problem) => this.#send("sched-problem", { problem }),
    problem: () => this.#host.problem(),
  });
  readonly #link: DaemonLink;

  /** It connects, and stays connected until it leaves. */
  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#log = options.log;
    this.#name = options.name;
    this.#dirs = schedDirectories(options);
    this.#book = readSettings(this.#dirs.sched_priv).book;
    this.#host = this.#makeHost();
    this.#link = this.#connect();
    this.#readFiles();
  }

  /** SIGHUP: files and log anew. A cycle that is deciding goes on with the files and modules it began with. */
  reread(signal: number): void {
    if (this.#work !== null && this.#work.result === null) {
      this.#signals.push(signal);
      return;
    }
    this.#log.reopen();
    this.#record(LOG_EVENT.SYSTEM, "restart", `restart on signal ${signal}`);
    this.#record(LOG_EVENT.SCHED, "reconfigure", "Scheduler is reconfiguring", "Sched");
    this.#host.forgive();
    this.#readFiles();
    this.#configure(false);
  }

  /** SIGTERM, SIGINT: resolves when a cycle under way is over */
  async leave(): Promise<void> {
    this.#send("sched-leaving", {});
    if (this.#work !== null) {
      await Promise.race([
        new Promise<void>((resolve) => (this.#whenIdle = resolve)),
        new Promise((resolve) => setTimeout(resolve, LEAVE_MS_MAX)),
      ]);
    }
    this.#programs.stop();
    await this.#host.shutdown();
    this.#usage.flush();
    this.#link.close();
    this.#dirs.release();
  }

  #record(event: number, object: string, text: string, log_class = "Svr"): void {
    this.#log.record(event, log_class, object, text);
  }

  #send<T extends keyof SchedToServer>(type: T, data: SchedToServer[T]): void {
    this.#link.send(type, data);
  }

  /** What questions are answered from; null: not now. */
  #known() {
    if (this.#universe === null || this.#isBusy) return null;
    return { universe: this.#universe, book: this.#book, memory: this.#memory, shares: this.#shares, problem: this.#host.problem() };
  }

  #makeHost(): ReturnType<typeof moduleHost> {
    const log = this.#log;
    return moduleHost({
      watch: this.#watch,
      world: {
        sched: this.#name,
        sched_priv: () => this.#dirs.sched_priv,
        sched_log: () => this.#dirs.sched_log,
        wake: () => this.#reminders.wake(),
        now_ms: () => Date.now(),
        log_file: { path: () => log.path, fixed: this.#options.fixed_log, reopen: () => log.reopen() },
      },
      record: (event, object, text) => this.#record(event, object, text, "Sched"),
      onProblem: (problem) => {
        this.#answers.event(problem ?? "no problems any more");
        this.#reminders.tellProblem();
      },
      onChange: () => {
        this.#book = { ...this.#book, site_modules: this.#host.policies() };
      },
    });
  }

  // --- the link

  #connect(): DaemonLink {
    const { name, version, server_home } = this.#options;
    return connectLink({
      path: serverSocketPath(server_home),
      types: frameTypes("server-to-sched"),
      onOpen: (opened) => {
        this.#unreachable_told = false;
        opened.send("sched-hello", { name, pid, version, pongs: true });
      },
      onFrame: (type, data) => this.#receive(type, data),
      onClose: (why) => {
        const lost = this.#work === null ? `lost the server: ${why}` : "We lost connection with the server, leaving scheduling cycle";
        this.#record(LOG_EVENT.ERROR, "", lost);
        this.#forget();
      },
      onRefused: (error) => {
        if (!this.#unreachable_told) this.#record(LOG_EVENT.ERROR, "", `cannot reach the server, trying again: ${error.message}`);
        this.#unreachable_told = true;
      },
    });
  }

  #forget(): void {
    this.#universe = null;
    this.#reminders.wakeAt(null);
    this.#work = null;
    this.#waiting = [];
    this.#asked_cycle = null;
    this.#connections++;
    for (const signal of this.#signals.splice(0)) this.reread(signal);
    this.#whenIdle?.();
  }

  #receive(type: string, data: unknown): void {
    const parsed = parseFrame("server-to-sched", type, data);
    if (!parsed.ok) {
      this.#record(LOG_EVENT.ERROR, "", `the server's frame is refused: ${parsed.text}`);
      if (type === "sched-snapshot") {
        this.#record(LOG_EVENT.ERROR, "sched_settings_frm_svr", ATTRS_FAULT);
        this.#send("sched-fault", { fault: ATTRS_FAULT });
      }
      this.#link.reconnect();
      return;
    }
    const { frame } = parsed;
    if (frame.type === "sched-verdicts") this.#takeVerdicts(frame.data.cycle, frame.data.verdicts);
    else if (frame.type === "sched-ping") this.#send("sched-pong", frame.data);
    else if (this.#isBusy) this.#waiting.push(frame);
    else this.#handle(frame);
  }

  get #isBusy(): boolean {
    return this.#work !== null || this.#loading > 0;
  }

  /** What came while it was busy. */
  #handleWaiting(): void {
    const begin = this.#asked_cycle;
    this.#asked_cycle = null;
    begin?.();
    const frames = this.#waiting;
    this.#waiting = [];
    for (const frame of frames) {
      if (this.#isBusy) this.#waiting.push(frame);
      else this.#handle(frame);
    }
  }

  #handle(frame: Frame): void {
    switch (frame.type) {
      case "sched-delta":
        if (this.#universe !== null) this.#takeDelta(this.#universe, frame.data);
        return;
      case "sched-cycle":
        this.#askedForCycle(frame);
        return;
      case "sched-configure":
        this.#configure(true);
        return;
      case "sched-ask":
        this.#answers.take(frame.data);
        return;
      case "sched-quit":
        this.#toldToQuit();
        return;
      case "sched-refused":
        this.#refused(frame.data.code, frame.data.text);
        return;
      case "sched-snapshot":
        this.#takeSnapshot(frame.data);
        return;
      case "sched-verdicts":
      case "sched-ping":
        return;
      default: {
        const unreachable: never = frame;
        return unreachable;
      }
    }
  }

  #askedForCycle(frame: Extract<Frame, { type: "sched-cycle" }>): void {
    const switched_on = frame.data.command === SCHED_COMMAND.CMD;
    // Who switches a scheduler on means its directories and files as they are now.
    if (switched_on && typeof this.#told_fault === "string") this.#configure(true);
    else if (switched_on) this.#lookAgain();
    if (this.#loading > 0) this.#waiting.push(frame);
    // With files of another directory nothing is scheduled.
    else if (typeof this.#told_fault === "string")
      this.#send("sched-cycle-end", { cycle: frame.data.cycle, jobs_considered: 0, cycle_ms: 0 });
    else this.#startCycle(frame.data);
  }

  /** A mode that lets others write shows in no file's version. Files of a directory that fails its check are not read. */
  #lookAgain(): void {
    const is_changed = versionOfFiles(this.#dirs.sched_priv) !== this.#files_version;
    this.#configure(false, true);
    if (!is_changed || typeof this.#told_fault === "string") return;
    this.#record(LOG_EVENT.SCHED, "reconfigure", "Scheduler is reconfiguring", "Sched");
    this.#readFiles();
  }

  #refused(code: number, text: string): void {
    const what = `${text} (${code}) in open_server_conns, Couldn't register the scheduler ${this.#name} with connected server`;
    this.#record(LOG_EVENT.ERROR, "", what);
    if (code === PBSE.UNKSCHED) this.#record(LOG_EVENT.ERROR, "sched_settings_frm_svr", ATTRS_FAULT);
    setTimeout(() => this.#link.reconnect(), REFUSED_RETRY_MS);
  }

  /** Also in the midst of a connection, when the scheduler's partitions changed: after the cycle under way (S1), for whose end the server waits. */
  #takeSnapshot(snapshot: Snapshot): void {
    this.#universe = createUniverse(snapshot, mirrorOptions(this.#book));
    this.#told_fault = undefined;
    this.#record(LOG_EVENT.SYSTEM, "", "Connected to the server");
    this.#reminders.tellProblem();
    this.#configure(false);
  }

  /** false: the mirror is broken. */
  #takeDelta(mirror: Universe, delta: Extract<Frame, { type: "sched-delta" }>["data"]): boolean {
    try {
      applyDelta(mirror, delta);
      return true;
    } catch (error) {
      if (!(error instanceof AssertionFailed)) throw error;
      this.#record(LOG_EVENT.ERROR, "", `the mirror is broken, asking for a new snapshot: ${error.message}`);
      this.#link.reconnect();
      return false;
    }
  }

  // --- cycles

  /** What programs say the server has is asked first; what comes meanwhile is taken over, so that the cycle sees it. */
  #startCycle(asked: SchedCycle): void {
    const mirror = this.#universe;
    if (mirror === null) return;
    const { dyn_res = [] } = this.#book;
    if (dyn_res.length === 0) return this.#decideCycle(asked, NOTHING_DYNAMIC);
    const alarm_s = Number(mirror.sched.attrs["server_dyn_res_alarm"] ?? DYN_RES_ALARM_S);
    const connection = this.#connections;
    void this.#programs.ask(dyn_res, mirror.space, alarm_s).then((values) => {
      if (connection !== this.#connections) return;
      this.#asked_cycle = () => this.#decideCycle(asked, values);
      if (!this.#isBusy) this.#handleWaiting();
    });
  }

  #decideCycle(asked: SchedCycle, dynamic: DynValues): void {
    if (this.#universe === null) return;
    setDynamic(this.#universe, dynamic);
    const { command, job } = asked;
    const started_ns = hrtime.bigint();
    const began_ms = Date.now();
    const now_s = Math.floor(began_ms / 1000);
    const elapsed_s = elapsedSince(performance.now());
    this.#shares = this.#usage.before(this.#universe, this.#book.prime, now_s, shareMatters(this.#universe, this.#book));
    const input = {
      now_s,
      command,
      memory: this.#memory,
      elapsed_s,
      dated_s: elapsed_s,
      fairshare: this.#shares,
      ...(job === undefined ? {} : { job }),
    };
    const parts = cycleInParts(this.#universe, this.#book, input);
    this.#work = begunWork(asked, began_ms, started_ns);
    this.#goOn(this.#work, parts);
  }

  /** The next part of a cycle. In between the server's frames come in: verdicts are taken, all else waits. */
  #goOn(now: Work, parts: ReturnType<typeof cycleInParts>): void {
    if (this.#work !== now) {
      parts.return(undefined as never);
      return;
    }
    this.#watch.busy(true);
    const part = parts.next();
    this.#watch.busy(false);
    if (part.done !== true) {
      now.decisions = now.decisions.concat(part.value);
      now.open++;
      this.#send("sched-decisions", { cycle: now.number, decisions: part.value, more: true });
      setImmediate(() => this.#goOn(now, parts));
      return;
    }
    const result = part.value;
    this.#memory = result.memory;
    this.#reminders.wakeAt(result.bound_s);
    const sent = now.decisions.length;
    Object.assign(now, { result, decisions: result.decisions });
    for (const signal of this.#signals.splice(0)) this.reread(signal);
    if (sent > 0 || result.decisions.length > 0) return this.#sendDecisions(now, sent);
    this.#writeLog(now);
    this.#finishCycle(now);
  }

  /** Another pass for jobs for which not everybody made room. false: what has come meanwhile does not allow it. */
  #passAgain(now: Work, again: readonly string[]): boolean {
    if (this.#universe === null || this.#waiting.some(({ type }) => type === "sched-snapshot")) return false;
    const frames = this.#waiting;
    this.#waiting = frames.filter(({ type }) => type !== "sched-delta");
    // The connection ends with a delta that does not fit, and the cycle with it.
    for (const frame of frames) if (frame.type === "sched-delta" && !this.#takeDelta(this.#universe, frame.data)) return true;
    const { command, job } = now.asked;
    const elapsed_s = (): number => Number(hrtime.bigint() - now.started_ns) / 1e9;
    const more = { ...(this.#shares === null ? {} : { fairshare: this.#shares }), ...(job === undefined ? {} : { job }) };
    this.#watch.busy(true);
    const result = cycle(this.#universe, this.#book, {
      now_s: Math.floor(Date.now() / 1000),
      command,
      memory: this.#memory,
      elapsed_s,
      dated_s: elapsed_s,
      again,
      ...more,
    });
    this.#watch.busy(false);
    this.#memory = result.memory;
    Object.assign(now, { result, pass: now.pass + 1, decisions: result.decisions, verdicts: [] });
    if (result.decisions.length > 0) this.#sendDecisions(now);
    else {
      this.#writeLog(now);
      this.#followUp(now);
    }
    return true;
  }

  /** from: those before have been sent in parts; the last frame says that they were all. */
  #sendDecisions(now: Work, from = 0): void {
    for (const frame of framesOf(now, from)) {
      now.open++;
      this.#send("sched-decisions", frame);
    }
  }

  #takeVerdicts(number: number, verdicts: readonly Verdict[]): void {
    const work = this.#work;
    if (work === null || work.number !== number) return;
    for (const verdict of verdicts) work.verdicts.push(verdict);
    if (--work.open > 0 || work.result === null) return;
    if (this.#universe !== null) takeOwnComments(this.#universe, work);
    this.#writeLog(work);
    if (work.followUp) return this.#finishCycle(work);
    const { decisions, verdicts: all, now_s, pass, over, last } = work;
    over.decisions.push(...decisions);
    over.verdicts.push(...all);
    this.#memory = { ...this.#memory, failed_victims: failedVictims(this.#memory.failed_victims, decisions, all, now_s) };
    const { again, rerun, log: lines } = outcomeOf(decisions, all, pass);
    for (const { event, class: logClass, object, text } of lines) this.#log.record(event, logClass, object, text);
    last.push(...refusalComments(this.#universe, work), ...rerun);
    if (again.length === 0 || !this.#passAgain(work, again)) this.#followUp(work);
  }

  /** After the last pass. */
  #followUp(done: Work): void {
    if (done.last.length === 0) return this.#finishCycle(done);
    Object.assign(done, { decisions: done.last, verdicts: [], followUp: true });
    this.#sendDecisions(done);
  }

  #writeLog(done: Work): void {
    for (const { event, class: log_class, object, text, at_ms } of logOf(done)) this.#log.record(event, log_class, object, text, at_ms);
  }

  #finishCycle(done: Work): void {
    const cycle_ms = Number(hrtime.bigint() - done.started_ns) / 1e6;
    this.#work = null;
    this.#send("sched-cycle-end", { cycle: done.number, jobs_considered: done.result?.stats.jobs_considered ?? 0, cycle_ms });
    this.#report(done, cycle_ms);
    this.#handleWaiting();
    this.#whenIdle?.();
  }

  /** Service modules hear of a cycle that is over. */
  #report({ asked, now_s, result, over: { decisions, verdicts } }: Work, cycle_ms: number): void {
    if (this.#universe === null || result === null) return;
    const { jobs_considered, jobs_started } = result.stats;
    const { command } = asked;
    const over = { universe: this.#universe, now_s, command, decisions, verdicts, jobs_considered, jobs_started, cycle_ms };
    this.#host.cycleOver(over);
    this.#answers.cycleOver(over);
  }

  // --- directories and files

  /** Takes over the attributes of the scheduler's object; read: sched_config and its companions anew. same: no attribute has changed. */
  #configure(read: boolean, same = false): void {
    if (this.#universe === null) return;
    const { attrs } = this.#universe.sched;
    if (typeof attrs["log_events"] === "number") this.#log.mask = attrs["log_events"];
    const { fault, moved } = this.#dirs.follow(attrs);
    if (fault === null && (moved || read)) {
      this.#record(LOG_EVENT.SCHED, "reconfigure", "Scheduler is reconfiguring", "Sched");
      this.#readFiles();
    }
    if (!same) this.#record(LOG_EVENT.DEBUG, "", "Updating scheduler attributes", "Req");
    if (fault !== null || this.#told_fault !== null) this.#send("sched-fault", { fault });
    // A fault that is over took the comment with it.
    if (fault === null && typeof this.#told_fault === "string") this.#reminders.tellProblem();
    this.#told_fault = fault;
    for (const text of this.#newlyNotObeyed(this.#universe)) this.#record(LOG_EVENT.SCHED, "", text, "Sched");
  }

  #readFiles(): void {
    const { sched_priv } = this.#dirs;
    this.#files_version = versionOfFiles(sched_priv);
    const settings = readSettings(sched_priv);
    this.#usage.plant(sched_priv, settings.book.fairshare, Math.floor(Date.now() / 1000));
    for (const { object, text } of settings.messages) this.#record(LOG_EVENT.SCHED, object, text, "Fil");
    // What was said so far is not lost, whatever a module does while it is loaded.
    this.#log.flush();
    this.#loading++;
    this.#chain = this.#chain.then(async () => {
      await this.#host.load(settings.chain);
      this.#book = { ...settings.book, site_modules: this.#host.policies() };
      this.#loading--;
      if (!this.#isBusy) this.#handleWaiting();
    });
  }
}

/** Seconds since then (performance.now()). */
const elapsedSince = (started: number) => (): number => (performance.now() - started) / 1000;

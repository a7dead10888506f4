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
import { cycle, cycleInParts } from "../cycle.ts";
import type { Memory } from "../cycle-result.ts";
import { NO_MEMORY } from "../cycle-result.ts";
import { failedVictims, outcomeOf } from "../failed-victims.ts";
import { applyDelta, createUniverse, setDynamic } from "../mirror.ts";
import { mirrorOptions } from "../modules/index.ts";
import { notObeyedNews } from "../not-obeyed.ts";
import type { PolicyBook } from "../policy.ts";
import type { Universe } from "../universe.ts";
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

export type Scheduler = {
  /** SIGHUP: files and log anew */
  reread(signal: number): void;
  /** SIGTERM, SIGINT: resolves when a cycle under way is over */
  leave(): Promise<void>;
  /** the server said quit */
  readonly quit: Promise<void>;
};

type Frame = FrameOf<"server-to-sched">;

const REFUSED_RETRY_MS = 2000;
const LEAVE_MS_MAX = 5000;
/** server_dyn_res_alarm where the scheduler has none */
const DYN_RES_ALARM_S = 30;
const NOTHING_DYNAMIC: DynValues = new Map();

export function runScheduler(options: SchedulerOptions): Scheduler {
  const { log, name } = options;
  const dirs = schedDirectories(options);
  let book: PolicyBook = readSettings(dirs.sched_priv).book;
  /** which the settings were read from */
  let files_version = "";
  let universe: Universe | null = null;
  let memory: Memory = NO_MEMORY;
  let work: Work | null = null;
  /** chains being made */
  let loading = 0;
  let chain: Promise<void> = Promise.resolve();
  /** usage at the last cycle */
  let shares: Fairshare | null = null;
  let waiting: Frame[] = [];
  /** that came while a cycle was deciding */
  const signals: number[] = [];
  /** a cycle whose programs have answered */
  let asked_cycle: (() => void) | null = null;
  /** grows when one is lost: answers for a cycle of an older one are nobody's */
  let connections = 0;
  /** null: the server knows that there is none; undefined: nothing was told on this connection */
  let told_fault: string | null | undefined;
  let unreachable_told = false;
  let onIdle: (() => void) | null = null;
  let onQuit = (): void => undefined;
  const quit = new Promise<void>((resolve) => {
    onQuit = resolve;
  });

  const record = (event: number, object: string, text: string, logClass = "Svr"): void => log.record(event, logClass, object, text);
  const send = <T extends keyof SchedToServer>(type: T, data: SchedToServer[T]): void => link.send(type, data);

  const usage = usageKeeper((event, object, text, logClass) => record(event, object, text, logClass));

  const newlyNotObeyed = notObeyedNews();
  const programs = dynPrograms((event, object, text) => record(event, object, text));

  // --- modules

  const watch = moduleWatch((text) => record(LOG_EVENT.ERROR, "modules", text, "Sched"));
  const host = moduleHost({
    watch,
    world: {
      sched: name,
      sched_priv: () => dirs.sched_priv,
      sched_log: () => dirs.sched_log,
      wake: () => reminders.wake(),
      now_ms: () => Date.now(),
      log_file: { path: () => log.path, fixed: options.fixed_log, reopen: () => log.reopen() },
    },
    record: (event, object, text) => record(event, object, text, "Sched"),
    onProblem(problem) {
      answers.event(problem ?? "no problems any more");
      reminders.tellProblem();
    },
    onChange: () => {
      book = { ...book, site_modules: host.policies() };
    },
  });

  const answers = questions({
    know: () => (universe === null || isBusy() ? null : { universe, book, memory, shares, problem: host.problem() }),
    answer: (answer) => send("sched-answer", answer),
  });

  const reminders = createReminders({
    sendWake: () => send("sched-wake", {}),
    sendProblem: (problem) => send("sched-problem", { problem }),
    problem: () => host.problem(),
  });

  // --- the link

  const link: DaemonLink = connectLink({
    path: serverSocketPath(options.server_home),
    types: frameTypes("server-to-sched"),
    onOpen(opened) {
      unreachable_told = false;
      opened.send("sched-hello", { name, pid, version: options.version, pongs: true });
    },
    onFrame: receive,
    onClose(why) {
      record(
        LOG_EVENT.ERROR,
        "",
        work === null ? `lost the server: ${why}` : "We lost connection with the server, leaving scheduling cycle",
      );
      forget();
    },
    onRefused(error) {
      if (!unreachable_told) record(LOG_EVENT.ERROR, "", `cannot reach the server, trying again: ${error.message}`);
      unreachable_told = true;
    },
  });

  function forget(): void {
    universe = null;
    reminders.wakeAt(null);
    work = null;
    waiting = [];
    asked_cycle = null;
    connections++;
    for (const signal of signals.splice(0)) reread(signal);
    onIdle?.();
  }

  function receive(type: string, data: unknown): void {
    const parsed = parseFrame("server-to-sched", type, data);
    if (!parsed.ok) {
      record(LOG_EVENT.ERROR, "", `the server's frame is refused: ${parsed.text}`);
      if (type === "sched-snapshot") {
        record(LOG_EVENT.ERROR, "sched_settings_frm_svr", ATTRS_FAULT);
        send("sched-fault", { fault: ATTRS_FAULT });
      }
      link.reconnect();
      return;
    }
    const { frame } = parsed;
    if (frame.type === "sched-verdicts") takeVerdicts(frame.data.cycle, frame.data.verdicts);
    else if (frame.type === "sched-ping") send("sched-pong", frame.data);
    else if (isBusy()) waiting.push(frame);
    else handle(frame);
  }

  const isBusy = (): boolean => work !== null || loading > 0;

  /** What came while it was busy. */
  function handleWaiting(): void {
    const begin = asked_cycle;
    asked_cycle = null;
    begin?.();
    const frames = waiting;
    waiting = [];
    for (const frame of frames) {
      if (isBusy()) waiting.push(frame);
      else handle(frame);
    }
  }

  function handle(frame: Frame): void {
    switch (frame.type) {
      case "sched-delta":
        if (universe !== null) takeDelta(universe, frame.data);
        return;
      case "sched-cycle":
        askedForCycle(frame);
        return;
      case "sched-configure":
        configure(true);
        return;
      case "sched-ask":
        answers.take(frame.data);
        return;
      case "sched-quit":
        onQuit();
        return;
      case "sched-refused":
        refused(frame.data.code, frame.data.text);
        return;
      case "sched-snapshot":
        takeSnapshot(frame.data);
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

  function askedForCycle(frame: Extract<Frame, { type: "sched-cycle" }>): void {
    const switched_on = frame.data.command === SCHED_COMMAND.CMD;
    // Who switches a scheduler on means its directories and files as they are now.
    if (switched_on && typeof told_fault === "string") configure(true);
    else if (switched_on) lookAgain();
    if (loading > 0) waiting.push(frame);
    // With files of another directory nothing is scheduled.
    else if (typeof told_fault === "string") send("sched-cycle-end", { cycle: frame.data.cycle, jobs_considered: 0, cycle_ms: 0 });
    else startCycle(frame.data);
  }

  /** A mode that lets others write shows in no file's version. Files of a directory that fails its check are not read. */
  function lookAgain(): void {
    const is_changed = versionOfFiles(dirs.sched_priv) !== files_version;
    configure(false);
    if (!is_changed || typeof told_fault === "string") return;
    record(LOG_EVENT.SCHED, "reconfigure", "Scheduler is reconfiguring", "Sched");
    readFiles();
  }

  function refused(code: number, text: string): void {
    const what = `${text} (${code}) in open_server_conns, Couldn't register the scheduler ${name} with connected server`;
    record(LOG_EVENT.ERROR, "", what);
    if (code === PBSE.UNKSCHED) record(LOG_EVENT.ERROR, "sched_settings_frm_svr", ATTRS_FAULT);
    setTimeout(() => link.reconnect(), REFUSED_RETRY_MS);
  }

  /** Also in the midst of a connection, when the scheduler's partitions changed: after the cycle under way (S1), for whose end the server waits. */
  function takeSnapshot(snapshot: Snapshot): void {
    universe = createUniverse(snapshot, mirrorOptions(book));
    told_fault = undefined;
    record(LOG_EVENT.SYSTEM, "", "Connected to the server");
    reminders.tellProblem();
    configure(false);
  }

  /** false: the mirror is broken. */
  function takeDelta(mirror: Universe, delta: Extract<Frame, { type: "sched-delta" }>["data"]): boolean {
    try {
      applyDelta(mirror, delta);
      return true;
    } catch (error) {
      if (!(error instanceof AssertionFailed)) throw error;
      record(LOG_EVENT.ERROR, "", `the mirror is broken, asking for a new snapshot: ${error.message}`);
      link.reconnect();
      return false;
    }
  }

  // --- cycles

  /** What programs say the server has is asked first; what comes meanwhile is taken over, so that the cycle sees it. */
  function startCycle(asked: SchedCycle): void {
    const mirror = universe;
    if (mirror === null) return;
    const { dyn_res = [] } = book;
    if (dyn_res.length === 0) return decideCycle(asked, NOTHING_DYNAMIC);
    const alarm_s = Number(mirror.sched.attrs["server_dyn_res_alarm"] ?? DYN_RES_ALARM_S);
    const connection = connections;
    void programs.ask(dyn_res, mirror.space, alarm_s).then((values) => {
      if (connection !== connections) return;
      asked_cycle = () => decideCycle(asked, values);
      if (!isBusy()) handleWaiting();
    });
  }

  function decideCycle(asked: SchedCycle, dynamic: DynValues): void {
    if (universe === null) return;
    setDynamic(universe, dynamic);
    const { command, job } = asked;
    const started_ns = hrtime.bigint();
    const began_ms = Date.now();
    const now_s = Math.floor(began_ms / 1000);
    const elapsed_s = elapsedSince(performance.now());
    shares = usage.before(universe, book.prime, now_s, shareMatters(universe, book));
    const input = { now_s, command, memory, elapsed_s, dated_s: elapsed_s, fairshare: shares, ...(job === undefined ? {} : { job }) };
    const parts = cycleInParts(universe, book, input);
    work = begunWork(asked, began_ms, started_ns);
    goOn(work, parts);
  }

  /** The next part of a cycle. In between the server's frames come in: verdicts are taken, all else waits. */
  function goOn(now: Work, parts: ReturnType<typeof cycleInParts>): void {
    if (work !== now) {
      parts.return(undefined as never);
      return;
    }
    watch.busy(true);
    const part = parts.next();
    watch.busy(false);
    if (part.done !== true) {
      now.decisions = now.decisions.concat(part.value);
      now.open++;
      send("sched-decisions", { cycle: now.number, decisions: part.value, more: true });
      setImmediate(() => goOn(now, parts));
      return;
    }
    const result = part.value;
    ({ memory } = result);
    reminders.wakeAt(result.bound_s);
    const sent = now.decisions.length;
    Object.assign(now, { result, decisions: result.decisions });
    for (const signal of signals.splice(0)) reread(signal);
    if (sent > 0 || result.decisions.length > 0) return sendDecisions(now, sent);
    writeLog(now);
    finishCycle(now);
  }

  /** Another pass for jobs for which not everybody made room. false: what has come meanwhile does not allow it. */
  function passAgain(now: Work, again: readonly string[]): boolean {
    if (universe === null || waiting.some(({ type }) => type === "sched-snapshot")) return false;
    const frames = waiting;
    waiting = frames.filter(({ type }) => type !== "sched-delta");
    // The connection ends with a delta that does not fit, and the cycle with it.
    for (const frame of frames) if (frame.type === "sched-delta" && !takeDelta(universe, frame.data)) return true;
    const { command, job } = now.asked;
    const elapsed_s = (): number => Number(hrtime.bigint() - now.started_ns) / 1e9;
    const more = { ...(shares === null ? {} : { fairshare: shares }), ...(job === undefined ? {} : { job }) };
    watch.busy(true);
    const result = cycle(universe, book, {
      now_s: Math.floor(Date.now() / 1000),
      command,
      memory,
      elapsed_s,
      dated_s: elapsed_s,
      again,
      ...more,
    });
    watch.busy(false);
    ({ memory } = result);
    Object.assign(now, { result, pass: now.pass + 1, decisions: result.decisions, verdicts: [] });
    if (result.decisions.length > 0) sendDecisions(now);
    else {
      writeLog(now);
      followUp(now);
    }
    return true;
  }

  /** from: those before have been sent in parts; the last frame says that they were all. */
  function sendDecisions(now: Work, from = 0): void {
    for (const frame of framesOf(now, from)) {
      now.open++;
      send("sched-decisions", frame);
    }
  }

  function takeVerdicts(number: number, verdicts: readonly Verdict[]): void {
    if (work === null || work.number !== number) return;
    for (const verdict of verdicts) work.verdicts.push(verdict);
    if (--work.open > 0 || work.result === null) return;
    if (universe !== null) takeOwnComments(universe, work);
    if (work.followUp) {
      writeLog(work);
      finishCycle(work);
      return;
    }
    writeLog(work);
    const { decisions, verdicts: all, now_s, pass, over, last } = work;
    over.decisions.push(...decisions);
    over.verdicts.push(...all);
    memory = { ...memory, failed_victims: failedVictims(memory.failed_victims, decisions, all, now_s) };
    const { again, rerun, log: lines } = outcomeOf(decisions, all, pass);
    for (const { event, class: logClass, object, text } of lines) log.record(event, logClass, object, text);
    last.push(...refusalComments(universe, work), ...rerun);
    if (again.length === 0 || !passAgain(work, again)) followUp(work);
  }

  /** After the last pass. */
  function followUp(done: Work): void {
    if (done.last.length === 0) return finishCycle(done);
    Object.assign(done, { decisions: done.last, verdicts: [], followUp: true });
    sendDecisions(done);
  }

  function writeLog(done: Work): void {
    for (const { event, class: log_class, object, text, at_ms } of logOf(done)) log.record(event, log_class, object, text, at_ms);
  }

  function finishCycle(done: Work): void {
    const cycle_ms = Number(hrtime.bigint() - done.started_ns) / 1e6;
    work = null;
    send("sched-cycle-end", { cycle: done.number, jobs_considered: done.result?.stats.jobs_considered ?? 0, cycle_ms });
    report(done, cycle_ms);
    handleWaiting();
    onIdle?.();
  }

  /** Service modules hear of a cycle that is over. */
  function report({ asked, now_s, result, over: { decisions, verdicts } }: Work, cycle_ms: number): void {
    if (universe === null || result === null) return;
    const { jobs_considered, jobs_started } = result.stats;
    const { command } = asked;
    const over = { universe, now_s, command, decisions, verdicts, jobs_considered, jobs_started, cycle_ms };
    host.cycleOver(over);
    answers.cycleOver(over);
  }

  // --- directories and files

  /** Takes over the attributes of the scheduler's object; read: sched_config and its companions anew. */
  function configure(read: boolean): void {
    if (universe === null) return;
    const { attrs } = universe.sched;
    if (typeof attrs["log_events"] === "number") log.mask = attrs["log_events"];
    const { fault, moved } = dirs.follow(attrs);
    if (fault === null && (moved || read)) {
      record(LOG_EVENT.SCHED, "reconfigure", "Scheduler is reconfiguring", "Sched");
      readFiles();
    }
    record(LOG_EVENT.DEBUG, "", "Updating scheduler attributes", "Req");
    if (fault !== null || told_fault !== null) send("sched-fault", { fault });
    // A fault that is over took the comment with it.
    if (fault === null && typeof told_fault === "string") reminders.tellProblem();
    told_fault = fault;
    for (const text of newlyNotObeyed(universe)) record(LOG_EVENT.SCHED, "", text, "Sched");
  }

  function readFiles(): void {
    const { sched_priv } = dirs;
    files_version = versionOfFiles(sched_priv);
    const settings = readSettings(sched_priv);
    usage.plant(sched_priv, settings.book.fairshare, Math.floor(Date.now() / 1000));
    for (const { object, text } of settings.messages) record(LOG_EVENT.SCHED, object, text, "Fil");
    // What was said so far is not lost, whatever a module does while it is loaded.
    log.flush();
    loading++;
    chain = chain.then(async () => {
      await host.load(settings.chain);
      book = { ...settings.book, site_modules: host.policies() };
      loading--;
      if (!isBusy()) handleWaiting();
    });
  }

  /** A cycle that is deciding goes on with the files and modules it began with. */
  function reread(signal: number): void {
    if (work !== null && work.result === null) {
      signals.push(signal);
      return;
    }
    log.reopen();
    record(LOG_EVENT.SYSTEM, "restart", `restart on signal ${signal}`);
    record(LOG_EVENT.SCHED, "reconfigure", "Scheduler is reconfiguring", "Sched");
    host.forgive();
    readFiles();
    configure(false);
  }

  readFiles();
  return {
    quit,
    reread,
    async leave() {
      send("sched-leaving", {});
      if (work !== null) {
        await Promise.race([
          new Promise<void>((resolve) => (onIdle = resolve)),
          new Promise((resolve) => setTimeout(resolve, LEAVE_MS_MAX)),
        ]);
      }
      programs.stop();
      await host.shutdown();
      usage.flush();
      link.close();
      dirs.release();
    },
  };
}

/** Seconds since then (performance.now()). */
const elapsedSince = (started: number) => (): number => (performance.now() - started) / 1000;

// The mom's shell: it carries out the core's actions and gives it events. It owns the links to server, starter and file agent, the clock and the log.

import type { MomVnode, ServerToMom } from "#protocol/mom-link.ts";
import { messageOf } from "#support/caught.ts";
import { steady_ms } from "#support/clock.ts";
import { clockJumps, jumpText } from "#support/clock-jumps.ts";
import type { Conf } from "#support/conf.ts";
import { LOG_EVENT, type Log, openLog } from "#support/log.ts";
import { systemUsers } from "#support/passwd.ts";
import { PBS_VERSION } from "#support/version.ts";
import type { MomSettings } from "../config/config.ts";
import { isBusy } from "../config/node-load.ts";
import type { MomOptions } from "../config/options.ts";
import { strangersOf } from "../config/strangers.ts";
import type { HostFacts } from "../config/vnode-def.ts";
import { bootId, hostFacts } from "../host/facts.ts";
import { measureHost, processOwners } from "../host/measure.ts";
import { ownersOf } from "../host/owners.ts";
import { signalQuietly } from "../host/session-end.ts";
import { helloJobs, makeMomState, reduce } from "../run/core.ts";
import type { MomEvent } from "../run/event.ts";
import { isStartingUp } from "../run/hook-answers.ts";
import { helloOutputs } from "../run/kept-output.ts";
import type { MomAction, MomConfig, MomState } from "../run/state.ts";
import { foundCheckpoints, removeCheckpoint, runAction } from "./action-run.ts";
import { type AgentClient, startAgent } from "./agent-client.ts";
import { type MomHookShell, momHookShell } from "./hook-shell.ts";
import { foundKept, noteKept } from "./kept-notes.ts";
import { openRecords, type RecordLog } from "./record-log.ts";
import { dueLeaders, look, nextPoll_s } from "./sampler.ts";
import { runScript } from "./script-run.ts";
import { dialServer, type ServerLink } from "./server-link.ts";
import { makeDirectories, momConfig, readSettings, vnodeReporter } from "./setup.ts";
import { siteReader } from "./site-resources.ts";
import { stallWatch } from "./stall.ts";
import { connectStarter, type StarterClient } from "./starter-client.ts";
import { steadyRecord, steadyRun, steadyTime } from "./steady-time.ts";
import { carryOutput, removeOldOffsets, type TaskOutput } from "./task-output.ts";
import { TaskServer } from "./task-server.ts";

const TICK_MS = 1000;
/** Longest wait for jobs to be gone when the mom is ended with its jobs. */
const END_MS_MAX = 20_000;
const CLOSE_MS_MAX = 5000;
/** The load average changes slowly. */
const LOAD_PERIOD_MS = 5000;
/** How often the site's resources are looked at. */
const SITE_PERIOD_MS = 10_000;
const STRANGERS_PERIOD_MS = 10_000;

/** A mom in this process. The caller holds mom.lock. */
export class Mom {
  /** jobs are known and the server is being dialled */
  readonly ready: Promise<void>;
  /** the exit status, when it has ended */
  readonly ended: Promise<number>;

  readonly #conf: Conf;
  readonly #options: MomOptions;
  readonly #home: string;
  readonly #config_file: string;
  readonly #boot = bootId();
  readonly #facts: HostFacts;
  readonly #log: Log;
  readonly #state: MomState;
  readonly #records: RecordLog;
  readonly #vnodes: ReturnType<typeof vnodeReporter>;
  readonly #agent: AgentClient;
  readonly #hooks: MomHookShell;
  readonly #starter: StarterClient;
  readonly #tasks: TaskServer;
  readonly #output: TaskOutput;
  readonly #ticker: NodeJS.Timeout;
  readonly #isReady = Promise.withResolvers<void>();
  readonly #hasEnded = Promise.withResolvers<number>();
  #settings: MomSettings;
  #server: ServerLink | null = null;
  #settled = false;
  #last_look_ms = 0;
  #poll_s = 0;
  #last_measure_ms = 0;
  #last_strangers_ms = 0;
  #last_site_ms = 0;
  #site_asked = false;
  #flushing = false;
  readonly #site_reader = siteReader((text) => this.#fault(text));
  #phase: "up" | "ending" | "closed" = "up";
  readonly #stall = stallWatch(steady_ms());
  readonly #jumped = clockJumps(Date.now, () => performance.now());
  #stall_timer: NodeJS.Timeout;
  #silence_s = 0;

  /** Throws MomStartError. */
  constructor(conf: Conf, options: MomOptions) {
    this.#conf = conf;
    this.#options = options;
    this.#home = options.home ?? conf.mom_home;
    this.ready = this.#isReady.promise;
    this.ended = this.#hasEnded.promise;
    const priv = `${this.#home}/mom_priv`;
    makeDirectories(this.#home, conf.mode);
    this.#config_file = options.config ?? `${priv}/config`;
    const notes: string[] = [];
    this.#settings = readSettings(this.#config_file, (text) => notes.push(text), conf.mode === "system");
    this.#log = this.#openLog();
    for (const text of notes) this.#note(text);
    this.#noteMode();
    this.#facts = hostFacts(conf.mom_node_name);
    const config = this.#config();
    this.#state = makeMomState(config, foundCheckpoints(config.checkpoint_path), foundKept(this.#home));
    const definitions = { directory: `${priv}/config.d`, system: conf.mode === "system" };
    this.#vnodes = vnodeReporter(definitions, this.#facts, () => this.#settings.vnodedef_additive, this.#note);
    const { log: records, found } = openRecords(`${priv}/jobs/records`, this.#fault);
    this.#records = records;
    this.#agent = this.#startAgent();
    this.#hooks = momHookShell(`${priv}/hooks`, conf, this.#fault);
    this.#startHooks();
    this.#happen({ kind: "recovered", saved: found.map(steadyRecord) });
    this.#tasks = new TaskServer({ home: this.#home, mode: conf.mode, happen: this.#happen, complain: this.#fault });
    this.#output = carryOutput(this.#home, this.#state, this.#fault);
    removeOldOffsets(this.#home, this.#state);
    this.#starter = this.#connectStarter(priv);
    this.#ticker = setInterval(() => this.#tick(), TICK_MS);
    this.#stall_timer = setInterval(() => this.#isInTime(), this.#stall.period_ms);
    this.#takeSignals();
    this.#note("Mom startup completed");
  }

  readonly #note = (text: string, event: number = LOG_EVENT.SYSTEM): void => this.#log.record(event, "Svr", "pbs_mom", text);
  readonly #fault = (text: string): void => this.#note(text, LOG_EVENT.ERROR);

  #openLog(): Log {
    const { mom_node_name, log_highres } = this.#conf;
    return openLog({
      dir: `${this.#home}/mom_logs`,
      daemon: "pbs_mom",
      mask: this.#settings.logevent,
      highres: log_highres,
      header: [`hostname=${mom_node_name};pbs_leaf_name=N/A;pbs_mom_node_name=${mom_node_name}`],
      ...(this.#options.log === null ? {} : { file: this.#options.log }),
    });
  }

  #noteMode(): void {
    if (this.#settings.restrict_user.on && this.#conf.mode !== "system")
      this.#note("$restrict_user has no effect: in user mode there is nobody else whose processes we could end");
  }

  #config(): MomConfig {
    return momConfig(this.#conf, this.#home, this.#settings, this.#options, this.#boot);
  }

  readonly #happen = (event: MomEvent): void => {
    if (this.#phase === "closed") return;
    this.#isInTime();
    this.#reduce(event);
  };

  #reduce(event: MomEvent): void {
    this.#flushSoon();
    for (const action of reduce(this.#state, event, steady_ms())) this.#perform(action);
  }

  /** False: the mom stood still for so long that the server may have given up on it. It asks the server before it does anything else (stall.ts). */
  readonly #isInTime = (): boolean => {
    const stood_ms = this.#stall.look(steady_ms());
    if (stood_ms === 0 || this.#phase !== "up" || this.#server === null) return true;
    this.#fault(`this mom stood still for ${Math.round(stood_ms / 1000)} seconds: the server is asked what it still wants`);
    this.#server.startOver();
    this.#reduce({ kind: "disconnected" });
    return false;
  };

  /** The heartbeat of the server. */
  readonly #pinged = ({ number, silence_s }: ServerToMom["mom-ping"]): void => {
    if (silence_s !== this.#silence_s) {
      this.#silence_s = silence_s;
      this.#stall.setSilence(silence_s);
      clearInterval(this.#stall_timer);
      this.#stall_timer = setInterval(() => this.#isInTime(), this.#stall.period_ms);
    }
    const ill = this.#illness();
    this.#server?.link.send("mom-pong", { number, ...(ill === null ? {} : { ill }) });
  };

  /**
   * Why the mom cannot start jobs: a disk that accepts no records, or a process of the mom that has not answered for half the time after which the server
   * gives up.
   */
  #illness(): string | null {
    if (this.#records.fault !== null) return `its records cannot be written: ${this.#records.fault}`;
    const limit_ms = this.#silence_s * 500;
    if (limit_ms === 0) return null;
    if (this.#starter.silent_ms() > limit_ms) return "the starter of its jobs does not answer";
    return this.#agent.silent_ms() > limit_ms ? "its file agent does not answer" : null;
  }

  /**
   * One write saves the records of everything that happens in this turn. It is requested first: messages to starter and agent leave in later
   * microtasks, so a record is written before them (run/life.ts R2).
   */
  #flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    queueMicrotask(() => {
      this.#flushing = false;
      if (this.#phase !== "closed") this.#records.flush();
    });
  }

  #perform(action: MomAction): void {
    switch (action.kind) {
      case "hello":
        return this.#sayHello();
      case "send":
        this.#server?.link.send(action.type, action.data);
        return;
      case "prepare":
        return this.#agent.prepare(action.request);
      case "run-hooks":
        void this.#hooks.run(action).then((end) => {
          this.#happen({ kind: "hooked", step: action.step, end });
          this.#dial();
        });
        return;
      case "run-script":
        return this.#runScript(action);
      case "run-action":
        void runAction(action).then((end) => this.#happen({ kind: "acted", step: action.step, end }));
        return;
      case "drop-checkpoint":
        void removeCheckpoint(action.path).catch((error: Error) => this.#fault(`checkpoint: ${error.message}`));
        return;
      case "note-kept":
        return this.#noteKept(action.job, action.kept);
      case "keep-hooks":
        return this.#hooks.keep(action.hooks);
      case "reboot":
        return this.#hooks.reboot(action.hook, action.command);
      case "start":
        return this.#starter.start(action.spec);
      case "task-say":
        return this.#sayTask(action);
      case "task-forward":
        return this.#tasks.forward(action);
      case "adopt":
        return this.#starter.adopt(action.run, action.pid);
      case "forget-task":
        return this.#starter.forget(action.run);
      case "signal":
        return this.#starter.signal(action.run, action.signal);
      case "finish":
        return this.#agent.finish(action.request);
      case "append":
        return this.#agent.append(action);
      case "save":
        return this.#records.save(action.record);
      case "save-tasks":
        return this.#records.saveTasks(action.run.job, action.run.run_count, action.tasks);
      case "drop":
        this.#records.drop(action.run.job, action.run.run_count);
        return this.#starter.forget(action.run);
      case "purge":
        return this.#agent.drop(action);
      case "log":
        return this.#log.record(action.event, action.class ?? "Job", action.object, action.text);
      case "exit":
        void this.#end();
        return;
      default: {
        const unreachable: never = action;
        throw new Error(`action ${JSON.stringify(unreachable)}`);
      }
    }
  }

  /** If the disk accepts no note, the output stays without being removed later; this is logged, and the job continues. */
  #noteKept(job: string, kept: boolean): void {
    try {
      noteKept(this.#home, job, kept);
    } catch (error) {
      this.#fault(`output of ${job}: ${messageOf(error)}`);
    }
  }

  #sayTask({ asked, answer, drained }: Extract<MomAction, { kind: "task-say" }>): void {
    if (drained === undefined) return this.#tasks.say(asked, answer);
    void this.#output.drain(drained.job).then(() => this.#tasks.say(asked, answer));
  }

  /** The last hooks, and those of the start of a host. */
  #startHooks(): void {
    const kept = this.#hooks.kept();
    if (kept !== null) this.#happen({ kind: "hooks", hooks: kept, from: "disk" });
    this.#readVnodes();
    this.#happen({ kind: "startup" });
  }

  #readVnodes(): MomVnode[] {
    const vnodes = this.#vnodes.read();
    this.#happen({ kind: "vnodes", vnodes });
    return vnodes;
  }

  #runScript(action: Extract<MomAction, { kind: "run-script" }>): void {
    const { script, step, args } = action;
    const running = (): void => this.#log.record(LOG_EVENT.DEBUG, "Job", args[0] ?? "", `running ${script}`);
    const path = `${this.#home}/mom_priv/${script}`;
    void runScript(path, this.#conf.mode === "system", action, running).then((end) => this.#happen({ kind: "scripted", step, end }));
  }

  #sayHello(): void {
    const { hooks, checkpoints } = this.#state;
    const { digest } = hooks;
    this.#server?.link.send("mom-hello", {
      host: this.#facts.host,
      tasks: this.#tasks.path,
      port: this.#options.port ?? this.#conf.port.mom,
      pid: process.pid,
      version: PBS_VERSION,
      vnodes: this.#readVnodes(),
      patience: this.#settings.patience,
      jobs: helloJobs(this.#state),
      ...(digest === "" ? {} : { hooks: digest }),
      ...(checkpoints.size === 0 ? {} : { checkpoints: [...checkpoints] }),
      ...helloOutputs(this.#state),
      pongs: true,
    });
  }

  #startAgent(): AgentClient {
    return startAgent({
      "agent-prepared": ({ jobs }) => {
        for (const outcome of jobs) this.#happen({ kind: "prepared", outcome });
      },
      "agent-finished": ({ jobs }) => {
        for (const outcome of jobs) this.#happen({ kind: "finished", outcome });
      },
      "agent-appended": ({ runs }) => {
        for (const run of runs) this.#happen({ kind: "told", run });
      },
      "agent-dropped": ({ jobs }) => {
        for (const job of jobs) this.#happen({ kind: "purged", job });
      },
      "agent-complaint": ({ job, text }) => this.#log.record(LOG_EVENT.ERROR, "Fil", job, text),
      complain: this.#fault,
    });
  }

  #connectStarter(priv: string): StarterClient {
    const each = <T>(runs: readonly T[], eventOf: (run: T) => MomEvent): void => {
      for (const run of runs) this.#happen(eventOf(run));
    };
    return connectStarter(priv, {
      "starter-state": (data) => {
        this.#happen({ kind: "starter-state", data: { ...data, runs: data.runs.map(steadyRun) } });
        this.#settled = true;
        this.#dial();
      },
      "starter-started": ({ runs }) => each(runs, (run) => ({ kind: "started", run: { ...run, at_ms: steadyTime(run.at_ms) } })),
      "starter-failed": ({ runs }) => each(runs, (run) => ({ kind: "start-failed", run })),
      "starter-adopted": ({ runs }) => each(runs, (run) => ({ kind: "adopted", run })),
      "starter-hung-up": ({ runs }) => each(runs, (run) => ({ kind: "hung-up", run })),
      "starter-exited": ({ runs }) => each(runs, (run) => ({ kind: "exited", run: { ...run, at_ms: steadyTime(run.at_ms) } })),
      onLost: () => this.#fault("the starter is lost"),
      complain: this.#fault,
    });
  }

  /** After the jobs are known and hooks have prepared the host. */
  #dial(): void {
    if (!this.#settled || this.#server !== null || isStartingUp(this.#state)) return;
    this.#server = dialServer(this.#conf.home, {
      happen: this.#happen,
      ownerOf: ownersOf(this.#conf.mode),
      note: this.#note,
      isInTime: this.#isInTime,
      pinged: this.#pinged,
    });
    this.#isReady.resolve();
  }

  #tick(): void {
    this.#happen({ kind: "tick" });
    this.#output.tick();
    const now_ms = steady_ms();
    const jumped_ms = this.#jumped();
    if (jumped_ms !== 0) this.#note(`the system clock was set ${jumpText(jumped_ms)}: walltime of jobs goes on as before`);
    this.#measure(now_ms);
    this.#readSite(now_ms);
    this.#killStrangers(now_ms);
    const { min_check_poll_s: min_s, max_check_poll_s: max_s } = this.#settings;
    const { leaders, owners, all } = dueLeaders(this.#state, this.#last_look_ms, now_ms, Math.max(min_s, this.#poll_s) * 1000);
    if (leaders.size === 0) return;
    if (all) {
      this.#poll_s = nextPoll_s(this.#state, this.#last_look_ms, this.#poll_s, { min_s, max_s });
      this.#last_look_ms = now_ms;
    }
    this.#happen({ kind: "sampled", seen: look(leaders, owners) });
  }

  /** The load of the host by others, if the site wants to know it; once more after it no longer does. */
  #measure(now_ms: number): void {
    const { load, kbd_idle } = this.#settings;
    const wanted = load.max !== null || kbd_idle !== null;
    const period_ms = Math.min(LOAD_PERIOD_MS, kbd_idle === null ? LOAD_PERIOD_MS : kbd_idle.poll_s * 1000);
    if ((!wanted && !isBusy(this.#state.busy)) || now_ms - this.#last_measure_ms < period_ms) return;
    this.#last_measure_ms = now_ms;
    this.#happen({ kind: "measured", measure: measureHost(kbd_idle !== null, Date.now()) });
  }

  /** Sends resources of the site repeatedly, and once more after the last one was removed. */
  #readSite(now_ms: number): void {
    const { site } = this.#settings;
    const none = Object.keys(site).length === 0 && Object.keys(this.#state.site).length === 0;
    if (none || this.#site_asked || now_ms - this.#last_site_ms < SITE_PERIOD_MS) return;
    this.#last_site_ms = now_ms;
    this.#site_asked = true;
    void this.#site_reader.read(site, this.#options.alarm_s).then((resources) => {
      this.#site_asked = false;
      this.#happen({ kind: "site", resources });
    });
  }

  /** $restrict_user. In user mode the mom could end no other user's processes. */
  #killStrangers(now_ms: number): void {
    const { restrict_user } = this.#settings;
    if (!restrict_user.on || this.#conf.mode !== "system" || now_ms - this.#last_strangers_ms < STRANGERS_PERIOD_MS) return;
    this.#last_strangers_ms = now_ms;
    const users = systemUsers();
    const uidOf = (user: string): number | null => users.userByName(user)?.uid ?? null;
    // Hooks without rights run as nobody.
    const owners = new Set([...this.#state.runs.values()].flatMap(({ owner }) => owner.identity?.uid ?? []).concat(uidOf("nobody") ?? []));
    for (const pid of strangersOf(processOwners(), owners, restrict_user, uidOf)) {
      if (signalQuietly(pid, "SIGKILL")) this.#note(`process ${pid} killed: its owner has no job here ($restrict_user)`);
    }
  }

  #takeSignals(): void {
    process.on("SIGHUP", () => this.#reread());
    process.on("SIGTERM", () => {
      this.#note("caught signal SIGTERM: jobs are killed");
      setTimeout(() => void this.#end(), END_MS_MAX);
      this.#happen({ kind: "stop", manner: "kill" });
    });
    process.on("SIGINT", () => this.#happen({ kind: "stop", manner: "leave" }));
    for (const signal of ["SIGUSR1", "SIGUSR2", "SIGPIPE"] as const) process.on(signal, () => undefined);
  }

  /** SIGHUP: configuration and vnode definitions. A wrong configuration leaves the old one in force. */
  #reread(): void {
    this.#log.reopen();
    try {
      this.#settings = readSettings(this.#config_file, this.#note, this.#conf.mode === "system");
      this.#log.mask = this.#settings.logevent;
      this.#happen({ kind: "configured", config: this.#config() });
      this.#note("re-read configuration");
      this.#noteMode();
    } catch (error) {
      this.#fault(`configuration kept as it was: ${messageOf(error)}`);
    }
    this.#server?.link.send("mom-vnodes", { vnodes: this.#readVnodes(), patience: this.#settings.patience });
    this.#happen({ kind: "startup" });
  }

  async #end(): Promise<void> {
    if (this.#phase !== "up") return;
    this.#phase = "ending";
    clearInterval(this.#ticker);
    clearInterval(this.#stall_timer);
    // A file agent that hangs (a dead file server) does not delay the end.
    setTimeout(() => this.#hasEnded.resolve(0), CLOSE_MS_MAX).unref();
    await this.#agent.close();
    // The starter ends only if it has no jobs. The next mom starts one of its own release.
    this.#starter.quit();
    this.#starter.close();
    this.#tasks.close();
    this.#phase = "closed";
    this.#hooks.close();
    this.#records.close();
    this.#server?.link.close();
    this.#note("Is down");
    this.#log.close();
    this.#hasEnded.resolve(0);
  }
}

// Drives the mom's core: gives it events, and carries its actions out. The daemon and the simulator share this driver, each with its own ports (ports.ts).
//
// D1. The records of one turn are written at the end of the turn. Only then do messages to the starter and to file agents leave, so a record is always written
//     before the message that follows from it (../run/life.ts R2). Links and files are also closed only then. Frames to the server leave at once, but an answer (mom-result)
//     leaves last, with the frames after it: a server that is told that a job is suspended starts others in its place.
// D2. The mom connects to its server after the starter has reported the jobs, and the exechost_startup hooks have answered.
// D3. After a mom has stood still, it first asks the server which runs are still wanted (stall.ts).
// D4. If the server does not answer, the mom asks it, then connects anew (server-silence.ts), and ends its rerunnable jobs before their grace is over
//     (../run/cut-off.ts).

import type { MomGrace, MomHello, MomVnode, ServerToMom } from "#protocol/mom-link.ts";
import { messageOf } from "#support/caught.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { PARTITA_VERSION, PBS_VERSION } from "#support/version.ts";
import type { MomSettings } from "../config/config.ts";
import type { FinishRequest } from "../job/agent-link.ts";
import { isSister } from "../job/sister.ts";
import type { ServerContact } from "../job/starter-link.ts";
import { helloJobs, makeMomState, reduce } from "../run/core.ts";
import { leaseOf } from "../run/cut-off.ts";
import type { MomEvent } from "../run/event.ts";
import { isStartingUp } from "../run/hook-answers.ts";
import { helloOutputs } from "../run/kept-output.ts";
import { FIRST_TASK } from "../run/record.ts";
import type { MomAction, MomState } from "../run/state.ts";
import { AgentClient, type AgentHandlers } from "./agent-client.ts";
import { HostWatch } from "./host-watch.ts";
import type { MomIdentity, MomPorts, ReportsPort, TaskLinks } from "./ports.ts";
import { RecordLog } from "./record-log.ts";
import { ServerClient } from "./server-client.ts";
import { anewAfter_ms, askEvery_ms, graceText, ServerSilence } from "./server-silence.ts";
import { stallWatch } from "./stall.ts";
import { StarterClient, type StarterHandlers } from "./starter-client.ts";
import { type Opening, openingOf, StatusReports } from "./status-reports.ts";
import { steadyRecord, steadyRun, steadyTime } from "./steady-time.ts";

const TICK_MS = 1000;
/** How long a mom that is ended together with its jobs waits for the jobs to end. */
const END_MS_MAX = 20_000;
const CLOSE_MS_MAX = 5000;

type ActionOf<K extends MomAction["kind"]> = Extract<MomAction, { readonly kind: K }>;

export class MomDriver {
  readonly state: MomState;
  readonly #ports: MomPorts;
  readonly #identity: MomIdentity;
  readonly #records: RecordLog;
  /** frames to the server that wait for the end of this turn (D1) */
  readonly #answers: ActionOf<"send">[] = [];
  readonly #agent: AgentClient;
  readonly #starter: StarterClient;
  readonly #tasks: TaskLinks;
  readonly #watch: HostWatch;
  readonly #reports: StatusReports | null;
  readonly #stall: ReturnType<typeof stallWatch>;
  readonly #silence = new ServerSilence();
  /** the contact in the lease that was last sent to the starter */
  #leased: ServerContact | null = null;
  #settings: MomSettings;
  #server: ServerClient | null = null;
  /** whether the starter has reported which jobs it has */
  #is_settled = false;
  #is_flush_due = false;
  #phase: "up" | "ending" | "closed" = "up";
  #silence_s = 0;
  #cancelTick: () => void = () => undefined;
  #cancelStall: () => void = () => undefined;

  /** Reads what an earlier mom has left, and starts the file agent. start() does everything else. settings: those read from mom_priv/config */
  constructor(ports: MomPorts, identity: MomIdentity, settings: MomSettings) {
    const { clock, disk, setup } = ports;
    this.#ports = ports;
    this.#identity = identity;
    this.#settings = settings;
    this.#stall = stallWatch(clock.steady_ms());
    this.#noteMode();
    const config = setup.config(settings);
    this.state = makeMomState(config, disk.foundCheckpoints(config.checkpoint_path), disk.foundKept());
    this.#records = new RecordLog(disk.records, this.#fault);
    this.#agent = new AgentClient(ports.agent, clock, this.#agentHandlers());
    this.#startHooks();
    this.happen({ kind: "recovered", saved: this.#records.found.map((record) => steadyRecord(record, this.#ahead_ms())) });
    this.#tasks = ports.tasks.open(this.state, this.happen);
    this.#starter = new StarterClient(ports.starter, clock, this.#starterHandlers());
    this.#reports = ports.reports === null ? null : this.#makeReports(ports.reports);
    this.#watch = new HostWatch(ports, identity, {
      state: this.state,
      settings: () => this.#settings,
      happen: this.happen,
      note: this.#note,
    });
  }

  /** Whether the mom has begun to end. */
  get isEnding(): boolean {
    return this.#phase !== "up";
  }

  start(): void {
    this.#starter.connect();
    this.#tickLater();
    this.#lookLater();
    this.#note("Mom startup completed");
  }

  /** Ends the mom. kill: its jobs are ended first */
  stop(manner: "kill" | "leave"): void {
    if (manner === "kill") this.#ports.clock.after(END_MS_MAX, () => this.#end());
    this.happen({ kind: "stop", manner });
  }

  /** Reads configuration and vnode definitions again. If the configuration has an error, the old one stays in force. */
  reread(): void {
    const { log, setup } = this.#ports;
    log.reopen();
    try {
      this.#settings = setup.settings(this.#note);
      log.setMask(this.#settings.logevent);
      this.happen({ kind: "configured", config: setup.config(this.#settings) });
      this.#note("re-read configuration");
      this.#noteMode();
    } catch (error) {
      this.#fault(`configuration kept as it was: ${messageOf(error)}`);
    }
    this.#server?.send({ type: "mom-vnodes", data: { vnodes: this.#readVnodes(), patience: this.#settings.patience } });
    this.happen({ kind: "startup" });
  }

  readonly happen = (event: MomEvent): void => {
    if (this.#phase === "closed") return;
    this.#isInTime();
    this.#reduce(event);
  };

  #reduce(event: MomEvent): void {
    this.#flushAtEnd();
    if (event.kind === "disconnected") this.#reports?.pause();
    if (event.kind === "welcome" && event.data.confirms === true) this.#reports?.begin();
    for (const action of reduce(this.state, event, this.#ports.clock.steady_ms())) this.#perform(action);
    if (this.state.contact !== this.#leased) this.#renewLease();
  }

  /** Tells the starter how long the runs may go on, because the server has answered or the starter is a new one. */
  #renewLease(): void {
    this.#leased = this.state.contact;
    const lease = leaseOf(this.state);
    if (lease !== null) this.#starter.lease(lease);
  }

  /** Requests that the records are written at the end of this turn (D1). */
  #flushAtEnd(): void {
    if (this.#is_flush_due) return;
    this.#is_flush_due = true;
    this.#ports.clock.atEnd(() => {
      this.#is_flush_due = false;
      if (this.#phase !== "closed") this.#records.flush();
      // The messages of this turn to the starter leave before that.
      if (this.#answers.length > 0) this.#ports.clock.atEnd(() => this.#answer());
    });
  }

  /** Sends the answers of this turn to the server (D1). */
  #answer(): void {
    for (const frame of this.#answers.splice(0)) this.#server?.send(frame);
  }

  readonly #note = (text: string, event: number = LOG_EVENT.SYSTEM): void => this.#ports.log.record(event, "Svr", "pbs_mom", text);
  readonly #fault = (text: string): void => this.#note(text, LOG_EVENT.ERROR);

  #noteMode(): void {
    if (this.#settings.restrict_user.on && !this.#identity.is_system)
      this.#note("$restrict_user has no effect: in user mode there is nobody else whose processes we could end");
  }

  // --- actions

  #perform(action: MomAction): void {
    switch (action.kind) {
      case "hello":
        return this.#sayHello();
      case "send":
        return this.#send(action);
      case "start":
        return this.#starter.start(action.spec);
      case "adopt":
        return this.#starter.adopt(action.run, action.pid);
      case "forget-task":
        return this.#starter.forget(action.run);
      case "signal":
        return this.#starter.signal(action.run, action.signal);
      case "prepare":
        return this.#agent.prepare(action.request);
      case "finish":
        return this.#finish(action.request);
      case "append":
        return this.#agent.append(action);
      case "purge":
        return this.#agent.drop(action);
      case "task-say":
        return this.#sayTask(action);
      case "task-forward":
        return this.#tasks.forward(action);
      case "log":
        return this.#ports.log.record(action.event, action.class ?? "Job", action.object, action.text);
      case "exit":
        return this.#end();
      default:
        return this.#performHere(action);
    }
  }

  /** Sends a frame. Usage and other values that are reported repeatedly go into the reports instead, if there are any. */
  #send(action: ActionOf<"send">): void {
    const reports = this.#reports?.isOn === true ? this.#reports : null;
    if (reports !== null && action.type === "mom-usage") return reports.keepUsage(action.data.jobs);
    if (reports !== null && action.type === "mom-site") return reports.keepSite(action.data.resources);
    if (action.type === "mom-result" || this.#answers.length > 0) this.#answers.push(action);
    else this.#server?.send(action);
  }

  /** Carries out the actions for records, notes, hooks and scripts. */
  #performHere(action: Exclude<MomAction, { readonly kind: PerformedThere }>): void {
    const { disk, hooks, scripts } = this.#ports;
    switch (action.kind) {
      case "save":
        return this.#records.save(action.record);
      case "save-tasks":
        return this.#records.saveTasks(action.run.job, action.run.run_count, action.tasks);
      case "drop":
        this.#records.drop(action.run.job, action.run.run_count);
        return this.#starter.forget(action.run);
      case "drop-checkpoint":
        return disk.removeCheckpoint(action.path, (fault) => {
          if (fault !== null) this.#fault(`checkpoint: ${fault}`);
        });
      case "note-kept":
        return this.#noteKept(action.job, action.kept);
      case "keep-hooks":
        return hooks.keep(action.hooks);
      case "reboot":
        return hooks.reboot(action.hook, action.command);
      case "run-hooks":
        return hooks.run(action, (end) => {
          this.happen({ kind: "hooked", step: action.step, end });
          this.#dial();
        });
      case "run-script":
        return this.#runScript(action);
      case "run-action":
        return scripts.act(action, (end) => this.happen({ kind: "acted", step: action.step, end }));
      default: {
        const unreachable: never = action;
        throw new Error(`action ${JSON.stringify(unreachable)}`);
      }
    }
  }

  /**
   * Notes on the disk that a job's output waits in spool, or no longer does. If that fails, it is logged and the job continues, but nobody will remove the
   * output later.
   */
  #noteKept(job: string, kept: boolean): void {
    try {
      this.#ports.disk.noteKept(job, kept);
    } catch (error) {
      this.#fault(`output of ${job}: ${messageOf(error)}`);
    }
  }

  #sayTask({ asked, answer, drained }: ActionOf<"task-say">): void {
    if (drained === undefined) return this.#tasks.say(asked, answer);
    this.#tasks.drain(drained.job, () => this.#tasks.say(asked, answer));
  }

  /**
   * Finishes the files of a run. On a sister, output of tasks that has not reached the mother superior is kept: the file
   * agent puts it into the directory undelivered.
   */
  #finish(request: FinishRequest): void {
    const run = this.state.runs.get(request.plan.job);
    const hadTasks = run !== undefined && run.next_task > FIRST_TASK && isSister(run.job, this.#identity.host);
    if (!hadTasks || request.output !== "drop" || run.ending?.why === "discard") return this.#agent.finish(request);
    this.#tasks.drainLast(request.plan.job, (all) => this.#agent.finish(all ? request : { ...request, output: "deliver" }));
  }

  #runScript(action: ActionOf<"run-script">): void {
    const { script, step, args } = action;
    const running = (): void => this.#ports.log.record(LOG_EVENT.DEBUG, "Job", args[0] ?? "", `running ${script}`);
    this.#ports.scripts.run(action, running, (end) => this.happen({ kind: "scripted", step, end }));
  }

  // --- hooks and vnodes

  /** Loads the hooks that the last mom kept on the disk, and runs the exechost_startup hooks. */
  #startHooks(): void {
    const kept = this.#ports.hooks.kept();
    if (kept !== null) this.happen({ kind: "hooks", hooks: kept, from: "disk" });
    this.#readVnodes();
    this.happen({ kind: "startup" });
  }

  #readVnodes(): readonly MomVnode[] {
    const vnodes = this.#ports.setup.vnodes(this.#settings);
    this.happen({ kind: "vnodes", vnodes });
    return vnodes;
  }

  // --- the server

  /** Connects to the server if it is time (D2). */
  #dial(): void {
    if (!this.#is_settled || this.#server !== null || isStartingUp(this.state)) return;
    this.#server = new ServerClient(this.#ports.server, {
      happen: this.happen,
      ownerOf: (job) => this.#ports.host.ownerOf(job),
      note: this.#note,
      isInTime: this.#isInTime,
      pinged: (data) => this.#pinged(data),
      keys: (data) => this.#reports?.takeKeys(data),
      heard: (data) => {
        this.#reports?.heard(data);
        this.#heard(data);
      },
      welcomed: (grace) => this.#contacted(this.#silence.hello_ms, grace),
      absent: () => this.#absent(),
      group: this.#ports.group,
      net: () => this.#settings.multicast_interface,
      acknowledge: (position, spread_ms) => this.#reports?.acknowledge(position, spread_ms),
    });
    this.#ports.ready();
  }

  #sayHello(): void {
    const { hooks, checkpoints, contact } = this.state;
    this.#silence.helloLeft(this.#ports.clock.steady_ms());
    const { host, port, pid, runner } = this.#identity;
    const { digest } = hooks;
    const grace = contact === null ? null : { number: 0, requeue_s: contact.requeue_s, sister_s: contact.sister_s };
    const data: MomHello = {
      host,
      tasks: this.#tasks.path,
      port,
      pid,
      version: PBS_VERSION,
      release: PARTITA_VERSION,
      vnodes: this.#readVnodes(),
      patience: this.#settings.patience,
      jobs: helloJobs(this.state),
      ...(digest === "" ? {} : { hooks: digest }),
      ...(checkpoints.size === 0 ? {} : { checkpoints: [...checkpoints] }),
      ...helloOutputs(this.state),
      pongs: true,
      // The jobs of a runner that is cut off go on: its backend says whether the runner still exists (src/server/runners/arrival.ts A2).
      ...(runner === null ? { grace } : { runner: { token: runner.token, age_s: runner.age_s() } }),
      ...(this.#reports === null ? {} : { reports: { every_s: this.#settings.status_interval_s } }),
      ...(this.#ports.group === null ? {} : { multicast: true as const }),
    };
    this.#server?.send({ type: "mom-hello", data });
  }

  /** If the mom has stood still, asks the server which runs are still wanted (D3). Returns false if the server may have given the mom up meanwhile. */
  readonly #isInTime = (): boolean => {
    const stood_ms = this.#stall.look(this.#ports.clock.steady_ms());
    if (stood_ms === 0 || this.#phase !== "up" || this.#server === null) return true;
    this.#fault(`this mom stood still for ${Math.round(stood_ms / 1000)} seconds: the server is asked what it still wants`);
    this.#server.startOver();
    this.#reduce({ kind: "disconnected" });
    return false;
  };

  #makeReports(port: ReportsPort): StatusReports {
    return new StatusReports({
      port,
      clock: this.#ports.clock,
      host: this.#identity.host,
      every_s: () => this.#settings.status_interval_s,
      opening: () => this.#opening(),
      answered: (data) => this.#heard(data),
      send: (frame) => this.#server?.send(frame),
      note: this.#note,
    });
  }

  // --- whether the server answers

  #opening(): Opening {
    return openingOf(this.#silence.next(this.#ports.clock.steady_ms()), this.#silence.grace, this.#illness());
  }

  #heard({ number, grace }: ServerToMom["mom-heard"]): void {
    const left_ms = this.#silence.heard(number);
    if (left_ms !== null) this.#contacted(left_ms, grace);
    // The server tells a new grace without being asked. That answers nothing, so the time of the last answer stays.
    else if (number === 0 && grace !== undefined && this.state.contact !== null) this.#contacted(this.state.contact.answered_ms, grace);
  }

  #contacted(at_ms: number, grace: MomGrace | undefined): void {
    const known = this.#silence.grace;
    const before = this.state.contact;
    this.happen({ kind: "contact", at_ms, grace: this.#silence.newest(grace) });
    const now = this.state.contact;
    const isChanged = now !== null && (before?.requeue_s !== now.requeue_s || before.sister_s !== now.sister_s);
    if (isChanged) this.#note(graceText(now));
    // This report tells the server that the mom has the new grace. Until then the server waits for the longer one of old and new (server/moms/grace.ts G2).
    if (this.#silence.grace !== known) this.#server?.send({ type: "mom-report", data: this.#opening() });
  }

  /**
   * Called when nobody listens at the server's address. The mom may have been stopped after it learned that, so this counts as an answer only from the time of
   * its last event.
   */
  #absent(): void {
    this.happen({ kind: "contact", at_ms: this.#stall.looked_ms, grace: null });
  }

  /** Asks the server, or connects anew, if it has not answered for too long (D4). */
  #askServer(): void {
    const server = this.#server;
    const { contact, welcomed } = this.state;
    if (contact === null || this.#phase !== "up" || server === null || !server.connected) return;
    const now_ms = this.#ports.clock.steady_ms();
    const every_s = this.#reports === null ? null : this.#settings.status_interval_s;
    const ask_ms = welcomed ? askEvery_ms(contact, every_s) : null;
    const due = this.#silence.due(now_ms, contact.answered_ms, anewAfter_ms(this.#silence_s, every_s), ask_ms);
    if (due === "ask") server.send({ type: "mom-report", data: this.#opening() });
    if (due !== "connect anew") return;
    this.#fault("the server does not answer: the connection is made anew");
    server.startOver();
    this.#reduce({ kind: "disconnected" });
  }

  /** Answers a heartbeat of the server. */
  #pinged({ number, silence_s }: ServerToMom["mom-ping"]): void {
    if (silence_s !== this.#silence_s) {
      this.#silence_s = silence_s;
      this.#stall.setSilence(silence_s);
      this.#cancelStall();
      this.#lookLater();
    }
    const ill = this.#illness();
    this.#server?.send({
      type: "mom-pong",
      data: { number, clock_ms: Math.floor(this.#ports.clock.wall_ms()), ...(ill === null ? {} : { ill }) },
    });
  }

  /**
   * Returns why the mom cannot start jobs at present: a disk that accepts no records, or a process of the mom that has not answered for half the time after
   * which the server gives a mom up. null: it can.
   */
  #illness(): string | null {
    if (this.#records.fault !== null) return `its records cannot be written: ${this.#records.fault}`;
    const limit_ms = this.#silence_s * 500;
    if (limit_ms === 0) return null;
    if (this.#starter.silent_ms() > limit_ms) return "the starter of its jobs does not answer";
    return this.#agent.silent_ms() > limit_ms ? "its file agent does not answer" : null;
  }

  // --- starter and file agents

  #agentHandlers(): AgentHandlers {
    return {
      "agent-prepared": ({ jobs }) => this.#each(jobs, (outcome) => ({ kind: "prepared", outcome })),
      "agent-finished": ({ jobs }) => this.#each(jobs, (outcome) => ({ kind: "finished", outcome })),
      "agent-appended": ({ runs, asked }) => {
        for (const each of asked) this.#tasks.say(each, { type: "task-done" });
        this.#each(runs, (run) => ({ kind: "told", run }));
      },
      "agent-dropped": ({ jobs }) => this.#each(jobs, (job) => ({ kind: "purged", job })),
      "agent-complaint": ({ job, text }) => this.#ports.log.record(LOG_EVENT.ERROR, "Fil", job, text),
      complain: this.#fault,
    };
  }

  #starterHandlers(): StarterHandlers {
    const steady = <T extends { readonly at_ms: number }>(run: T): T => ({ ...run, at_ms: steadyTime(run.at_ms, this.#ahead_ms()) });
    return {
      "starter-state": (data) => {
        this.#leased = null;
        const runs = data.runs.map((run) => steadyRun(run, this.#ahead_ms()));
        this.happen({ kind: "starter-state", data: { ...data, runs } });
        this.#is_settled = true;
        this.#dial();
      },
      "starter-started": ({ runs }) => this.#each(runs, (run) => ({ kind: "started", run: steady(run) })),
      "starter-failed": ({ runs }) => this.#each(runs, (run) => ({ kind: "start-failed", run })),
      "starter-adopted": ({ runs }) => this.#each(runs, (run) => ({ kind: "adopted", run })),
      "starter-hung-up": ({ runs }) => this.#each(runs, (run) => ({ kind: "hung-up", run })),
      "starter-exited": ({ runs }) => this.#each(runs, (run) => ({ kind: "exited", run: steady(run) })),
      onLost: () => this.#fault("the starter is lost"),
      complain: this.#fault,
    };
  }

  #each<T>(list: readonly T[], eventOf: (each: T) => MomEvent): void {
    for (const each of list) this.happen(eventOf(each));
  }

  /** Returns by how much the wall clock is ahead of the steady one (steady-time.ts). */
  #ahead_ms(): number {
    const { clock } = this.#ports;
    return clock.wall_ms() - clock.steady_ms();
  }

  // --- time

  #tickLater(): void {
    this.#cancelTick = this.#ports.clock.after(TICK_MS, () => {
      this.#tickLater();
      this.happen({ kind: "tick" });
      this.#tasks.tick();
      this.#watch.tick();
    });
  }

  #lookLater(): void {
    this.#cancelStall = this.#ports.clock.after(this.#stall.period_ms, () => {
      this.#lookLater();
      this.#isInTime();
      this.#askServer();
    });
  }

  // --- the end

  #end(): void {
    if (this.#phase !== "up") return;
    this.#phase = "ending";
    this.#cancelTick();
    this.#cancelStall();
    // A file agent that hangs (its file server is dead) does not delay the end of the mom.
    this.#ports.clock.after(CLOSE_MS_MAX, () => this.#ports.ended());
    this.#ports.clock.atEnd(() => this.#agent.close(() => this.#close()));
  }

  #close(): void {
    const { hooks, log } = this.#ports;
    // The starter ends only if it has no jobs. The next mom then starts a starter of its own release.
    this.#starter.quit();
    this.#starter.close();
    this.#tasks.close();
    this.#phase = "closed";
    hooks.close();
    this.#records.close();
    this.#reports?.close();
    this.#server?.close();
    this.#note("Is down");
    log.close();
    this.#ports.ended();
  }
}

type PerformedThere =
  | "hello"
  | "send"
  | "start"
  | "adopt"
  | "forget-task"
  | "signal"
  | "prepare"
  | "finish"
  | "append"
  | "purge"
  | "task-say"
  | "task-forward"
  | "log"
  | "exit";

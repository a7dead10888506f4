// A scheduler as a process: the driver of the real daemon (src/sched/driver), with ports to simulated surroundings.

import type { SchedToServer } from "#protocol/sched-link.ts";
import type { ClockPort, LinkPort, ModulesPort, SchedPorts, UsagePort } from "#sched/driver/ports.ts";
import { SchedDriver } from "#sched/driver/sched-driver.ts";
import type { Settings } from "#sched/policy/settings-text.ts";
import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import type { Universe } from "#sched/shapes/universe.ts";
import type { SchedEnd } from "#server/scheds/session.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Prng } from "#support/prng.ts";
import { BusyThread } from "./busy-thread.ts";
import { fail } from "./checks/violation.ts";
import type { Link } from "./network.ts";
import type { World } from "./world.ts";

const RECONNECT_MS = 1000;
/** Time in ms after which the server kills a process that SIGTERM has not ended. */
const KILL_AFTER_MS = 10_000;
/** Longest time in ms that modules take to load. */
const LOAD_MS_MAX = 50;
/** Longest time in ms that the simulated process spends on one event, measured by its own clock. A cycle may take up to cycle_ms_max longer. */
const WORK_MS_MAX = 1000;
const SIGHUP = 1;
/** Log records with these events are also in the trace. */
const TRACED = LOG_EVENT.ERROR | LOG_EVENT.SYSTEM | LOG_EVENT.DEBUG;

type SchedLink = Link<"sched-to-server", "server-to-sched">;

export type SchedOptions = {
  readonly book: PolicyBook;
  readonly cycle_ms_max: number;
  /** the processes of the scheduler get the pids that follow this number */
  readonly first_pid: number;
  /** Connects to the server; null: the scheduler is on another host, and the server dials it. */
  readonly dial: ((name: string, pid: number, parent: number) => SchedLink | null) | null;
  /** Called when the process has ended by itself or was killed. */
  ended(name: string, parent: number, how: SchedEnd): void;
};

/** The directory of a scheduler. It stays when a process of the scheduler ends. */
type SchedDirectory = {
  /** the reason why its check fails; null: it passes */
  fault: string | null;
  usage: string | null;
};

/** The processes of one scheduler, one after the other. */
export class SchedProcess {
  readonly name: string;
  readonly #world: World;
  readonly #random: Prng;
  readonly #options: SchedOptions;
  readonly #directory: SchedDirectory = { fault: null, usage: null };
  #life: SchedLife | null = null;
  /** number that grows with every start and every end of a process */
  #turns = 0;
  #parent = 0;
  /** time since which the process has been stopped (SIGSTOP); null: it is not stopped */
  #paused_ms: number | null = null;

  constructor(world: World, name: string, options: SchedOptions) {
    this.name = name;
    this.#world = world;
    this.#random = world.random.split(`sched/${name}`);
    this.#options = options;
  }

  get alive(): boolean {
    return this.#life !== null;
  }

  get pid(): number {
    return this.#options.first_pid + this.#turns;
  }

  /** The number of the server's process that started this one (ServerProcess.life). */
  get parent(): number {
    return this.#parent;
  }

  get universe(): Universe | null {
    return this.#life?.driver.universe ?? null;
  }

  /** Whether the process is connected and not in a cycle. */
  get idle(): boolean {
    return this.#life?.isIdle ?? false;
  }

  /** Whether the process is stopped (SIGSTOP). */
  get paused(): boolean {
    return this.#paused_ms !== null;
  }

  /** Starts a process. parent: the number of the server's process that starts it. */
  start(parent: number): void {
    if (this.#life !== null) return;
    this.#turns++;
    this.#parent = parent;
    this.#trace("started", `by server ${parent}`);
    this.#life = new SchedLife({
      world: this.#world,
      random: this.#random,
      name: this.name,
      pid: this.pid,
      parent,
      directory: this.#directory,
      options: this.#options,
      left: (stopped) => this.#end({ code: 0, signal: null }, stopped),
    });
    this.#life.start();
  }

  kill(): void {
    this.#end({ code: null, signal: "SIGKILL" }, false);
  }

  /** Takes a link that the server has made. */
  accept(link: SchedLink): void {
    this.#life?.accept(link);
  }

  /** Sends SIGTERM, as the parent does. */
  stop(): void {
    const life = this.#life;
    if (life === null) return;
    life.leave(true);
    this.#world.after(KILL_AFTER_MS, () => {
      if (life === this.#life) this.#end({ code: null, signal: "SIGKILL" }, true);
    });
  }

  /** Stops the process (SIGSTOP) for that time. */
  pause(for_ms: number): void {
    const life = this.#life;
    if (life === null || this.#paused_ms !== null) return;
    this.#trace("stopped", `for ${for_ms} ms`);
    this.#paused_ms = this.#world.now_ms;
    life.thread.stop();
    this.#world.after(for_ms, () => {
      if (life === this.#life) this.#goOn();
    });
  }

  /** Removes the fault of the directory, and continues the process if it is stopped. */
  behave(): void {
    if (this.#directory.fault !== null) this.report(null);
    this.#goOn();
  }

  /** Makes the check of the scheduler's directory fail with this text from now on, and sends SIGHUP to the process. fault null: the check succeeds again. */
  report(fault: string | null): void {
    this.#directory.fault = fault;
    this.#life?.reread();
  }

  #goOn(): void {
    if (this.#life === null || this.#paused_ms === null) return;
    this.#trace("goes-on", `after ${this.#world.now_ms - this.#paused_ms} ms`);
    this.#paused_ms = null;
    this.#life.thread.goOn();
  }

  #end(how: { readonly code: number | null; readonly signal: string | null }, stopped: boolean): void {
    const life = this.#life;
    if (life === null) return;
    this.#trace("ended", how);
    const end: SchedEnd = { ...how, stopped, pid: this.pid };
    this.#life = null;
    this.#turns++;
    this.#paused_ms = null;
    life.kill();
    const parent = this.#parent;
    this.#world.after(this.#random.int(0, 20), () => this.#options.ended(this.name, parent, end));
  }

  #trace(what: string, detail: unknown): void {
    this.#world.trace.add(`sched:${this.name}`, what, detail);
  }
}

type LifeOptions = {
  readonly world: World;
  readonly random: Prng;
  readonly name: string;
  readonly pid: number;
  readonly parent: number;
  readonly directory: SchedDirectory;
  readonly options: SchedOptions;
  /** Called when the process has ended by itself. stopped: because of SIGTERM. */
  left(stopped: boolean): void;
};

/** One process of a scheduler, from its start to its end. */
class SchedLife {
  readonly #self: LifeOptions;
  readonly #clock: SchedClock;
  readonly thread: BusyThread;
  readonly driver: SchedDriver;
  #link: SchedLink | null = null;
  #is_leaving = false;
  #is_closed = false;

  constructor(self: LifeOptions) {
    this.#self = self;
    this.thread = new BusyThread(self.world);
    this.#clock = new SchedClock(self.world, self.random, this.thread);
    this.driver = new SchedDriver(this.#ports(), { name: self.name, pid: self.pid, version: "sim" });
  }

  get isIdle(): boolean {
    return this.#link !== null && this.driver.isIdle && this.thread.isFree;
  }

  start(): void {
    this.driver.start();
    this.#connectIn(this.#self.random.int(1, 200));
  }

  /** Takes a link that the server has made. The server no longer uses a former link. */
  accept(link: SchedLink): void {
    this.#listen(link);
    this.thread.do(() => {
      if (this.#is_closed || !link.open) return;
      if (this.#link !== null) {
        this.#link.close();
        this.driver.lost("the server has connected again");
      }
      this.#link = link;
      this.driver.opened();
    });
  }

  /** Lets the process end itself, because of SIGTERM or because the server has sent quit. */
  leave(stopped: boolean): void {
    this.thread.do(() => {
      if (this.#is_leaving) return;
      this.#is_leaving = true;
      this.driver.leave(() => this.thread.send(() => this.#self.left(stopped)));
    });
  }

  reread(): void {
    this.thread.do(() => this.driver.reread(SIGHUP));
  }

  kill(): void {
    this.thread.kill();
    this.#link?.close();
  }

  #ports(): SchedPorts {
    const { world, random, name, directory, options } = this.#self;
    const clock = this.#clock;
    return {
      clock,
      link: this.#linkPort(),
      directories: {
        sched_priv: "sched_priv",
        follow: () => ({ fault: directory.fault, moved: false }),
        release: () => undefined,
      },
      settings: { read: () => settingsOfBook(options.book), version: () => "" },
      usage: usagePort(directory),
      programs: { ask: (_programs, _space, _alarm_s, done) => done(new Map()), stop: () => undefined },
      modules: virtualModules((done) => clock.after(random.int(0, LOAD_MS_MAX), done)),
      log: {
        record(event, _class, object, text) {
          if ((event & TRACED) !== 0) world.trace.add(`sched:${name}`, "log", `${object} ${text}`);
        },
        setMask: () => undefined,
        flush: () => undefined,
        reopen: () => undefined,
      },
      local: options.book.local,
      busy: (is_busy) => {
        if (!is_busy) this.thread.work(clock.spent_ms + random.int(0, options.cycle_ms_max));
      },
      quit: () => this.leave(false),
    };
  }

  #linkPort(): LinkPort {
    return {
      send: <T extends keyof SchedToServer>(type: T, data: SchedToServer[T]) =>
        this.thread.send(() => this.#link?.send(type as never, data as never)),
      // In the simulation no frame is lost unless its connection is lost. A scheduler that does not understand its server
      // therefore shows a fault.
      reconnect: (why) =>
        why === "broken" ? fail(`scheduler ${this.#self.name} does not understand the server`) : this.thread.send(() => this.#reconnect()),
      close: () =>
        this.thread.send(() => {
          this.#is_closed = true;
          this.#link?.close();
          this.#link = null;
        }),
    };
  }

  #connect(): void {
    if (this.#is_closed) return;
    const { name, pid, parent, options } = this.#self;
    const link = options.dial?.(name, pid, parent) ?? null;
    this.#link = link;
    if (link === null) {
      this.driver.unreachable("nobody listens");
      return this.#connectIn(RECONNECT_MS);
    }
    this.#listen(link);
    this.driver.opened();
  }

  /** Connects after a delay, if it is the scheduler that connects. */
  #connectIn(delay_ms: number): void {
    if (this.#self.options.dial !== null) this.#clock.after(delay_ms, () => this.#connect());
  }

  #listen(link: SchedLink): void {
    link.listen({
      receive: ({ type, data }) =>
        this.thread.do(() => {
          if (link === this.#link) this.driver.frame(type, data);
        }),
      lost: () => this.thread.do(() => this.#lost(link, "the connection is gone")),
    });
  }

  #reconnect(): void {
    const link = this.#link;
    if (link === null) return;
    link.close();
    this.#clock.soon(() => this.#lost(link, "the connection was ended"));
  }

  #lost(link: SchedLink, why: string): void {
    if (link !== this.#link) return;
    const { world, name, random } = this.#self;
    world.trace.add(`sched:${name}`, "link-lost");
    this.#link = null;
    this.driver.lost(why);
    this.#connectIn(random.int(0, RECONNECT_MS));
  }
}

/** The clock of a process. Each time it is read during one event it shows a later time, because work takes time. */
class SchedClock implements ClockPort {
  readonly #world: World;
  readonly #random: Prng;
  readonly #thread: BusyThread;
  #step = -1;
  #look_ms = 0;
  #spent_ms = 0;
  #last_ms = 0;

  constructor(world: World, random: Prng, thread: BusyThread) {
    this.#world = world;
    this.#random = random;
    this.#thread = thread;
  }

  /** The time that the work in this event has taken so far. */
  get spent_ms(): number {
    return this.#step === this.#world.step ? this.#spent_ms : 0;
  }

  wall_ms = (): number => this.#world.wall_ms;

  steady_ms = (): number => {
    if (this.#world.step !== this.#step) {
      this.#step = this.#world.step;
      this.#look_ms = this.#random.pick([0, 0, 0.1, 2, 15, 100, 300]);
      this.#spent_ms = 0;
    }
    this.#spent_ms = Math.min(WORK_MS_MAX, this.#spent_ms + this.#look_ms);
    this.#last_ms = Math.max(this.#last_ms, this.#world.now_ms + this.#spent_ms);
    return this.#last_ms;
  };

  after(delay_ms: number, work: () => void): () => void {
    let is_on = true;
    this.#world.after(delay_ms, () =>
      this.#thread.do(() => {
        if (is_on) work();
      }),
    );
    return () => {
      is_on = false;
    };
  }

  soon(work: () => void): void {
    this.after(0, work);
  }
}

/** Makes settings from a policy book, without files. */
export function settingsOfBook(book: PolicyBook): Settings {
  const { modules, module_options = new Map() } = book;
  const chain = { modules, site_modules: [], wrong_modules: [], module_options, module_alarm_s: 0, module_work_alarm_s: 0 };
  return { book, chain, messages: [] };
}

/** Makes a port to modules with only the built-in ones. soon: called when a chain is to be created; it must call `done` later. */
export function virtualModules(soon: (done: () => void) => void): ModulesPort {
  const none: ReturnType<ModulesPort["policies"]> = new Map();
  return {
    load: (_chain, done) => soon(done),
    policies: () => none,
    forgive: () => undefined,
    cycleOver: () => undefined,
    problem: () => null,
    shutdown: (done) => done(),
  };
}

/** Makes a port to the file `usage` of a directory. In a simulation, pbsfs never changes this file. */
function usagePort(directory: SchedDirectory): UsagePort {
  return {
    read: () => directory.usage,
    write(_sched_priv, text) {
      directory.usage = text;
    },
    setAside: () => undefined,
    isTouched: () => false,
    clearTouch: () => undefined,
  };
}

// The scheduler of the daemon: its driver (../driver/sched-driver.ts) with ports to this machine.

import { pid } from "node:process";
import { LOG_EVENT } from "#support/log-event.ts";
import type { ClockPort, LogPort, ModulesPort, ProgramsPort, SchedPorts } from "../driver/ports.ts";
import { SchedDriver } from "../driver/sched-driver.ts";
import { type DirectoryOptions, schedDirectories } from "./directories.ts";
import { dynPrograms } from "./dyn-programs.ts";
import { MACHINE_TIME } from "./machine-time.ts";
import { type HostOptions, ModuleHost } from "./module-host.ts";
import { moduleWatch } from "./module-watch.ts";
import type { ServerWay } from "./server-way.ts";
import { readSettings, versionOfFiles } from "./settings.ts";
import { USAGE_FILE } from "./usage-file.ts";

export type SchedulerOptions = DirectoryOptions & {
  readonly name: string;
  readonly way: ServerWay;
  readonly version: string;
  /** the user as whom this process runs, if the server is on another host */
  readonly user?: string;
};

export class Scheduler {
  readonly #driver: SchedDriver;
  #toldToQuit = (): void => undefined;
  /** resolves when the server has sent quit */
  readonly quit = new Promise<void>((resolve) => {
    this.#toldToQuit = resolve;
  });

  /** Starts the scheduler: it gets a connection with the server, and a new one after each loss, until leave() is called. */
  constructor(options: SchedulerOptions) {
    const { name, version, user } = options;
    this.#driver = new SchedDriver(this.#ports(options), { name, pid, version, ...(user === undefined ? {} : { user }) });
    this.#driver.start();
  }

  /** Handles SIGHUP: reads the files again and reopens the log. */
  reread(signal: number): void {
    this.#driver.reread(signal);
  }

  /** Ends the scheduler on SIGTERM or SIGINT. Resolves when the present cycle has ended. */
  leave(): Promise<void> {
    return new Promise((resolve) => this.#driver.leave(resolve));
  }

  #ports(options: SchedulerOptions): SchedPorts {
    const { log } = options;
    const directories = schedDirectories(options);
    const watch = moduleWatch((text) => log.record(LOG_EVENT.ERROR, "Sched", "modules", text));
    const host = new ModuleHost({
      watch,
      world: {
        sched: options.name,
        sched_priv: () => directories.sched_priv,
        sched_log: () => directories.sched_log,
        wake: () => this.#driver.wake(),
        now_ms: () => Date.now(),
        log_file: { path: () => log.path, fixed: options.fixed_log, reopen: () => log.reopen() },
      },
      record: (event, object, text) => log.record(event, "Sched", object, text),
      onProblem: (problem) => this.#driver.moduleProblem(problem),
      onChange: () => this.#driver.modulesChanged(),
    } satisfies HostOptions);
    return {
      clock: MACHINE_CLOCK,
      link: options.way({
        opened: () => this.#driver.opened(),
        frame: (type, data) => this.#driver.frame(type, data),
        lost: (why) => this.#driver.lost(why),
        unreachable: (why) => this.#driver.unreachable(why),
      }),
      directories,
      settings: { read: readSettings, version: versionOfFiles },
      usage: USAGE_FILE,
      programs: programsPort((event, object, text) => log.record(event, "Svr", object, text)),
      modules: modulesPort(host),
      log: logPort(log),
      local: MACHINE_TIME,
      busy: (is_busy) => watch.busy(is_busy),
      quit: () => this.#toldToQuit(),
    };
  }
}

const MACHINE_CLOCK: ClockPort = {
  wall_ms: () => Date.now(),
  steady_ms: () => performance.now(),
  after(delay_ms, work) {
    const timer = setTimeout(work, delay_ms);
    return () => clearTimeout(timer);
  },
  soon: (work) => void setImmediate(work),
};

function logPort(log: SchedulerOptions["log"]): LogPort {
  return {
    record: (...record) => log.record(...record),
    setMask(mask) {
      log.mask = mask;
    },
    flush: () => log.flush(),
    reopen: () => log.reopen(),
  };
}

function programsPort(record: Parameters<typeof dynPrograms>[0]): ProgramsPort {
  const programs = dynPrograms(record);
  return {
    ask: (list, space, alarm_s, done) => void programs.ask(list, space, alarm_s).then(done),
    stop: () => programs.stop(),
  };
}

/** Returns the port to the modules. Chains are created one after the other. */
function modulesPort(host: ModuleHost): ModulesPort {
  let last: Promise<void> = Promise.resolve();
  return {
    load(chain, done) {
      last = last.then(() => host.load(chain)).then(done);
    },
    policies: () => host.policies(),
    forgive: () => host.forgive(),
    cycleOver: (report) => host.cycleOver(report),
    problem: () => host.problem(),
    shutdown: (done) => void host.shutdown().then(done),
  };
}

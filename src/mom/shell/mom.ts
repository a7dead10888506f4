// The mom's shell: implements the ports of its driver (../driver/ports.ts) on this machine, and handles the log and the signals of the process.

import { existsSync } from "node:fs";
import { revokedSerials } from "#identity/files/revoked.ts";
import { frameTypes } from "#protocol/schema-link.ts";
import { messageOf } from "#support/caught.ts";
import { steady_ms } from "#support/clock.ts";
import type { Conf } from "#support/conf.ts";
import { LOG_EVENT, type Log, openLog } from "#support/log.ts";
import { systemUsers } from "#support/passwd.ts";
import { type KeptProcess, keepProcess } from "#support/process/kept-process.ts";
import type { MomSettings } from "../config/config.ts";
import type { MomOptions } from "../config/options.ts";
import { MomDriver } from "../driver/mom-driver.ts";
import type { ClockPort, DiskPort, HostPort, MomPorts, RunnerIdentity, ScriptsPort, SetupPort, TasksPort } from "../driver/ports.ts";
import { bootId, hostFacts } from "../host/facts.ts";
import { measureHost, processOwners } from "../host/measure.ts";
import { ownersOf } from "../host/owners.ts";
import { signalQuietly } from "../host/session-end.ts";
import { siblingProgram } from "../host/sibling.ts";
import { look } from "../host/usage-look.ts";
import { deviceVariables } from "../job/environment.ts";
import { foundCheckpoints, removeCheckpoint, runAction } from "./action-run.ts";
import { agentPort } from "./agent-port.ts";
import { momHookShell } from "./hook-shell.ts";
import { foundKept, noteKept } from "./kept-notes.ts";
import { OtherMoms } from "./other-moms.ts";
import { recordFile } from "./record-file.ts";
import { runScript } from "./script-run.ts";
import { serverPorts } from "./server-port.ts";
import { makeDirectories, momConfig, readSettings, vnodeReporter } from "./setup.ts";
import { siteReader } from "./site-resources.ts";
import { starterPort } from "./starter-port.ts";
import { carryOutput, removeOldOffsets } from "./task-output.ts";
import { ownCredentials, TaskPort } from "./task-port.ts";
import { TaskServer } from "./task-server.ts";

/** A mom that runs in this process. The caller must hold mom.lock. */
export class Mom {
  /** resolves when the jobs are known and the mom begins to connect to the server */
  readonly ready: Promise<void>;
  /** resolves with the exit status when the mom has ended */
  readonly ended: Promise<number>;

  readonly #conf: Conf;
  readonly #options: MomOptions;
  readonly #is_runner: boolean;
  readonly #home: string;
  readonly #log: Log;
  readonly #driver: MomDriver;
  readonly #isReady = Promise.withResolvers<void>();
  readonly #hasEnded = Promise.withResolvers<number>();

  /** Prepares a mom. runner: it is a runner of a backend. Throws MomStartError if its configuration cannot be used. */
  constructor(conf: Conf, options: MomOptions, runner: RunnerIdentity | null = null) {
    this.#conf = conf;
    this.#options = options;
    this.#is_runner = runner !== null;
    this.#home = options.home ?? conf.mom_home;
    this.ready = this.#isReady.promise;
    this.ended = this.#hasEnded.promise;
    makeDirectories(this.#home, conf.mode);
    const notes: string[] = [];
    const settings = this.#readSettings((text) => notes.push(text));
    this.#log = this.#openLog(settings);
    for (const text of notes) this.#note(text);
    const identity = {
      host: conf.mom_node_name,
      port: this.#port,
      pid: process.pid,
      is_system: conf.mode === "system",
      alarm_s: options.alarm_s,
      runner,
    };
    this.#driver = new MomDriver(this.#ports(), identity, settings);
    this.#takeSignals();
    this.#driver.start();
  }

  get #port(): number {
    return this.#options.port ?? this.#conf.port.mom;
  }

  readonly #note = (text: string, event: number = LOG_EVENT.SYSTEM): void => this.#log.record(event, "Svr", "pbs_mom", text);
  readonly #fault = (text: string): void => this.#note(text, LOG_EVENT.ERROR);

  #readSettings(note: (text: string) => void): MomSettings {
    return readSettings(this.#options.config ?? `${this.#home}/mom_priv/config`, note, this.#conf.mode === "system");
  }

  #openLog(settings: MomSettings): Log {
    const { mom_node_name, log_highres } = this.#conf;
    return openLog({
      dir: `${this.#home}/mom_logs`,
      daemon: "pbs_mom",
      mask: settings.logevent,
      highres: log_highres,
      header: [`hostname=${mom_node_name};pbs_leaf_name=N/A;pbs_mom_node_name=${mom_node_name}`],
      ...(this.#options.log === null ? {} : { file: this.#options.log }),
    });
  }

  #takeSignals(): void {
    process.on("SIGHUP", () => this.#driver.reread());
    process.on("SIGTERM", () => {
      if (this.#is_runner) {
        // The backend takes the runner away, which is no fault of its job. The starter ends the job together with this process, and the server runs it again.
        this.#note("caught signal SIGTERM: the runner ends");
        return this.#driver.stop("leave");
      }
      this.#note("caught signal SIGTERM: jobs are killed");
      this.#driver.stop("kill");
    });
    process.on("SIGINT", () => this.#driver.stop("leave"));
    for (const signal of ["SIGUSR1", "SIGUSR2", "SIGPIPE"] as const) process.on(signal, () => undefined);
  }

  // --- ports

  #ports(): MomPorts {
    const log = this.#log;
    const priv = `${this.#home}/mom_priv`;
    return {
      clock: CLOCK,
      ...serverPorts(this.#conf, priv, this.#fault),
      starter: starterPort(priv, this.#is_runner),
      agent: agentPort(this.#fault),
      disk: this.#diskPort(priv),
      scripts: this.#scriptsPort(priv),
      hooks: momHookShell(`${priv}/hooks`, this.#conf, this.#fault),
      tasks: this.#tasksPort(),
      host: this.#hostPort(),
      setup: this.#setupPort(priv),
      log: {
        record: log.record.bind(log),
        setMask: (mask) => {
          log.mask = mask;
        },
        reopen: () => log.reopen(),
        close: () => log.close(),
      },
      ready: () => this.#isReady.resolve(),
      ended: () => this.#hasEnded.resolve(0),
    };
  }

  #diskPort(priv: string): DiskPort {
    const home = this.#home;
    return {
      records: recordFile(`${priv}/jobs/records`),
      foundCheckpoints,
      removeCheckpoint: (path, done) =>
        void removeCheckpoint(path).then(
          () => done(null),
          (error: unknown) => done(messageOf(error)),
        ),
      foundKept: () => foundKept(home),
      noteKept: (job, kept) => noteKept(home, job, kept),
    };
  }

  #scriptsPort(priv: string): ScriptsPort {
    const system = this.#conf.mode === "system";
    return {
      run: (action, running, done) => void runScript(`${priv}/${action.script}`, system, action, running).then(done),
      act: (action, done) => void runAction(action).then(done),
    };
  }

  #tasksPort(): TasksPort {
    const home = this.#home;
    return {
      open: (state, happen) => {
        const { mode, home: complex_home, own_server, server_host } = this.#conf;
        const complain = this.#fault;
        const others = new OtherMoms({
          credentials: () => ownCredentials(complex_home),
          revoked: () => revokedSerials(complex_home),
          server_host,
          server: own_server,
        });
        const server = new TaskServer({ home, mode, happen, complain, others });
        const port = new TaskPort({
          ...server.handlers,
          home: complex_home,
          port: this.#port,
          server: own_server,
          types: frameTypes("task-to-mom"),
          complain,
          reviewed: () => others.review(),
        });
        const files = this.#fileServer();
        const output = carryOutput(home, state, others, complain);
        removeOldOffsets(home, state);
        return {
          path: server.path,
          say: (asked, answer) => server.say(asked, answer),
          forward: (action) => server.forward(action),
          drain: (job, then) => void output.drain(job).then(() => then()),
          drainLast: (job, then) => void output.drainLast(job).then(then),
          tick() {
            port.look();
            output.tick();
          },
          close() {
            server.close();
            port.close();
            others.close();
            files.close();
          },
        };
      },
    };
  }

  /** Runs pbs_file_server if this host has an identity. If several moms run on this host, only the mom with the PBS_HOME of pbs.conf runs it. */
  #fileServer(): KeptProcess {
    const { home, servers, own_server, port, mode } = this.#conf;
    return keepProcess({
      program: siblingProgram("file-server"),
      name: "pbs_file_server",
      order: { home, servers, server: own_server, mode, port: port.manager },
      isWanted: () => this.#home === home && existsSync(`${home}/identity/host.pem`),
      say: this.#fault,
    });
  }

  #hostPort(): HostPort {
    const users = systemUsers();
    const site_reader = siteReader(this.#fault);
    return {
      measure: (with_keyboard) => measureHost(with_keyboard, Date.now()),
      look,
      processes: processOwners,
      uidOf: (user) => users.userByName(user)?.uid ?? null,
      kill: (pid) => signalQuietly(pid, "SIGKILL"),
      readSite: (site, alarm_s, done) => void site_reader.read(site, alarm_s).then(done),
      ownerOf: ownersOf(this.#conf.mode),
    };
  }

  #setupPort(priv: string): SetupPort {
    const boot = bootId();
    const vnodes = vnodeReporter(
      { directory: `${priv}/config.d`, system: this.#conf.mode === "system" },
      hostFacts(this.#conf.mom_node_name),
      this.#note,
    );
    return {
      settings: (note) => this.#readSettings(note),
      config: (settings) => {
        const config = momConfig(this.#conf, this.#home, settings, this.#options, boot);
        return this.#is_runner ? { ...config, facts: { ...config.facts, devices: deviceVariables(process.env) } } : config;
      },
      vnodes: ({ vnodedef_additive }) => vnodes.read(vnodedef_additive),
    };
  }
}

const CLOCK: ClockPort = {
  wall_ms: Date.now,
  steady_ms,
  after(delay_ms, work) {
    const timer = setTimeout(work, delay_ms);
    return () => clearTimeout(timer);
  },
  soon: (work) => void setImmediate(work),
  atEnd: queueMicrotask,
};

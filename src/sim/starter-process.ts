// The parent process of a host's jobs, like src/mom/starter/starter.ts (with its invariants S1-S4), but its processes are
// simulated: they run for a time and end with a status that the seed gives. When the starter is killed, its journal stays,
// and its processes continue until the next starter kills them.

import { JOB_EXEC } from "#model/exit-status.ts";
import { LeaseWatch } from "#mom/job/lease-watch.ts";
import type { WaitStatus } from "#mom/job/process.ts";
import { PLACEHOLDER } from "#mom/job/sister.ts";
import type { ExitedRun, MomToStarter, RunKey, StartedRun, StarterRun, StarterToMom, StartSpec } from "#mom/job/starter-link.ts";
import type { Prng } from "#support/prng.ts";
import { pipe, steadyMs, type World } from "./world.ts";

/** A process of a job as it really is, whatever starter and mom know. */
export type VirtualProcess = RunKey & {
  readonly host: string;
  readonly pid: number;
  readonly since_ms: number;
  stopped: boolean;
  ended: boolean;
  left_ms: number;
  goes_on_ms: number;
  turn: number;
};

export type Behaviour = {
  readonly run_ms: number;
  readonly exit_code: number;
  /** time in ms in which it ends after SIGTERM; null: it ignores SIGTERM */
  readonly term_ms: number | null;
  /** cpu seconds that it uses per second */
  readonly load: number;
  /** for an interactive job: whether qsub refuses the relay, and the time in ms after which the terminal is lost; null: it stays */
  readonly terminal: { readonly refused: boolean; readonly goes_ms: number | null };
  /** why the program cannot be started: a code of docs/reference/execution.md 6, or 254; null: it can */
  readonly start_failure: number | null;
};

export type StarterOptions = {
  readonly host: string;
  behaviour(job: string, run_count: number): Behaviour;
  /** interactive jobs whose relay has reached qsub, which accepts no second connection */
  readonly called: Set<string>;
  /** Called when a process starts, and when it ends, for the checks. */
  born(process: VirtualProcess): void;
  died(process: VirtualProcess): void;
};

type Told = { [T in keyof StarterToMom]: { readonly type: T; readonly data: StarterToMom[T] } }[keyof StarterToMom];
type Asked = { [T in keyof MomToStarter]: [type: T, data: MomToStarter[T]] }[keyof MomToStarter];
type Journal = { readonly runs: Map<string, StarterRun>; readonly last: Map<string, number> };

/** Exit_status of an interactive job that cannot reach its qsub. */
const NO_TERMINAL = -1;
const KILLED: WaitStatus = { signal: 9 };
const PLACE_MS = 1e12;

/** The starter of a host. It exchanges frames with its mom. In each direction frames stay in order and arrive after a few milliseconds. */
export class StarterProcess {
  readonly #world: World;
  readonly #options: StarterOptions;
  readonly #random: Prng;
  readonly #who: string;
  readonly #journal: Journal = { runs: new Map(), last: new Map() };
  readonly #processes = new Map<string, VirtualProcess>();
  /** exits that are not in the journal yet, so that the mom must not be told of them (S1) */
  readonly #unwritten = new Set<string>();
  readonly #out: (act: () => void) => void;
  readonly #into: (act: () => void) => void;
  #life = 0;
  #alive = false;
  #tell: ((frame: Told) => void) | null = null;
  /** passes frames to a mom that is connected and has not said hello yet; null: there is no such mom */
  #guest: ((frame: Told) => void) | null = null;
  #lost: (() => void) | null = null;
  #next_pid = 100;
  #leases = new LeaseWatch();

  constructor(world: World, options: StarterOptions) {
    this.#world = world;
    this.#options = options;
    this.#who = `starter:${options.host}`;
    this.#random = world.random.split(`starter/${options.host}`);
    this.#out = pipe(world, this.#random, 3);
    this.#into = pipe(world, this.#random, 3);
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Starts a starter, which kills the processes that an earlier one left. */
  start(): void {
    if (this.#alive) return;
    this.#life++;
    this.#unwritten.clear();
    this.#leases = new LeaseWatch();
    this.#world.trace.add(this.#who, "started");
    this.#killProcesses();
    this.#alive = true;
    const { runs } = this.#journal;
    for (const run of [...runs.values()]) {
      if (run.state !== "running") continue;
      const { job, run_count, pid, at_ms } = run;
      runs.set(job, { job, run_count, pid, at_ms, state: "lost" });
    }
  }

  kill(): void {
    if (!this.#alive) return;
    this.#world.trace.add(this.#who, "killed");
    this.#alive = false;
    this.#life++;
    const lost = this.#lost;
    this.detach();
    if (lost !== null) this.#world.after(this.#random.int(0, 5), lost);
  }

  /** Ends the starter if it has no job. */
  #quit(): void {
    if ([...this.#journal.runs.values()].some(({ state }) => state === "running")) return;
    this.#world.trace.add(this.#who, "quit");
    this.#alive = false;
    this.#life++;
    this.detach();
  }

  /** Kills the starter and all processes of jobs, as when the host goes down. */
  reboot(): void {
    this.kill();
    this.#killProcesses();
  }

  #killProcesses(): void {
    for (const process of [...this.#processes.values()]) this.#die(process, KILLED);
  }

  /** Connects a mom. lost: called when the starter dies. tell: called with each frame after the mom's hello. */
  attach(lost: () => void, tell: (frame: Told) => void): void {
    this.#tell = null;
    this.#guest = tell;
    this.#lost = lost;
  }

  #welcome(): void {
    this.#tell = this.#guest;
    const runs = [...this.#journal.runs.values()].map(
      (run): StarterRun => (this.#unwritten.has(run.job) && run.state === "ended" ? { ...run, state: "running" } : run),
    );
    const last = [...this.#journal.last].map(([job, run_count]) => ({ job, run_count }));
    const { lease } = this.#leases;
    const data = { pid: this.#life, runs, last, pongs: true, leases: true, ...(lease === null ? {} : { lease }) } as const;
    this.#send({ type: "starter-state", data });
  }

  /** Called when the mom has gone. */
  detach(): void {
    this.#tell = null;
    this.#guest = null;
    this.#lost = null;
  }

  take<T extends keyof MomToStarter>(type: T, data: MomToStarter[T]): void;
  take(...[type, data]: Asked): void {
    const life = this.#life;
    this.#into(() => {
      if (life !== this.#life || !this.#alive) return;
      switch (type) {
        case "starter-hello":
          this.#welcome();
          break;
        case "starter-ping":
          this.#send({ type: "starter-pong", data: {} });
          break;
        case "starter-quit":
          this.#quit();
          break;
        case "starter-start":
          for (const spec of data.runs) this.#startRun(spec);
          break;
        case "starter-lease":
          this.#leases.take(data);
          this.#awaitLease();
          break;
        case "starter-signal":
          for (const request of data.runs) this.#signal(request);
          break;
        case "starter-forget":
          for (const key of data.runs) this.#forget(key);
          break;
      }
    });
  }

  /** Returns the pids of living processes with their cpu seconds. */
  samples(): { readonly pid: number; readonly cput_s: number }[] {
    return [...this.#processes.values()].map((process) => ({ pid: process.pid, cput_s: this.#cputOf(process) }));
  }

  #send(frame: Told): void {
    const to = this.#tell;
    if (to === null) return;
    this.#out(() => {
      if (to === this.#tell) to(frame);
    });
  }

  // --- the lease

  #awaitLease(): void {
    const next_ms = this.#leases.next_ms();
    if (next_ms !== null) this.#world.after(Math.max(0, next_ms - steadyMs(this.#world)), () => this.#endOverdue());
  }

  #endOverdue(): void {
    if (!this.#alive) return;
    for (const run of this.#leases.overdue(steadyMs(this.#world), (run) => this.#processes.get(run.job)?.run_count === run.run_count))
      this.#signal({ ...run, signal: 9 });
  }

  // --- jobs

  #startRun({ job, run_count, path, terminal, until_ms }: StartSpec): void {
    const { called } = this.#options;
    const known = this.#journal.runs.get(job);
    if (known !== undefined && known.run_count >= run_count) return;
    const at_ms = steadyMs(this.#world);
    const drawn = this.#options.behaviour(job, run_count);
    // The placeholder that stands for the job on a sister runs until it is removed.
    const behaviour = path === PLACEHOLDER ? { ...drawn, run_ms: PLACE_MS } : drawn;
    const unreached = terminal !== null && (behaviour.terminal.refused || called.has(job)) ? NO_TERMINAL : null;
    const late = until_ms !== undefined && at_ms >= until_ms ? JOB_EXEC.RETRY : null;
    const exit_status = late ?? behaviour.start_failure ?? unreached;
    if (exit_status !== null) {
      this.#send({ type: "starter-failed", data: { runs: [{ job, run_count, exit_status, text: "cannot be started", at_ms }] } });
      return;
    }
    if (terminal !== null) called.add(job);
    const process = this.#launch({ job, run_count }, behaviour);
    const run = { job, run_count, pid: process.pid, at_ms, ...(terminal === null ? {} : { terminal: `/dev/pts/${process.pid}` }) };
    this.#journal.runs.set(job, { ...run, state: "running" });
    this.#send({ type: "starter-started", data: { runs: [run] } });
    if (until_ms !== undefined) {
      this.#leases.add({ job, run_count, until_ms });
      this.#awaitLease();
    }
    const { goes_ms } = behaviour.terminal;
    if (terminal !== null && goes_ms !== null) this.#world.after(goes_ms, () => this.#hangUp(process));
  }

  #launch(key: RunKey, { run_ms, exit_code }: Behaviour): VirtualProcess {
    const { now_ms } = this.#world;
    const process: VirtualProcess = {
      ...key,
      host: this.#options.host,
      pid: this.#next_pid++,
      since_ms: now_ms,
      stopped: false,
      ended: false,
      left_ms: run_ms,
      goes_on_ms: now_ms,
      turn: 0,
    };
    this.#processes.set(key.job, process);
    this.#world.trace.add(this.#who, "process-born", `${key.job} run ${key.run_count} pid ${process.pid} for ${run_ms} ms`);
    this.#options.born(process);
    this.#goOn(process, exit_code);
    return process;
  }

  /** Called when the terminal of a job is lost. */
  #hangUp(process: VirtualProcess): void {
    const run = this.#journal.runs.get(process.job);
    if (!this.#alive || process.ended || run?.pid !== process.pid || run.state !== "running") return;
    this.#world.trace.add(this.#who, "hung-up", process.job);
    this.#journal.runs.set(process.job, { ...run, hung_up: true });
    this.#send({ type: "starter-hung-up", data: { runs: [{ job: process.job, run_count: process.run_count }] } });
  }

  #forget({ job, run_count }: RunKey): void {
    const { runs, last } = this.#journal;
    const run = runs.get(job);
    if (run?.run_count === run_count && run.state === "running") return;
    if (run?.run_count === run_count) runs.delete(job);
    last.set(job, Math.max(run_count, last.get(job) ?? 0));
  }

  // --- processes

  /** Lets the process run and end when its time is over, unless it is stopped before. */
  #goOn(process: VirtualProcess, code: number): void {
    process.goes_on_ms = this.#world.now_ms;
    const turn = ++process.turn;
    this.#world.after(process.left_ms, () => {
      if (turn === process.turn) this.#die(process, { code });
    });
  }

  #die(process: VirtualProcess, status: WaitStatus): void {
    if (process.ended) return;
    const { job, run_count } = process;
    process.ended = true;
    process.turn++;
    if (this.#processes.get(job) === process) this.#processes.delete(job);
    this.#world.trace.add(this.#who, "process-died", `${job} run ${run_count} ${JSON.stringify(status)}`);
    this.#options.died(process);
    const run = this.#journal.runs.get(job);
    // The starter that should have waited for the process is dead, so nobody knows its exit status.
    if (!this.#alive || run?.run_count !== run_count || run.state !== "running" || run.pid !== process.pid) return;
    const cut_off = "signal" in status && this.#leases.isCutOff({ job, run_count }) ? { cut_off: true as const } : {};
    this.#writeExit(run, { job, run_count, status, cput_s: this.#cputOf(process), at_ms: steadyMs(this.#world), ...cut_off });
  }

  #writeExit({ job, run_count, pid, at_ms }: StartedRun, exit: ExitedRun): void {
    const life = this.#life;
    this.#unwritten.add(job);
    this.#world.after(this.#random.int(0, 10), () => {
      if (life !== this.#life) return;
      this.#unwritten.delete(job);
      this.#journal.runs.set(job, { job, run_count, pid, at_ms, state: "ended", exit });
      this.#send({ type: "starter-exited", data: { runs: [exit] } });
    });
  }

  #cputOf(process: VirtualProcess): number {
    const { load, run_ms } = this.#options.behaviour(process.job, process.run_count);
    const ran_ms = run_ms - process.left_ms + (process.stopped || process.ended ? 0 : this.#world.now_ms - process.goes_on_ms);
    return (Math.min(ran_ms, run_ms) / 1000) * load;
  }

  #signal({ job, run_count, signal }: RunKey & { readonly signal: number }): void {
    const process = this.#processes.get(job);
    if (process?.run_count !== run_count) return;
    this.#world.trace.add(this.#who, "signal", `${job} ${signal}`);
    const { term_ms, exit_code } = this.#options.behaviour(job, run_count);
    switch (signal) {
      case 9:
        this.#world.after(this.#random.int(0, 30), () => this.#die(process, KILLED));
        break;
      case 1:
      case 15:
        if (term_ms !== null && !process.stopped) this.#world.after(term_ms, () => this.#die(process, { signal }));
        break;
      case 19:
        if (process.stopped) break;
        process.stopped = true;
        process.left_ms -= this.#world.now_ms - process.goes_on_ms;
        process.turn++;
        break;
      case 18:
        if (!process.stopped) break;
        process.stopped = false;
        this.#goOn(process, exit_code);
        break;
    }
  }
}

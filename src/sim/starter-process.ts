// The parent of a host's jobs, as src/mom/starter.ts is (its invariants S1-S3), over virtual processes: they run for a time and end with a status that the
// seed gives. Its journal outlives it; its processes do too, until the next starter kills them.

import type { WaitStatus } from "#mom/posix.ts";
import { PLACEHOLDER } from "#mom/sister.ts";
import type { ExitedRun, MomToStarter, RunKey, StarterRun, StarterToMom, StartSpec } from "#mom/starter-link.ts";
import { pipe, type World } from "./world.ts";

/** A job's processes as they really are. */
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
  /** how long it takes to end after SIGTERM; null: it does not care */
  readonly term_ms: number | null;
  /** cpu seconds per second */
  readonly load: number;
  /** of an interactive run: whether qsub is there, and after how long its terminal goes; null: it stays */
  readonly terminal: { readonly refused: boolean; readonly goes_ms: number | null };
  /** the program cannot be started: a code of docs/reference/execution.md 6 or 254 */
  readonly start_failure: number | null;
};

export type StarterOptions = {
  readonly host: string;
  behaviour(job: string, run_count: number): Behaviour;
  /** interactive jobs whose qsub has been reached: it listens no more */
  readonly called: Set<string>;
  /** a process begins or has ended, for the checks */
  born(process: VirtualProcess): void;
  died(process: VirtualProcess): void;
};

type Told = { [T in keyof StarterToMom]: { readonly type: T; readonly data: StarterToMom[T] } }[keyof StarterToMom];
type Journal = { readonly runs: Map<string, StarterRun>; readonly last: Map<string, number> };

export type StarterProcess = {
  readonly alive: boolean;
  /** a new one, which kills what an earlier one left running */
  start(): void;
  kill(): void;
  /** the host goes down: processes too, and the boot is another */
  reboot(): void;
  /** who hears from now on, and hears of this starter's death */
  attach(lost: () => void, tell: (frame: Told) => void): void;
  /** its mom has gone */
  detach(): void;
  take<T extends keyof MomToStarter>(type: T, data: MomToStarter[T]): void;
  /** cpu seconds and pid of living processes */
  samples(): { readonly pid: number; readonly cput_s: number }[];
};

/** Exit_status of a run that reaches no qsub */
const NO_TERMINAL = -1;
const KILLED: WaitStatus = { signal: 9 };
const PLACE_MS = 1e12;

export function createStarter(world: World, options: StarterOptions): StarterProcess {
  const random = world.random.split(`starter/${options.host}`);
  const who = `starter:${options.host}`;
  const journal: Journal = { runs: new Map(), last: new Map() };
  const processes = new Map<string, VirtualProcess>();
  let life = 0;
  let alive = false;
  let tell: ((frame: Told) => void) | null = null;
  let lost: (() => void) | null = null;
  let next_pid = 100;
  /** exits that are not in the journal yet: nobody hears of them (S1) */
  const unwritten = new Set<string>();

  const out = pipe(world, random, 3);
  const into = pipe(world, random, 3);
  const send = (frame: Told): void => {
    const to = tell;
    if (to === null) return;
    out(() => {
      if (to === tell) to(frame);
    });
  };

  const launch = (key: RunKey, at: Behaviour): VirtualProcess => {
    const process: VirtualProcess = {
      ...key,
      host: options.host,
      pid: next_pid++,
      since_ms: world.now_ms,
      stopped: false,
      ended: false,
      left_ms: at.run_ms,
      goes_on_ms: world.now_ms,
      turn: 0,
    };
    processes.set(key.job, process);
    world.trace.add(who, "process-born", `${key.job} run ${key.run_count} pid ${process.pid} for ${at.run_ms} ms`);
    options.born(process);
    goOn(process, { code: at.exit_code });
    return process;
  };

  /** Ends by itself when its time is over, unless it is stopped before. */
  const goOn = (process: VirtualProcess, status: WaitStatus): void => {
    process.goes_on_ms = world.now_ms;
    const turn = ++process.turn;
    world.after(process.left_ms, () => {
      if (turn === process.turn) die(process, status);
    });
  };

  const die = (process: VirtualProcess, status: WaitStatus): void => {
    if (process.ended) return;
    process.ended = true;
    process.turn++;
    if (processes.get(process.job) === process) processes.delete(process.job);
    world.trace.add(who, "process-died", `${process.job} run ${process.run_count} ${JSON.stringify(status)}`);
    options.died(process);
    const run = journal.runs.get(process.job);
    // The starter that would have waited for it is dead: nobody will ever know.
    if (!alive || run?.run_count !== process.run_count || run.state !== "running" || run.pid !== process.pid) return;
    const exit: ExitedRun = { job: process.job, run_count: process.run_count, status, cput_s: cputOf(process), at_ms: world.now_ms };
    const mine = life;
    unwritten.add(process.job);
    world.after(random.int(0, 10), () => {
      if (mine !== life) return;
      unwritten.delete(process.job);
      journal.runs.set(process.job, { job: run.job, run_count: run.run_count, pid: run.pid, at_ms: run.at_ms, state: "ended", exit });
      send({ type: "starter-exited", data: { runs: [exit] } });
    });
  };

  const cputOf = (process: VirtualProcess): number => {
    const { load, run_ms } = options.behaviour(process.job, process.run_count);
    const ran_ms = run_ms - process.left_ms + (process.stopped || process.ended ? 0 : world.now_ms - process.goes_on_ms);
    return (Math.min(ran_ms, run_ms) / 1000) * load;
  };

  const signal = ({ job, run_count, signal: number }: RunKey & { readonly signal: number }): void => {
    const process = processes.get(job);
    if (process?.run_count !== run_count) return;
    world.trace.add(who, "signal", `${job} ${number}`);
    const { term_ms } = options.behaviour(job, run_count);
    switch (number) {
      case 9:
        world.after(random.int(0, 30), () => die(process, KILLED));
        break;
      case 1:
      case 15:
        if (term_ms !== null && !process.stopped) world.after(term_ms, () => die(process, { signal: number }));
        break;
      case 19:
        if (process.stopped) break;
        process.stopped = true;
        process.left_ms -= world.now_ms - process.goes_on_ms;
        process.turn++;
        break;
      case 18:
        if (!process.stopped) break;
        process.stopped = false;
        goOn(process, { code: options.behaviour(job, run_count).exit_code });
        break;
    }
  };

  const startRuns = (runs: readonly StartSpec[]): void => {
    for (const { job, run_count, path, terminal } of runs) {
      const known = journal.runs.get(job);
      if (known !== undefined && known.run_count >= run_count) continue;
      // A sister's place stays until it is taken away.
      const drawn = options.behaviour(job, run_count);
      const behaviour = path === PLACEHOLDER ? { ...drawn, run_ms: PLACE_MS } : drawn;
      const start_failure =
        behaviour.start_failure ?? (terminal !== null && (behaviour.terminal.refused || options.called.has(job)) ? NO_TERMINAL : null);
      if (start_failure !== null) {
        send({
          type: "starter-failed",
          data: { runs: [{ job, run_count, exit_status: start_failure, text: "cannot be started", at_ms: world.now_ms }] },
        });
        continue;
      }
      if (terminal !== null) options.called.add(job);
      const process = launch({ job, run_count }, behaviour);
      const on = terminal === null ? {} : { terminal: `/dev/pts/${process.pid}` };
      const run = { job, run_count, pid: process.pid, at_ms: world.now_ms, ...on };
      journal.runs.set(job, { ...run, state: "running" });
      send({ type: "starter-started", data: { runs: [run] } });
      if (terminal !== null && behaviour.terminal.goes_ms !== null) world.after(behaviour.terminal.goes_ms, () => hangUp(process));
    }
  };

  /** The terminal of a run goes. */
  const hangUp = (process: VirtualProcess): void => {
    const run = journal.runs.get(process.job);
    if (!alive || process.ended || run?.pid !== process.pid || run.state !== "running") return;
    world.trace.add(who, "hung-up", process.job);
    journal.runs.set(process.job, { ...run, hung_up: true });
    send({ type: "starter-hung-up", data: { runs: [{ job: process.job, run_count: process.run_count }] } });
  };

  return {
    get alive() {
      return alive;
    },
    start() {
      if (alive) return;
      life++;
      unwritten.clear();
      world.trace.add(who, "started");
      for (const process of [...processes.values()]) die(process, KILLED);
      alive = true;
      for (const run of [...journal.runs.values()]) {
        if (run.state === "running")
          journal.runs.set(run.job, { job: run.job, run_count: run.run_count, pid: run.pid, at_ms: run.at_ms, state: "lost" });
      }
    },
    kill() {
      if (!alive) return;
      world.trace.add(who, "killed");
      alive = false;
      life++;
      tell = null;
      const told = lost;
      lost = null;
      if (told !== null) world.after(random.int(0, 5), told);
    },
    reboot() {
      this.kill();
      for (const process of [...processes.values()]) die(process, KILLED);
    },
    detach() {
      tell = null;
      lost = null;
    },
    attach(when_lost, to) {
      tell = to;
      lost = when_lost;
      const runs = [...journal.runs.values()].map(
        (run): StarterRun => (unwritten.has(run.job) && run.state === "ended" ? { ...run, state: "running" } : run),
      );
      send({ type: "starter-state", data: { pid: life, runs, last: [...journal.last].map(([job, run_count]) => ({ job, run_count })) } });
    },
    take(type, data) {
      const mine = life;
      into(() => {
        if (mine !== life || !alive) return;
        switch (type) {
          case "starter-start":
            startRuns((data as MomToStarter["starter-start"]).runs);
            break;
          case "starter-signal":
            for (const request of (data as MomToStarter["starter-signal"]).runs) signal(request);
            break;
          case "starter-forget":
            for (const key of (data as MomToStarter["starter-forget"]).runs) forget(key);
            break;
        }
      });
    },
    samples: () => [...processes.values()].map((process) => ({ pid: process.pid, cput_s: cputOf(process) })),
  };

  function forget(key: RunKey): void {
    const run = journal.runs.get(key.job);
    if (run?.run_count === key.run_count && run.state === "running") return;
    if (run?.run_count === key.run_count) journal.runs.delete(key.job);
    journal.last.set(key.job, Math.max(key.run_count, journal.last.get(key.job) ?? 0));
  }
}

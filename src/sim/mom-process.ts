// A mom as a process: the real core with a virtual starter and a virtual file agent. Records of jobs are on the host's disk and
// outlive the mom.
//
// The file agent does its work in the order of the requests. When it dies, unfinished requests are repeated
// (src/mom/job/agent-link.ts). Records and messages to the starter leave at the end of an event (src/mom/driver/mom-driver.ts): a mom
// that is killed during an event has sent some frames and written nothing.

import { runSequence } from "#hooks/run/hook-sequence.ts";
import type { Actions } from "#mom/config/action-script.ts";
import { stallWatch } from "#mom/driver/stall.ts";
import { NO_CPU_ENFORCEMENT } from "#mom/job/limits.ts";
import type { StarterToMom } from "#mom/job/starter-link.ts";
import { checkMomInvariants, helloJobs, makeMomState, reduce } from "#mom/run/core.ts";
import type { MomEvent } from "#mom/run/event.ts";
import { helloOutputs } from "#mom/run/kept-output.ts";
import type { MomAction, MomConfig, MomState, SavedRun } from "#mom/run/state.ts";
import type { MomHooks, MomJob, MomPatience, MomVnode } from "#protocol/mom-link.ts";
import type { FrameOf } from "#protocol/schema-link.ts";
import type { Prng } from "#support/prng.ts";
import { playAction, playHook, playScript } from "./drawn/hook-play.ts";
import type { Link } from "./network.ts";
import type { StarterProcess } from "./starter-process.ts";
import { pipe, type World } from "./world.ts";

const RECONNECT_MS = 1000;
const TICK_MS = 1000;
const SAMPLE_TICKS = 10;

/** Jobs on these hosts can be checkpointed and restarted. */
const ACTIONS: Actions = {
  terminate: { timeout_s: 5, words: ["/site/terminate", "%sid"] },
  checkpoint: { timeout_s: 10, words: ["/site/checkpoint", "%path"] },
  checkpoint_abort: { timeout_s: 10, words: ["/site/checkpoint", "%path"] },
  restart: { timeout_s: 0, words: ["/site/restart", "%path"] },
};

export type MomOptions = {
  readonly host: string;
  readonly vnodes: readonly MomVnode[];
  readonly starter: StarterProcess;
  /** the preparation of a job's files fails with this code (docs/reference/execution.md 6); null: it succeeds */
  prepareFailure(job: string, run_count: number): number | null;
  dial(host: string): Link<"mom-to-server", "server-to-mom"> | null;
};

export type MomProcess = {
  readonly host: string;
  readonly alive: boolean;
  readonly state: MomState | null;
  /**
   * The attributes of a job as this mom received them. For a killed mom they come from its record, because its starter may
   * still start the job.
   */
  attrsOf(job: string): MomJob["attrs"] | undefined;
  start(): void;
  kill(): void;
  /** kills the mom during its next event; it is started again after away_ms */
  killAtNextEvent(away_ms: number): void;
  /** stops the mom (SIGSTOP) for that time; its starter and its file agent continue */
  pause(for_ms: number): void;
  /** cancels killAtNextEvent(), and continues the mom if it is stopped */
  behave(): Promise<void>;
  killAgent(): void;
  /** restarts the host; starter and processes are killed too */
  reboot(): void;
};

type Told = { [T in keyof StarterToMom]: { readonly type: T; readonly data: StarterToMom[T] } }[keyof StarterToMom];
type Request = Extract<MomAction, { kind: "prepare" | "finish" }>;

/** $sister_join_job_alarm, $job_launch_delay, $max_poll_downtime: some are so short that they expire within a world. */
function patienceOf(random: Prng): MomPatience {
  const some = (values: readonly number[]): number | null => (random.chance(0.5) ? random.pick(values) : null);
  const [join_s, launch_s, downtime_s] = [some([1, 10]), some([1, 10]), some([1, 20, 60])];
  return {
    ...(join_s === null ? {} : { join_s }),
    ...(launch_s === null ? {} : { launch_s }),
    ...(downtime_s === null ? {} : { downtime_s }),
  };
}

export function createMomProcess(world: World, options: MomOptions): MomProcess {
  const { host, starter } = options;
  const random = world.random.split(`mom/${host}`);
  const who = `mom:${host}`;
  const patience = patienceOf(random.split("patience"));
  /** the disk: job records by job */
  const records = new Map<string, { readonly run_count: number; readonly text: string }>();
  let kept_hooks: MomHooks | null = null;
  let unwritten: SavedRun[] = [];
  let unsaid: (() => void)[] = [];
  let doomed: number | null = null;
  let boot = 1;
  let life = 0;
  let state: MomState | null = null;
  let link: ReturnType<MomOptions["dial"]> = null;
  let starter_lost = false;
  /** on the host's disk */
  const checkpoints = new Set<string>();
  const kept = new Set<string>();
  let asked: Request[] = [];
  let agent_life = 0;
  let agent_down = false;
  let toAgent = pipe(world, random, 20);
  let ticks = 0;
  let ticking = false;
  /** time since which the mom is stopped (SIGSTOP), and the events that wait */
  let paused_ms: number | null = null;
  let missed: (() => void | Promise<void>)[] = [];
  let silence_s = 45;

  const later = (delay_ms: number, act: () => void | Promise<void>): void => {
    const mine = life;
    world.after(delay_ms, () => awake(() => (mine === life ? act() : undefined)));
  };

  /** Acts now, or when the mom continues; waiting actions keep their order. */
  const awake = (act: () => void | Promise<void>): void | Promise<void> => {
    if (paused_ms === null) return act();
    missed.push(act);
  };

  /** The mom continues. After a long stop it contacts the server before it does anything else (src/mom/driver/stall.ts). */
  const goOn = async (): Promise<void> => {
    if (paused_ms === null) return;
    const stall = stallWatch(paused_ms);
    stall.setSilence(silence_s);
    const stood_ms = stall.look(world.now_ms);
    world.trace.add(who, "goes-on", `after ${world.now_ms - paused_ms} ms`);
    paused_ms = null;
    if (stood_ms > 0) startOver();
    for (const act of missed.splice(0)) await act();
  };

  /** Frames that still arrive on the old connection are ignored. */
  const startOver = (): void => {
    if (link === null) return;
    world.trace.add(who, "stood-still");
    link.close();
    link = null;
    tell({ kind: "disconnected" });
    later(random.int(0, RECONNECT_MS), connect);
  };

  const config = (): MomConfig => ({
    host,
    boot: String(boot),
    facts: {
      home: "/home/pbs",
      hosts: [host],
      tmpdir: "/tmp",
      jobdir_root: null,
      usecp: [],
      scp: [],
      port: 15002,
      site: [],
      commands: null,
    },
    cgroups: { track: false, enforce: new Set(), pids_max: 1 },
    cpus: [],
    enforce: { mem: false, cputmult: 1, wallmult: 1, cpu: NO_CPU_ENFORCEMENT },
    weights: { up: 0.4, down: 0.1 },
    suspend_signal: 19,
    resume_signal: 18,
    node: { load: { ideal: null, max: null }, suspend_on_load: false, kbd_idle: null, multinode_requeue: false },
    actions: ACTIONS,
    restart_transmogrify: false,
    checkpoint_path: "/pbs/checkpoint",
    own: { uid: 0, gid: 0 },
    prologalarm_s: 30,
    reject_root_scripts: false,
    tasks_max: 4096,
    server: "server",
    kill_found: false,
  });

  const tell = (event: MomEvent): void => {
    if (state === null) return;
    const mine = life;
    const actions = reduce(state, event, world.now_ms);
    const done = doomed !== null ? random.int(0, actions.length) : actions.length;
    for (const action of actions.slice(0, done)) {
      carryOut(action);
      if (mine !== life) return;
    }
    if (doomed !== null) {
      const away_ms = doomed;
      stop("killed in the midst of an event");
      world.after(away_ms, start);
      return;
    }
    flush();
    for (const say of unsaid.splice(0)) say();
    checkMomInvariants(state);
    watch();
  };

  const flush = (): void => {
    for (const record of unwritten.splice(0)) records.set(record.job.id, { run_count: record.job.run_count, text: JSON.stringify(record) });
  };

  const carryOut = (action: MomAction): void => {
    switch (action.kind) {
      case "hello":
        link?.send("mom-hello", {
          host,
          port: 15002,
          pid: 5000 + life,
          version: "sim",
          vnodes: options.vnodes,
          patience,
          jobs: helloJobs(state as MomState),
          ...(state?.hooks.digest ? { hooks: state.hooks.digest } : {}),
          ...(checkpoints.size === 0 ? {} : { checkpoints: [...checkpoints] }),
          ...helloOutputs(state as MomState),
          pongs: true,
        });
        break;
      case "send":
        link?.send(action.type, action.data as never);
        break;
      case "prepare":
      case "finish":
        ask(action);
        break;
      case "save":
        unwritten.push(action.record);
        break;
      case "drop": {
        const { run } = action;
        unwritten = unwritten.filter((record) => record.job.id !== run.job || record.job.run_count !== run.run_count);
        flush();
        if (records.get(run.job)?.run_count === run.run_count) records.delete(run.job);
        unsaid.push(() => toStarter("starter-forget", { runs: [run] }));
        break;
      }
      case "run-hooks":
        runHooks(action);
        break;
      case "run-script": {
        const { end, delay_ms } = playScript(random, action.alarm_s);
        later(delay_ms, () => tell({ kind: "scripted", step: action.step, end }));
        break;
      }
      case "run-action": {
        const { end, delay_ms } = playAction(random, action.alarm_s);
        const path = action.checkpoint;
        later(delay_ms, () => {
          if (path !== null && end.kind === "ended" && end.code === 0) checkpoints.add(action.job);
          tell({ kind: "acted", step: action.step, end });
        });
        break;
      }
      case "drop-checkpoint":
        checkpoints.delete(action.path.slice(action.path.lastIndexOf("/") + 1, -".CK".length));
        break;
      case "note-kept":
        if (action.kept) kept.add(action.job);
        else kept.delete(action.job);
        break;
      case "keep-hooks":
        kept_hooks = action.hooks;
        break;
      case "reboot":
        break;
      case "start":
        unsaid.push(() => toStarter("starter-start", { runs: [action.spec] }));
        break;
      case "signal":
        unsaid.push(() => toStarter("starter-signal", { runs: [{ ...action.run, signal: action.signal }] }));
        break;
      case "forget-task":
        unsaid.push(() => toStarter("starter-forget", { runs: [action.run] }));
        break;
      case "task-say":
      case "task-forward":
      case "adopt":
      case "save-tasks":
      case "append":
        break;
      case "purge": {
        // Not repeated if the agent dies.
        const [mine, agent] = [life, agent_life];
        toAgent(() => {
          void awake(() => {
            if (mine === life && agent === agent_life) tell({ kind: "purged", job: action.job });
          });
        });
        break;
      }
      case "log":
        world.trace.add(who, "log", `${action.object} ${action.text}`);
        break;
      case "exit":
        stop("exit");
        break;
      default: {
        const unreachable: never = action;
        void unreachable;
      }
    }
  };

  const runHooks = ({ step, hooks, input, resources }: Extract<MomAction, { kind: "run-hooks" }>): void =>
    later(0, async () => {
      let delay_ms = 0;
      const end = await runSequence(hooks, input, resources, async (hook) => {
        const played = playHook(random, hook);
        delay_ms += played.delay_ms;
        return played.outcome;
      });
      later(delay_ms, () => tell({ kind: "hooked", step, end }));
    });

  /**
   * Without a starter nothing is sent. A starter reports its state at every connect, and the core then repeats its requests
   * (src/mom/driver/starter-client.ts A1).
   */
  const toStarter: StarterProcess["take"] = (type, data) => {
    if (!starter_lost) starter.take(type, data);
  };

  // --- the file agent

  const ask = (request: Request): void => {
    asked.push(request);
    if (!agent_down) submit(request);
  };
  const submit = (request: Request): void => {
    const [mine, agent] = [life, agent_life];
    toAgent(() => {
      if (agent !== agent_life) return;
      void awake(() => {
        if (mine !== life || agent !== agent_life) return;
        asked = asked.filter((other) => other !== request);
        answer(request);
      });
    });
  };
  const answer = (request: Request): void => {
    const { job, run_count } = request.request.plan;
    if (request.kind === "finish") {
      tell({ kind: "finished", outcome: { job, run_count, delivered: 2, total: 2, failures: [] } });
      return;
    }
    const failure = options.prepareFailure(job, run_count);
    const outcome =
      failure === null
        ? { ok: true as const, stdout: "/o", stderr: "/e" }
        : { ok: false as const, exit_status: failure, text: "files cannot be made" };
    tell({ kind: "prepared", outcome: { job, run_count, ...outcome } });
  };

  // --- starter and server

  const connectStarter = (first: boolean): void => {
    if (!starter.alive) starter.start();
    starter_lost = false;
    const mine = life;
    starter.attach(
      () =>
        void awake(() => {
          if (mine !== life) return;
          // The mom notices by the connection that a starter has died, and replaces it at once.
          starter_lost = true;
          later(random.int(0, 20), () => connectStarter(false));
        }),
      (told) => void awake(() => hearStarter(told)),
    );
    const hearStarter = ({ type, data }: Told): void => {
      if (mine !== life) return;
      switch (type) {
        case "starter-state":
          tell({ kind: "starter-state", data });
          if (first) connect();
          first = false;
          break;
        case "starter-started":
          for (const run of data.runs) tell({ kind: "started", run });
          break;
        case "starter-failed":
          for (const run of data.runs) tell({ kind: "start-failed", run });
          break;
        case "starter-adopted":
          break;
        case "starter-hung-up":
          for (const run of data.runs) tell({ kind: "hung-up", run });
          break;
        case "starter-exited":
          for (const run of data.runs) tell({ kind: "exited", run });
          break;
        case "starter-pong":
          break;
        default: {
          const unreachable: never = type;
          void unreachable;
        }
      }
    };
  };

  const connect = (): void => {
    link = options.dial(host);
    if (link === null) {
      later(RECONNECT_MS, connect);
      return;
    }
    const mine = life;
    const own = link;
    own.listen({
      receive: (frame) =>
        void awake(() => {
          if (mine === life && own === link) receive(frame);
        }),
      lost: () =>
        void awake(() => {
          if (mine !== life || own !== link) return;
          world.trace.add(who, "link-lost");
          link = null;
          tell({ kind: "disconnected" });
          later(random.int(0, RECONNECT_MS), connect);
        }),
    });
    tell({ kind: "connected" });
  };

  const receive = ({ type, data }: FrameOf<"server-to-mom">): void => {
    switch (type) {
      case "mom-welcome":
        tell({ kind: "welcome", data });
        break;
      case "mom-start":
        for (const job of data.jobs)
          tell({ kind: "start", job, owner: { user: job.user, home: `/home/${job.user}`, shell: "/bin/sh", identity: null } });
        tell({ kind: "starts-read", runs: data.jobs.map(({ id, run_count }) => ({ job: id, run_count })) });
        break;
      case "mom-ping":
        silence_s = data.silence_s;
        link?.send("mom-pong", { number: data.number });
        break;
      case "mom-signal":
        tell({ kind: "signal", data });
        break;
      case "mom-terminate":
        tell({ kind: "terminate", data });
        break;
      case "mom-modify":
        tell({ kind: "modify", data });
        break;
      case "mom-sisters":
        tell({ kind: "sisters", data });
        break;
      case "mom-message":
        tell({ kind: "message", data });
        break;
      case "mom-obit-ack":
        tell({ kind: "acknowledged", data });
        break;
      case "mom-discard":
        tell({ kind: "discard", job: data.job });
        break;
      case "mom-refused":
        link?.close();
        link = null;
        later(RECONNECT_MS, connect);
        break;
      case "mom-hooks":
        tell({ kind: "hooks", hooks: data, from: "server" });
        break;
      case "mom-quit":
        tell({ kind: "stop", manner: "leave" });
        break;
      default: {
        const unreachable: never = type;
        void unreachable;
      }
    }
  };

  /** Samples the jobs while there are any. */
  const watch = (): void => {
    if (ticking || (state?.runs.size ?? 0) === 0) return;
    ticking = true;
    later(TICK_MS, tick);
  };
  const tick = (): void => {
    ticking = false;
    tell({ kind: "tick" });
    if (++ticks % SAMPLE_TICKS === 0 && (state?.runs.size ?? 0) > 0) {
      tell({ kind: "sampled", seen: new Map(starter.samples().map(({ pid, cput_s }) => [pid, { cput_s, mem_kb: 1024, vmem_kb: 2048 }])) });
    }
    watch();
  };

  const stop = (why: string): void => {
    if (state === null) return;
    world.trace.add(who, "ended", why);
    state = null;
    ticking = false;
    life++;
    link?.close();
    link = null;
    starter.detach();
    asked = [];
    unwritten = [];
    unsaid = [];
    doomed = null;
    paused_ms = null;
    missed = [];
    agent_down = false;
    toAgent = pipe(world, random, 20);
  };

  const start = (): void => {
    if (state !== null) return;
    life++;
    state = makeMomState(config(), [...checkpoints], [...kept]);
    world.trace.add(who, "started", `${records.size} records`);
    tell({ kind: "recovered", saved: [...records.values()].map(({ text }) => JSON.parse(text) as SavedRun) });
    if (kept_hooks !== null) tell({ kind: "hooks", hooks: kept_hooks, from: "disk" });
    tell({ kind: "vnodes", vnodes: options.vnodes });
    tell({ kind: "startup" });
    later(random.int(0, 50), () => connectStarter(true));
  };

  return {
    host,
    get alive() {
      return state !== null;
    },
    get state() {
      return state;
    },
    attrsOf(job) {
      if (state !== null) return state.runs.get(job)?.job.attrs;
      const record = records.get(job);
      return record === undefined ? undefined : (JSON.parse(record.text) as SavedRun).job.attrs;
    },
    start,
    kill: () => stop("killed"),
    killAtNextEvent(away_ms) {
      doomed = state === null ? null : away_ms;
    },
    pause(for_ms) {
      if (state === null || paused_ms !== null) return;
      world.trace.add(who, "stopped", `for ${for_ms} ms`);
      paused_ms = world.now_ms;
      const mine = life;
      world.after(for_ms, () => (mine === life ? goOn() : undefined));
    },
    async behave() {
      doomed = null;
      await goOn();
    },
    killAgent() {
      if (state === null) return;
      world.trace.add(who, "agent-killed");
      agent_life++;
      agent_down = true;
      later(random.int(1, 100), () => {
        agent_down = false;
        for (const request of asked) submit(request);
      });
    },
    reboot() {
      stop("reboot");
      boot++;
      starter.reboot();
    },
  };
}

// One process of a simulated mom, with the ports for the driver of its core (src/mom/driver/ports.ts). When the process has ended, nothing enters or leaves
// through the ports.
//
// M1. As in the daemon, each event is one turn of the event loop: work that is to be done at the end of the turn is done before the next event.
// M2. A mom can be killed before any of its effects: before it sends a frame, writes a record, or sends a request to its starter or file agent. A record that
//     it was writing is then incomplete. Heartbeats do not count as effects: an idle mom has no other effects, so that a mom would mostly be killed while idle.

import { runSequence } from "#hooks/run/hook-sequence.ts";
import { DEFAULT_SETTINGS, type MomSettings } from "#mom/config/config.ts";
import { MomDriver } from "#mom/driver/mom-driver.ts";
import type {
  AgentLane,
  ClockPort,
  DiskPort,
  GroupPort,
  Hearer,
  HooksPort,
  HostPort,
  MomPorts,
  ReportsPort,
  ScriptsPort,
  ServerEnd,
  ServerLink,
  SetupPort,
  StarterPort,
} from "#mom/driver/ports.ts";
import type { AgentToMom } from "#mom/job/agent-link.ts";
import { NO_CPU_ENFORCEMENT } from "#mom/job/limits.ts";
import type { StarterToMom } from "#mom/job/starter-link.ts";
import { checkMomInvariants } from "#mom/run/core.ts";
import type { MomConfig } from "#mom/run/state.ts";
import { type Following, followNobody, judgeOther, judgeWelcome } from "#protocol/failover/follower.ts";
import { type Leader, parseLeader } from "#protocol/failover/leader.ts";
import type { MomHooks, MomPatience, MomVnode } from "#protocol/mom-link.ts";
import type { FrameOf } from "#protocol/schema-link.ts";
import type { Prng } from "#support/prng.ts";
import { playAction, playHook, playScript } from "./drawn/hook-play.ts";
import type { Datagrams } from "./far/datagrams.ts";
import { isToySignature, toyCipher } from "./far/toy-cipher.ts";
import { FileAgent } from "./file-agent.ts";
import type { Link } from "./network.ts";
import { Pulse } from "./server-ports.ts";
import type { StarterProcess } from "./starter-process.ts";
import { steadyMs, type World } from "./world.ts";

const RECONNECT_MS = 1000;
/** Intervals in ms at which the mom asks the other one of two servers who leads: while a server has welcomed the mom, and while none has. */
const ASK_MS = 2000;
const ASK_SOON_MS = 500;

/** What a host keeps on its disk. It stays when a mom of the host ends. */
export class MomDisk {
  /** text of the file in which the mom records its jobs */
  records = "";
  hooks: MomHooks | null = null;
  readonly checkpoints = new Set<string>();
  /** jobs whose output waits for their next run */
  readonly kept = new Set<string>();
  /** the newest leader of two servers that the mom has heard of */
  leader: Leader | null = null;
}

export type MomOptions = {
  readonly host: string;
  readonly vnodes: readonly MomVnode[];
  readonly starter: StarterProcess;
  /** Returns the code with which the preparation of a job's files fails (docs/reference/execution.md 6); null: it succeeds. */
  prepareFailure(job: string, run_count: number): number | null;
  /**
   * Asks the server at a seat who leads. Returns the text of the leader, null if it names none, undefined if it does not answer. null instead of the
   * function: the complex has one server
   */
  readonly leaderAt: ((host: string, seat: number) => string | null | undefined) | null;
  /** Connects to the server at a seat. absent: nobody listens there. unreached: the network carries nothing */
  dial(host: string, seat: number): Link<"mom-to-server", "server-to-mom"> | "absent" | "unreached";
  /** null: the server is on this host */
  readonly datagrams: Datagrams | null;
};

export type MomLifeOptions = MomOptions & {
  readonly world: World;
  readonly random: Prng;
  readonly disk: MomDisk;
  readonly pid: number;
  readonly boot: number;
  readonly patience: MomPatience;
  /** the mom's name in the trace of the simulation */
  readonly who: string;
  /** Called when the process has ended by itself, or because of doom(). */
  over(why: string): void;
};

/** One process of a mom, from its start to its end. */
export class MomLife {
  readonly pulse = new Pulse();
  readonly #options: MomLifeOptions;
  #server: VirtualServerLink | null = null;
  readonly #agents = new Set<FileAgent>();
  #driver: MomDriver | null = null;
  /** functions to call at the end of the present turn */
  #at_end: (() => void)[] = [];
  /** number of effects that are left before the mom is killed; null: it is not to be killed */
  #effects_left: number | null = null;

  constructor(options: MomLifeOptions) {
    this.#options = options;
  }

  get driver(): MomDriver | null {
    return this.#driver;
  }

  start(): void {
    const { host, pid } = this.#options;
    const identity = { host, port: 15002, pid, is_system: false, alarm_s: 10, runner: null };
    this.arrive(() => {
      this.#driver = new MomDriver(this.#ports(), identity, this.#settings());
      this.#driver.start();
    });
  }

  /** Ends the process: from now on nothing enters or leaves. */
  end(): void {
    this.pulse.kill();
    this.#server?.cut();
    this.#options.starter.detach();
  }

  /** Lets the mom be killed in an event (M2). effects: number of effects before that; null: it is not to be killed. */
  doom(effects: number | null): void {
    this.#effects_left = effects;
  }

  killAgents(): void {
    for (const agent of this.#agents) agent.kill();
  }

  /** Delivers an event to the mom now or, if the mom is stopped, when it continues. */
  arrive(act: () => void): void {
    void this.pulse.do(() => this.#turn(act));
  }

  later(delay_ms: number, act: () => void): void {
    this.#options.world.after(delay_ms, () => this.pulse.do(() => this.#turn(act)));
  }

  /** Causes an effect (M2). torn: called instead if the mom is killed before the effect. */
  effect(act: () => void, torn: (() => void) | null = null): void {
    if (!this.pulse.isAlive) return;
    if (this.#effects_left === 0) {
      torn?.();
      return this.#options.over(torn === null ? "killed in the midst of an event" : "killed while it wrote a record");
    }
    if (this.#effects_left !== null) this.#effects_left--;
    act();
  }

  /** Sends a frame of a heartbeat, which does not count as an effect (M2). */
  beat(act: () => void): void {
    if (this.pulse.isAlive) act();
  }

  /** Handles one event as one turn of the event loop (M1). */
  #turn(act: () => void): void {
    act();
    for (let work = this.#at_end.shift(); work !== undefined; work = this.#at_end.shift()) work();
    if (this.pulse.isAlive && this.#driver !== null) checkMomInvariants(this.#driver.state);
  }

  #ports(): MomPorts {
    const { world, who, over } = this.#options;
    return {
      clock: this.#clock(),
      server: {
        dial: (end) => {
          const link = new VirtualServerLink(this, this.#options, end);
          this.#server = link;
          return link;
        },
      },
      reports: this.#reportsPort(),
      group: this.#groupPort(),
      starter: this.#starterPort(),
      agent: { launch: (lane, heard, closed) => this.#launchAgent(lane, heard, closed) },
      disk: this.#diskPort(),
      scripts: this.#scriptsPort(),
      hooks: this.#hooksPort(),
      // Simulated jobs have no tasks.
      tasks: {
        open: () => ({
          path: "/home/pbs/sock/mom.sock",
          say: () => undefined,
          forward: () => undefined,
          drain: (_job, then) => this.later(0, then),
          drainLast: (_job, then) => this.later(0, () => then(true)),
          tick: () => undefined,
          close: () => undefined,
        }),
      },
      host: this.#hostPort(),
      setup: this.#setupPort(),
      log: {
        record: (_event, _class, object, text) => {
          if (this.pulse.isAlive) world.trace.add(who, "log", `${object} ${text}`);
        },
        setMask: () => undefined,
        reopen: () => undefined,
        close: () => undefined,
      },
      ready: () => undefined,
      ended: () => {
        if (this.pulse.isAlive) over("exit");
      },
    };
  }

  #clock(): ClockPort {
    const { world } = this.#options;
    return {
      wall_ms: () => world.wall_ms,
      steady_ms: () => steadyMs(world),
      after: (delay_ms, work) => {
        let is_on = true;
        const ring = (): void => {
          if (is_on) this.#turn(work);
        };
        world.after(delay_ms, () => this.pulse.ring(ring));
        return () => {
          is_on = false;
        };
      },
      soon: (work) => this.later(0, work),
      atEnd: (work) => void this.#at_end.push(work),
    };
  }

  /** Datagrams that carry only a heartbeat do not count as effects (M2). */
  #reportsPort(): ReportsPort | null {
    const { datagrams, host } = this.#options;
    if (datagrams === null) return null;
    return {
      cipher: toyCipher,
      open: (heard) => {
        const end = datagrams.mom(
          host,
          (bytes) => this.arrive(() => heard(bytes)),
          () => this.#server?.seat ?? 0,
        );
        return { send: (bytes) => this.beat(() => end.send(bytes)), close: () => end.close() };
      },
    };
  }

  #groupPort(): GroupPort | null {
    const { datagrams, host, world } = this.#options;
    if (datagrams === null) return null;
    return {
      cipher: toyCipher,
      verify: (_key, bytes, signature) => isToySignature(bytes, signature),
      now_ms: () => steadyMs(world),
      open: (heard) => (group) => datagrams.listen(host, group === null ? null : (bytes) => this.arrive(() => heard(bytes))),
    };
  }

  #starterPort(): StarterPort {
    const { starter, random } = this.#options;
    return {
      connect: (end) =>
        this.later(random.int(0, 20), () => {
          if (!starter.alive) return end.absent();
          starter.attach(
            () => this.arrive(() => end.lost()),
            (told) => this.arrive(() => hear(end.heard, told)),
          );
          end.connected({
            send: (type, data) =>
              type === "starter-ping" ? this.beat(() => starter.take(type, data)) : this.effect(() => starter.take(type, data)),
            close: () => this.effect(() => starter.detach()),
          });
        }),
      launch: (done) =>
        this.later(random.int(0, 20), () => {
          starter.start();
          done(null);
        }),
    };
  }

  #launchAgent(lane: AgentLane, heard: Hearer<AgentToMom>, closed: () => void): FileAgent {
    const { world, random, prepareFailure } = this.#options;
    const agent: FileAgent = new FileAgent(world, {
      random,
      lane,
      prepareFailure,
      heard,
      closed: () => {
        this.#agents.delete(agent);
        closed();
      },
      arrive: (act) => this.arrive(act),
      effect: (act) => this.effect(act),
    });
    this.#agents.add(agent);
    return agent;
  }

  #diskPort(): DiskPort {
    const { disk, random } = this.#options;
    return {
      records: {
        name: "records",
        read: () => disk.records,
        putAside: () => this.effect(() => void (disk.records = "")),
        replace: (text) => this.effect(() => void (disk.records = text)),
        append: (text) =>
          this.effect(
            () => void (disk.records += text),
            () => void (disk.records += text.slice(0, random.int(0, text.length))),
          ),
        close: () => undefined,
      },
      foundCheckpoints: () => [...disk.checkpoints],
      removeCheckpoint: (path, done) => {
        this.effect(() => void disk.checkpoints.delete(path.slice(path.lastIndexOf("/") + 1, -".CK".length)));
        this.later(0, () => done(null));
      },
      foundKept: () => [...disk.kept],
      noteKept: (job, kept) =>
        this.effect(() => {
          if (kept) disk.kept.add(job);
          else disk.kept.delete(job);
        }),
    };
  }

  #scriptsPort(): ScriptsPort {
    const { random, disk } = this.#options;
    return {
      run: ({ alarm_s }, running, done) => {
        const { end, delay_ms } = playScript(random, alarm_s);
        if (end.kind !== "none") running();
        this.later(delay_ms, () => done(end));
      },
      act: ({ job, alarm_s, checkpoint }, done) => {
        const { end, delay_ms } = playAction(random, alarm_s);
        this.later(delay_ms, () => {
          if (checkpoint !== null && end.kind === "ended" && end.code === 0) disk.checkpoints.add(job);
          done(end);
        });
      },
    };
  }

  #hooksPort(): HooksPort {
    const { world, random, disk } = this.#options;
    return {
      kept: () => disk.hooks,
      keep: (hooks) => this.effect(() => void (disk.hooks = hooks)),
      run: ({ hooks, input, resources }, done) => {
        const runAll = async (): Promise<void> => {
          let delay_ms = 0;
          const end = await runSequence(hooks, input, resources, async (hook) => {
            const played = playHook(random, hook);
            delay_ms += played.delay_ms;
            return played.outcome;
          });
          this.later(delay_ms, () => done(end));
        };
        world.after(0, () => this.pulse.do(runAll));
      },
      reboot: () => undefined,
      close: () => undefined,
    };
  }

  #hostPort(): HostPort {
    const { starter } = this.#options;
    return {
      measure: () => ({ load: 0, idle_s: null }),
      look: (leaders) => {
        const seen = starter.samples().filter(({ pid }) => leaders.has(pid));
        return new Map(seen.map(({ pid, cput_s }) => [pid, { cput_s, mem_kb: 1024, vmem_kb: 2048 }]));
      },
      processes: () => [],
      uidOf: () => null,
      kill: () => false,
      readSite: (site, _alarm_s, done) => this.later(0, () => done(site)),
      ownerOf: ({ user }) => ({ user, home: `/home/${user}`, shell: "/bin/sh", identity: null }),
    };
  }

  #setupPort(): SetupPort {
    const { host, boot, vnodes } = this.#options;
    return { settings: () => this.#settings(), config: (settings) => configOf(host, boot, settings), vnodes: () => vnodes };
  }

  #settings(): MomSettings {
    return { ...DEFAULT_SETTINGS, actions: ACTIONS, patience: this.#options.patience };
  }
}

/** The actions of the hosts, so that jobs on them can be checkpointed and restarted. */
const ACTIONS: MomSettings["actions"] = {
  terminate: { timeout_s: 5, words: ["/site/terminate", "%sid"] },
  checkpoint: { timeout_s: 10, words: ["/site/checkpoint", "%path"] },
  checkpoint_abort: { timeout_s: 10, words: ["/site/checkpoint", "%path"] },
  restart: { timeout_s: 0, words: ["/site/restart", "%path"] },
};

function configOf(host: string, boot: number, settings: MomSettings): MomConfig {
  return {
    host,
    boot: String(boot),
    facts: {
      home: "/home/pbs",
      hosts: [host],
      server_host: "",
      tmpdir: "/tmp",
      jobdir_root: null,
      usecp: [],
      far: null,
      scp: [],
      port: 15002,
      site: [],
      commands: null,
    },
    cgroups: { track: false, enforce: new Set(), pids_max: 1 },
    cpus: [],
    enforce: { mem: false, cputmult: 1, wallmult: 1, cpu: NO_CPU_ENFORCEMENT },
    weights: { up: settings.weight_up, down: settings.weight_down },
    suspend_signal: settings.suspend_signal,
    resume_signal: settings.resume_signal,
    node: { load: settings.load, suspend_on_load: false, kbd_idle: null, multinode_requeue: false },
    actions: settings.actions,
    restart_transmogrify: false,
    checkpoint_path: "/pbs/checkpoint",
    own: { uid: 0, gid: 0 },
    prologalarm_s: settings.prologalarm_s,
    reject_root_scripts: false,
    tasks_max: settings.tasks_max,
    task_text_max: settings.task_text_max,
    server: "server",
    kill_found: false,
  };
}

/** Calls the function that handles the frame's type. */
const hear = <T extends keyof StarterToMom>(
  heard: Hearer<StarterToMom>,
  { type, data }: { readonly type: T; readonly data: StarterToMom[T] },
): void => heard[type](data);

/** A link that connects again by itself, like that of src/protocol/wire/ipc-transport.ts. */
class VirtualServerLink implements ServerLink {
  readonly #life: MomLife;
  readonly #options: MomLifeOptions;
  readonly #end: ServerEnd;
  #link: Link<"mom-to-server", "server-to-mom"> | null = null;
  #is_closed = false;
  /** with two servers (src/mom/shell/pair-link.ts): the seat of the server to which the mom connects, and what the mom knows about the leader */
  seat = 0;
  #following: Following;
  #is_welcomed = false;

  constructor(life: MomLife, options: MomLifeOptions, end: ServerEnd) {
    this.#life = life;
    this.#options = options;
    this.#end = end;
    this.#following = followNobody(options.disk.leader);
    life.later(0, () => this.#dial());
    if (options.leaderAt !== null) this.#askLater();
  }

  get connected(): boolean {
    return this.#link !== null;
  }

  send({ type, data }: FrameOf<"mom-to-server">): void {
    // The network checks that the frame matches its schema.
    const act = (): void => this.#link?.send(type, data as never);
    if (type === "mom-pong" || type === "mom-report") this.#life.beat(act);
    else this.#life.effect(act);
  }

  reconnect(): void {
    const link = this.#link;
    link?.close();
    this.#life.later(0, () => {
      if (link !== null && link === this.#link) this.#lost("given up");
    });
  }

  close(): void {
    this.#is_closed = true;
    this.cut();
  }

  /** Closes the link because the process has ended. Frames that it has sent still arrive. */
  cut(): void {
    this.#link?.close();
    this.#link = null;
  }

  #dial(): void {
    if (this.#is_closed) return;
    if (this.#link !== null) return;
    const link = this.#options.dial(this.#options.host, this.seat);
    if (typeof link === "string") {
      this.#life.later(RECONNECT_MS, () => this.#dial());
      // With two servers, the other one may lead.
      if (link === "absent" && this.#options.leaderAt === null) this.#life.later(this.#options.random.int(0, 5), () => this.#end.absent());
      return;
    }
    this.#link = link;
    const isPresent = (): boolean => link === this.#link;
    link.listen({
      receive: (frame) => this.#life.arrive(() => (isPresent() ? this.#hear(frame) : undefined)),
      lost: () => this.#life.arrive(() => (isPresent() ? this.#lost("lost") : undefined)),
    });
    this.#end.opened();
  }

  // --- the other one of two servers

  #hear(frame: FrameOf<"server-to-mom">): void {
    if (this.#options.leaderAt === null || frame.type !== "mom-welcome") return this.#end.frame(frame.type, frame.data);
    const { leader } = frame.data;
    const { judgement, next } = judgeWelcome(this.#following, leader === undefined ? null : parseLeader(leader));
    if (judgement === "leave") return this.#goOver();
    if (judgement === "seek") return this.reconnect();
    this.#follow(next);
    this.#is_welcomed = true;
    this.#end.frame(frame.type, frame.data);
  }

  #follow(next: Following): void {
    this.#following = next;
    this.#options.disk.leader = next.known;
  }

  #askLater(): void {
    const { random, host, leaderAt } = this.#options;
    this.#life.later(this.#is_welcomed ? ASK_MS : ASK_SOON_MS, () => {
      if (this.#is_closed) return;
      const said = leaderAt?.(host, 1 - this.seat);
      this.#life.later(random.int(0, 20), () => {
        this.#askLater();
        const other = said === undefined ? undefined : said === null ? null : parseLeader(said);
        const { goes, next } = judgeOther(this.#following, other, this.#is_welcomed);
        this.#follow(next);
        if (goes) this.#goOver();
      });
    });
  }

  /** Ends the present connection, and makes one to the other server. */
  #goOver(): void {
    const was_open = this.#link !== null;
    this.#link?.close();
    this.#link = null;
    this.#is_welcomed = false;
    this.seat = 1 - this.seat;
    if (was_open) this.#end.closed("another server leads");
    this.#life.later(0, () => this.#dial());
  }

  #lost(why: string): void {
    this.#link = null;
    this.#is_welcomed = false;
    this.#life.later(this.#options.random.int(0, RECONNECT_MS), () => this.#dial());
    this.#end.closed(why);
  }
}

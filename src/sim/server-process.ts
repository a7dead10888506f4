// A server that can be started, stopped and killed. Its core and its driver (src/server/driver) are the real ones; their
// ports (server-ports.ts) are simulated. It can be killed at any event, and also between a commit and its effects.

import type { HookOutcome, HookRun } from "#hooks/run/hook-input.ts";
import { StatusDesk } from "#protocol/datagram/status-desk.ts";
import type { Request } from "#protocol/messages.ts";
import { GroupDesk } from "#protocol/multicast/group-desk.ts";
import type { Decision } from "#protocol/sched-link.ts";
import type { FrameOf } from "#protocol/schema-link.ts";
import type { Core } from "#server/core/core.ts";
import { prepareStart } from "#server/core/first-start.ts";
import { Gate } from "#server/driver/gate.ts";
import { NO_AUTHORITY } from "#server/driver/immediate-ports.ts";
import type { ClockPort, LoadedState, ServerPorts, StorePort } from "#server/driver/ports.ts";
import { ServerDriver } from "#server/driver/server-driver.ts";
import { loadFromStore, storePort } from "#server/driver/store-port.ts";
import type { Batch } from "#server/engine/batch.ts";
import type { Peer } from "#server/engine/identity.ts";
import type { ServerConfig } from "#server/engine/transaction.ts";
import type { SchedSight } from "#server/scheds/heartbeat.ts";
import type { SchedEnd } from "#server/scheds/session.ts";
import { remotePlace } from "#server/state/partitions.ts";
import type { StoreFault } from "#store/store.ts";
import type { UserDatabase } from "#support/passwd.ts";
import type { Prng } from "#support/prng.ts";
import type { Datagrams } from "./far/datagrams.ts";
import { type FarLink, SchedDials } from "./far/sched-dials.ts";
import { toyCipher, toySignature } from "./far/toy-cipher.ts";
import { type Cable, isCutOff, type Link, type Network, wayTo } from "./network.ts";
import {
  type Answer,
  ClientLink,
  DaemonLink,
  type FarPeer,
  Pulse,
  type SchedLink,
  type Servers,
  virtualClock,
  virtualCommit,
  virtualHooks,
  virtualSettle,
} from "./server-ports.ts";
import { accountingOf, type Disk } from "./store/disk.ts";
import { START_MS, type World } from "./world.ts";

export type { Answer } from "./server-ports.ts";

export const HOST = "svr";

/** Time in ms between two changes of the keys for datagrams. It is short, so that keys change within a simulation. */
const KEY_ROTATION_MS = 60_000;

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
/** Returns a time like `Fri Nov 20 09:26:28 2026`, as ctime does, without a time zone. */
function ctime(epoch_s: number): string {
  const since_s = epoch_s - START_MS / 1000 + 9 * 3600 + 26 * 60 + 28;
  const [day, rest] = [Math.floor(since_s / 86_400), ((since_s % 86_400) + 86_400) % 86_400];
  const two = (value: number): string => String(Math.floor(value)).padStart(2, "0");
  return `${DAYS[(((5 + day) % 7) + 7) % 7]} Nov ${String(20 + day).padStart(2)} ${two(rest / 3600)}:${two((rest / 60) % 60)}:${two(rest % 60)} 2026`;
}

export const USERS = ["alice", "bob", "carol"] as const;
export const CONFIG: ServerConfig = {
  host: HOST,
  home: "/home/pbs",
  pbs_version: "23.06.06",
  own_user: null,
  ctime,
  timeZone: (name) => (name === "UTC" ? { name, offset: () => 0 } : null),
  userExists: (name) => name === "root" || (USERS as readonly string[]).includes(name),
};

/** A user database with the users of CONFIG. */
const USER_DATABASE: UserDatabase = (() => {
  const known = [...USERS.map((name, at) => ({ name, uid: 1000 + at })), { name: "root", uid: 0 }];
  const users = known.map(({ name, uid }) => ({ name, uid, gid: uid, home: `/home/${name}`, shell: "/bin/sh" }));
  const groups = [...users, { name: "users", gid: 100 }];
  return {
    userByName: (name) => users.find((user) => user.name === name) ?? null,
    userByUid: (uid) => users.find((user) => user.uid === uid) ?? null,
    groupByName: (name) => groups.find((group) => group.name === name) ?? null,
    groupByGid: (gid) => groups.find((group) => group.gid === gid) ?? null,
    gidsOf: (user) => [user.uid === 0 ? 0 : 100],
    groupsOf: (user) => [user.uid === 0 ? "root" : "users"],
  };
})();

/** Functions by which the checks are told what the server does. */
export type ServerObserver = {
  /** Called when the core has processed an event. Nothing is committed yet. */
  stepped(core: Core): void;
  /** Called when decisions of a scheduler have been processed. Their verdicts are in the outbox. */
  decided(core: Core, link: number, decisions: readonly Decision[]): void;
  /** Called when the core has handed out a batch, which is then committed. */
  taken(core: Core, batch: Batch): void;
  committed(): void;
  /** Called when the server has started from the disk, or has loaded its state again. */
  loaded(core: Core): void;
  /** Called with the answer that a hook will give. */
  hooked(hook: HookRun, outcome: HookOutcome): void;
};

export type ServerOptions = {
  /** Returns whether a host is not the server's own. */
  isFar(host: string): boolean;
  readonly commit_ms_max: number;
  /** Called when a running server wants a process of a scheduler. */
  startSched(name: string, parent: number): void;
  stopSched(name: string, parent: number, pid: number): void;
  isAlive(pid: number): boolean;
  lookAtSched(name: string, pid: number): SchedSight;
  /**
   * Gives a scheduler on another host its end of a link that the server has made. Returns false if nobody listens there, or if
   * the scheduler has heard of a leader with a later term.
   */
  linkToSched(name: string, term: number, end: () => SchedLink): boolean;
  /** Sends SIGKILL. Returns true if the process is not a child of `parent`: its end must then be reported by the server itself. */
  killSched(name: string, pid: number, parent: number): boolean;
};

export type Surroundings = {
  readonly world: World;
  readonly network: Network;
  readonly datagrams: Datagrams;
  readonly disk: Disk;
  readonly options: ServerOptions;
  readonly observer: ServerObserver;
};

export class ServerProcess implements Servers {
  readonly #around: Surroundings;
  readonly #random: Prng;
  #life: ServerLife | null = null;
  #lives = 0;
  /** number of links so far, over all processes of the server; each link has its own number */
  #links = 0;
  /** the server is to be killed after its next commit, before it sends anything, and comes back after this time in ms; null: it is not to be killed */
  #doomed_ms: number | null = null;

  constructor(around: Surroundings) {
    this.#around = around;
    this.#random = around.world.random.split("server");
    this.start = this.start.bind(this);
  }

  get core(): Core | null {
    return this.#life?.driver.core ?? null;
  }

  get idle(): boolean {
    return this.#life?.isIdle ?? false;
  }

  /** Calls `act` in the process now or, if the process is stopped, when it continues. If the process is killed before, `act` is not called. */
  awake(_seat: number, act: () => void): void {
    void this.#life?.pulse.do(act);
  }

  /** The number of the present process, by which its children know their parent. */
  get life(): number {
    return this.#lives;
  }

  async start(): Promise<void> {
    if (this.#life !== null) return;
    const mine = ++this.#lives;
    const loaded = await loadFromStore(this.#around.disk.store, HOST);
    const { state } = loaded;
    if (mine !== this.#lives) return;
    this.#doomed_ms = null;
    this.#around.world.trace.add("server", "start", state.scheds.size === 0 ? "fresh" : `${state.jobs.size} jobs`);
    const life = new ServerLife(this.#around, this.#random, mine, loaded, {
      committed: () => this.#committed(),
      newLink: () => ++this.#links,
    });
    this.#life = life;
    life.start(state.scheds.size === 0);
  }

  kill(why: string): void {
    if (this.#life === null) return;
    this.#around.world.trace.add("server", "killed", why);
    const life = this.#life;
    this.#life = null;
    this.#lives++;
    life.kill();
  }

  /** Lets the server be killed at its next commit. It is started again after away_ms. */
  killAtNextCommit(away_ms: number): void {
    this.#doomed_ms = away_ms;
  }

  #committed(): void {
    if (this.#doomed_ms === null) return;
    const away_ms = this.#doomed_ms;
    this.kill("killed between commit and effects");
    this.#around.world.after(away_ms, this.start);
  }

  /** Stops the server for that time. Its connections stay open. */
  pause(for_ms: number): void {
    const life = this.#life;
    if (life === null || life.pulse.isStopped) return;
    const { world } = this.#around;
    world.trace.add("server", "stopped", `for ${for_ms} ms`);
    life.pulse.stop();
    world.after(for_ms, () => this.#goOn(life));
  }

  async #goOn({ pulse }: ServerLife): Promise<void> {
    if (!pulse.isAlive || !pulse.isStopped) return;
    this.#around.world.trace.add("server", "goes-on");
    await pulse.goOn();
  }

  /** Cancels faults that are to come, and continues the server if it is stopped. */
  async behave(): Promise<void> {
    this.#doomed_ms = null;
    this.#around.disk.store.failCommits("io", 0);
    if (this.#life !== null) await this.#goOn(this.#life);
  }

  failCommits(fault: StoreFault, times: number): void {
    this.#around.disk.store.failCommits(fault, times);
  }

  /** Connects a scheduler; null: no server listens. */
  dialSched(name: string, pid: number, parent: number): SchedLink | null {
    return this.#life?.dialSched(++this.#links, name, pid, parent) ?? null;
  }

  dialMom(host: string): Link<"mom-to-server", "server-to-mom"> | null {
    return this.#life?.dialMom(++this.#links, host) ?? null;
  }

  /** Called when a child of the process `parent` has ended. A later process of the server is not told. */
  schedExited(name: string, parent: number, how: SchedEnd): void {
    const life = this.#life;
    if (parent === this.#lives && life !== null) void life.pulse.do(() => life.driver.schedExited(name, how));
  }

  /** Sends a client's request on its own connection. Returns a function that hangs up. */
  request(peer: Peer, request: Request, answer: (answer: Answer) => void): () => void {
    const { world, network } = this.#around;
    const mine = this.#life;
    let hangUp = (): void => undefined;
    let is_gone = false;
    world.after(network.delay(), () => {
      if (mine === null || mine !== this.#life) return answer({ ok: "lost" });
      world.trace.add(peer.user, request.kind, request);
      hangUp = mine.request(++this.#links, peer, request, answer);
      if (is_gone) hangUp();
    });
    return () => {
      is_gone = true;
      hangUp();
    };
  }
}

/**
 * What a process of the server needs of the server as a whole. newLink: returns the number of a new link. pair: present in a
 * complex with two servers
 */
export type Owner = { committed(): void; newLink(): number; readonly pair?: PairSeat };

/** The place of a process in a complex with two servers. */
export type PairSeat = {
  readonly seat: number;
  /** the term in which this process leads, as far as it knows */
  readonly term: number;
  /** makes the port to the store in the database, where the other server may take the lead (store/database.ts) */
  store(work: PairWork): StorePort;
  /** returns the text with which this process says that it leads; null: it is not certain that it does */
  leader(): string | null;
};
/** committed: called when a commit of the process has taken effect */
export type PairWork = { readonly pulse: Pulse; readonly clock: ClockPort; committed(): void };

/** One process of the server, from its start to its end. */
export class ServerLife {
  readonly #around: Surroundings;
  readonly #number: number;
  readonly #pair: PairSeat | null;
  readonly #gate: Gate;
  readonly #group: GroupDesk;
  readonly #dials: SchedDials;
  readonly driver: ServerDriver;
  readonly #clients = new Map<number, ClientLink>();
  readonly #daemons = new Set<DaemonLink>();
  /** pids of the schedulers that this process has started */
  readonly #children = new Set<number>();
  /** the batch that is being committed; null: there is none, or only a test of whether the disk works */
  #underway: Batch | null = null;
  readonly pulse = new Pulse();

  constructor(around: Surroundings, random: Prng, number: number, { state, due }: LoadedState, owner: Owner) {
    const { world, disk, options, datagrams } = around;
    const keys = random.split(`keys ${number}`);
    this.#around = around;
    this.#number = number;
    this.#pair = owner.pair ?? null;
    const { pulse } = this;
    const randomBytes = (count: number): Uint8Array => Uint8Array.from({ length: count }, () => keys.int(0, 255));
    const clock = virtualClock(world, random.split(`work ${number}`), pulse);
    const settle = virtualSettle(world, random, pulse);
    const committed = (): void => {
      this.#noteCommit();
      owner.committed();
    };
    const commit = virtualCommit(world, {
      random,
      commit_ms_max: options.commit_ms_max,
      pulse,
      committed,
      refused: (why) => {
        this.#underway = null;
        world.trace.add("server", "commit-failed", why.message);
      },
    });
    this.#group = new GroupDesk({
      cipher: toyCipher,
      random: randomBytes,
      boot: String(number),
      signer: () => ({ public_key: "", sign: toySignature }),
      clock,
      open: () => ({ send: (bytes) => datagrams.toGroup(bytes, owner.pair?.seat), close: () => undefined }),
      rotation_ms: KEY_ROTATION_MS,
      note: (text) => world.trace.add("server", "note", text),
    });
    this.#gate = new Gate({
      driver: () => this.driver,
      users: USER_DATABASE,
      host: HOST,
      own_uid: 0,
      system: true,
      log: { note: (_event, text) => world.trace.add("server", "note", text) },
      clock,
      desk: new StatusDesk({
        cipher: toyCipher,
        random: randomBytes,
        boot: String(number),
        rotation_ms: KEY_ROTATION_MS,
      }),
      group: this.#group,
      scripts: (ids, done) => settle(() => disk.store.scripts(ids), done),
      cookies: (count) => "0".repeat(32 * count),
      secret: () => "",
      certified: () => new Set(),
      listener: { setLimits: () => undefined, close: (done) => done() },
      ...(owner.pair === undefined ? {} : { leader: owner.pair.leader }),
    });
    const store =
      owner.pair?.store({ pulse, clock, committed }) ??
      ({ ...storePort(disk.store, HOST, settle), commit: storePort(disk.store, HOST, commit).commit } satisfies StorePort);
    datagrams.serve((bytes, answer) => void this.pulse.do(() => this.#gate.datagram(bytes, answer)), owner.pair?.seat);
    this.#dials = this.#schedDials(clock, owner.newLink);
    this.driver = new ServerDriver(this.#ports(random, { clock, store }), CONFIG, state, due);
  }

  #schedDials(clock: ClockPort, newLink: () => number): SchedDials {
    const { network, options } = this.#around;
    const schedOf = (name: string) => this.driver.core.state.scheds.get(name);
    return new SchedDials({
      isCutOff: (host) => isCutOff(network, this.#ways(host)),
      after: (delay_ms, work) => void clock.after(delay_ms, work),
      hostOf(name) {
        const sched = schedOf(name);
        return sched === undefined ? null : (remotePlace(sched, CONFIG)?.host ?? null);
      },
      isDown: (name) => schedOf(name)?.attrs["state"] === "down",
      connect: (name, host, gone) => {
        let made: FarLink | null = null;
        const far = { host: { host, role: "host", serial: "1" }, sched: name } as const;
        const isThere = options.linkToSched(name, this.#pair?.term ?? 0, () => {
          const { link, end } = this.#linkSched(newLink(), name, 0, far, gone);
          made = link;
          return end;
        });
        return isThere ? made : null;
      },
      unreached: (name, why) => this.driver.schedUnreached(name, why),
    });
  }

  #ports(random: Prng, { clock, store }: Pick<ServerPorts, "clock" | "store">): ServerPorts {
    const { world, disk, options, observer } = this.#around;
    const mine = this.#number;
    return {
      store,
      clock,
      links: this.#gate,
      clients: this.#gate,
      processes: {
        start: (name) => {
          if (!this.#dials.start(name)) options.startSched(name, mine);
        },
        prepare: () => undefined,
        say: () => undefined,
        stop: (name, pid) => {
          this.#dials.stop(name);
          options.stopSched(name, mine, pid);
        },
        look: (name, pid, done) => {
          const isFar = pid === 0 && this.#dials.look(name, (answers) => done({ pid: 0, process: answers ? "runs" : "none" }));
          if (!isFar) done(options.lookAtSched(name, pid));
        },
        kill: (name, pid) => {
          if (options.killSched(name, pid, mine)) clock.after(random.int(0, 50), () => this.#killed(name, pid));
        },
        stopAll: (_scheds, done) => done(),
        isChild: (pid) => this.#children.has(pid),
        isAlive: (pid) => options.isAlive(pid),
      },
      hooks: virtualHooks(random, clock, (hook, outcome) => observer.hooked(hook, outcome)),
      files: { hook: () => undefined, resources: () => undefined, formula: () => undefined },
      log: { note: (_event, text) => world.trace.add("server", "note", text), records: () => undefined, setMask: () => undefined },
      accounting: accountingOf(disk),
      mail: { send: () => undefined },
      identity: NO_AUTHORITY,
      resolve: (host, done) => void clock.after(random.int(0, 3), () => done(host.startsWith("nowhere") ? null : host)),
      onBug(error) {
        throw error;
      },
      ended: () => undefined,
      watch: {
        stepped: (core) => observer.stepped(core),
        began: (core) => observer.loaded(core),
        taken: (core, batch) => {
          this.#underway = batch;
          observer.taken(core, batch);
        },
        delivered: ({ actions }) => {
          this.#underway = null;
          for (const action of actions) world.trace.add("server", "action", action);
        },
      },
    };
  }

  /** Reports the end of a process that this server killed but did not start. */
  #killed(name: string, pid: number): void {
    if (!this.#around.options.isAlive(pid)) this.driver.schedExited(name, { code: null, signal: "SIGKILL", stopped: false, pid });
  }

  #noteCommit(): void {
    const batch = this.#underway;
    if (batch === null) return;
    const { world, observer } = this.#around;
    world.trace.add("server", "commit", () => batchText(batch));
    observer.committed();
  }

  get isIdle(): boolean {
    return this.driver.isIdle && !this.pulse.isStopped && !this.#group.is_waiting;
  }

  start(fresh: boolean): void {
    prepareStart(this.driver.core, { start: "warm", fresh, node: null });
    this.driver.start();
  }

  kill(): void {
    this.pulse.kill();
    for (const link of this.#daemons) link.kill();
    for (const link of this.#clients.values()) link.lose();
  }

  dialSched(link: number, name: string, pid: number, parent: number): SchedLink {
    if (parent === this.#number) this.#children.add(pid);
    return this.#linkSched(link, name, pid).end;
  }

  /** Makes a link to a scheduler. end: the scheduler's end. far: set if the scheduler is on another host. gone: called when the link has ended */
  #linkSched(number: number, name: string, pid: number, far?: FarPeer, gone: () => void = () => undefined) {
    const { network, observer } = this.#around;
    const { a, b, cable } = network.connect("sched", name, "sched-to-server", "server-to-sched", this.#ways(far?.host.host));
    const daemon = this.#connected(number, pid, b, cable, far, gone);
    let introduced = false;
    const link: FarLink = {
      get introduced() {
        return introduced;
      },
      destroy: () => daemon.end(),
    };
    const receive = ({ type, data }: FrameOf<"sched-to-server">): void => {
      if (!daemon.isOpen) return;
      introduced = true;
      const is_heard = this.driver.takesDaemons;
      this.#gate.frame(daemon, type, data);
      if (type === "sched-decisions" && is_heard) observer.decided(this.driver.core, number, data.decisions);
    };
    b.listen({
      receive: (frame) => void this.pulse.do(() => receive(frame)),
      lost: () => void this.pulse.do(() => this.#lost(daemon, "sched-lost", name)),
    });
    return { end: a, link };
  }

  dialMom(link: number, host: string): Link<"mom-to-server", "server-to-mom"> {
    const { network } = this.#around;
    const { a, b, cable } = network.connect("mom", host, "mom-to-server", "server-to-mom", this.#ways(host));
    const far = this.#around.options.isFar(host) ? { host: { host, role: "host" as const, serial: "1" } } : undefined;
    const daemon = this.#connected(link, 1, b, cable, far);
    const receive = ({ type, data }: FrameOf<"mom-to-server">): void => {
      if (daemon.isOpen) this.#gate.frame(daemon, type, data);
    };
    b.listen({
      receive: (frame) => void this.pulse.do(() => receive(frame)),
      lost: () => void this.pulse.do(() => this.#lost(daemon, "mom-lost", host)),
    });
    return a;
  }

  /** Returns the names of the ways between this process and a host, which may be cut (far/cuts.ts). */
  #ways(host: string | undefined): readonly string[] {
    if (host === undefined) return [];
    return this.#pair === null ? [host] : [host, wayTo(host, this.#pair.seat)];
  }

  #lost(daemon: DaemonLink, what: string, name: string): void {
    this.#around.world.trace.add("server", what, name);
    daemon.lost();
  }

  #connected(
    link: number,
    pid: number,
    end: ConstructorParameters<typeof DaemonLink>[2],
    cable: Cable,
    far?: FarPeer,
    closed: () => void = () => undefined,
  ): DaemonLink {
    const gone = (): void =>
      this.#later(() => {
        if (!this.#daemons.delete(daemon)) return;
        this.#gate.closed(daemon);
        closed();
      });
    const daemon: DaemonLink = new DaemonLink(link, pid, end, cable, gone, far);
    this.#daemons.add(daemon);
    void this.pulse.do(() => this.#gate.opened(daemon));
    return daemon;
  }

  /** Calls `act` in an event of its own. */
  #later(act: () => void): void {
    this.#around.world.after(0, () => this.pulse.do(act));
  }

  /** Sends a client's request. Returns a function that hangs up. */
  request(link: number, peer: Peer, request: Request, answer: (answer: Answer) => void): () => void {
    const { world, network } = this.#around;
    const closed = (): void => {
      if (this.#clients.delete(link)) void this.pulse.do(() => this.#gate.closed(client));
    };
    const client: ClientLink = new ClientLink(link, peer, request, this.#gate, (answered) =>
      world.after(network.delay(), () => {
        closed();
        answer(answered);
      }),
    );
    this.#clients.set(link, client);
    void this.pulse.do(() => {
      this.#gate.opened(client);
      this.#gate.ready(client);
    });
    return () => {
      if (client.hangUp()) closed();
    };
  }
}

function batchText({ changes, scheds, moms, clients, accounting }: Batch): string {
  const names = [...changes.jobs, ...changes.vnodes, ...changes.queues, ...changes.scheds].join(" ");
  const records = accounting.map(({ type, id }) => `${type};${id}`).join(" ");
  return `${names} | ${records} | ${clients.length} replies ${scheds.length} to schedulers ${moms.length} to moms`;
}

// Two servers of one complex, of which one leads. Each has a seat (its host) with at most one process, which waits or serves. A
// server that was deposed may go on in its process for a time, because it was stopped or is cut off, and has not noticed it.
//
// P1. Who leads is what the row in the database says (store/database.ts). Only that server's changes are seen by the checks.
// P2. A process that learns that it was deposed ends at once, and a new one waits at its seat.
// P3. A leader that reaches clearly fewer hosts than the server that waits gives up its lead (store/seat-reach.ts), and waits. Neither server is preferred: there is no primary.

import { parseLeader } from "#protocol/failover/leader.ts";
import type { Request } from "#protocol/messages.ts";
import type { Core } from "#server/core/core.ts";
import type { LeasePort, Result, StorePort } from "#server/driver/ports.ts";
import { loadFromStore, type Settle, storePort } from "#server/driver/store-port.ts";
import type { Peer } from "#server/engine/identity.ts";
import type { SchedEnd } from "#server/scheds/session.ts";
import { type LeaderRow, mayTake, mustConfirm, type Sighting, seen } from "#store/postgres/leadership.ts";
import { isStoreError, type StoreFault } from "#store/store.ts";
import type { Prng } from "#support/prng.ts";
import { isCutOff, type Link, wayTo } from "./network.ts";
import { type Answer, Pulse, type SchedLink, type Servers } from "./server-ports.ts";
import { HOST, type PairSeat, type PairWork, ServerLife, type ServerObserver, type Surroundings } from "./server-process.ts";
import { BEAT_MS, Database, SILENCE_MS } from "./store/database.ts";
import { SeatReach } from "./store/seat-reach.ts";
import { steadyMs, type World } from "./world.ts";

/** Interval in ms at which a server that waits looks at the row. */
const LOOK_MS = 400;
/** Time in ms between the end of a process that has ended by itself and the start of a new one at its seat. */
const AGAIN_MS = 1000;
/** Share of the requests of clients that go to the server that does not lead, if it serves. */
const ASTRAY = 0.1;

export type PairAround = {
  readonly common: Omit<Surroundings, "options">;
  readonly options: readonly [Surroundings["options"], Surroundings["options"]];
  /** the hosts that both servers try to reach */
  readonly hosts: readonly string[];
};

/** Returns the name of the way between a seat and the database. */
export const databaseWay = (seat: number): string => `database@${seat}`;

export class PairedServers implements Servers {
  readonly #world: World;
  readonly #random: Prng;
  readonly #seats: readonly [Seat, Seat];
  readonly database: Database;
  /** number of processes so far */
  #lives = 0;
  #links = 0;
  /** a server is to be killed after its next commit, and a new process is started after this time in ms; null: none is to be killed */
  #doomed_ms: number | null = null;

  constructor({ common, options, hosts }: PairAround) {
    const { world, network, disk, observer } = common;
    this.#world = world;
    this.#random = world.random.split("servers");
    const ways = this.#random.split("database");
    this.database = new Database(disk, {
      cut_ms: (seat, way) => network.cuts.left_ms(databaseWay(seat), way),
      delay_ms: () => ways.int(0, 3),
      after: (delay_ms, act) => world.after(delay_ms, act),
    });
    const seatOf = (seat: number): Seat =>
      new Seat(seat, {
        world,
        random: this.#random.split(`seat ${seat}`),
        database: this.database,
        around: { ...common, options: options[seat === 0 ? 0 : 1], observer: this.#observed(observer, seat) },
        reach: new SeatReach({
          hosts,
          isReached: (host) => !isCutOff(network, [host, wayTo(host, seat)]),
          now_ms: () => steadyMs(world),
        }),
        nextLife: () => ++this.#lives,
        nextLink: () => ++this.#links,
        committed: (life) => this.#committed(life),
      });
    this.#seats = [seatOf(0), seatOf(1)];
    this.start = this.start.bind(this);
  }

  /** Passes on what the server at a seat does while it leads (P1). */
  #observed(observer: ServerObserver, seat: number): ServerObserver {
    const leads = (): boolean => this.#seats[seat === 0 ? 0 : 1].leads;
    return {
      stepped: (core) => (leads() ? observer.stepped(core) : undefined),
      decided: (core, link, decisions) => (leads() ? observer.decided(core, link, decisions) : undefined),
      taken: (core, batch) => (leads() ? observer.taken(core, batch) : undefined),
      committed: () => observer.committed(),
      loaded: (core) => (leads() ? observer.loaded(core) : undefined),
      hooked: (hook, outcome) => (leads() ? observer.hooked(hook, outcome) : undefined),
    };
  }

  get #leading(): Seat | null {
    return this.#seats.find((seat) => seat.leads && seat.life !== null) ?? null;
  }

  /** The seat of the server that leads; null: none does. */
  get leader(): number | null {
    return this.#leading?.number ?? null;
  }

  get core(): Core | null {
    return this.#leading?.life?.driver.core ?? null;
  }

  get idle(): boolean {
    return this.#leading?.life?.isIdle ?? false;
  }

  /** The number of the process that leads. */
  get life(): number {
    return this.#leading?.life_number ?? 0;
  }

  awake(seat: number, act: () => void): void {
    void this.#seat(seat).life?.pulse.do(act);
  }

  #seat(seat: number): Seat {
    return this.#seats[seat === 0 ? 0 : 1];
  }

  /** Starts a process at each seat that has none. The first server leads first. */
  async start(): Promise<void> {
    this.#seats[0].start();
    this.#world.after(this.database.row.term === 0 ? SILENCE_MS : 0, () => this.#seats[1].start());
  }

  /** Kills the process of the server that leads. */
  kill(why: string): void {
    this.#leading?.kill(why);
  }

  killAtNextCommit(away_ms: number): void {
    this.#doomed_ms = away_ms;
  }

  #committed(seat: Seat): void {
    if (this.#doomed_ms === null) return;
    const away_ms = this.#doomed_ms;
    this.#doomed_ms = null;
    seat.kill("killed between commit and effects");
    this.#world.after(away_ms, this.start);
  }

  /** Stops the process of the server that leads for that time. */
  pause(for_ms: number): void {
    this.#leading?.pause(for_ms);
  }

  async behave(): Promise<void> {
    this.#doomed_ms = null;
    this.database.disk.store.failCommits("io", 0);
    for (const seat of this.#seats) await seat.goOn();
  }

  failCommits(fault: StoreFault, times: number): void {
    this.database.disk.store.failCommits(fault, times);
  }

  dialSched(name: string, pid: number, parent: number, seat: number): SchedLink | null {
    return this.#seat(seat).life?.dialSched(++this.#links, name, pid, parent) ?? null;
  }

  dialMom(host: string, seat: number): Link<"mom-to-server", "server-to-mom"> | null {
    return this.#seat(seat).life?.dialMom(++this.#links, host) ?? null;
  }

  /** Returns what the server at a seat answers when it is asked who leads; undefined: it does not answer; null: it names no leader. */
  leaderAt(seat: number): string | null | undefined {
    const { life } = this.#seat(seat);
    return life === null || life.pulse.isStopped ? undefined : this.#seat(seat).leaderText;
  }

  schedExited(name: string, parent: number, how: SchedEnd): void {
    for (const { life, life_number } of this.#seats)
      if (life !== null && life_number === parent) void life.pulse.do(() => life.driver.schedExited(name, how));
  }

  request(peer: Peer, request: Request, answer: (answer: Answer) => void): () => void {
    const other = this.#seats.find((seat) => !seat.leads && seat.life !== null);
    const seat = other !== undefined && this.#random.chance(ASTRAY) ? other : this.#leading;
    const life = seat?.life ?? null;
    let hangUp = (): void => undefined;
    let is_gone = false;
    this.#world.after(this.#random.int(0, 3), () => {
      if (life === null || life !== seat?.life) return answer({ ok: "lost" });
      this.#world.trace.add(peer.user, request.kind, request);
      hangUp = life.request(++this.#links, peer, request, answer);
      if (is_gone) hangUp();
    });
    return () => {
      is_gone = true;
      hangUp();
    };
  }
}

type SeatTools = {
  readonly world: World;
  readonly random: Prng;
  readonly database: Database;
  readonly around: Surroundings;
  readonly reach: SeatReach;
  nextLife(): number;
  nextLink(): number;
  /** called when a commit of this seat's process has taken effect */
  committed(seat: Seat): void;
};

/** One of the two servers. */
class Seat {
  readonly number: number;
  readonly #tools: SeatTools;
  /** the pulse of the present process while it waits; null: the process serves, or there is none */
  #waiting: Pulse | null = null;
  life: ServerLife | null = null;
  life_number = 0;
  #instance = "";
  /** the term in which the present process leads, and the time at which it sent its last statement to the database that confirmed this term */
  #term = 0;
  #confirmed_ms = 0;

  constructor(number: number, tools: SeatTools) {
    this.number = number;
    this.#tools = tools;
  }

  /** Whether the row in the database names this process. */
  get leads(): boolean {
    return this.life !== null && this.#tools.database.row.instance === this.#instance;
  }

  /** The text with which this process says that it leads; null: it is not certain that it does. */
  get leaderText(): string | null {
    if (this.life === null || !this.#holds()) return null;
    const text = `${this.#tools.database.row.store}/${this.#term}`;
    return parseLeader(text) === null ? null : text;
  }

  #holds(): boolean {
    return !mustConfirm(this.#confirmed_ms, steadyMs(this.#tools.world), SILENCE_MS);
  }

  start(): void {
    if (this.#waiting !== null || this.life !== null) return;
    const { world, nextLife } = this.#tools;
    this.life_number = nextLife();
    this.#instance = `process ${this.life_number}`;
    const pulse = new Pulse();
    this.#waiting = pulse;
    world.trace.add(this.#who, "waits");
    this.#look(pulse, null);
  }

  get #who(): string {
    return `server${this.number}`;
  }

  #look(pulse: Pulse, before: Sighting | null): void {
    const { world, database, reach } = this.#tools;
    const inProcess = (act: () => void): void => void pulse.do(act);
    const again = (sighting: Sighting | null): void => world.after(LOOK_MS, () => pulse.do(() => this.#look(pulse, sighting)));
    const own = reach.round();
    database.ask(
      this.number,
      inProcess,
      () => {
        database.say(this.number, own);
        return { row: database.row, other: database.waiter(1 - this.number) };
      },
      (result) => {
        if (!result.ok) return again(before);
        const now_ms = steadyMs(world);
        const { row, other } = result.value;
        const sighting = seen(before, row, now_ms);
        const candidate = { holder: `home${this.number}`, instance: this.#instance };
        const decision = mayTake(candidate, sighting, now_ms, SILENCE_MS);
        if (decision.kind === "wait") return again(sighting);
        const times = { free_ms: now_ms - sighting.since_ms, look_ms: LOOK_MS, silence_ms: SILENCE_MS };
        if (decision.kind === "take" && decision.why === "nobody leads" && reach.leaves(own, other, times)) return again(sighting);
        database.ask(
          this.number,
          inProcess,
          () => {
            const taken = database.take(sighting.row, candidate);
            if (taken !== null) database.say(this.number, null);
            return taken;
          },
          (taken) => {
            if (!taken.ok || taken.value === null) return again(sighting);
            this.#lead(pulse, taken.value, now_ms);
          },
        );
      },
    );
  }

  /** Loads the state and begins to serve. since_ms: when the take-over was sent */
  #lead(pulse: Pulse, row: LeaderRow, since_ms: number): void {
    const { world, database, around, reach, random, nextLink, committed } = this.#tools;
    world.trace.add(this.#who, "leads", `term ${row.term}`);
    this.#term = row.term;
    this.#confirmed_ms = since_ms;
    reach.leads();
    database.ask(
      this.number,
      (act) => void pulse.do(act),
      () => loadFromStore(database.disk.store, HOST),
      (loaded) => {
        if (!loaded.ok) return this.#end(loaded.error.message);
        this.#waiting = null;
        const pair: PairSeat = { seat: this.number, term: row.term, store: (work) => this.#store(work), leader: () => this.leaderText };
        const life = new ServerLife(around, random, this.life_number, loaded.value, {
          committed: () => committed(this),
          newLink: nextLink,
          pair,
        });
        this.life = life;
        life.start(loaded.value.state.scheds.size === 0);
        this.#beatLater(life);
      },
    );
  }

  /** Returns the port to the store in the database. The database refuses work as soon as the term of this process is not the present one. */
  #store({ pulse, committed }: PairWork): StorePort {
    const { database, world } = this.#tools;
    const term = this.#term;
    const inProcess = (act: () => void): void => void pulse.do(act);
    /** Does work at the database. A process that was deposed ends, and is told nothing more (P2). */
    const ask = <T>(work: () => T | Promise<T>, done: (result: Result<T>) => void): void => {
      const sent_ms = steadyMs(world);
      database.ask(this.number, inProcess, work, (result) => {
        if (!result.ok && isStoreError(result.error) && result.error.fault === "deposed") return this.#end("deposed");
        if (result.ok) this.#confirmed_ms = Math.max(this.#confirmed_ms, sent_ms);
        done(result);
      });
    };
    const settle: Settle = (work, done) => database.ask(this.number, inProcess, work, done);
    const lease: LeasePort = {
      // No simulated client sends qterm.
      order: (_order, _role, done) => done(new Error("the simulator has no orders")),
      holds: () => this.#holds(),
      confirm: (done) =>
        ask(
          () => database.beat(term),
          (result) => (this.#holds() || !result.ok ? done(faultOf(result)) : lease.confirm(done)),
        ),
    };
    const stored = storePort(database.disk.store, HOST, settle);
    return {
      ...stored,
      lease,
      // The accounting records of the loaded state may be written by the leader only.
      load: (done) =>
        stored.load((loaded) =>
          loaded.ok && !lease.holds()
            ? lease.confirm((fault) => done(fault === null ? loaded : { ok: false, error: fault }))
            : done(loaded),
        ),
      commit(rows, done) {
        const write = async (): Promise<void> => {
          await database.commit(term, rows);
          committed();
        };
        ask(write, (result) => (result.ok && !lease.holds() ? lease.confirm(done) : done(faultOf(result))));
      },
    };
  }

  /** Shows in the database that the process lives, and reads what the server that waits says. */
  #beatLater(life: ServerLife): void {
    const { world, database, reach } = this.#tools;
    const term = this.#term;
    world.after(BEAT_MS, () =>
      life.pulse.do(() => {
        if (life !== this.life) return;
        const sent_ms = steadyMs(world);
        const own = reach.round();
        database.ask(
          this.number,
          (act) => void life.pulse.do(act),
          () => {
            database.beat(term);
            return database.waiter(1 - this.number);
          },
          (result) => {
            if (life !== this.life) return;
            if (result.ok) {
              this.#confirmed_ms = Math.max(this.#confirmed_ms, sent_ms);
              if (reach.givesUp(own, result.value, SILENCE_MS)) return this.#giveUp(term);
            } else if (isStoreError(result.error) && result.error.fault === "deposed") return this.#end("deposed");
            this.#beatLater(life);
          },
        );
      }),
    );
  }

  /** Ends the process, and releases the lead (P3). */
  #giveUp(term: number): void {
    const { database } = this.#tools;
    database.ask(
      this.number,
      () => undefined,
      () => database.release(term),
      () => undefined,
    );
    this.#end("reaches fewer hosts than the other server");
  }

  /** Ends the process by itself; a new one waits soon. */
  #end(why: string): void {
    this.kill(why);
    this.#tools.world.after(AGAIN_MS, () => this.start());
  }

  kill(why: string): void {
    const { life } = this;
    if (life === null && this.#waiting === null) return;
    this.#tools.world.trace.add(this.#who, "killed", why);
    this.#waiting?.kill();
    this.#waiting = null;
    this.life = null;
    life?.kill();
  }

  pause(for_ms: number): void {
    const { life } = this;
    if (life === null || life.pulse.isStopped) return;
    const { world } = this.#tools;
    world.trace.add(this.#who, "stopped", `for ${for_ms} ms`);
    life.pulse.stop();
    world.after(for_ms, () => {
      if (life === this.life) return this.goOn();
    });
  }

  async goOn(): Promise<void> {
    const { life } = this;
    if (life === null || !life.pulse.isStopped) return;
    this.#tools.world.trace.add(this.#who, "goes-on");
    await life.pulse.goOn();
  }
}

const faultOf = (result: Result<unknown>): Error | null => (result.ok ? null : result.error);

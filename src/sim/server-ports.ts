// What surrounds one process of a simulated server: the ports for the driver of its core (src/server/driver/ports.ts), and
// links to its clients, schedulers and moms. When the process has ended, nothing comes back through them.

import type { HookOutcome, HookRun } from "#hooks/run/hook-input.ts";
import type { HostIdentity } from "#identity/peer.ts";
import type { Request } from "#protocol/messages.ts";
import { decodeFrame } from "#protocol/wire/frame.ts";
import type { Reply } from "#protocol/wire/reply.ts";
import type { Core } from "#server/core/core.ts";
import type { Link as GateLink } from "#server/driver/connections.ts";
import type { Gate } from "#server/driver/gate.ts";
import type { ClockPort, HooksPort, Result } from "#server/driver/ports.ts";
import type { Settle } from "#server/driver/store-port.ts";
import type { Peer } from "#server/engine/identity.ts";
import type { SchedEnd } from "#server/scheds/session.ts";
import type { StoreFault } from "#store/store.ts";
import type { Prng } from "#support/prng.ts";
import { playHook } from "./drawn/hook-play.ts";
import type { Cable, Link } from "./network.ts";
import type { World } from "./world.ts";

/** The state of a process: alive or dead, running or stopped. Events for a stopped process wait until it continues. Events for a dead process are dropped. */
export class Pulse {
  #is_alive = true;
  #is_stopped = false;
  #timers: Act[] = [];
  #missed: Act[] = [];

  get isAlive(): boolean {
    return this.#is_alive;
  }

  get isStopped(): boolean {
    return this.#is_stopped;
  }

  /** Calls `act` now or, if the process is stopped, when it continues. */
  do(act: Act): void | Promise<void> {
    return this.#do(act, this.#missed);
  }

  /** Does the same as do() for a timer that has expired. When the process continues, its timers come first. */
  ring(act: Act): void | Promise<void> {
    return this.#do(act, this.#timers);
  }

  #do(act: Act, missed: Act[]): void | Promise<void> {
    if (!this.#is_alive) return;
    if (!this.#is_stopped) return act();
    missed.push(act);
  }

  stop(): void {
    this.#is_stopped = true;
  }

  async goOn(): Promise<void> {
    this.#is_stopped = false;
    for (const act of [...this.#timers.splice(0), ...this.#missed.splice(0)]) if (this.#is_alive) await act();
  }

  kill(): void {
    this.#is_alive = false;
  }
}

type Act = () => void | Promise<void>;

/** Longest time in ms that the work in one event takes by the steady clock. It is far shorter than any change of the wall clock. */
const WORK_MS_MAX = 400;

/** Makes the clock of a process. random: decides how long work takes. */
export function virtualClock(world: World, random: Prng, pulse: Pulse): ClockPort {
  let step = -1;
  let look_ms = 0;
  let spent_ms = 0;
  return {
    wall_ms: () => world.wall_ms,
    /** Each call within one event returns a slightly later time, because work takes time. */
    steady_ms() {
      if (world.step !== step) {
        step = world.step;
        look_ms = random.pick([0, 0, 0, 0.1, 2, 15]);
        spent_ms = 0;
      }
      spent_ms = Math.min(WORK_MS_MAX, spent_ms + look_ms);
      return world.now_ms + spent_ms;
    },
    after(delay_ms, work) {
      let is_on = true;
      const ring = (): void => {
        if (is_on) work();
      };
      world.after(delay_ms, () => pulse.ring(ring));
      return () => {
        is_on = false;
      };
    },
    soon: (work) => world.after(0, () => pulse.do(work)),
  };
}

/** Makes a function that calls `done` with an outcome after a short delay. */
export function virtualSettle(world: World, random: Prng, pulse: Pulse): Settle {
  return (ask, done) => {
    const answer = async (): Promise<void> => done(await outcomeOf(ask()));
    world.after(random.int(0, 3), () => pulse.do(answer));
  };
}

export type CommitOptions = {
  readonly random: Prng;
  readonly commit_ms_max: number;
  readonly pulse: Pulse;
  /** Called when the rows are on the disk. The server may be killed here. */
  committed(): void;
  /** Called when the disk has refused the batch. */
  refused(why: Error): void;
};

/** Makes a function that commits a batch and calls `done` after a delay. */
export function virtualCommit(world: World, { random, commit_ms_max, pulse, committed, refused }: CommitOptions): Settle {
  return (ask, done) => {
    const write = async (): Promise<void> => {
      const result = await outcomeOf(ask());
      if (result.ok) committed();
      else refused(result.error);
      world.after(random.int(0, 2), () => pulse.do(() => done(result)));
    };
    world.after(random.int(0, commit_ms_max), () => pulse.do(write));
  };
}

const outcomeOf = <T>(asked: Promise<T>): Promise<Result<T>> =>
  asked.then(
    (value) => ({ ok: true, value }),
    (error: Error) => ({ ok: false, error }),
  );

/** Makes a port to hooks that are not run: their answers are drawn at random. */
export function virtualHooks(random: Prng, clock: ClockPort, hooked: (hook: HookRun, outcome: HookOutcome) => void): HooksPort {
  return {
    run(hook, done) {
      const { outcome, delay_ms } = playHook(random, hook);
      hooked(hook, outcome);
      clock.after(delay_ms, () => done(outcome));
    },
    close: () => undefined,
  };
}

/** What the server knows about a peer on another host. sched: the name of the scheduler that was dialled. */
export type FarPeer = { readonly host: HostIdentity; readonly sched?: string };

/** The uid of a peer on another host. */
const NO_UID = 2 ** 32 - 1;

/** The server's end of a link to a scheduler or to a mom, in the form that the simulated network gives it. */
type DaemonEnd = { send(type: never, data: never): void; close(): void };

/** The server's end of a link to a scheduler or to a mom, in the form that the server's gate uses. */
export class DaemonLink implements GateLink {
  readonly id: number;
  readonly peer: GateLink["peer"];
  /** always 0, because only the text of clients is counted, not the frames of daemons */
  readonly frame_chars = 0;
  readonly #end: DaemonEnd;
  readonly #cable: Cable;
  readonly #gone: () => void;
  #is_open = true;

  /** pid: the pid of the process at the other end. gone: called when either side has ended the link. far: a peer on another host */
  constructor(id: number, pid: number, end: DaemonEnd, cable: Cable, gone: () => void, far?: FarPeer) {
    this.id = id;
    this.peer = far === undefined ? { uid: 0, gid: 0, pid } : { uid: NO_UID, gid: NO_UID, pid: 0, ...far };
    this.#end = end;
    this.#cable = cable;
    this.#gone = gone;
  }

  /** Whether frames that arrive are still processed. */
  get isOpen(): boolean {
    return this.#is_open;
  }

  /** Called when the other end, or the connection to it, is lost. */
  lost(): void {
    this.#is_open = false;
    this.#gone();
  }

  /** Called when the server was killed. */
  kill(): void {
    this.#is_open = false;
    this.#cable.killed(1);
  }

  send(type: string, data: unknown): void {
    // The casts are safe: this function sends only frames that the server's core has made for this peer, and the simulated
    // network checks them against their schemas.
    if (this.#is_open) this.#end.send(type as never, data as never);
  }

  sendText(text: string): void {
    const { type, data } = decodeFrame(text.slice(0, -1));
    this.send(type, data);
  }

  end(): void {
    if (!this.#is_open) return;
    this.#end.close();
    this.#is_open = false;
    this.#gone();
  }

  destroy(): void {
    this.#is_open = false;
    this.#cable.breakOff();
  }

  welcome(): void {}

  // Frames of daemons are processed as they arrive, and they have no replies.
  serveNext(): boolean {
    return false;
  }
  hold(): void {}
  release(): void {}
  reply(): void {}
  part(): void {}
  async sendFrames(): Promise<void> {}
}

/** The answer to a request. lost: the server was killed before it answered. */
export type Answer =
  | { readonly ok: true; readonly value?: unknown }
  | { readonly ok: false; readonly code: number; readonly text: string | null }
  | { readonly ok: "lost" };

/** A client's connection for one request. */
export class ClientLink implements GateLink {
  readonly id: number;
  readonly peer: GateLink["peer"];
  readonly #gate: Gate;
  readonly #answered: (answer: Answer) => void;
  readonly #parts: unknown[] = [];
  #waiting: Request | null;
  #is_held = false;
  #is_open = true;
  frame_chars = 0;

  /** answered: called once, unless the client hangs up before. The answer reaches the client after a delay. */
  constructor(id: number, peer: Peer, request: Request, gate: Gate, answered: (answer: Answer) => void) {
    this.id = id;
    this.peer = { uid: peer.uid, gid: peer.uid, pid: 1 };
    this.#gate = gate;
    this.#answered = answered;
    this.#waiting = request;
  }

  serveNext(): boolean {
    const request = this.#waiting;
    if (request === null || this.#is_held || !this.#is_open) return false;
    this.#waiting = null;
    const text = JSON.stringify(request);
    this.frame_chars = text.length;
    this.#gate.frame(this, "request", { id: this.id, ...(JSON.parse(text) as object) });
    return false;
  }

  hold(): void {
    this.#is_held = true;
  }

  release(): void {
    this.#is_held = false;
    this.#gate.ready(this);
  }

  reply(reply: Reply): void {
    if (!this.#is_open) return;
    this.#is_open = false;
    if (reply.ok) this.#answered({ ok: true, value: this.#parts.length > 0 ? this.#parts : reply.value });
    else this.#answered({ ok: false, code: reply.code, text: reply.text ?? null });
  }

  part(_id: number, items: readonly string[]): void {
    this.#parts.push(...items.map((item) => JSON.parse(item) as unknown));
  }

  async sendFrames(frames: Iterable<string>): Promise<void> {
    for (const frame of frames) {
      const { data } = decodeFrame(frame.slice(0, -1));
      this.#parts.push(...(data as { readonly items: readonly unknown[] }).items);
    }
  }

  /** Disconnects the client. Returns whether it had no answer yet. */
  hangUp(): boolean {
    const was_open = this.#is_open;
    this.#is_open = false;
    return was_open;
  }

  end(): void {
    this.lose();
  }

  destroy(): void {
    this.lose();
  }

  /** Called when the server, or the connection to it, is lost. */
  lose(): void {
    if (this.hangUp()) this.#answered({ ok: "lost" });
  }

  // A client receives only replies.
  send(): void {}
  sendText(): void {}
  welcome(): void {}
}

/** The scheduler's end of a link. */
export type SchedLink = Link<"sched-to-server", "server-to-sched">;

/** The servers of a complex: one, or two of which one leads. */
export type Servers = {
  /** the core of the server that leads; null: none does */
  readonly core: Core | null;
  readonly idle: boolean;
  /** the number of the process that leads */
  readonly life: number;
  awake(seat: number, act: () => void): void;
  start(): Promise<void>;
  kill(why: string): void;
  killAtNextCommit(away_ms: number): void;
  pause(for_ms: number): void;
  behave(): Promise<void>;
  failCommits(fault: StoreFault, times: number): void;
  dialSched(name: string, pid: number, parent: number, seat: number): SchedLink | null;
  dialMom(host: string, seat: number): Link<"mom-to-server", "server-to-mom"> | null;
  schedExited(name: string, parent: number, how: SchedEnd): void;
  request(peer: Peer, request: Request, answer: (answer: Answer) => void): () => void;
};

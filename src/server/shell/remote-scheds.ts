// Schedulers on other hosts: tries to connect to them until they answer, and passes their links to the gate
// (docs/schedulers.md). The core decides which schedulers are wanted (scheds/session.ts).
//
// R1. A scheduler without sched_port is searched for at several ports, beginning with the port where it was found last.
// R2. Attempts on one scheduler follow one another; after all ports were tried without success, the next round begins after
//     sched_retry_ms.
// R3. A scheduler that was told to end keeps its link for its last cycle, but not longer than LEAVE_MS.
// R4. In a complex with two servers, the first frame names the leader, so that the scheduler gives up no link for a server that was
//     replaced. The frame is `revoked`, with no certificates, because schedulers of all releases take it before all others.

import { connect } from "node:net";
import { REVOKED, type Revoked } from "#protocol/join-link.ts";
import type { LinkHandlers, ServerLink } from "#protocol/wire/ipc-transport.ts";
import { LIMITS } from "#protocol/wire/limits.ts";
import { callScheduler, type SchedCall, WrongScheduler } from "#protocol/wire/sched-call.ts";
import { nth } from "#support/assert.ts";
import { codeOf, messageOf } from "#support/caught.ts";
import type { ProcessesPort } from "../driver/ports.ts";
import type { SchedSight } from "../scheds/heartbeat.ts";
import type { RemotePlace } from "../state/partitions.ts";
import type { OwnSide } from "./identity-port.ts";

export type RemoteSchedsOptions = {
  /** null: the scheduler belongs to this host, or was deleted */
  placeOf(sched: string): RemotePlace | null;
  /** whether the scheduler has no connection, as far as the core knows */
  isDown(sched: string): boolean;
  /** what the server shows to the hosts of schedulers and what it accepts (identity-port.ts) */
  ownSide(): OwnSide | null;
  /** whether it is certain that this server leads; otherwise it dials nobody, because a scheduler gives up its link for a new one */
  leads(): boolean;
  /** the leader that this server names to schedulers (R4), in a complex with two servers; null: the complex has one server */
  leader(): string | null;
  /** frame types of schedulers */
  readonly types: readonly string[];
  readonly handlers: Pick<LinkHandlers, "onFrame" | "onProblem"> & Required<Pick<LinkHandlers, "onLink" | "onClose">>;
  /** the ports at which a scheduler without sched_port is searched for, in their order (R1) */
  readonly ports: readonly number[];
  /** why a scheduler cannot be reached, for people */
  unreached(sched: string, why: string): void;
  log(sched: string, text: string): void;
};

const LEAVE_MS = 10_000;
const LOOK_MS = 5000;
/** Faults of the host. With these, its other ports are not tried. */
const OF_HOST: ReadonlySet<string> = new Set(["ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT"]);

export class RemoteScheds {
  readonly #options: RemoteSchedsOptions;
  readonly #dials = new Map<string, Dial>();
  /** connections of schedulers that were told to end (R3) */
  readonly #leaving = new Set<Dial>();
  #closed = false;

  constructor(options: RemoteSchedsOptions) {
    this.#options = options;
  }

  /** Tries to connect to a scheduler, unless that is under way. Returns false if it belongs to this host. */
  start(sched: string): boolean {
    const place = this.#options.placeOf(sched);
    if (place === null) {
      this.#dials.get(sched)?.drop();
      this.#dials.delete(sched);
      return false;
    }
    const present = this.#dials.get(sched);
    const is_same = present !== undefined && present.place.host === place.host && present.place.port === place.port;
    if (this.#closed || (is_same && (present.link === null || !this.#options.isDown(sched)))) return true;
    present?.drop();
    const dial = new Dial(sched, place, this.#options);
    this.#dials.set(sched, dial);
    dial.begin();
    return true;
  }

  /** Lets a scheduler end: its link stays open for its last cycle (R3). */
  stop(sched: string): void {
    const dial = this.#dials.get(sched);
    if (dial === undefined) return;
    this.#dials.delete(sched);
    this.#leaving.add(dial);
    void dial.leave().then(() => this.#leaving.delete(dial));
  }

  /** Finds out whether connections to the port of a connected scheduler succeed. Returns false if the scheduler belongs to this host. */
  look(sched: string, done: (sight: SchedSight) => void): boolean {
    if (this.#options.placeOf(sched) === null) return false;
    const place = this.#dials.get(sched)?.connectedAt ?? null;
    if (place === null) done({ pid: 0, process: "none" });
    else answers(place, (is_there) => done({ pid: 0, process: is_there ? "runs" : "none" }));
    return true;
  }

  /** all links, also those of schedulers that were told to end */
  get links(): readonly ServerLink[] {
    return [...this.#dials.values(), ...this.#leaving].flatMap(({ link }) => (link === null ? [] : [link]));
  }

  /** Ends the links to hosts that are no longer accepted. */
  review(): void {
    for (const dial of [...this.#dials.values(), ...this.#leaving]) dial.review();
  }

  /** Ends the links of these schedulers, which were told to end (R3). Resolves when none of them is connected. */
  async stopAll(scheds: readonly string[]): Promise<void> {
    for (const sched of scheds) this.stop(sched);
    await Promise.all([...this.#leaving].map((dial) => dial.leave()));
  }

  close(): void {
    this.#closed = true;
    for (const dial of [...this.#dials.values(), ...this.#leaving]) dial.drop();
  }
}

/** Combines the ports for scheduler processes on this host and for schedulers on other hosts. */
export function withRemote(local: ProcessesPort, remote: RemoteScheds): ProcessesPort {
  return {
    start: (sched) => void (remote.start(sched) || local.start(sched)),
    prepare: (sched) => local.prepare(sched),
    say: (sched, text) => local.say(sched, text),
    stop(sched, pid) {
      remote.stop(sched);
      local.stop(sched, pid);
    },
    look: (sched, pid, done) => void ((pid === 0 && remote.look(sched, done)) || local.look(sched, pid, done)),
    kill: (sched, pid) => local.kill(sched, pid),
    stopAll(scheds, done) {
      const far = remote.stopAll(scheds.map(({ name }) => name));
      local.stopAll(scheds, () => void far.then(done));
    },
    isChild: (pid) => local.isChild(pid),
    isAlive: (pid) => local.isAlive(pid),
  };
}

/** The attempts to connect to one scheduler at one place, and the link. */
class Dial {
  readonly place: RemotePlace;
  readonly #sched: string;
  readonly #options: RemoteSchedsOptions;
  /** the ports of this round (R1), and the index of the present one */
  #ports: readonly number[];
  #at = 0;
  /** the most informative fault of this round; null: at each port, nobody listens or another scheduler answers */
  #fault: string | null = null;
  #side: OwnSide | null = null;
  #hangUp: (() => void) | null = null;
  #timer: NodeJS.Timeout | null = null;
  #ended = false;
  #gone = (): void => undefined;
  readonly #isGone = new Promise<void>((resolve) => {
    this.#gone = resolve;
  });
  link: ServerLink | null = null;

  constructor(sched: string, place: RemotePlace, options: RemoteSchedsOptions) {
    this.#sched = sched;
    this.place = place;
    this.#options = options;
    const { port } = place;
    this.#ports = port === undefined ? options.ports : [port];
  }

  get connectedAt(): { readonly host: string; readonly port: number } | null {
    return this.link === null ? null : { host: this.place.host, port: nth(this.#ports, this.#at) };
  }

  /** Begins a round of attempts (R2). */
  begin(): void {
    this.#timer = null;
    this.#fault = null;
    if (!this.#options.leads()) return this.#again(LIMITS.sched_retry_ms);
    try {
      this.#side = this.#options.ownSide();
      if (this.#side === null) return this.#inVain("the complex has no certificate authority (partita cert token makes it)");
    } catch (error) {
      return this.#inVain(messageOf(error));
    }
    this.#call(this.#side);
  }

  /** Makes no further attempt, and keeps the link for a while (R3). Resolves when there is no link. */
  leave(): Promise<void> {
    if (!this.#ended && this.link !== null) this.#timer = setTimeout(() => this.#hangUp?.(), LEAVE_MS).unref();
    if (this.link === null) this.drop();
    this.#ended = true;
    return this.#isGone;
  }

  drop(): void {
    this.#ended = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#hangUp === null) this.#gone();
    else this.#hangUp();
  }

  review(): void {
    const host = this.link?.peer.host;
    const fault = host === undefined ? null : (this.#side?.fault(host) ?? null);
    if (fault === null) return;
    this.#options.log(this.#sched, fault);
    this.#hangUp?.();
  }

  #call({ credentials, fault }: OwnSide): void {
    const { types, handlers } = this.#options;
    const began_ms = performance.now();
    const first = firstFrame(this.#options.leader());
    const call = { sched: this.#sched, host: this.place.host, port: nth(this.#ports, this.#at), credentials, fault, types, ...first };
    try {
      this.#hangUp = callScheduler(call, {
        onLink: (link) => {
          this.link = link;
          handlers.onLink(link);
        },
        onFrame: handlers.onFrame,
        onProblem: (text, peer) => handlers.onProblem?.(text, peer),
        onEnd: (link, why) => this.#callEnded(link, why, began_ms),
      });
    } catch (error) {
      this.#inVain(messageOf(error));
    }
  }

  #callEnded(link: ServerLink | null, why: Error | null, began_ms: number): void {
    this.#hangUp = null;
    this.link = null;
    if (link !== null) this.#options.handlers.onClose(link);
    if (this.#ended) return this.#over();
    if (why !== null) return this.#failed(why);
    this.#again(performance.now() - began_ms < LIMITS.sched_retry_ms ? LIMITS.sched_retry_ms : 0);
  }

  #failed(why: Error): void {
    const { host, port } = this.place;
    const code = codeOf(why.cause) ?? codeOf(why) ?? "";
    const at = nth(this.#ports, this.#at);
    const is_silent = code === "ECONNREFUSED" || why instanceof WrongScheduler;
    if (OF_HOST.has(code)) return this.#inVain(`${host}: ${why.message || code}`);
    if (!is_silent || port !== undefined)
      this.#fault ??= code === "ECONNREFUSED" ? `nobody listens on port ${at} of ${host}` : `port ${at} of ${host}: ${why.message || code}`;
    if (this.#at + 1 < this.#ports.length && this.#side !== null) {
      this.#at++;
      return this.#call(this.#side);
    }
    const { ports } = this.#options;
    this.#inVain(this.#fault ?? `no scheduler ${this.#sched} listens on ports ${ports[0]} to ${ports.at(-1)} of ${host}`);
  }

  /** Ends a round without success, and lets the next one begin later (R2). */
  #inVain(why: string): void {
    this.#options.unreached(this.#sched, why);
    if (!this.#ended) this.#again(LIMITS.sched_retry_ms, 0);
  }

  /** Lets the next round begin after a time. It begins with the port that was right last (R1). */
  #again(after_ms: number, at = this.#at): void {
    const found = nth(this.#ports, at);
    this.#ports = [found, ...this.#ports.filter((port) => port !== found).sort((a, b) => a - b)];
    this.#at = 0;
    this.#timer = setTimeout(() => this.begin(), after_ms).unref();
  }

  #over(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#gone();
  }
}

/** What the server says at once on a new connection (R4). */
function firstFrame(leader: string | null): Pick<SchedCall, "first"> {
  return leader === null ? {} : { first: { type: REVOKED, data: { certificates: [], leader } satisfies Revoked } };
}

/** Whether a connection to that port succeeds. It does even if the process is busy or suspended, because the kernel of its host answers. */
function answers(place: { readonly host: string; readonly port: number }, done: (is_there: boolean) => void): void {
  const socket = connect(place);
  const tell = (is_there: boolean): void => {
    clearTimeout(timer);
    socket.removeAllListeners("close");
    socket.destroy();
    done(is_there);
  };
  const timer = setTimeout(() => tell(false), LOOK_MS).unref();
  socket.once("connect", () => tell(true));
  socket.on("error", () => undefined);
  socket.once("close", () => tell(false));
}

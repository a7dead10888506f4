// Receives the frames of all connections and sends the answers. This file determines the user behind a connection, whether a
// peer may send a frame, and the request that an answer belongs to. Links of the daemon are sockets; those of the simulator
// are virtual.
//
// G1. A frame that fits no schema, or that its sender may not send, has no effect: the request of a client is refused, and
//     the link of a scheduler or mom is closed.
// G2. While the store accepts nothing, and while the state is loaded again, schedulers and moms are kept out: a frame
//     from one of them closes its link.
// G3. Moms of other hosts report by datagrams (src/protocol/datagram) or, while these do not arrive, over their links. The
//     reports are the same in both cases. Each is answered in the way in which it came.
// G4. Frames to one mom keep their order (start-frames.ts, mom-frames.ts). Replies to clients are in replies.ts.
// G5. A mom of another host says hello once on each link. One that says hello again counts as an intruder, because each hello
//     costs the server much work.
// G6. A mom of another host cannot create a vnode with the name of a third host that has a certificate, even if that host has no mom.
//     The gate checks this, because the core knows only hosts whose moms are connected (src/server/moms/host-vnodes.ts).
// G7. A mom with the name of a runner proves by the token of this runner that it is the runner.
// G8. In system mode, an ordinary user may be such a runner, if the runner is the user's: the kernel says who the user is. What the runner says counts as far as runner-frames.ts
//     says, and its link keeps the limits of its user.

import { hostName } from "#identity/host-name.ts";
import { limitOf } from "#model/limits/server-limits.ts";
import { PBSE, pbseText } from "#model/pbse.ts";
import { multicastSettings } from "#model/tables/multicast-attributes.ts";
import type { ChannelKeys } from "#protocol/datagram/packet.ts";
import type { StatusDesk } from "#protocol/datagram/status-desk.ts";
import type { Request } from "#protocol/messages.ts";
import type { MomHeard, MomHello, MomReport, MomToServer, MomVnode, ServerToMom } from "#protocol/mom-link.ts";
import type { GroupDesk } from "#protocol/multicast/group-desk.ts";
import type { RunnersToServer } from "#protocol/runner-link.ts";
import type { SchedToServer } from "#protocol/sched-link.ts";
import { parseRequest } from "#protocol/schema.ts";
import { frameTypes, parseFrame } from "#protocol/schema-link.ts";
import type { Limits } from "#protocol/wire/limits.ts";
import { nameOfPeer } from "#protocol/wire/link-peer.ts";
import { isRecord } from "#support/guards.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { UserDatabase } from "#support/passwd.ts";
import type { ClientFrame, MomFrame, RunnersFrame, SchedFrame } from "../engine/batch.ts";
import type { ServerState } from "../state/state.ts";
import { type Connection, type Connections, connections, createShares, isListing, type Link, linkLimits } from "./connections.ts";
import { type MomFrames, momFrames } from "./mom-frames.ts";
import type { Asker, ClientsPort, LinksPort, LogPort } from "./ports.ts";
import { type Replies, replies } from "./replies.ts";
import { runnerFrame, runnerHello } from "./runner-frames.ts";
import type { ServerDriver } from "./server-driver.ts";
import type { StartFramesOptions } from "./start-frames.ts";

export type GateOptions = Pick<StartFramesOptions, "scripts" | "cookies" | "secret" | "clock"> & {
  readonly driver: () => ServerDriver;
  readonly users: UserDatabase;
  readonly host: string;
  readonly own_uid: number;
  /** whether the complex is in system mode: only root has the rights of root, and a scheduler may run as its sched_user */
  readonly system: boolean;
  readonly log: Pick<LogPort, "note">;
  /** the hosts that have a certificate of the complex which is valid now; names in canonical form */
  readonly certified: () => ReadonlySet<string>;
  /** the SHA-256 of a token of a runner, in hexadecimal digits; absent: no runner is admitted */
  readonly digest?: (token: string) => string;
  /** opens the reports of moms on other hosts */
  readonly desk: StatusDesk;
  /** sends commands to many moms of other hosts at once */
  readonly group: GroupDesk;
  /** returns the leader (src/protocol/failover/leader.ts), or null while it is not certain that this server leads; absent: the complex has one server */
  readonly leader?: () => string | null;
  /**
   * the address at which moms reach a qsub on this host: in a complex with two servers, the host that PBS_PRIMARY or PBS_SECONDARY names for this server;
   * absent: moms reach a qsub at the address of the server
   */
  readonly own_address?: string;
  /** the object that accepts connections */
  readonly listener: { setLimits(limits: Partial<Limits>): void; close(done: () => void): void };
};

const SCHED_TYPES: ReadonlySet<string> = new Set(frameTypes("sched-to-server"));
const RUNNERS_TYPES: ReadonlySet<string> = new Set(frameTypes("runners-to-server"));

export class Gate implements LinksPort, ClientsPort {
  readonly #options: GateOptions;
  readonly #listings = createShares<Connection>(() => limitOf(this.#driver.core.state, "max_user_listings"));
  readonly #connections: Connections;
  readonly #replies: Replies;
  readonly #momFrames: MomFrames;

  constructor(options: GateOptions) {
    const { users, host, own_uid, system, scripts, cookies, secret, clock, log } = options;
    this.#options = options;
    this.#connections = connections({ users, host, own_uid, system, listings: this.#listings });
    this.#replies = replies(this.#connections);
    this.#momFrames = momFrames(options.group, {
      link: (number) => this.#connections.byNumber(number)?.link,
      scripts,
      cookies,
      secret,
      clock,
      isDeciding: () => [...this.#driver.core.kernel.scheds.by_name.values()].some(({ more }) => more),
      complain: (text) => log.note(LOG_EVENT.ERROR, text),
    });
  }

  get #driver(): ServerDriver {
    return this.#options.driver();
  }

  // --- input

  opened(link: Link): void {
    this.#connections.add(link);
  }

  /** Called when a client's frame has arrived; it is served when the client's turn comes. */
  ready(link: Link): void {
    const connection = this.#connections.of(link);
    if (connection !== undefined) this.#inTurn(connection, () => this.#serve(connection));
  }

  frame(link: Link, type: string, data: unknown): void {
    const connection = this.#connections.of(link);
    if (connection === undefined || this.#driver.isOver) return;
    if (type === "request") this.#request(connection, data);
    else if (!this.#driver.takesDaemons) connection.link.destroy();
    else if (SCHED_TYPES.has(type)) this.#schedFrame(connection, type, data);
    else if (RUNNERS_TYPES.has(type)) this.#runnersFrame(connection, type, data);
    else this.#momFrame(connection, type, data);
  }

  closed(link: Link): void {
    const connection = this.#connections.remove(link);
    if (connection === undefined) return;
    this.#replies.forget(connection.tokens);
    const driver = this.#driver;
    driver.linkLost(link.peer.uid, link.id, [...connection.tokens]);
    if (connection.role === "mom") {
      this.#options.desk.dismiss(link.id);
      this.#options.group.dismiss(link.id);
      driver.momLost(link.id);
    }
    if (connection.role === "sched") driver.schedLost(link.id, connection.pid);
    if (connection.role === "runners") driver.runnersLost(link.id);
  }

  #serve(connection: Connection): void {
    if (connection.link.serveNext()) this.#inTurn(connection, () => this.#serve(connection));
  }

  #inTurn({ link }: Connection, work: () => void): void {
    this.#driver.inTurn({ uid: link.peer.uid, link: link.id }, work);
  }

  #request(connection: Connection, data: unknown): void {
    const parsed = parseRequest(data);
    const { link, peer } = connection;
    if (!parsed.ok) {
      this.#options.log.note(LOG_EVENT.SECURITY, `${parsed.text} from ${nameOfPeer(link.peer)}`);
      if (parsed.id === null) return link.destroy();
      return link.reply({ id: parsed.id, ok: false, code: parsed.code, text: parsed.text });
    }
    if (peer === null) return link.reply({ id: parsed.id, ok: false, code: PBSE.BADCRED, text: pbseText(PBSE.BADCRED) });
    const { id } = parsed;
    const request = withAddress(parsed.request, link.peer.address ?? this.#options.own_address);
    if (!isListing(request)) return this.#driver.request(peer, request, this.#connections.open(connection, id), link.id, link.frame_chars);
    // If the user has too many listings under way, no further requests of this connection are read until one of the listings has ended.
    link.hold();
    this.#listings.take(peer.uid, connection, () => {
      const token = this.#connections.open(connection, id, true);
      link.release();
      this.#inTurn(connection, () => this.#driver.request(peer, request, token, link.id));
    });
  }

  #schedFrame(connection: Connection, type: string, data: unknown): void {
    const parsed = parseFrame("sched-to-server", type, data);
    if (!parsed.ok) return this.#intruder(connection, type);
    const { frame } = parsed;
    if (frame.type !== "sched-hello") {
      if (connection.role !== "sched") return this.#intruder(connection, type);
      return this.#driver.sched(connection.link.id, frame.type, frame.data as SchedToServer[typeof frame.type]);
    }
    const sched_user = this.#driver.core.state.scheds.get(frame.data.name)?.attrs["sched_user"];
    if (!this.#connections.mayBeSched(connection, frame.data.name, sched_user)) return this.#intruder(connection, type);
    connection.role = "sched";
    connection.link.welcome();
    // The server may have to end this process one day, so its pid is taken from the operating system and not from the message.
    const hello = { ...frame.data, pid: connection.pid };
    const { host } = connection.link.peer;
    if (host === undefined) this.#driver.sched(connection.link.id, frame.type, hello);
    else this.#driver.schedHello(connection.link.id, hello, host.host);
  }

  #runnersFrame(connection: Connection, type: string, data: unknown): void {
    const parsed = parseFrame("runners-to-server", type, data);
    if (!parsed.ok || !this.#connections.mayBeDaemon(connection)) return this.#intruder(connection, type);
    const { frame } = parsed;
    if (frame.type === "runners-hello") {
      connection.role = "runners";
      connection.link.welcome();
    }
    if (connection.role !== "runners") return this.#intruder(connection, type);
    this.#driver.runners(connection.link.id, frame.type, frame.data as RunnersToServer[typeof frame.type]);
  }

  /**
   * Whether a mom may have this name (G7). A runner that the server does not know any more is told to end; anybody else who gives the name of a runner, or a token that is
   * not that of the runner, is an intruder. A second process with the token is told to end while the first is connected: a repeated submission may have started two
   * processes, and the first may already have a job. A process of an ordinary user must be of the user to whom the runner belongs (G8).
   */
  #admitsRunner(connection: Connection, { host, runner }: MomHello): boolean {
    const known = this.#driver.core.state.runners.get(host);
    if (known === undefined && runner === undefined) return true;
    if (known !== undefined) {
      if (runner === undefined || this.#options.digest?.(runner.token) !== known.attrs.digest) {
        this.#intruder(connection, `mom-hello of runner ${host} without its token`);
        return false;
      }
      const { owner } = known.attrs.bucket;
      connection.is_of_user = !this.#connections.mayBeMom(connection, host);
      if (connection.is_of_user && !this.#connections.mayBeRunner(connection, owner)) {
        this.#intruder(connection, `mom-hello of runner ${host} of ${owner}, although its token is right,`);
        return false;
      }
      const first = this.#driver.core.kernel.moms.by_host.get(host.toLowerCase());
      const pid = first === undefined ? undefined : this.#connections.byNumber(first.link)?.pid;
      if (pid === undefined || pid === connection.pid) return true;
      this.#options.log.note(LOG_EVENT.ERROR, `runner ${host}: pid ${connection.pid} must end, pid ${pid} is connected`);
    }
    connection.link.send("mom-quit", {});
    connection.link.end();
    return false;
  }

  #momFrame(connection: Connection, type: string, data: unknown): void {
    const parsed = parseFrame("mom-to-server", type, data);
    if (!parsed.ok) return this.#intruder(connection, type);
    if (parsed.frame.type === "mom-hello") return this.#momHello(connection, parsed.frame.data);
    if (connection.role !== "mom") return this.#intruder(connection, type);
    const frame = connection.is_of_user ? runnerFrame(parsed.frame, this.#driver.core.state.resources) : parsed.frame;
    if (frame === null) return;
    if (frame.type === "mom-got") return this.#options.group.heard(connection.link.id, frame.data.position);
    if (frame.type === "mom-report") return this.#report(connection, frame.data, (heard) => connection.link.send("mom-heard", heard));
    if (frame.type === "mom-vnodes")
      return this.#driver.mom(connection.link.id, frame.type, { ...frame.data, vnodes: this.#ownVnodes(connection, frame.data.vnodes) });
    this.#driver.mom(connection.link.id, frame.type, frame.data as MomToServer[typeof frame.type]);
  }

  #momHello(connection: Connection, hello: MomHello): void {
    const { host, runner } = hello;
    // A runner proves by its token and its user what it is (G7, G8).
    if (!this.#connections.mayBeMom(connection, host) && !(this.#options.system && runner !== undefined))
      return this.#intruder(connection, `mom-hello of ${host}`);
    // A second hello on one link is refused (G5).
    const is_trusted = connection.link.peer.host === undefined && !connection.is_of_user;
    if (!is_trusted && connection.role === "mom") return this.#intruder(connection, "a second mom-hello");
    if (!this.#admitsRunner(connection, hello)) return;
    connection.role = "mom";
    if (connection.is_of_user) return this.#hello(connection, runnerHello(withoutToken(hello), connection.pid));
    connection.link.welcome();
    this.#hello(connection, withoutToken(hello));
  }

  /** The vnodes that the mom may report (G6). */
  #ownVnodes({ link }: Connection, vnodes: readonly MomVnode[]): readonly MomVnode[] {
    const { host } = link.peer;
    if (host === undefined) return vnodes;
    const { state } = this.#driver.core;
    const certified = this.#options.certified();
    return vnodes.filter(({ name }) => {
      const named = hostName(name);
      if (named === null || named === host.host || state.vnodes.has(name) || !certified.has(named)) return true;
      this.#options.log.note(LOG_EVENT.SECURITY, `vnode ${name} is not taken from host ${host.host}: it is the name of another host`);
      return false;
    });
  }

  #hello(connection: Connection, hello: MomHello): void {
    const { host, address } = connection.link.peer;
    if (host === undefined) return this.#driver.mom(connection.link.id, "mom-hello", withoutReports(hello));
    if (hello.reports !== undefined) this.#handKeys(connection, hello.host);
    if (hello.multicast === true) this.#admitToGroup(connection, hello.host);
    const vnodes = this.#ownVnodes(connection, hello.vnodes);
    this.#driver.mom(connection.link.id, "mom-hello", { ...withoutSocket(hello), vnodes, address: address ?? "" });
  }

  #handKeys({ link }: Connection, host: string): void {
    const { desk, clock } = this.#options;
    link.send("mom-keys", keysFrame(desk.admit(link.id, host, clock.steady_ms())));
  }

  #admitToGroup({ link }: Connection, host: string): void {
    const { address = "" } = link.peer;
    this.#options.group.admit(link.id, { host, address, send: (type, data) => link.send(type, data) });
  }

  // --- input: reports (G3)

  /** Called when a datagram has arrived. answer: sends a datagram to where it came from. */
  datagram(bytes: Uint8Array, answer: (bytes: Uint8Array) => void): void {
    if (!this.#driver.takesDaemons) return;
    const { desk, group, clock } = this.#options;
    const opened = desk.open(bytes, clock.steady_ms());
    const connection = opened === null ? undefined : this.#connections.byNumber(opened.link);
    if (opened === null || connection === undefined) return;
    const data = dataIn(opened.text);
    const parsed = parseFrame("mom-to-server", isRecord(data) && "position" in data ? "mom-got" : "mom-report", data);
    if (parsed.ok && parsed.frame.type === "mom-got") return group.heard(opened.link, parsed.frame.data.position);
    if (!parsed.ok || parsed.frame.type !== "mom-report") return this.#intruder(connection, "mom-report");
    const { host } = connection.link.peer;
    if (opened.is_due && host !== undefined) this.#handKeys(connection, host.host);
    this.#report(connection, parsed.frame.data, (heard) => answer(opened.answer(JSON.stringify(heard))));
  }

  #report({ link }: Connection, report: MomReport, answer: (heard: MomHeard) => void): void {
    this.#driver.mom(link.id, "mom-report", report);
    // A mom that the server has given up gets no answer, because it would take an answer for a sign that its jobs may go on
    // (moms/grace.ts). A server that another one may have replaced gives no answer, so that the mom looks for the other
    // server.
    const grace = this.#driver.core.graceOf(link.id);
    if (grace !== null && this.#driver.leads) answer({ number: report.number, ...grace });
  }

  #intruder({ link, pid }: Connection, type: string): void {
    const process = pid === 0 ? "" : `, pid ${pid}`;
    this.#options.log.note(LOG_EVENT.SECURITY, `${type.slice(0, 80)} refused from ${nameOfPeer(link.peer)}${process}`);
    link.destroy();
  }

  // --- output: to schedulers and moms

  toSched({ link, type, data }: SchedFrame): void {
    this.#connections.byNumber(link)?.link.send(type, data);
  }

  toRunners({ link, type, data }: RunnersFrame): void {
    this.#connections.byNumber(link)?.link.send(type, data);
  }

  toMoms(frames: readonly MomFrame[]): void {
    this.#momFrames.send(frames.map((frame) => this.#withLeader(frame)));
  }

  /** Adds the leader of the complex to the welcome that a mom gets. */
  #withLeader(frame: MomFrame): MomFrame {
    const leader = frame.type === "mom-welcome" ? (this.#options.leader?.() ?? null) : null;
    return frame.type === "mom-welcome" && leader !== null ? { ...frame, data: { ...frame.data, leader } } : frame;
  }

  end(link: number): void {
    this.#connections.byNumber(link)?.link.end();
  }

  dropDaemons(): void {
    for (const { link } of this.#connections.daemons()) link.destroy();
  }

  setLimits(state: ServerState): void {
    this.#options.listener.setLimits(linkLimits(state));
    this.#options.group.configure(multicastSettings(state));
  }

  close(done: () => void): void {
    this.#options.group.close();
    for (const { link } of this.#connections.all()) link.end();
    this.#options.listener.close(done);
  }

  // --- to clients

  answer(frames: readonly ClientFrame[]): void {
    this.#replies.answer(frames);
  }

  taken(token: number, then: () => void): void {
    this.#replies.taken(token, then);
  }

  of(token: number): Asker | undefined {
    const link = this.#connections.peek(token)?.connection.link;
    return link === undefined ? undefined : { uid: link.peer.uid, link: link.id };
  }

  open(): readonly number[] {
    return this.#connections.tokens();
  }
}

/** Adds the address of the qsub to the ticket of an interactive job, unless moms reach the qsub at the server's address. What a client says about its address is ignored. */
function withAddress(request: Request, address: string | undefined): Request {
  if (request.kind !== "queue-job" || request.terminal === undefined || address === undefined) return request;
  return { ...request, terminal: { ...request.terminal, address } };
}

/**
 * Removes the path of the socket from the hello of a mom on another host. Other moms would connect to whatever has that path
 * on their own hosts. Such a mom is reached at the address from which it has connected.
 */
function withoutSocket({ tasks: _elsewhere, ...hello }: MomHello): MomHello {
  return hello;
}

/** Removes the token from the hello of a runner: nobody but the gate needs it. */
function withoutToken(hello: MomHello): MomHello {
  return hello.runner === undefined ? hello : { ...hello, runner: { token: "", age_s: hello.runner.age_s } };
}

/** Removes `reports` from the hello of a mom on the server's host: such a mom does not report by datagrams, but answers pings and reports over its link. */
function withoutReports({ reports: _by_datagrams, ...hello }: MomHello): MomHello {
  return hello;
}

const keysFrame = ({ channel, key, boot }: ChannelKeys): ServerToMom["mom-keys"] => ({
  channel,
  key: btoa(String.fromCharCode(...key)),
  boot,
});

/** Returns the data that a text contains as JSON; undefined: it is not JSON. */
function dataIn(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

// This mom's connections to the other moms of its jobs (src/protocol/task-link.ts): over their sockets on the same machine, over TLS to other hosts. All requests
// to one mom share one connection, which is closed when it has not been used for a while.
//
// M1. The other end must be the mom that the server has named. On this machine, the kernel must say that it runs as root or
//     as this mom's user; on another host, its certificate must name that host (docs/identity.md).
// M2. Each request gets either its answers or a call of lost(), unless it is closed before.

import { connect, type Socket } from "node:net";
import type { Credentials } from "#identity/files/credentials.ts";
import { hostName } from "#identity/host-name.ts";
import { type HostIdentity, serverFault } from "#identity/peer.ts";
import { type FrameOf, parseFrame } from "#protocol/schema-link.ts";
import type { MomToTask, TaskToMom } from "#protocol/task-link.ts";
import { ALPN } from "#protocol/wire/alpn.ts";
import { LIMITS } from "#protocol/wire/limits.ts";
import { peerCredentials } from "#protocol/wire/peer-credentials.ts";
import { socketAddress } from "#protocol/wire/socket-path.ts";
import { dialTls } from "#protocol/wire/tls-dialer.ts";
import { messageOf } from "#support/caught.ts";
import { isRecord } from "#support/guards.ts";
import { frameLink, type Link } from "../host/frame-link.ts";
import type { TaskPlace } from "../job/sister.ts";

/** How long a connection without requests stays open. */
const IDLE_MS = 10_000;

export type Answer = FrameOf<"mom-to-task">;
/** Makes the frame of a request with that token. */
type Request = (token: number) => FrameOf<"task-to-mom">;

export type Answers = {
  answered(answer: Answer): void;
  /** The connection could not be made, or has ended. is_sent: the request may have arrived. Nothing follows. */
  lost(why: string, is_sent: boolean): void;
};

/** An open request to another mom. */
export type Asked = {
  signal(signal: number): void;
  /** called when nobody waits for further answers */
  close(): void;
};

export type OtherMomsOptions = {
  /** identity of this host; throws an error for the log */
  readonly credentials: () => Credentials;
  /** serial numbers of certificates that this host refuses; throws an error for the log */
  readonly revoked: () => ReadonlySet<string>;
  /** how this host reaches the server's host, and PBS_SERVER */
  readonly server_host: string;
  readonly server: string;
};

export class OtherMoms {
  readonly #options: OtherMomsOptions;
  /** connections by place */
  readonly #links = new Map<string, MomLink>();

  constructor(options: OtherMomsOptions) {
    this.#options = options;
  }

  /** Sends a request to the mom at that place, when the connection is open. */
  ask(place: TaskPlace, request: Request, answers: Answers): Asked {
    const key = placeName(place);
    let link = this.#links.get(key);
    if (link === undefined) {
      link = new MomLink(this.#dial(place), () => this.#links.delete(key));
      this.#links.set(key, link);
    }
    return link.ask(request, answers);
  }

  close(): void {
    for (const link of [...this.#links.values()]) link.end("the mom ends");
  }

  #dial(place: TaskPlace): Promise<Socket> {
    if (place.kind === "socket") return dialSocket(place.path);
    const { server_host, server, credentials, revoked } = this.#options;
    const target = { host: place.address ?? server_host, port: place.port, protocol: ALPN.mom };
    return Promise.resolve().then(() => {
      const refused = revoked();
      const fault = (peer: HostIdentity | null): string | null =>
        place.address === null ? serverFault(peer, server, refused) : hostFault(peer, place.host, refused);
      return dialTls({ ...target, fault }, credentials(), LIMITS);
    });
  }
}

const placeName = (place: TaskPlace): string =>
  place.kind === "socket" ? place.path : `${place.host} ${place.address ?? ""} ${place.port}`;

/** Checks the identity of the peer (M1). null: it is the mom of that host. */
function hostFault(peer: HostIdentity | null, host: string, revoked: ReadonlySet<string>): string | null {
  if (peer === null) return "the certificate is not one of a Partita host";
  if (peer.role !== "host") return `the peer is the server ${peer.host}, not ${host}`;
  if (revoked.has(peer.serial)) return `the certificate ${peer.serial} of ${peer.host} was revoked`;
  return peer.host === hostName(host) ? null : `the peer is the host ${peer.host}, not ${host}`;
}

/** Connects to another mom of this machine. Rejects with a reason for the user. */
function dialSocket(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const { address, release } = socketAddress(path);
    const socket = connect(address);
    socket.once("error", (error) => {
      release();
      reject(error);
    });
    socket.once("connect", () => {
      release();
      socket.removeAllListeners("error");
      const peer = peerCredentials(socket);
      if (peer !== null && (peer.uid === 0 || peer.uid === process.getuid?.())) return resolve(socket);
      socket.destroy();
      reject(new Error("its socket is not a mom's"));
    });
  });
}

type Refused = { readonly refused: unknown };

/** One connection to another mom. */
class MomLink {
  readonly #questions = new Map<number, Answers>();
  readonly #onEnd: () => void;
  #link: Link<TaskToMom> | null = null;
  /** requests that wait for the connection */
  #early: (() => void)[] = [];
  #next = 1;
  #idle: NodeJS.Timeout | null = null;
  #ended = false;

  constructor(dialling: Promise<Socket>, onEnd: () => void) {
    this.#onEnd = onEnd;
    dialling.then(
      (socket) => (this.#ended ? void socket.destroy() : this.#open(socket)),
      (error: unknown) => this.end(messageOf(error)),
    );
  }

  ask(request: Request, answers: Answers): Asked {
    const token = this.#next++;
    this.#questions.set(token, answers);
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#idle = null;
    const { type, data } = request(token);
    this.#send(() => this.#link?.send(type, data));
    return {
      signal: (signal) => this.#send(() => this.#link?.send("task-signal", { token, signal })),
      close: () => this.#forget(token),
    };
  }

  /** Ends the connection, and all its requests. */
  end(why: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#onEnd();
    const wasOpen = this.#link !== null;
    this.#link?.close();
    if (this.#idle !== null) clearTimeout(this.#idle);
    const questions = [...this.#questions.values()];
    this.#questions.clear();
    for (const { lost } of questions) lost(why, wasOpen);
  }

  #send(write: () => void): void {
    if (this.#link !== null) write();
    else if (!this.#ended) this.#early.push(write);
  }

  #open(socket: Socket): void {
    const take = (type: keyof MomToTask) => (data: unknown) => this.#receive(type, data);
    this.#link = frameLink<MomToTask & Refused, TaskToMom>(
      socket,
      {
        "task-hosts": take("task-hosts"),
        "task-started": take("task-started"),
        "task-exited": take("task-exited"),
        "task-done": take("task-done"),
        "task-refused": take("task-refused"),
        refused: (data) => this.end(isRecord(data) && typeof data["text"] === "string" ? data["text"].slice(0, 1000) : "it refuses"),
      },
      (error) => this.end(error === null ? "the connection was lost" : `the connection was lost: ${error.message}`),
      LIMITS.request_frame_chars_max,
    );
    const early = this.#early;
    this.#early = [];
    for (const write of early) write();
    this.#watchIdle();
  }

  #receive(type: keyof MomToTask, data: unknown): void {
    const parsed = parseFrame("mom-to-task", type, data);
    if (!parsed.ok) return this.end(parsed.text);
    const { frame } = parsed;
    const token = frame.type === "task-hosts" ? null : frame.data.token;
    const answers = token === null ? undefined : this.#questions.get(token);
    if (token === null || answers === undefined) return;
    if (frame.type !== "task-started") this.#forget(token);
    answers.answered(frame);
  }

  #forget(token: number): void {
    this.#questions.delete(token);
    this.#watchIdle();
  }

  #watchIdle(): void {
    if (this.#questions.size > 0 || this.#idle !== null || this.#ended) return;
    this.#idle = setTimeout(() => this.end("it was not used"), IDLE_MS).unref();
  }
}

// This mom's connections to the other moms of its jobs (src/protocol/task-link.ts): over their sockets on the same machine, over TLS to other hosts. All requests
// to one mom share one connection, which is closed when it has not been used for a while.
//
// M1. The other end must be the mom that the server has named. On this machine, the kernel must say that it runs as root or
//     as this mom's user; on another host, its certificate must name that host (docs/identity.md).
//     Open connections are reviewed: one whose certificate was revoked or has expired ends (review()).
// M2. Each request gets either its answers or a call of lost(), unless it is closed before.
// M3. A frame is made only when the other mom has taken almost everything that was sent before. Until then its request waits, and
//     the jobs that share the connection take turns. A slow mom thus costs this mom no memory besides the requests, which the
//     callers bound (task-server.ts, task-output.ts), and no job can shut out another one.

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
import { versionTalk } from "#protocol/wire/versions.ts";
import { messageOf } from "#support/caught.ts";
import { isRecord } from "#support/guards.ts";
import { frameLink, type Link } from "../host/frame-link.ts";
import type { TaskPlace } from "../job/sister.ts";

/** How long a connection without requests stays open. */
const IDLE_MS = 10_000;

export type Answer = FrameOf<"mom-to-task">;
/** A request of a job to the mom of another host. frame: makes the frame with that token. */
export type Request = { readonly job: string; readonly frame: (token: number) => FrameOf<"task-to-mom"> };

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
  /** returns the identity of this host; if that fails, throws an error whose text is written to the log */
  readonly credentials: () => Credentials;
  /** returns the serial numbers of the certificates that this host refuses; if that fails, throws an error whose text is written to the log */
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

  /** Ends the connections whose certificates are no longer accepted. */
  review(): void {
    for (const link of [...this.#links.values()]) link.review();
  }

  /** Begins to connect. The result has a function that says why the peer is not (or no longer) accepted; null: it is. */
  #dial(place: TaskPlace): Dialling {
    if (place.kind === "socket") return { socket: dialSocket(place.path), fault: () => null };
    const { server_host, server, credentials, revoked } = this.#options;
    const target = { host: place.address ?? server_host, port: place.port, protocol: ALPN.mom };
    let shown: HostIdentity | null = null;
    let until_ms = Number.POSITIVE_INFINITY;
    const faultOf = (peer: HostIdentity | null): string | null => {
      shown = peer;
      const refused = revoked();
      return place.address === null ? serverFault(peer, server, refused) : hostFault(peer, place.host, refused);
    };
    const socket = Promise.resolve()
      .then(() => dialTls({ ...target, fault: faultOf }, credentials(), LIMITS))
      .then((opened) => {
        until_ms = opened.getPeerX509Certificate()?.validToDate.getTime() ?? until_ms;
        return opened;
      });
    const fault = (): string | null => {
      if (Date.now() >= until_ms) return `the certificate of ${place.host} has expired`;
      return shown === null ? null : faultOf(shown);
    };
    return { socket, fault };
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
type Dialling = { readonly socket: Promise<Socket>; readonly fault: () => string | null };

/** A request without its last answer. is_sent: its frame was made. signals: those that wait until the frame has been made or until there is room. */
type Question = { readonly request: Request; readonly answers: Answers; is_sent: boolean; readonly signals: number[] };

/** One connection to another mom. */
class MomLink {
  readonly #questions = new Map<number, Question>();
  readonly #fault: () => string | null;
  readonly #onEnd: () => void;
  #link: Link<TaskToMom> | null = null;
  /** tokens of questions that have something to send, by job; the job whose turn is next comes first (M3) */
  readonly #waiting = new Map<string, Set<number>>();
  #next = 1;
  #idle: NodeJS.Timeout | null = null;
  #ended = false;

  constructor({ socket: dialling, fault }: Dialling, onEnd: () => void) {
    this.#onEnd = onEnd;
    this.#fault = fault;
    dialling.then(
      (socket) => (this.#ended ? void socket.destroy() : this.#open(socket)),
      (error: unknown) => this.end(messageOf(error)),
    );
  }

  ask(request: Request, answers: Answers): Asked {
    const token = this.#next++;
    const question: Question = { request, answers, is_sent: false, signals: [] };
    this.#questions.set(token, question);
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#idle = null;
    this.#send(token, request.job);
    return {
      signal: (signal) => {
        if (!this.#questions.has(token) || question.signals.length >= LIMITS.task_signals_max) return;
        question.signals.push(signal);
        this.#send(token, request.job);
      },
      close: () => this.#forget(token),
    };
  }

  /** Ends the connection, and all its requests. was_read false: the other mom has read none of them. */
  end(why: string, was_read = true): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#onEnd();
    this.#link?.close();
    if (this.#idle !== null) clearTimeout(this.#idle);
    const questions = [...this.#questions.values()];
    this.#questions.clear();
    this.#waiting.clear();
    for (const { answers, is_sent } of questions) answers.lost(why, is_sent && was_read);
  }

  review(): void {
    if (this.#link === null) return;
    let fault: string | null;
    try {
      fault = this.#fault();
    } catch (error) {
      fault = `nobody is trusted: ${messageOf(error)}`;
    }
    if (fault !== null) this.end(fault);
  }

  /** Lets a question wait for its turn to send. */
  #send(token: number, job: string): void {
    if (this.#ended) return;
    const tokens = this.#waiting.get(job);
    if (tokens === undefined) this.#waiting.set(job, new Set([token]));
    else tokens.add(token);
    this.#goOn();
  }

  /** Sends what waits, as long as there is room (M3). */
  #goOn(): void {
    while (this.#link !== null && this.#link.unsent <= LIMITS.write_ahead_bytes) {
      const [turn] = this.#waiting;
      if (turn === undefined) return;
      const [job, tokens] = turn;
      this.#waiting.delete(job);
      const [token] = tokens;
      if (token === undefined) continue;
      tokens.delete(token);
      if (tokens.size > 0) this.#waiting.set(job, tokens);
      this.#sendNow(this.#link, token);
    }
  }

  #sendNow(link: Link<TaskToMom>, token: number): void {
    const question = this.#questions.get(token);
    if (question === undefined) return;
    if (!question.is_sent) {
      question.is_sent = true;
      const { type, data } = question.request.frame(token);
      link.send(type, data);
    }
    for (const signal of question.signals.splice(0)) link.send("task-signal", { token, signal });
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
        refused: (data) => this.end(isRecord(data) && typeof data["text"] === "string" ? data["text"].slice(0, 1000) : "it refuses", false),
      },
      (error) => this.end(error === null ? "the connection was lost" : `the connection was lost: ${error.message}`),
      LIMITS.request_frame_chars_max,
      versionTalk(),
    );
    socket.on("drain", () => this.#goOn());
    this.#goOn();
    this.#watchIdle();
  }

  #receive(type: keyof MomToTask, data: unknown): void {
    const parsed = parseFrame("mom-to-task", type, data);
    if (!parsed.ok) return this.end(parsed.text);
    const { frame } = parsed;
    const token = frame.type === "task-hosts" ? null : frame.data.token;
    const question = token === null ? undefined : this.#questions.get(token);
    if (token === null || question === undefined) return;
    if (frame.type !== "task-started") this.#forget(token);
    question.answers.answered(frame);
  }

  #forget(token: number): void {
    const job = this.#questions.get(token)?.request.job ?? "";
    this.#questions.delete(token);
    const tokens = this.#waiting.get(job);
    if (tokens?.delete(token) && tokens.size === 0) this.#waiting.delete(job);
    this.#watchIdle();
  }

  #watchIdle(): void {
    if (this.#questions.size > 0 || this.#idle !== null || this.#ended) return;
    this.#idle = setTimeout(() => this.end("it was not used"), IDLE_MS).unref();
  }
}

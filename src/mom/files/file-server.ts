// Lets jobs on other hosts write and read files of this host (docs/files.md): accepts TLS connections of hosts of the complex, asks the server which files the run
// may write and read, and connects the other host with a process that has the rights of the job's owner and no others.
//
// V1. A peer needs a certificate of the complex that was not revoked. When the peer names a run, the server decides what it may do (src/server/moms/job-files.ts): a
//     host that connects again after the end of the run gets nothing. While a connection is open, this process asks the server again every minute, so that the
//     connection does not outlive the run.
// V2. This process touches no file of a job. Its worker runs as the owner of the job, whom the user database of this host must know, and never as root.
// V3. Data of a host is read no faster than its worker takes it. The numbers of connections, in total and of one host, and the time without any data are bounded. A
//     refused connection ends soon, whatever its peer does.

import { type ChildProcess, spawn } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import type { TLSSocket } from "node:tls";
import { CredentialsError, readCredentials } from "#identity/files/credentials.ts";
import { revokedSerials } from "#identity/files/revoked.ts";
import { hostName } from "#identity/host-name.ts";
import type { HostIdentity } from "#identity/peer.ts";
import { encodeFileFrame, type FileFrame, fileFrameDecoder } from "#protocol/files/link.ts";
import { listenStreams, type StreamListener } from "#protocol/files/tls-streams.ts";
import { type AskingHost, filesGrant, offerFiles } from "#protocol/host-questions.ts";
import type { FilesGrant } from "#protocol/join-link.ts";
import { ALPN } from "#protocol/wire/alpn.ts";
import { LIMITS, type Limits } from "#protocol/wire/limits.ts";
import { messageOf } from "#support/caught.ts";
import { identityWords } from "../host/identity-words.ts";
import { ownersOf } from "../host/owners.ts";
import { siblingProgram } from "../host/sibling.ts";
import type { Owner } from "../job/plan.ts";

export type FileServerOptions = {
  /** PBS_HOME, PBS_SERVER and its place, as for questions of a host */
  readonly asking: AskingHost;
  readonly port: number;
  readonly mode: "user" | "system";
  /** writes into the log */
  readonly say: (text: string) => void;
  readonly limits?: Partial<Limits>;
};

const PATH = "/usr/local/bin:/usr/bin:/bin";

type Run = { readonly job: string; readonly run_count: number };
/** run: the run that the peer has named; null: it has named none yet. asked_ms: when the server was last asked about this run */
type Session = { readonly socket: TLSSocket; readonly peer: HostIdentity; worker: ChildProcess | null; run: Run | null; asked_ms: number };

export class FileServer {
  readonly #options: FileServerOptions;
  readonly #limits: Limits;
  readonly #sessions = new Set<Session>();
  readonly #refused = new Set<TLSSocket>();
  #listener: StreamListener | null = null;
  #seen = "";
  #offered_ms = Number.NEGATIVE_INFINITY;
  #told = "";
  #timer: NodeJS.Timeout | null = null;

  constructor(options: FileServerOptions) {
    this.#options = options;
    this.#limits = { ...LIMITS, ...options.limits };
  }

  /** Opens the port as soon as this host has an identity, and shows the present certificate of the host from then on. */
  async start(): Promise<void> {
    await this.#look();
    this.#timer = setInterval(() => void this.#look(), this.#limits.files_look_ms);
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#listener?.close();
    for (const session of this.#sessions) session.socket.destroy();
    for (const socket of this.#refused) socket.destroy();
  }

  async #look(): Promise<void> {
    try {
      await this.#show();
      this.#review();
      await this.#offer();
      await this.#askAgain();
      this.#told = "";
    } catch (error) {
      const text = messageOf(error);
      if (text !== this.#told) this.#options.say(`files of other hosts: ${text}`);
      this.#told = text;
    }
  }

  async #show(): Promise<void> {
    const { asking, port, say } = this.#options;
    const stamp = stampOf(asking.home);
    if (stamp === this.#seen) return;
    const credentials = readCredentials(asking.home);
    if (credentials === null) throw new CredentialsError(`${asking.home}/identity holds no certificate`);
    if (this.#listener !== null) this.#listener.show(credentials);
    else
      this.#listener = await listenStreams({
        port,
        protocol: ALPN.files,
        credentials,
        fault: (identity) => this.#faultOf(identity),
        take: (socket, identity) => void this.#take(socket, identity),
        say,
        limits: this.#limits,
      });
    this.#seen = stamp;
  }

  /** Returns why a host is refused (V1), in words for the log; null: it is accepted. */
  #faultOf({ role, host, serial }: HostIdentity): string | null {
    const { home, server } = this.#options.asking;
    if (role === "server" ? host !== hostName(server) : role !== "host") return `${host} has the role ${role}`;
    try {
      return revokedSerials(home).has(serial) ? `the certificate ${serial} of ${host} was revoked` : null;
    } catch (error) {
      return `nobody is trusted: ${messageOf(error)}`;
    }
  }

  /** Ends connections whose certificates are no longer accepted. */
  #review(): void {
    for (const { socket, peer } of this.#sessions) {
      const until_ms = socket.getPeerX509Certificate()?.validToDate.getTime() ?? 0;
      if (this.#faultOf(peer) !== null || Date.now() >= until_ms) socket.destroy();
    }
  }

  /** Ends connections whose runs are over (V1). A server that cannot be reached is asked later. */
  async #askAgain(): Promise<void> {
    const due_ms = performance.now() - this.#limits.files_ask_ms;
    for (const session of [...this.#sessions].filter(({ run, asked_ms }) => run !== null && asked_ms <= due_ms)) {
      const grant = session.run === null ? null : await this.#grantFor(session, session.run);
      if (grant === null || !("refused" in grant)) continue;
      this.#options.say(`files of other hosts: a connection of ${session.peer.host} is ended: ${grant.refused}`);
      session.socket.destroy();
    }
  }

  #grantFor(session: Session, run: Run): ReturnType<typeof filesGrant> {
    const { host, role } = session.peer;
    session.run = run;
    session.asked_ms = performance.now();
    return filesGrant(this.#options.asking, { ...run, from: host, from_server: role === "server" });
  }

  async #offer(): Promise<void> {
    const now_ms = performance.now();
    if (now_ms - this.#offered_ms < this.#limits.files_offer_ms) return;
    await offerFiles(this.#options.asking, this.#options.port);
    this.#offered_ms = now_ms;
  }

  async #take(socket: TLSSocket, peer: HostIdentity): Promise<void> {
    const session: Session = { socket, peer, worker: null, run: null, asked_ms: 0 };
    const of_host = [...this.#sessions].filter((each) => each.peer.host === peer.host).length;
    if (this.#sessions.size >= this.#limits.files_connections_max || of_host >= this.#limits.files_host_connections_max)
      return this.#refuseMore(socket);
    this.#sessions.add(session);
    socket.once("close", () => this.#over(session));
    socket.setTimeout(this.#limits.files_silent_ms, () => socket.destroy());
    try {
      const opened = await openingOf(socket, this.#limits.files_open_ms);
      if (opened === null) return;
      const { job, run_count } = opened.frame;
      const grant = await this.#grantFor(session, { job, run_count });
      if (socket.destroyed) return;
      if ("refused" in grant) return this.#refuse(socket, `the server refuses: ${grant.refused}`, false);
      const owner = this.#ownerOf(grant);
      if (typeof owner === "string") return this.#refuse(socket, owner, false);
      this.#work(session, grant, owner, opened.rest);
    } catch (error) {
      this.#refuse(socket, messageOf(error), true);
    }
  }

  /** Refuses a connection because there are too many. While many refused connections are still open, further ones get no answer (V3). */
  #refuseMore(socket: TLSSocket): void {
    if (this.#refused.size >= this.#limits.files_connections_max) return void socket.destroy();
    this.#refused.add(socket);
    socket.once("close", () => this.#refused.delete(socket));
    this.#refuse(socket, "too many files are being copied", true);
  }

  #refuse(socket: TLSSocket, text: string, again: boolean): void {
    if (socket.destroyed) return;
    socket.end(encodeFileFrame({ kind: "failed", text: text.slice(0, 1000), again }));
    // A peer that never closes its end would hold the connection (V3).
    const timer = setTimeout(() => socket.destroy(), this.#limits.files_refused_ms);
    socket.once("close", () => clearTimeout(timer));
  }

  /** Returns the owner of the job on this host (V2), or the reason why there is none. */
  #ownerOf({ user, group }: FilesGrant): Owner | string {
    const owner = ownersOf(this.#options.mode)({ user, group });
    if (owner === null) return `No Password Entry for User ${user}`;
    return owner.identity?.uid === 0 ? "files of root are not copied between hosts" : owner;
  }

  #work(session: Session, { user: _, group: __, ...grant }: FilesGrant, owner: Owner, rest: Buffer): void {
    const { socket } = session;
    const words = [process.execPath, "--no-warnings", siblingProgram("file-worker")];
    const [program = "", ...args] = owner.identity === null ? words : [...identityWords(owner.identity), ...words];
    const worker = spawn(program, args, { cwd: "/", env: { PATH, HOME: owner.home }, stdio: ["pipe", "pipe", "ignore"] });
    session.worker = worker;
    worker.once("error", (error) => this.#refuse(socket, messageOf(error), true));
    worker.once("close", () => {
      session.worker = null;
      if (socket.destroyed) this.#sessions.delete(session);
      else socket.end();
    });
    connect(socket, worker.stdin, worker.stdout, Buffer.concat([encodeFileFrame({ kind: "grant", ...grant }), rest]));
  }

  /** Called when the connection has ended. Its worker then removes incomplete files, and ends. The session counts until then, because a slow disk may delay the worker. */
  #over(session: Session): void {
    if (session.worker === null) this.#sessions.delete(session);
    else session.worker.once("close", () => this.#sessions.delete(session));
    session.worker?.stdin?.destroy();
    session.worker?.stdout?.destroy();
  }
}

/** Connects the other host with the worker, in both directions. Neither gets data faster than it takes them (V3). */
function connect(socket: TLSSocket, input: Writable, output: Readable, first: Buffer): void {
  for (const stream of [input, output]) stream.on("error", () => socket.destroy());
  input.write(first);
  socket.pipe(input);
  output.pipe(socket, { end: false });
}

type Opened = { readonly frame: FileFrame & { readonly kind: "open" }; readonly rest: Buffer };

/** Reads the first frame, and stops reading. null: the connection has ended, or something else came. */
function openingOf(socket: TLSSocket, ms_max: number): Promise<Opened | null> {
  return new Promise((resolve) => {
    const decoder = fileFrameDecoder();
    const end = (opened: Opened | null): void => {
      clearTimeout(timer);
      socket.off("data", read);
      socket.pause();
      if (opened === null) socket.destroy();
      resolve(opened);
    };
    const timer = setTimeout(() => end(null), ms_max);
    const read = (piece: Buffer): void => {
      try {
        const frame = decoder.first(piece);
        if (frame === null) return;
        end(frame.kind === "open" ? { frame, rest: decoder.rest() } : null);
      } catch {
        end(null);
      }
    };
    socket.on("data", read);
    socket.once("close", () => end(null));
  });
}

/** Returns a text that changes when the files of the identity change. */
function stampOf(home: string): string {
  return ["host.pem", "ca.crt"]
    .map((name) => {
      const { ino, mtimeMs } = statSync(join(home, "identity", name));
      return `${ino} ${mtimeMs}`;
    })
    .join();
}

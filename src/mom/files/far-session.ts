// A connection over which files of a job are copied to and from another host (protocol/files/link.ts): the side of the host where the job runs. The file agent uses
// it.
//
// E1. This thread has the rights of the job's owner only during calls to the file system. While it waits for the connection, it has its own rights.
// E2. This process sends no faster than the other host takes: it holds one piece of a file, besides the buffer of its socket.
// E3. The other host cannot choose the names of files here: each name that it sends must be the last name of the requested path, or match the pattern there.
// E4. A connection ends if no data passes over it for some time.

import { once } from "node:events";
import type { TLSSocket } from "node:tls";
import type { Credentials } from "#identity/files/credentials.ts";
import { type HostIdentity, hostFault, serverFault } from "#identity/peer.ts";
import { encodeFileFrame, type FileFrame, FileFrameError, fileFrameDecoder } from "#protocol/files/link.ts";
import { ALPN } from "#protocol/wire/alpn.ts";
import { LIMITS } from "#protocol/wire/limits.ts";
import { dialTls } from "#protocol/wire/tls-dialer.ts";
import { messageOf } from "#support/caught.ts";
import { asIdentity } from "../host/posix.ts";
import type { FileIdentity } from "../job/process.ts";
import { isAskedFor } from "./pattern.ts";
import { placeIn } from "./place-in.ts";
import { treeFrames } from "./tree-source.ts";
import { TreeTarget } from "./tree-target.ts";

/** The failure of a copy. again: the reason may pass, so that another attempt makes sense. */
export class FarError extends Error {
  override readonly name = "FarError";
  readonly again: boolean;
  constructor(text: string, again: boolean) {
    super(text);
    this.again = again;
  }
}

export type FarPlace = {
  /** an address or a name, and the port */
  readonly host: string;
  readonly port: number;
  /** the name of the host as the job states it; null: it is the server's host */
  readonly name: string | null;
  /** PBS_SERVER */
  readonly server: string;
  readonly revoked: ReadonlySet<string>;
};

export type FarRun = { readonly job: string; readonly run_count: number; readonly owner: FileIdentity | null };

export class FarSession {
  readonly #socket: TLSSocket;
  readonly #run: FarRun;
  readonly #decoder = fileFrameDecoder();
  readonly #frames: FileFrame[] = [];
  #fault: Error | null = null;
  #wake: (() => void) | null = null;

  private constructor(socket: TLSSocket, run: FarRun) {
    this.#socket = socket;
    this.#run = run;
    socket.setTimeout(LIMITS.files_silent_ms, () => socket.destroy(new Error("nothing passes any more")));
    socket.on("error", (error) => this.#ends(error));
    socket.on("close", () => this.#ends(new Error("it closed the connection")));
    socket.on("data", (piece: Buffer) => {
      try {
        this.#frames.push(...this.#decoder.push(piece));
      } catch (error) {
        socket.destroy();
        this.#ends(error instanceof Error ? error : new Error(messageOf(error)));
      }
      // Frames are taken one by one (E2): no more data is read while a frame waits.
      if (this.#frames.length > 0) socket.pause();
      this.#wake?.();
    });
  }

  /** Connects to a host and names the run. Throws FarError. */
  static async open(place: FarPlace, credentials: Credentials, run: FarRun): Promise<FarSession> {
    const fault = (peer: HostIdentity | null): string | null =>
      place.name === null ? serverFault(peer, place.server, place.revoked) : namedFault(peer, place.name, place.revoked);
    const socket = await dialTls({ host: place.host, port: place.port, protocol: ALPN.files, fault }, credentials, LIMITS).catch(
      (error: unknown) => {
        throw new FarError(messageOf(error), true);
      },
    );
    const session = new FarSession(socket, run);
    session.#write({ kind: "open", job: run.job, run_count: run.run_count });
    try {
      const answer = await session.#next();
      if (answer.kind !== "ready") throw new FarError("it answers something else", false);
      return session;
    } catch (error) {
      session.close();
      throw error;
    }
  }

  /**
   * Copies a file or a tree of this host to the other host. path: its place there; name: its name there if the place is a directory. Throws FarError, or the
   * error of this host's file system.
   */
  async put(source: string, path: string, name: string): Promise<void> {
    const frames = treeFrames(source);
    const next = (): IteratorResult<FileFrame, void> => asIdentity(this.#run.owner, () => frames.next());
    // If the source cannot be read, this call throws before anything is sent.
    let frame = next();
    try {
      this.#write({ kind: "put", path, name });
      for (; frame.done !== true; frame = next()) {
        const is_taken = this.#write(frame.value);
        if (this.#frames.length > 0) break;
        if (!is_taken) await this.#drained();
      }
      this.#write({ kind: "end" });
      const answer = await this.#next();
      if (answer.kind !== "done") throw new FarError("it answers something else", false);
    } catch (error) {
      // The other host lacks the rest of the tree, and must not take later frames for it.
      this.close();
      throw error;
    } finally {
      asIdentity(this.#run.owner, () => frames.return());
    }
  }

  /**
   * Copies files of the other host to this host. path: a file of the other host, or a pattern for several. local: the place on this host. onPlace: called with
   * the path of each file before it is written. Throws FarError, or the error of this host's file system.
   */
  async get(path: string, local: string, onPlace: (target: string) => void): Promise<void> {
    const { owner } = this.#run;
    const uid = owner?.uid ?? process.geteuid?.() ?? 0;
    let target: TreeTarget | null = null;
    try {
      this.#write({ kind: "get", path });
      for (let frame = await this.#next(); frame.kind !== "end"; frame = await this.#next()) {
        const present = frame;
        target = asIdentity(owner, () => take(present, target, { path, local, uid, onPlace }));
      }
      const last = target;
      if (last === null) throw new FarError("it sends nothing", false);
      asIdentity(owner, () => last.end());
    } catch (error) {
      asIdentity(owner, () => target?.abort());
      this.close();
      throw error;
    }
  }

  close(): void {
    this.#socket.destroy();
  }

  #write(frame: FileFrame): boolean {
    return this.#socket.write(encodeFileFrame(frame));
  }

  async #drained(): Promise<void> {
    const ended = once(this.#socket, "close");
    await Promise.race([once(this.#socket, "drain"), ended, new Promise<void>((resolve) => this.#wakeBy(resolve))]);
    if (this.#fault !== null) throw new FarError(messageOf(this.#fault), true);
  }

  #wakeBy(resolve: () => void): void {
    this.#wake = () => {
      this.#wake = null;
      resolve();
    };
  }

  #ends(error: Error): void {
    this.#fault ??= error;
    this.#wake?.();
  }

  /** Returns the next frame of the other host. Throws FarError if the connection has ended, or the frame reports a failure. */
  async #next(): Promise<FileFrame> {
    while (this.#frames.length === 0) {
      if (this.#fault !== null) throw new FarError(messageOf(this.#fault), !(this.#fault instanceof FileFrameError));
      this.#socket.resume();
      await new Promise<void>((resolve) => this.#wakeBy(resolve));
    }
    const frame = this.#frames.shift();
    if (frame === undefined) throw new FarError("no answer", true);
    if (frame.kind === "failed") throw new FarError(frame.text, frame.again);
    return frame;
  }
}

function namedFault(peer: HostIdentity | null, name: string, revoked: ReadonlySet<string>): string | null {
  if (peer !== null && revoked.has(peer.serial)) return `the certificate ${peer.serial} of ${peer.host} was revoked`;
  return hostFault(peer, name);
}

type GetPlace = { readonly path: string; readonly local: string; readonly uid: number; readonly onPlace: (target: string) => void };

/** Takes a frame of an answer to get. Returns the tree that is being written. */
function take(frame: FileFrame, target: TreeTarget | null, { path: asked, local, uid, onPlace }: GetPlace): TreeTarget {
  switch (frame.kind) {
    case "name": {
      target?.end();
      if (!isAskedFor(asked, frame.name)) throw new FileFrameError(`a file ${frame.name}, which was not asked for`);
      const path = placeIn(local, frame.name);
      onPlace(path);
      return new TreeTarget(path, uid, path === local);
    }
    case "file":
    case "dir":
    case "link":
      if (target === null) throw new FileFrameError("an entry without a name");
      target.add(frame);
      return target;
    case "data":
      if (target === null) throw new FileFrameError("data without an entry");
      target.data(frame.bytes);
      return target;
    default:
      throw new FileFrameError(`a frame ${frame.kind}`);
  }
}

// Connections (links) between daemons, and the server's side of every connection.
//
// T1. onFrame is called only between onLink and onClose of the same link, and in the order of the frames.
// T2. A peer that breaks a rule loses its connection; nothing else happens.
// T3. No user can use up all connections: each user may have a limited number, and some are reserved for root, the user who
//     owns the complex, and daemons.

import { chmodSync, existsSync, lstatSync, mkdirSync } from "node:fs";
import type { Server, Socket } from "node:net";
import { dirname } from "node:path";
import { encodeFrame, FrameError, frameDecoder } from "./frame.ts";
import { createIpc, type IpcClient, type IpcServer, setInbox } from "./ipc.ts";
import type { Limits } from "./limits.ts";
import { LIMITS } from "./limits.ts";
import { type Outbox, outbox } from "./link.ts";
import { peerCredentials } from "./peer-credentials.ts";
import { type LinkHandlers, ServerConnection, type ServerLink, type UserLoad, userLoad } from "./server-link.ts";
import { socketAddress } from "./socket-path.ts";

export type { LinkHandlers, ServerLink } from "./server-link.ts";

export type ListenOptions = LinkHandlers & {
  readonly path: string;
  /** the accepted frame types */
  readonly types: readonly string[];
  /** true: every user may connect (system mode: socket 0666, directory 0755); false: only the server's user (0600 and 0700) */
  readonly everyone: boolean;
  readonly limits?: Partial<Limits>;
};

export type LinkServer = {
  readonly links: ReadonlySet<ServerLink>;
  /** Changes limits, for existing connections too. */
  setLimits(changed: Partial<Limits>): void;
  /** Ends all links and stops listening. */
  close(): Promise<void>;
};

const PBSE_NOCONNECTS = 15033;
const PBSE_BADCRED = 15019;

/**
 * Starts to listen. The caller has locked the server's home, so an existing socket file belongs to no running server and is
 * removed. Rejects if the socket cannot be created at the path.
 */
export async function listenLinks(options: ListenOptions): Promise<LinkServer> {
  const limits: Limits = { ...LIMITS, ...options.limits };
  makeSocketDirectory(dirname(options.path), options.everyone);
  const { address, release } = socketAddress(options.path);
  const ipc = createIpc(new Set(options.types));
  ipc.config.maxConnections = limits.connections_max;
  ipc.config.readableAll = options.everyone;
  ipc.config.writableAll = options.everyone;
  ipc.serve(address);
  const server = ipc.server as IpcServer;
  const links = new Map<Socket, ServerConnection>();
  const users = new Map<number, UserLoad>();

  server.on("connect", (socket: Socket) => admit(socket));
  server.on("close", (socket: Socket) => dismiss(socket));
  for (const type of options.types) {
    server.on(type, (data: unknown, socket: Socket) => {
      const link = links.get(socket);
      if (link !== undefined && !link.refused) options.onFrame(link, type, data);
    });
  }

  function admit(socket: Socket): void {
    const peer = peerCredentials(socket);
    if (peer === null) {
      options.onProblem?.("a peer without credentials", null);
      return refuse(socket, PBSE_BADCRED, "Invalid credential");
    }
    const user = users.get(peer.uid) ?? userLoad();
    const privileged = peer.uid === 0 || peer.uid === process.getuid?.();
    const full =
      !privileged &&
      (links.size >= limits.connections_max - limits.reserved_connections || user.connections >= limits.user_connections_max);
    if (full) {
      options.onProblem?.(`too many connections of uid ${peer.uid}`, peer);
      return refuse(socket, PBSE_NOCONNECTS, "No free connections");
    }
    users.set(peer.uid, user);
    user.connections++;
    const link = new ServerConnection(server, socket, peer, limits, user, options);
    links.set(socket, link);
    options.onLink?.(link);
  }

  function refuse(socket: Socket, code: number, text: string): void {
    setInbox(socket, () => undefined);
    socket.on("error", () => undefined);
    socket.end(encodeFrame("refused", { code, text }));
    setTimeout(() => socket.destroy(), 1000).unref();
  }

  function dismiss(socket: Socket): void {
    const link = links.get(socket);
    if (link === undefined) return;
    links.delete(socket);
    link.closed();
    const user = users.get(link.peer.uid);
    if (user !== undefined && --user.connections === 0) users.delete(link.peer.uid);
    options.onClose?.(link);
  }

  await new Promise<void>((resolve, reject) => {
    server.on("start", () => resolve());
    // node-ipc also reports every broken connection here. Once the server listens, the promise is settled, and these have no
    // effect.
    server.on("error", (error: Error) => reject(error));
    server.start();
  });
  chmodSync(options.path, options.everyone ? 0o666 : 0o600);

  return {
    get links() {
      return new Set(links.values());
    },
    setLimits: (changed) => void Object.assign(limits, changed),
    close() {
      return new Promise((resolve) => {
        const listening = server.server as Server;
        listening.once("close", () => {
          release();
          resolve();
        });
        server.stop();
      });
    },
  };
}

/** Creates the directory of the socket. It must belong to the server's user: a path that is no directory or has another owner is refused. */
function makeSocketDirectory(dir: string, everyone: boolean): void {
  if (!existsSync(dir)) mkdirSync(dir, { mode: 0o700 });
  const stat = lstatSync(dir);
  if (!stat.isDirectory() || stat.uid !== process.getuid?.()) throw new Error(`${dir} must be a directory of the server's own user`);
  chmodSync(dir, everyone ? 0o755 : 0o700);
}

// --- the daemons' side of a link

/** The first interval between attempts is short, because a server that is just starting can soon be reached. It grows up to retry_ms. */
const RETRY_MS_FIRST = 25;

/** A lasting connection to the server. If it breaks, it is made again: the first attempt follows after a moment, later ones every second. */
export type DaemonLink = {
  readonly connected: boolean;
  /** Sends a frame. Without a connection the frame is dropped, because every hello sends the state again. */
  send(type: string, data: unknown): void;
  sendFrames(frames: Iterable<string>): Promise<void>;
  /** Ends the connection and makes it again (after a gap in revisions). */
  reconnect(): void;
  /** Closes the link for ever. */
  close(): void;
};

export type DaemonLinkOptions = {
  readonly path: string;
  /** the accepted frame types */
  readonly types: readonly string[];
  /** Called when the connection is open. It must send the hello. */
  onOpen(link: DaemonLink): void;
  onFrame(type: string, data: unknown): void;
  onClose?(why: string): void;
  /** Called after every failed attempt. */
  onRefused?(error: NodeJS.ErrnoException): void;
  /** longest wait between attempts (default 1000) */
  readonly retry_ms?: number;
  readonly limits?: Partial<Limits>;
};

/** Connects a daemon to the server, and connects again whenever the connection breaks. */
export function connectLink(options: DaemonLinkOptions): DaemonLink {
  const limits: Limits = { ...LIMITS, ...options.limits };
  const allowed = new Set([...options.types, "refused"]);
  const ipc = createIpc(allowed);
  const retry_ms_max = options.retry_ms ?? 1000;
  ipc.config.retry = Math.min(RETRY_MS_FIRST, retry_ms_max);
  ipc.config.maxRetries = Number.POSITIVE_INFINITY;
  let client: IpcClient;
  let release = (): void => undefined;
  let out: Outbox | null = null;
  let why = "";
  let closed = false;

  /** A long path is reached through a descriptor of its directory. The directory may have been recreated, so each attempt opens it again. */
  const address = (): string => {
    release();
    try {
      const found = socketAddress(options.path);
      release = found.release;
      return found.address;
    } catch {
      release = () => undefined;
      return options.path;
    }
  };

  const open = (): void => {
    const { socket } = client;
    const decoder = frameDecoder(limits.daemon_frame_chars_max, allowed);
    setInbox(socket, (chunk, receive) => {
      try {
        decoder.push(chunk, receive);
      } catch (error) {
        if (!(error instanceof FrameError)) throw error;
        why = error.message;
        socket.destroy();
      }
    });
    const queueLimits = () => ({
      write_ahead_bytes: limits.write_ahead_bytes,
      queue_chars_max: limits.daemon_queue_chars_max,
      stalled_reader_ms: limits.stalled_daemon_ms,
    });
    const breakOff = (text: string): void => {
      why = text;
      socket.destroy();
    };
    out = outbox(socket, { write: (text) => void client.send(text), limits: queueLimits, giveUp: breakOff, onRoom: () => undefined });
    options.onOpen(link);
  };

  const link: DaemonLink = {
    get connected() {
      return out !== null;
    },
    send: (type, data) => out?.send(encodeFrame(type, data)),
    sendFrames: (frames) => out?.sendFrames(frames) ?? Promise.reject(new Error("not connected")),
    reconnect: () => void client.socket.destroy(),
    close() {
      if (closed) return;
      closed = true;
      out?.end();
      out = null;
      const { socket } = client;
      client.explicitlyDisconnected = true;
      clearTimeout(client.retryTimer || undefined);
      if (socket.connecting || socket.destroyed || !socket.writable) socket.destroy();
      else setTimeout(() => socket.destroy(), 1000).unref();
      release();
    },
  };

  ipc.connectTo("server", address());
  client = ipc.of["server"] as IpcClient;
  client.on("connect", () => open());
  client.on("error", (error: NodeJS.ErrnoException) => {
    why = error.message;
    if (out === null && !closed) options.onRefused?.(error);
  });
  client.on("disconnect", () => {
    const wasOpen = out !== null;
    out = null;
    // node-ipc has just set its timer with the previous interval.
    ipc.config.retry = wasOpen ? RETRY_MS_FIRST : Math.min(Number(ipc.config.retry) * 2, retry_ms_max);
    if (closed) return;
    client.path = address();
    if (wasOpen) options.onClose?.(why || "the server closed the connection");
    why = "";
  });
  for (const type of allowed) {
    client.on(type, (data: unknown) => {
      if (!closed) options.onFrame(type, data);
    });
  }
  return link;
}

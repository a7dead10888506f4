// Links of daemons to their server: over a unix socket on its host, over TLS from another host (tls-dialer.ts).
//
// D1. A connection that ends is made again: soon if the server had sent something on it, otherwise after longer and longer
//     intervals. Over TLS a connection is open before the server has looked at the certificate, so that a refused host would
//     otherwise come back at once, again and again. A host whose certificate is refused waits longer, because an
//     administrator must act first. So does a daemon that speaks no version of the server's protocol (versions.ts).

import type { Socket } from "node:net";
import { isRecord } from "#support/guards.ts";
import { encodeFrame, type Frame, FrameError, frameDecoder } from "./frame.ts";
import { clientOf, createIpc, type IpcClient, setInbox } from "./ipc.ts";
import type { Limits } from "./limits.ts";
import { LIMITS } from "./limits.ts";
import { type Outbox, outbox } from "./link.ts";
import { PBSE_BADCRED } from "./link-server.ts";
import { socketAddress } from "./socket-path.ts";
import { PBSE_PROTOCOL, versionTalk } from "./versions.ts";

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

export type DaemonLinkHandlers = {
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

export type DaemonLinkOptions = DaemonLinkHandlers & { readonly path: string };

/** What carries a link: a unix socket, or TLS. */
export type Carrier = {
  /** creates the client of node-ipc and begins its first attempt */
  begin(ipc: ReturnType<typeof createIpc>): IpcClient;
  /** prepares the next attempt */
  prepare(client: IpcClient): void;
  release(): void;
};

/** Connects a daemon to the server on its host, and connects again whenever the connection breaks. */
export const connectLink = (options: DaemonLinkOptions): DaemonLink => keepConnected(options, () => unixCarrier(options.path));

function unixCarrier(path: string): Carrier {
  let release = (): void => undefined;
  /** A long path is reached through a descriptor of its directory. The directory may have been recreated, so each attempt opens it again. */
  const address = (): string => {
    release();
    try {
      const found = socketAddress(path);
      release = found.release;
      return found.address;
    } catch {
      release = () => undefined;
      return path;
    }
  };
  return {
    begin(ipc) {
      ipc.connectTo("server", address());
      return clientOf(ipc);
    },
    prepare(client) {
      client.path = address();
    },
    release: () => release(),
  };
}

/** Keeps a link connected. makeCarrier: gets the limits of the link. */
export function keepConnected(options: DaemonLinkHandlers, makeCarrier: (limits: Limits) => Carrier): DaemonLink {
  const limits: Limits = { ...LIMITS, ...options.limits };
  const allowed = new Set([...options.types, "refused"]);
  const ipc = createIpc(allowed);
  const retry_ms_max = options.retry_ms ?? 1000;
  ipc.config.retry = Math.min(RETRY_MS_FIRST, retry_ms_max);
  ipc.config.maxRetries = Number.POSITIVE_INFINITY;
  const carrier = makeCarrier(limits);
  let out: Outbox | null = null;
  let why = "";
  let closed = false;
  /** the server has sent something on this connection (D1) */
  let heard = false;
  /** Delays the next attempt to connect. node-ipc will set its timer when this connection closes, which happens next. */
  const waitLonger = (): void => void (ipc.config.retry = Math.max(limits.refused_retry_ms, Number(ipc.config.retry)));

  const open = (): void => {
    if (client.socket.destroyed) return;
    const breakOff = (text: string): void => {
      why = text;
      client.socket.destroy();
    };
    const talk = versionTalk();
    const hear = (frame: Frame): boolean => {
      const strange = talk.incoming(frame);
      if (strange === null) return true;
      waitLonger();
      breakOff(strange);
      return false;
    };
    decodeFrames(client.socket, limits, allowed, { breakOff, hear });
    const queueLimits = () => ({
      write_ahead_bytes: limits.write_ahead_bytes,
      queue_chars_max: limits.daemon_queue_chars_max,
      stalled_reader_ms: limits.stalled_daemon_ms,
    });
    const write = (text: string): void => void client.send(talk.outgoing(text));
    heard = false;
    out = outbox(client.socket, { write, limits: queueLimits, giveUp: breakOff, onRoom: () => undefined });
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
      carrier.release();
    },
  };

  const client = carrier.begin(ipc);
  client.on("connect", () => open());
  client.on("error", (error: NodeJS.ErrnoException) => {
    why = error.message;
    if (out === null && !closed) options.onRefused?.(error);
  });
  client.on("disconnect", () => {
    const wasOpen = out !== null;
    out = null;
    // node-ipc has just set its timer with the previous interval.
    ipc.config.retry = wasOpen && heard ? RETRY_MS_FIRST : Math.min(Number(ipc.config.retry) * 2, retry_ms_max);
    if (closed) return;
    carrier.prepare(client);
    if (wasOpen) options.onClose?.(why || "the server closed the connection");
    why = "";
  });
  for (const type of allowed) {
    client.on(type, (data: unknown) => {
      if (type !== "refused") heard = true;
      else if (WAITING.has(codeIn(data))) waitLonger();
      if (!closed) options.onFrame(type, data);
    });
  }
  return link;
}

/** Refusals after which an administrator must act first: the certificate is not accepted, or one of the two programs must be upgraded. */
const WAITING: ReadonlySet<unknown> = new Set([PBSE_BADCRED, PBSE_PROTOCOL]);

const codeIn = (refused: unknown): unknown => (isRecord(refused) ? refused["code"] : undefined);

type Ears = {
  /** called when the server violates the protocol */
  readonly breakOff: (text: string) => void;
  /** called with each frame before it is received; returns false if the frame must not be received */
  readonly hear: (frame: Frame) => boolean;
};

/** Replaces the decoder of node-ipc with ours. */
function decodeFrames(socket: Socket, limits: Limits, allowed: ReadonlySet<string>, { breakOff, hear }: Ears): void {
  const decoder = frameDecoder(limits.daemon_frame_chars_max, allowed);
  setInbox(socket, (chunk, receive) => {
    try {
      decoder.push(chunk, (frame) => {
        if (hear(frame)) receive(frame);
      });
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      breakOff(error.message);
    }
  });
}

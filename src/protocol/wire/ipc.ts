// The part of node-ipc that we use. No other file imports node-ipc, which has no types of its own. node-ipc listens,
// reconnects, splits frames and dispatches by type. Our parser replaces its own: it keeps the rules of the `guarded` profile
// (size limit, allowed types, no prototype names, time limit for an incomplete frame) in linear time and with a limit for each
// connection. The `assured` profile of node-ipc wants a socket that only one user can reach. Ours must be reachable by every
// user, so identity comes from the kernel (peer-credentials.ts).

import type { Socket } from "node:net";
import nodeIpc from "node-ipc";
import type { Frame } from "./frame.ts";
import { encodeFrame } from "./frame.ts";

/** An instance of node-ipc that accepts the given frame types. */
export function createIpc(allowed: ReadonlySet<string>) {
  const ipc = new nodeIpc.IPC();
  configure(ipc, allowed);
  return ipc;
}

type IpcEvents = { on(event: string, handler: (...args: never[]) => void): void };
export type IpcServer = IpcEvents & {
  readonly server: unknown;
  readonly parser: IpcParser;
  write(socket: Socket, text: string): boolean;
  start(): void;
  stop(): void;
};
export type IpcClient = IpcEvents & {
  readonly socket: Socket;
  path: string;
  explicitlyDisconnected: boolean;
  retryTimer: NodeJS.Timeout | false;
  send(text: string): boolean;
};

/** Processes the chunks of a socket: called with each chunk and with node-ipc's dispatch. */
export type Inbox = (chunk: string, receive: (frame: Frame) => void) => void;

/**
 * node-ipc stores the parser's result in socket.ipcBuffer and passes it back with the next chunk. The decoder of the connection
 * is stored there.
 */
export function setInbox(socket: Socket, inbox: Inbox): void {
  (socket as Socket & { ipcBuffer?: Inbox }).ipcBuffer = inbox;
}

/** Our parser in the place of node-ipc's: each connection has its own decoder and limits. */
type IpcParser = {
  readonly profile: "guarded";
  readonly raw: false;
  readonly encoding: "utf8";
  readonly allowed: ReadonlySet<string>;
  /** 0: node-ipc sets no timer and no write limit, because the link does so */
  readonly messageTimeout: 0;
  readonly maxPendingBytes: 0;
  encode(type: string, data: unknown): string;
  read(inbox: Inbox | "", chunk: string, receive: (frame: Frame) => void): Inbox | "";
};

function ipcParser(allowed: ReadonlySet<string>): IpcParser {
  return {
    profile: "guarded",
    raw: false,
    encoding: "utf8",
    allowed,
    messageTimeout: 0,
    maxPendingBytes: 0,
    encode: encodeFrame,
    read(inbox, chunk, receive) {
      if (typeof inbox === "function") inbox(chunk, receive);
      return inbox;
    },
  };
}

/** The frame types that a server accepts. */
export const allowedOf = (server: IpcServer): ReadonlySet<string> => server.parser.allowed;

function configure(ipc: { config: Record<string, unknown> }, allowed: ReadonlySet<string>): void {
  for (const type of allowed) {
    if (type in Object.prototype || RESERVED.has(type)) throw new Error(`${type} cannot be a frame type`);
  }
  ipc.config["parser"] = ipcParser(allowed);
  ipc.config["silent"] = true;
  ipc.config["unlink"] = true;
  ipc.config["identifyPeer"] = false;
  ipc.config["secureSocketRoot"] = false;
  ipc.config["socketRoot"] = "/nonexistent/";
}

/** node-ipc's own events, which a peer must not be able to raise. */
const RESERVED = new Set(["start", "connect", "disconnect", "destroy", "close", "socket.disconnected", "error", "data"]);

// node-ipc as far as we use it; nothing else imports it, and it has no types of its own. It keeps listening, connecting again, framing and dispatch by
// type; its place for a parser takes ours, which keeps the rules of its `guarded` profile (size limit, allowed types, no prototype names, time limit for a
// frame begun) in linear time and with a limit per connection. Its `assured` profile wants a socket that one user alone can reach; ours must be reachable
// by every user, so identity comes from the kernel instead (peer-credentials.ts).

import type { Socket } from "node:net";
import nodeIpc from "node-ipc";
import type { Frame } from "./frame.ts";
import { encodeFrame } from "./frame.ts";

/** An instance of node-ipc that takes the given frame types. */
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

/** What a socket's chunks go through: called with each chunk and with node-ipc's dispatch. */
export type Inbox = (chunk: string, receive: (frame: Frame) => void) => void;

/** node-ipc keeps what the parser returned in socket.ipcBuffer and gives it back with the next chunk: there lives the connection's own decoder. */
export function setInbox(socket: Socket, inbox: Inbox): void {
  (socket as Socket & { ipcBuffer?: Inbox }).ipcBuffer = inbox;
}

/** Our parser in node-ipc's place for one: each connection has its own decoder and limits. */
type IpcParser = {
  readonly profile: "guarded";
  readonly raw: false;
  readonly encoding: "utf8";
  readonly allowed: ReadonlySet<string>;
  /** 0 = node-ipc keeps no timer and no write limit: the link does */
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

/** The frame types a server takes. */
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

/** node-ipc's own events: a peer must not be able to raise one. */
const RESERVED = new Set(["start", "connect", "disconnect", "destroy", "close", "socket.disconnected", "error", "data"]);

// The only file that imports node-ipc, which has no types of its own. node-ipc listens, reconnects, splits frames and
// dispatches by type. Our parser replaces the parser of node-ipc: it keeps the rules of the `guarded` profile (size limit, allowed
// types, no prototype names, time limit for an incomplete frame) in linear time and with a limit for each connection. The
// `assured` profile of node-ipc wants a socket that only one user can reach. Ours must be reachable by every user, so identity
// comes from the kernel (peer-credentials.ts).

import type { Server, Socket } from "node:net";
import nodeIpc from "node-ipc";
import type { Frame } from "./frame.ts";
import { encodeFrame } from "./frame.ts";

/** Creates an instance of node-ipc that accepts the given frame types. */
export function createIpc(allowed: ReadonlySet<string>) {
  const ipc = new nodeIpc.IPC();
  configure(ipc, allowed);
  return ipc;
}

type IpcEvents = { on(event: string, handler: (...args: never[]) => void): void };
/** The members of node-ipc that a connection of the server needs. */
export type IpcWriter = { readonly parser: IpcParser; write(socket: Socket, text: string): boolean };
export type IpcServer = IpcEvents &
  IpcWriter & {
    /** set while it listens */
    readonly server: Server;
    start(): void;
    stop(): void;
  };
export type IpcClient = IpcEvents & {
  readonly socket: Socket;
  readonly parser: IpcParser;
  path: string;
  /** begins an attempt; node-ipc calls it when its retry timer ends */
  connect(): unknown;
  explicitlyDisconnected: boolean;
  retryTimer: NodeJS.Timeout | false;
  send(text: string): boolean;
};

type Ipc = ReturnType<typeof createIpc>;

/** Returns the server of an instance on which serve() or serveNet() was called. */
export const serverOf = (ipc: Ipc): IpcServer => ipc.server as IpcServer;

/** Returns the client of an instance on which connectTo("server", ...) or connectToNet("server", ...) was called. */
export const clientOf = (ipc: Ipc): IpcClient => ipc.of["server"] as IpcClient;

/** Processes the chunks of a socket. It is called with a chunk and with a function of node-ipc that receives each frame. */
export type Inbox = (chunk: string, receive: (frame: Frame) => void) => void;

/**
 * Sets the function that processes the chunks of a socket. node-ipc keeps the result of the parser in socket.ipcBuffer and
 * passes it to the parser with the next chunk, so the function is stored there.
 */
export function setInbox(socket: Socket, inbox: Inbox): void {
  (socket as Socket & { ipcBuffer?: Inbox }).ipcBuffer = inbox;
}

/** Our parser, which replaces the parser of node-ipc. Each connection has its own decoder and limits. */
type IpcParser = {
  readonly profile: "guarded";
  readonly raw: false;
  readonly encoding: "utf8";
  readonly allowed: ReadonlySet<string>;
  /** 0: node-ipc applies neither a time limit nor a limit of unwritten bytes, because the link itself does */
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

/** Returns the frame types that are accepted. */
export const allowedOf = ({ parser }: Pick<IpcWriter, "parser">): ReadonlySet<string> => parser.allowed;

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

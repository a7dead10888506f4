// The channel between qsub and the terminal relay of its job: TLS 1.2 with the ticket's secret as key (RFC 4279, 5489: a
// pre-shared key with an ephemeral exchange), over an abstract unix socket on the same host, over TCP from another one. It loads
// node:tls, so only interactive jobs import it.
//
// T1. Neither side sends or trusts any data before the other side has proved that it knows the secret. A process that takes
//     over the socket's name learns nothing.
// T2. qsub accepts one channel for a job. Connections that prove nothing are dropped after a time and never keep the relay out
//     (bounds/waiting-room.ts).
// T3. The channel reads no more data than the receiver takes. A terminal that takes nothing therefore stops the job's output
//     instead of filling this process's memory.
// T4. A TCP connection whose other host no longer exists, or cannot be reached for a long time, ends (tcp-silence.ts).

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, type ListenOptions, type Server, type Socket } from "node:net";
import { connect as connectTls, createSecureContext, TLSSocket } from "node:tls";
import { nameOf } from "#support/caught.ts";
import { type Owner, waitingRoom } from "../bounds/waiting-room.ts";
import { peerCredentials } from "../wire/peer-credentials.ts";
import { peerAddress } from "../wire/unproved.ts";
import { encodeTerminalFrame, type TerminalFrame, type TerminalTicket, terminalFrameDecoder } from "./link.ts";
import { watchSilence } from "./tcp-silence.ts";

const IDENTITY = "partita-terminal";
const TLS = { ciphers: "ECDHE-PSK-CHACHA20-POLY1305", minVersion: "TLSv1.2", maxVersion: "TLSv1.2" } as const;
/** Time within which a new connection must prove that it knows the secret. */
const PROOF_MS_MAX = 30_000;
/** Largest number of connections that have not yet proved that they know the secret. */
const UNPROVED_MAX = 16;

export type TerminalChannel = {
  /** Sends a frame. Returns false if the caller must wait for onDrain before it sends more. */
  send(frame: TerminalFrame): boolean;
  pause(): void;
  resume(): void;
  /** ends the channel after everything sent has arrived */
  finish(): void;
  destroy(): void;
};

export type ChannelHandlers = {
  readonly onFrame: (frame: TerminalFrame) => void;
  readonly onDrain?: () => void;
  /** called once when the channel has ended; null: the peer ended it properly */
  readonly onClose: (error: Error | null) => void;
};

export type TerminalListener = {
  readonly ticket: TerminalTicket;
  /** stops listening: no further channel is accepted */
  close(): void;
};

/**
 * Creates a fresh ticket and listens on the socket it names. network: whether relays on other hosts may connect, too; a TCP port
 * is then open until the job has connected. onChannel is called once, for the first peer that has proved that it knows the
 * secret, and returns the handlers of that channel.
 */
export async function listenForTerminal(
  onChannel: (channel: TerminalChannel) => ChannelHandlers,
  { network }: { readonly network: boolean },
): Promise<TerminalListener> {
  const secret = randomBytes(32);
  const name = `partita-qsub-${process.pid}-${randomBytes(8).toString("hex")}`;
  const secureContext = createSecureContext(TLS);
  const unproved = waitingRoom<Socket>({ max: UNPROVED_MAX, own: [0, process.getuid?.()], turnOut: (socket) => socket.destroy() });
  let taken = false;
  const take = (socket: Socket, owner: Owner): void => {
    if (taken) return void socket.destroy();
    socket.on("error", () => undefined);
    unproved.enter(socket, owner);
    const timer = setTimeout(() => socket.destroy(), PROOF_MS_MAX);
    const gone = (): void => {
      clearTimeout(timer);
      unproved.leave(socket);
    };
    const secured = new TLSSocket(socket, {
      isServer: true,
      secureContext,
      ...TLS,
      pskCallback: (_: TLSSocket, identity: string) => (identity === IDENTITY ? secret : null),
    } as ConstructorParameters<typeof TLSSocket>[1]);
    secured.on("error", () => socket.destroy());
    socket.on("close", gone);
    secured.once("secure", () => {
      gone();
      if (taken) return void socket.destroy();
      taken = true;
      close();
      const channel = channelOver(secured);
      channel.attach(onChannel(channel));
    });
  };
  const servers: Server[] = [];
  const close = (): void => {
    for (const server of servers) server.close();
    for (const socket of unproved.guests) socket.destroy();
  };
  const open = async (place: ListenOptions, ownerOf: (socket: Socket) => Owner): Promise<Server> => {
    const server = createServer((socket) => take(socket, ownerOf(socket)));
    servers.push(server);
    server.listen(place);
    await once(server, "listening");
    return server;
  };
  try {
    await open({ path: `\0${name}` }, (socket) => peerCredentials(socket)?.uid ?? null);
    const tcp = network ? await open({ port: 0 }, (socket) => peerAddress(socket.remoteAddress ?? "")) : null;
    tcp?.on("connection", watchSilence);
    const port = tcp === null ? {} : { port: portOf(tcp) };
    return { ticket: { socket: name, secret: secret.toString("hex"), ...port }, close };
  } catch (error) {
    close();
    throw error;
  }
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Connects to qsub, on this host or another one. Rejects if nobody listens, or if the listener does not know the secret. */
export async function dialTerminal(
  ticket: TerminalTicket,
  makeHandlers: (channel: TerminalChannel) => ChannelHandlers,
): Promise<TerminalChannel> {
  const { port, address } = ticket;
  try {
    return await dial(ticket, connect(`\0${ticket.socket}`), makeHandlers);
  } catch (error) {
    // No qsub on this host has a socket of this name. A process that had taken the name could not prove that it knows the secret (T1).
    if (port === undefined || address === undefined) throw error;
  }
  const socket = connect({ host: address, port });
  watchSilence(socket);
  return dial(ticket, socket, makeHandlers);
}

function dial(
  ticket: TerminalTicket,
  socket: Socket,
  makeHandlers: (channel: TerminalChannel) => ChannelHandlers,
): Promise<TerminalChannel> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => {
      clearTimeout(timer);
      socket.destroy();
      reject(error);
    };
    const timer = setTimeout(() => fail(new Error("qsub does not answer")), PROOF_MS_MAX);
    socket.once("error", fail);
    const secured = connectTls({
      socket,
      ...TLS,
      pskCallback: () => ({ psk: Buffer.from(ticket.secret, "hex"), identity: IDENTITY }),
      // There are no certificates to check: knowledge of the key is the proof.
      checkServerIdentity: () => undefined,
    });
    secured.once("error", fail);
    secured.once("close", () => fail(new Error("the connection was closed")));
    secured.once("secureConnect", () => {
      clearTimeout(timer);
      socket.removeListener("error", fail);
      socket.on("error", () => undefined);
      secured.removeAllListeners("error");
      secured.removeAllListeners("close");
      const channel = channelOver(secured);
      channel.attach(makeHandlers(channel));
      resolve(channel);
    });
  });
}

function channelOver(secured: TLSSocket): TerminalChannel & { attach(handlers: ChannelHandlers): void } {
  const decoder = terminalFrameDecoder();
  let open = true;
  return {
    attach({ onFrame, onDrain, onClose }) {
      const end = (error: Error | null): void => {
        if (!open) return;
        open = false;
        secured.destroy();
        onClose(error);
      };
      secured.on("data", (chunk: Buffer) => {
        try {
          for (const frame of decoder.push(chunk)) if (open) onFrame(frame);
        } catch (error) {
          if (nameOf(error) !== "TerminalFrameError") throw error;
          end(error as Error);
        }
      });
      if (onDrain !== undefined) secured.on("drain", onDrain);
      secured.on("error", end);
      secured.on("end", () => end(null));
      secured.on("close", () => end(null));
    },
    send: (frame) => open && secured.write(encodeTerminalFrame(frame)),
    pause: () => void secured.pause(),
    resume: () => void secured.resume(),
    finish: () => void (open && secured.end()),
    destroy: () => void secured.destroy(),
  };
}

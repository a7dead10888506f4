// The channel between qsub and the terminal relay of its job: TLS 1.2 with the ticket's secret as key (RFC 4279, 5489: a
// pre-shared key with an ephemeral exchange), over an abstract unix socket. It loads node:tls, so only interactive jobs import
// it.
//
// T1. Neither side sends or trusts any data before the other side has proved that it knows the secret. A process that takes
//     over the socket's name learns nothing.
// T2. qsub accepts one channel for a job. Connections that prove nothing are dropped after a time and never keep the relay out
//     (wire/waiting-room.ts).
// T3. The channel reads no more data than the receiver takes. A terminal that takes nothing therefore stops the job's output
//     instead of filling this process's memory.

import { randomBytes } from "node:crypto";
import { connect, createServer, type Server, type Socket } from "node:net";
import { connect as connectTls, createSecureContext, TLSSocket } from "node:tls";
import { nameOf } from "#support/caught.ts";
import { peerCredentials } from "../wire/peer-credentials.ts";
import { waitingRoom } from "../wire/waiting-room.ts";
import { encodeTerminalFrame, type TerminalFrame, type TerminalTicket, terminalFrameDecoder } from "./link.ts";

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
 * Creates a fresh ticket and listens on the socket it names. onChannel is called once, for the first peer that has proved
 * that it knows the secret, and returns the handlers of that channel.
 */
export function listenForTerminal(onChannel: (channel: TerminalChannel) => ChannelHandlers): Promise<TerminalListener> {
  const secret = randomBytes(32);
  const ticket: TerminalTicket = {
    socket: `partita-qsub-${process.pid}-${randomBytes(8).toString("hex")}`,
    secret: secret.toString("hex"),
  };
  const secureContext = createSecureContext(TLS);
  const unproved = waitingRoom<Socket>({ max: UNPROVED_MAX, own: [0, process.getuid?.()], turnOut: (socket) => socket.destroy() });
  let taken = false;
  const server: Server = createServer((socket) => {
    if (taken) return void socket.destroy();
    socket.on("error", () => undefined);
    unproved.enter(socket, peerCredentials(socket)?.uid ?? null);
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
  });
  const close = (): void => {
    server.close();
    for (const socket of unproved.guests) socket.destroy();
  };
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(`\0${ticket.socket}`, () => resolve({ ticket, close }));
  });
}

/** Connects to qsub. Rejects if nobody listens on the socket, or if the listener does not know the secret. */
export function dialTerminal(
  ticket: TerminalTicket,
  makeHandlers: (channel: TerminalChannel) => ChannelHandlers,
): Promise<TerminalChannel> {
  return new Promise((resolve, reject) => {
    const socket = connect(`\0${ticket.socket}`);
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

// The channel between qsub and the terminal relay of its job: TLS 1.2 keyed by the ticket's secret (RFC 4279, 5489: a pre-shared key with an ephemeral
// exchange), over an abstract unix socket. Loads node:tls: only interactive jobs get here.
//
// T1. Neither side says or believes anything before the other has proved that it knows the secret; whoever took the socket's name meanwhile learns nothing.
// T2. qsub takes one channel for a job. Connections that prove nothing are dropped after a time and never keep the relay out (wire/waiting-room.ts).
// T3. What the receiver does not take is not read: a terminal that stands still stops the job's output, not our memory.

import { randomBytes } from "node:crypto";
import { connect, createServer, type Server, type Socket } from "node:net";
import { connect as connectTls, createSecureContext, TLSSocket } from "node:tls";
import { nameOf } from "#support/caught.ts";
import { peerCredentials } from "../wire/peer-credentials.ts";
import { waitingRoom } from "../wire/waiting-room.ts";
import { encodeTerminalFrame, type TerminalFrame, type TerminalTicket, terminalFrameDecoder } from "./link.ts";

const IDENTITY = "partita-terminal";
const TLS = { ciphers: "ECDHE-PSK-CHACHA20-POLY1305", minVersion: "TLSv1.2", maxVersion: "TLSv1.2" } as const;
/** A connection must have proved itself within. */
const PROOF_MS_MAX = 30_000;
/** Connections at a time that have proved nothing yet. */
const UNPROVED_MAX = 16;

export type TerminalChannel = {
  /** False: wait for onDrain before sending more data. */
  send(frame: TerminalFrame): boolean;
  pause(): void;
  resume(): void;
  /** what was sent still arrives; then the channel ends */
  finish(): void;
  destroy(): void;
};

export type ChannelHandlers = {
  readonly onFrame: (frame: TerminalFrame) => void;
  readonly onDrain?: () => void;
  /** once, whatever ended the channel; null: the peer ended it in order */
  readonly onClose: (error: Error | null) => void;
};

export type TerminalListener = {
  readonly ticket: TerminalTicket;
  /** no channel is taken any more */
  close(): void;
};

/** A fresh ticket and the socket it names. onChannel: called once, for the first peer that has proved itself; handlers of that channel in return. */
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

/** Dials qsub. Rejects when nobody is there or whoever is there does not know the secret. */
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
      // There are no certificates: the key is the proof.
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

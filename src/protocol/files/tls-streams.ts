// Accepts TLS 1.3 connections of other hosts that carry no frames of node-ipc but a stream of bytes: files of jobs. The rules S2 and S4 of tls-listener.ts
// apply, and this one:
//
// B1. A peer needs a certificate of the complex's authority that fault() accepts, and must speak the protocol of the listener. Nothing is read from others.

import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Credentials } from "#identity/files/credentials.ts";
import type { HostIdentity } from "#identity/peer.ts";
import { codeOf } from "#support/caught.ts";
import { sparingly } from "../bounds/sparingly.ts";
import type { Limits } from "../wire/limits.ts";
import { contextOf, identityOf } from "../wire/tls-listener.ts";
import { unprovedConnections } from "../wire/unproved.ts";

export type StreamListenOptions = {
  readonly port: number;
  /** the purpose of the connections (alpn.ts) */
  readonly protocol: string;
  readonly credentials: Credentials;
  /** why a host is refused, in words for the log; null: it is accepted */
  readonly fault: (identity: HostIdentity) => string | null;
  readonly take: (socket: TLSSocket, identity: HostIdentity) => void;
  /** writes into the log */
  readonly say: (text: string) => void;
  readonly limits: Pick<
    Limits,
    "handshake_ms_max" | "keepalive_ms" | "unproved_connections_max" | "unproved_ends_max" | "unproved_ends_ms"
  >;
};

export type StreamListener = {
  /** shows this certificate to new connections */
  show(credentials: Credentials): void;
  close(): void;
};

/** Starts to listen on every address of this host. Rejects if the port cannot be opened. */
export async function listenStreams(options: StreamListenOptions): Promise<StreamListener> {
  const { createServer } = await import("node:tls");
  const { limits, protocol, fault, take } = options;
  const say = sparingly(options.say);
  const unproved = unprovedConnections(limits, say);
  const server = createServer({
    ...contextOf(options.credentials),
    requestCert: true,
    // Without a certificate of the authority, the connection is ended below, with a reason in the log.
    rejectUnauthorized: false,
    ALPNProtocols: [protocol],
    handshakeTimeout: limits.handshake_ms_max,
  });
  server.on("connection", (raw: Socket) => unproved.enter(raw));
  server.on("tlsClientError", (error: Error, socket: TLSSocket) => {
    socket.destroy();
    if (codeOf(error) !== "ECONNRESET") say(`a handshake failed: ${error.message}`);
  });
  server.on("secureConnection", (socket: TLSSocket) => {
    socket.on("error", () => socket.destroy());
    const identity = identityOf(socket);
    const reason = identity === null ? "a peer without certificate of the complex" : fault(identity);
    if (identity === null || reason !== null || socket.alpnProtocol !== protocol) {
      say(`${reason ?? "a peer that speaks another protocol"}, from ${socket.remoteAddress ?? "an address that has gone"}`);
      return void socket.destroy();
    }
    unproved.leave(socket);
    socket.setKeepAlive(true, limits.keepalive_ms);
    take(socket, identity);
  });
  const listen = (address: string): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(options.port, address, () => {
        server.off("error", reject);
        resolve();
      });
    });
  await listen("::").catch((error: unknown) => {
    // This host has no IPv6.
    if (codeOf(error) !== "EAFNOSUPPORT" && codeOf(error) !== "EADDRNOTAVAIL") throw error;
    return listen("0.0.0.0");
  });
  return {
    show: (credentials) => server.setSecureContext(contextOf(credentials)),
    close() {
      server.close();
      unproved.close();
    },
  };
}

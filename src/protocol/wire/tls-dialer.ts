// Links of daemons to a server on another host: TLS 1.3, both ends with a certificate of the complex's authority (docs/identity.md).
//
// D2. The server is known by its certificate: the role `server`, the name in PBS_SERVER, and a serial number that was not revoked. Its address proves nothing.

import type { Socket } from "node:net";
import type { PeerCertificate, TLSSocket } from "node:tls";
import type { Credentials } from "#identity/files/credentials.ts";
import { identityIn, namesIn, serverFault } from "#identity/peer.ts";
import { messageOf } from "#support/caught.ts";
import { ALPN } from "./alpn.ts";
import { type Carrier, type DaemonLink, type DaemonLinkHandlers, keepConnected } from "./daemon-link.ts";
import { clientOf, type IpcClient } from "./ipc.ts";

export type TlsTarget = {
  readonly host: string;
  readonly port: number;
  /** PBS_SERVER: the name in the server's certificate */
  readonly server: string;
  /** read before each attempt, because they may be renewed; throws an error for the log */
  readonly credentials: () => Credentials;
  /** serial numbers of certificates that this host refuses, read for each attempt */
  readonly revoked: () => ReadonlySet<string>;
  /** called with the serial number in the certificate of the server that is dialled, once it is accepted */
  readonly onServer?: (serial: string) => void;
};

/** Connects a daemon to the server of another host and stays connected. Throws what target.credentials throws. */
export const connectTls = (options: DaemonLinkHandlers, target: TlsTarget): DaemonLink =>
  keepConnected(options, (limits) => {
    const complain = (error: unknown): void => options.onRefused?.(new Error(messageOf(error), { cause: error }));
    return tlsCarrier(target, limits, complain);
  });

function tlsCarrier(
  target: TlsTarget,
  limits: { readonly dial_ms_max: number; readonly keepalive_ms: number },
  complain: (error: unknown) => void,
): Carrier {
  let config: Record<string, unknown> = {};
  return {
    begin(ipc) {
      config = ipc.config;
      config["tls"] = tlsOptions(target);
      // The first attempt is begun within connectToNet, before its client can be prepared: it is watched afterwards.
      ipc.connectToNet("server", target.host, target.port);
      const client = clientOf(ipc);
      watch(client, limits);
      const connect = client.connect.bind(client);
      client.connect = () => {
        connect();
        watch(client, limits);
      };
      return client;
    },
    prepare() {
      try {
        config["tls"] = tlsOptions(target);
      } catch (error) {
        complain(error);
      }
    },
    release: () => undefined,
  };
}

/** A peer that does not finish the handshake in time is given up, and one that vanishes later is noticed by the kernel. */
function watch(
  { socket }: IpcClient,
  { dial_ms_max, keepalive_ms }: { readonly dial_ms_max: number; readonly keepalive_ms: number },
): void {
  const timer = setTimeout(() => socket.destroy(new Error("the server did not show its certificate in time")), dial_ms_max).unref();
  const done = (): void => clearTimeout(timer);
  socket.once("secureConnect", done);
  // node-ipc reports the connection after this listener, and a destroyed socket opens no link.
  socket.prependOnceListener("secureConnect", () => {
    if (!hasOurProtocol(socket)) socket.destroy(new Error("the server speaks another protocol"));
  });
  socket.once("close", done);
  socket.setKeepAlive(true, keepalive_ms);
}

const hasOurProtocol = (socket: Socket): boolean => (socket as TLSSocket).alpnProtocol === ALPN.link;

/** Options of a TLS client that proves itself and accepts the server alone. */
function tlsOptions(target: Omit<TlsTarget, "host" | "port">): Record<string, unknown> {
  const { key, certificate, authority } = target.credentials();
  const revoked = target.revoked();
  return {
    key,
    cert: certificate,
    ca: [authority],
    minVersion: "TLSv1.3",
    ALPNProtocols: [ALPN.link],
    rejectUnauthorized: true,
    checkServerIdentity: (_host: string, peer: PeerCertificate) => serverError(peer, target, revoked),
  };
}

/** D2. undefined: it is the server. */
function serverError(
  peer: PeerCertificate,
  { server, onServer }: Pick<TlsTarget, "server" | "onServer">,
  revoked: ReadonlySet<string>,
): Error | undefined {
  const identity = identityIn(namesIn(peer.subjectaltname), peer.serialNumber);
  const fault = serverFault(identity, server, revoked);
  if (fault !== null) return new Error(fault);
  if (identity !== null) onServer?.(identity.serial);
  return undefined;
}

// Links of daemons to other hosts, to the server (connectTls) or to another mom (dialTls): TLS 1.3, both ends with a certificate of the complex's authority
// (docs/identity.md).
//
// D2. The server must have a certificate with the role `server`, the name in PBS_SERVER, and a serial number that was not
//     revoked. Its address proves nothing.

import type { Socket } from "node:net";
import type { ConnectionOptions, PeerCertificate, TLSSocket } from "node:tls";
import type { Credentials } from "#identity/files/credentials.ts";
import { type HostIdentity, identityIn, namesIn, serverFault } from "#identity/peer.ts";
import { messageOf } from "#support/caught.ts";
import { ALPN } from "./alpn.ts";
import { type Carrier, type DaemonLink, type DaemonLinkHandlers, keepConnected } from "./daemon-link.ts";
import { clientOf, type IpcClient } from "./ipc.ts";
import type { Limits } from "./limits.ts";
import { handshakeFault } from "./tls-fault.ts";

export type TlsTarget = {
  readonly host: string;
  readonly port: number;
  /** PBS_SERVER: the name in the server's certificate */
  readonly server: string;
  /** read before each attempt, because they may be renewed; throws an error for the log */
  readonly credentials: () => Credentials;
  /** serial numbers of certificates that this host refuses, read for each attempt */
  readonly revoked: () => ReadonlySet<string>;
  /** called with the serial number of the server's certificate when the certificate was accepted */
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
      config["tls"] = serverOptions(target);
      // connectToNet itself begins the first attempt, before the client can be prepared. Therefore that attempt is watched from here on.
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
        config["tls"] = serverOptions(target);
      } catch (error) {
        complain(error);
      }
    },
    release: () => undefined,
  };
}

/** Gives up a peer that does not finish the handshake in time, and lets the kernel notice one that disappears later. */
function watch(
  { socket }: IpcClient,
  { dial_ms_max, keepalive_ms }: { readonly dial_ms_max: number; readonly keepalive_ms: number },
): void {
  const timer = setTimeout(() => socket.destroy(new Error("the server did not show its certificate in time")), dial_ms_max).unref();
  const done = (): void => clearTimeout(timer);
  socket.once("secureConnect", done);
  // This listener runs before the listener of node-ipc, which opens no link over a socket that is destroyed already.
  socket.prependOnceListener("secureConnect", () => {
    if (!hasOurProtocol(socket)) socket.destroy(new Error("the server speaks another protocol"));
  });
  socket.once("close", done);
  socket.setKeepAlive(true, keepalive_ms);
}

const hasOurProtocol = (socket: Socket): boolean => (socket as TLSSocket).alpnProtocol === ALPN.link;

/** Options for a connection that only the server may accept (D2). */
function serverOptions({ server, credentials, revoked, onServer }: Omit<TlsTarget, "host" | "port">): Record<string, unknown> {
  const refused = revoked();
  const fault = (peer: HostIdentity | null): string | null => {
    const found = serverFault(peer, server, refused);
    if (found === null && peer !== null) onServer?.(peer.serial);
    return found;
  };
  return { ...optionsFor(ALPN.link, credentials(), fault) };
}

/** Options of a TLS client that proves itself and accepts only a peer in which `fault` finds no fault. */
function optionsFor(protocol: string, own: Credentials, fault: PeerTarget["fault"]): ConnectionOptions {
  return {
    key: own.key,
    cert: own.certificate,
    ca: [own.authority],
    minVersion: "TLSv1.3",
    ALPNProtocols: [protocol],
    rejectUnauthorized: true,
    checkServerIdentity(_host: string, peer: PeerCertificate): Error | undefined {
      const found = fault(identityIn(namesIn(peer.subjectaltname), peer.serialNumber));
      return found === null ? undefined : new Error(found);
    },
  };
}

/** The other end of a connection between daemons. */
export type PeerTarget = {
  /** an address or a name */
  readonly host: string;
  readonly port: number;
  /** the purpose of the connection (alpn.ts) */
  readonly protocol: string;
  /** why a peer with that identity is not the expected one, in words for the log; null: it is. identity null: the peer is no host of the complex */
  fault(identity: HostIdentity | null): string | null;
};

/**
 * Connects once. Resolves when both ends have proved themselves; nothing is sent before. Rejects with a reason for the log. Loads node:tls at the first call:
 * while it is loaded, a thread of Node.js may read certificates, and a starting daemon would close the file of that thread (descriptors.ts).
 */
export async function dialTls(
  { host, port, protocol, fault }: PeerTarget,
  own: Credentials,
  { dial_ms_max, keepalive_ms }: Pick<Limits, "dial_ms_max" | "keepalive_ms">,
): Promise<TLSSocket> {
  const { connect } = await import("node:tls");
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, ...optionsFor(protocol, own, fault) });
    const fail = (error: Error): void => {
      clearTimeout(timer);
      socket.destroy();
      reject(new Error(handshakeFault(error), { cause: error }));
    };
    const timer = setTimeout(() => fail(new Error("it did not show its certificate in time")), dial_ms_max).unref();
    socket.once("error", fail);
    socket.once("secureConnect", () => {
      if (socket.alpnProtocol !== protocol) return fail(new Error("it speaks another protocol"));
      clearTimeout(timer);
      socket.removeListener("error", fail);
      socket.setKeepAlive(true, keepalive_ms);
      resolve(socket);
    });
  });
}

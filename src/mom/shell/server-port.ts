// The mom's connection to its server: over the server's socket on the same host, over TLS from another host
// (docs/identity.md). From another host, this file also renews the certificate long before its end, and keeps the server's
// list of revoked certificates.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Credentials, CredentialsError, readCredentials } from "#identity/files/credentials.ts";
import { readRevoked, revokedSerials } from "#identity/files/revoked.ts";
import { keepRenewed, keepsRevoked } from "#protocol/certificate-care.ts";
import { REVOKED } from "#protocol/join-link.ts";
import { frameTypes } from "#protocol/schema-link.ts";
import { aesGcm } from "#protocol/udp/aes-gcm.ts";
import { verifier } from "#protocol/udp/ed25519.ts";
import { groupListener } from "#protocol/udp/multicast-socket.ts";
import { dialUdp } from "#protocol/udp/udp-socket.ts";
import { connectLink, type DaemonLink } from "#protocol/wire/ipc-transport.ts";
import { serverSocketPath } from "#protocol/wire/socket-path.ts";
import { connectTls } from "#protocol/wire/tls-dialer.ts";
import { handshakeFault } from "#protocol/wire/tls-fault.ts";
import type { Conf } from "#support/conf.ts";
import type { GroupPort, ReportsPort, ServerEnd, ServerLink, ServerPort } from "../driver/ports.ts";

export type ServerPlace = Pick<Conf, "home" | "server_host" | "own_server" | "mode"> & {
  readonly port: { readonly server: number };
  readonly start: { readonly server: boolean };
};

/** Whether the server is on another host. */
const isRemote = ({ home, start }: ServerPlace): boolean => !start.server && existsSync(join(home, "identity", "host.pem"));

/** Makes the port. fault: writes a line into the log. Throws CredentialsError if this host has joined a complex and its files cannot be used. */
export function serverPort(conf: ServerPlace, fault: (text: string) => void): ServerPort {
  const remote = isRemote(conf);
  if (remote) {
    credentialsIn(conf.home);
    readRevoked(conf.home);
  }
  return { dial: (end) => mapped(remote ? dialTls(conf, end, fault) : dialSocket(conf, end)) };
}

/** Makes the port for reports; null: the server is on this host, so that there are no reports. */
export function reportsPort(conf: ServerPlace): ReportsPort | null {
  if (!isRemote(conf)) return null;
  return { cipher: aesGcm, open: (heard) => dialUdp({ host: conf.server_host, port: conf.port.server }, heard) };
}

/** Makes the port for commands by multicast; null: the server is on this host. */
export function groupPort(conf: ServerPlace, fault: (text: string) => void): GroupPort | null {
  if (!isRemote(conf)) return null;
  return {
    cipher: aesGcm,
    verify: verifier(),
    now_ms: () => performance.now(),
    open: (heard) => groupListener(conf.server_host, heard, fault),
  };
}

const linkHandlers = (end: ServerEnd) => ({
  types: frameTypes("server-to-mom"),
  onOpen: () => end.opened(),
  onFrame: (type: string, data: unknown) => end.frame(type, data),
  onClose: (why: string) => end.closed(why),
});

const dialSocket = ({ home }: ServerPlace, end: ServerEnd): DaemonLink =>
  connectLink({
    path: serverSocketPath(home),
    ...linkHandlers(end),
    onRefused: ({ code }) => {
      if (code === "ECONNREFUSED" || code === "ENOENT") end.absent();
    },
  });

function dialTls({ home, server_host, port, own_server, mode }: ServerPlace, end: ServerEnd, fault: (text: string) => void): DaemonLink {
  const place = { host: server_host, port: port.server };
  keepRenewed({ home, place, server: own_server, own: mode === "user" }, fault);
  let said = "";
  const onRefused = (error: NodeJS.ErrnoException): void => {
    if (error.code === "ECONNREFUSED") end.absent();
    const message = handshakeFault(error);
    // An attempt is made every second, so each reason is logged only once.
    if (message !== said) fault(`the server at ${server_host}, port ${port.server}, cannot be reached: ${message}`);
    said = message;
  };
  const handlers = linkHandlers(end);
  const onOpen = (): void => {
    said = "";
    handlers.onOpen();
  };
  let serial = "";
  const target = {
    ...place,
    server: own_server,
    credentials: () => credentialsIn(home),
    revoked: () => revokedSerials(home),
    onServer: (shown: string): void => {
      serial = shown;
    },
  };
  const onFrame = (type: string, data: unknown): void => {
    if (type !== REVOKED) return handlers.onFrame(type, data);
    // If the certificate of this server was revoked, the link must end.
    if (keepsRevoked(home, data, fault).has(serial)) link.reconnect();
  };
  const link = connectTls({ ...handlers, types: [...handlers.types, REVOKED], onOpen, onFrame, onRefused }, target);
  return link;
}

/** Reads the identity of this host, which must have one. Throws CredentialsError. */
function credentialsIn(home: string): Credentials {
  const present = readCredentials(home);
  if (present === null) throw new CredentialsError(`${home}/identity holds no certificate`);
  return present;
}

const mapped = (link: DaemonLink): ServerLink => ({
  get connected() {
    return link.connected;
  },
  send: ({ type, data }) => link.send(type, data),
  reconnect: () => link.reconnect(),
  close: () => link.close(),
});

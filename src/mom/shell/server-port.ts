// The mom's connection to its server: over the server's socket on the same host, over TLS from another host
// (docs/identity.md). From another host, this file also renews the certificate long before its end, and keeps the server's
// list of revoked certificates.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Credentials, CredentialsError, readCredentials } from "#identity/files/credentials.ts";
import { readRevoked, revokedSerials } from "#identity/files/revoked.ts";
import { keepRenewed, keepsRevoked } from "#protocol/certificate-care.ts";
import type { AskingHost } from "#protocol/host-questions.ts";
import { REVOKED } from "#protocol/join-link.ts";
import { frameTypes } from "#protocol/schema-link.ts";
import { aesGcm } from "#protocol/udp/aes-gcm.ts";
import { verifier } from "#protocol/udp/ed25519.ts";
import { groupListener } from "#protocol/udp/multicast-socket.ts";
import { dialUdp, type UdpClient } from "#protocol/udp/udp-socket.ts";
import { connectLink, type DaemonLink } from "#protocol/wire/ipc-transport.ts";
import { serverSocketPath } from "#protocol/wire/socket-path.ts";
import { connectTls } from "#protocol/wire/tls-dialer.ts";
import { handshakeFault } from "#protocol/wire/tls-fault.ts";
import { nth } from "#support/assert.ts";
import type { Conf, ServerAt } from "#support/conf.ts";
import type { GroupPort, ReportsPort, ServerEnd, ServerLink, ServerPort } from "../driver/ports.ts";
import { heedingLeader } from "./known-leader.ts";
import { connectPair } from "./pair-link.ts";

export type ServerPlace = Pick<Conf, "home" | "server_host" | "servers" | "pair" | "own_server" | "mode"> & {
  readonly start: { readonly server: boolean };
};

/** Whether the server is on another host. */
const isRemote = ({ home, start }: ServerPlace): boolean => !start.server && existsSync(join(home, "identity", "host.pem"));

/**
 * Makes the ports to the server and for reports. directory: mom_priv. fault: writes a line into the log. Throws CredentialsError if this host has joined a complex
 * and its files cannot be used.
 */
export function serverPorts(conf: ServerPlace, directory: string, fault: (text: string) => void): ServerPorts {
  const [first] = conf.servers;
  if (conf.pair === null)
    return {
      server: serverPort(conf, directory, fault),
      reports: reportsPort(conf, () => first),
      group: groupPort(conf, () => first, fault),
    };
  // In a complex with two servers, a mom on the host of a server also connects by TLS, because the active server may be on the other host.
  const { primary, secondary } = conf.pair;
  let present: ServerAt = primary;
  const server: ServerPort = {
    dial: (end) =>
      connectPair(
        {
          servers: [primary, secondary],
          directory,
          dial: (at, to) => mapped(dialTls({ ...conf, servers: [at] }, to, fault)),
          ask: async (at) => {
            const { askLeader } = await import("#protocol/host-questions.ts");
            return askLeader(askingHost({ ...conf, servers: [at] }));
          },
          moved(at) {
            present = at;
          },
          fault,
        },
        end,
      ),
  };
  keepRenewed(askingHost(conf), fault);
  return { server, reports: reportsPort(conf, () => present), group: groupPort(conf, () => present, fault) };
}

/** reports, group null: the server is on this host. */
type ServerPorts = { readonly server: ServerPort; readonly reports: ReportsPort | null; readonly group: GroupPort | null };

const askingHost = ({ home, servers, own_server, mode }: ServerPlace): AskingHost => ({
  home,
  places: servers,
  server: own_server,
  own: mode === "user",
});

function serverPort(conf: ServerPlace, directory: string, fault: (text: string) => void): ServerPort {
  const remote = isRemote(conf);
  if (remote) {
    credentialsIn(conf.home);
    readRevoked(conf.home);
    keepRenewed(askingHost(conf), fault);
  }
  return {
    dial(end) {
      const heeding = heedingLeader(directory, end, fault);
      return mapped(remote ? dialTls(conf, heeding, fault) : dialSocket(conf, heeding));
    },
  };
}

/** place: returns the server to which the mom is connected. */
function reportsPort(conf: ServerPlace, place: () => ServerAt | undefined): ReportsPort | null {
  if (conf.pair === null && !isRemote(conf)) return null;
  return { cipher: aesGcm, open: (heard) => dialUdpAt(place, heard) };
}

/** Returns a socket for datagrams to the present server. The socket is made again when the mom has gone over to another server. */
function dialUdpAt(place: () => ServerAt | undefined, heard: (bytes: Uint8Array) => void): ReturnType<ReportsPort["open"]> {
  let open: { readonly at: ServerAt; readonly client: UdpClient } | null = null;
  return {
    send(bytes) {
      const at = place();
      if (at === undefined) return;
      if (open?.at !== at) {
        open?.client.close();
        open = { at, client: dialUdp(at, heard) };
      }
      open.client.send(bytes);
    },
    close: () => open?.client.close(),
  };
}

/** Makes the port for commands by multicast; null: the server is on this host. */
function groupPort(conf: ServerPlace, place: () => ServerAt | undefined, fault: (text: string) => void): GroupPort | null {
  if (conf.pair === null && !isRemote(conf)) return null;
  return {
    cipher: aesGcm,
    verify: verifier(),
    now_ms: () => performance.now(),
    open: (heard) => groupListener(place()?.host ?? conf.server_host, heard, fault),
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

function dialTls({ home, servers, own_server }: ServerPlace, end: ServerEnd, fault: (text: string) => void): DaemonLink {
  const place = nth(servers, 0);
  let said = "";
  const onRefused = (error: NodeJS.ErrnoException): void => {
    if (error.code === "ECONNREFUSED") end.absent();
    const message = handshakeFault(error);
    // An attempt is made every second, so each reason is logged only once.
    if (message !== said) fault(`the server at ${place.host}, port ${place.port}, cannot be reached: ${message}`);
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

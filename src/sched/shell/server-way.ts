// The connection between a scheduler and its server. On the server's host the scheduler connects to the server's socket. On
// another host it listens, and the server connects to it over TLS (docs/schedulers.md, docs/identity.md).
//
// L1. Only the server gets a link: the peer's certificate has the role `server` and the name in PBS_SERVER.
// L2. The server has one link. If it connects again, it has given up the former link, which is closed.
//     Where the complex has two servers, a server that was replaced gets no link (leaders.ts), and the scheduler keeps the one that it has.
// L3. Without a port of its own, the scheduler listens on the first free one of the ports in pbs.conf (#protocol/sched-ports.ts).

import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Credentials, CredentialsError, readCredentials } from "#identity/files/credentials.ts";
import { revokedSerials } from "#identity/files/revoked.ts";
import { type HostIdentity, serverFault } from "#identity/peer.ts";
import { keepRenewed, keepsRevoked } from "#protocol/certificate-care.ts";
import type { Leader } from "#protocol/failover/leader.ts";
import { leaderIn } from "#protocol/failover/leader-file.ts";
import { REVOKED } from "#protocol/join-link.ts";
import { PBSE_PERM } from "#protocol/proof/unreachable.ts";
import { schedPorts } from "#protocol/sched-ports.ts";
import { frameTypes } from "#protocol/schema-link.ts";
import { ALPN } from "#protocol/wire/alpn.ts";
import { connectLink, type LinkHandlers, type ServerLink } from "#protocol/wire/ipc-transport.ts";
import { serverSocketPath } from "#protocol/wire/socket-path.ts";
import { listenEverywhere, type TlsLinkServer } from "#protocol/wire/tls-listener.ts";
import { codeOf, messageOf } from "#support/caught.ts";
import type { Conf } from "#support/conf.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { LinkPort } from "../driver/ports.ts";
import { Leaders } from "./leaders.ts";

/** Functions by which the driver learns of the connection. */
export type ServerEnd = {
  opened(): void;
  frame(type: string, data: unknown): void;
  lost(why: string): void;
  /** Called when an attempt to connect has failed. */
  unreachable(why: string): void;
};

/** Connects a driver with the server, for as long as it lives. */
export type ServerWay = (end: ServerEnd) => LinkPort;

/** The connection of a scheduler that the server dials. pass: sends a frame that was made elsewhere; unsent_chars: length of what has not left yet */
export type DialledLink = LinkPort & { pass(type: string, data: unknown): void; unsent_chars(): number };
export type DialledWay = (end: ServerEnd) => DialledLink;

export type WayOptions = {
  readonly conf: Conf;
  /** the port of option -S; undefined: the first free one of the ports in pbs.conf (L3) */
  readonly port: number | undefined;
  /** the directory in which the newest leader is kept (leaders.ts) */
  readonly leader_in: string;
  readonly note: (event: number, text: string) => void;
  /** differ from WAITS in tests */
  readonly waits?: Partial<typeof WAITS>;
};

/** Interval in ms at which the files of the host's identity are read: the mom may have renewed the certificate or learned of revoked ones. */
const LOOK_MS = 60_000;
/**
 * first: how long a server has to name its leader, where one is known; less than dial_ms_max, after which the server gives up. absent: how long a scheduler has
 * had no server when it obeys one that has another database (leaders.ts O2); longer than a take-over lasts.
 */
const WAITS = { first_ms: 3000, absent_ms: 30_000 };

/** Returns true if the server connects to the schedulers of this host, and not they to the server: the host has joined a complex whose server is elsewhere. */
export const isDialled = (conf: Conf): boolean => !conf.start.server && existsSync(join(conf.home, "identity", "host.pem"));

/** Prepares the connection. Rejects if the scheduler must listen and cannot; the message says why. */
export async function openServerWay(options: WayOptions): Promise<ServerWay> {
  if (isDialled(options.conf)) return listenForServer(options);
  return (end) =>
    connectLink({
      path: serverSocketPath(options.conf.home),
      types: frameTypes("server-to-sched"),
      onOpen: () => end.opened(),
      onFrame: (type, data) => end.frame(type, data),
      onClose: (why) => end.lost(why),
      onRefused: (error) => end.unreachable(error.message),
    });
}

/** Listens for the server of another host. Rejects if that is not possible; the message says why. */
export async function listenForServer({ conf, port, leader_in, note, waits }: WayOptions): Promise<DialledWay> {
  const { first_ms, absent_ms } = { ...WAITS, ...waits };
  const leaders = new Leaders(leader_in, absent_ms, (text) => note(LOG_EVENT.ERROR, text));
  let end: ServerEnd | null = null;
  let link: ServerLink | null = null;
  /** the servers that have not named their leader yet */
  const unjudged = new Map<ServerLink, NodeJS.Timeout>();
  let refusal = "";

  /** Gives the server the link, in place of a former one (L2). */
  const take = (next: ServerLink): void => {
    const former = link;
    link = next;
    refusal = "";
    if (former !== null) {
      former.destroy();
      end?.lost("the server has connected again");
    }
    next.welcome();
    end?.opened();
  };
  /** Decides about the server of a connection that has named this leader; null: none. */
  const judge = (from: ServerLink, said: Leader | null): void => {
    const fault = leaders.judge(said, link !== null && link !== from);
    if (fault === null) return from === link ? undefined : take(from);
    // The server dials again every second.
    if (fault !== refusal) note(LOG_EVENT.SECURITY, `connection refused: ${fault}`);
    refusal = fault;
    from.send("refused", { code: PBSE_PERM, text: fault });
    from.end();
  };
  const isFirstOf = (from: ServerLink): boolean => {
    clearTimeout(unjudged.get(from));
    return unjudged.delete(from);
  };
  const handlers: LinkHandlers = {
    speaks_first: true,
    onLink(next) {
      if (end === null) return next.destroy();
      if (!leaders.isOneKnown) return take(next);
      const late = (): void => {
        if (isFirstOf(next)) judge(next, null);
      };
      unjudged.set(next, setTimeout(late, first_ms).unref());
    },
    onFrame(from, type, data) {
      const said = type === REVOKED ? leaderIn(data) : null;
      if (isFirstOf(from) || (from === link && said !== null)) judge(from, said);
      if (from !== link || !from.open) return;
      if (type !== REVOKED) return end?.frame(type, data);
      keepsRevoked(conf.home, data, (text) => note(LOG_EVENT.ERROR, text));
      // A link to a server whose certificate was revoked must end.
      listener.review();
    },
    onClose(closed) {
      isFirstOf(closed);
      if (closed !== link) return;
      link = null;
      leaders.serverLost();
      end?.lost("the connection has ended");
    },
    onProblem: (text) => note(LOG_EVENT.SECURITY, `connection ended: ${text}`),
  };
  const listener = await listenAtFree(conf, port, handlers, note);
  keepShown(conf, listener, note);
  return (driver) => {
    end = driver;
    const send = (type: string, data: unknown): void => link?.send(type, data);
    return {
      send,
      pass: send,
      unsent_chars: () => link?.unsent_chars ?? 0,
      reconnect: () => link?.destroy(),
      close() {
        link?.end();
        link = null;
        end = null;
        for (const each of unjudged.keys()) each.destroy();
        void listener.close();
      },
    };
  };
}

/** Listens on the first free port (L3). */
async function listenAtFree(
  conf: Conf,
  port: number | undefined,
  handlers: LinkHandlers,
  note: WayOptions["note"],
): Promise<TlsLinkServer> {
  const ports = port === undefined ? schedPorts(conf.values) : [port];
  for (const at of ports) {
    try {
      const listener = await listenEverywhere({
        port: at,
        types: [...frameTypes("server-to-sched"), REVOKED],
        protocol: ALPN.sched,
        credentials: ownCredentials(conf),
        questions: null,
        fault: (identity) => peerFault(conf, identity),
        ...handlers,
      });
      note(LOG_EVENT.SYSTEM, `listening on TCP port ${at} for the server ${conf.own_server}`);
      return listener;
    } catch (error) {
      if (codeOf(error) !== "EADDRINUSE") throw error;
    }
  }
  throw new Error(
    port === undefined ? `ports ${ports[0]} to ${ports.at(-1)} are in use: option -S names another one` : `port ${port} is in use`,
  );
}

/**
 * Shows a renewed certificate to the server, and checks the certificate of an open link. The mom renews the certificate;
 * without a mom on this host, the scheduler does so.
 */
function keepShown(conf: Conf, listener: TlsLinkServer, note: WayOptions["note"]): void {
  let shown = ownCredentials(conf);
  const fault = (text: string): void => note(LOG_EVENT.ERROR, text);
  setInterval(() => {
    listener.review();
    try {
      const present = ownCredentials(conf);
      if (present.certificate === shown.certificate && present.authority === shown.authority) return;
      listener.show(present);
      shown = present;
    } catch (error) {
      fault(`the certificate cannot be read: ${messageOf(error)}`);
    }
  }, LOOK_MS).unref();
  if (!conf.start.mom) keepRenewed({ home: conf.home, places: conf.servers, server: conf.own_server, own: conf.mode === "user" }, fault);
}

/** Returns why a peer gets no link (L1); null: the peer is the server. A host that cannot read its list of revoked certificates lets nobody in. */
function peerFault({ home, own_server }: Conf, identity: HostIdentity): string | null {
  try {
    return serverFault(identity, own_server, revokedSerials(home));
  } catch (error) {
    return messageOf(error);
  }
}

function ownCredentials({ home }: Conf): Credentials {
  const present = readCredentials(home);
  if (present === null) throw new CredentialsError(`${home}/identity holds no certificate`);
  return present;
}

// Where the server of a complex is, and how a command connects to it: over its unix socket on the same host, over TLS from
// another one. Loads only node:net and node:fs; the modules for TLS are loaded only when they are needed.

import { existsSync, statSync } from "node:fs";
import type { Socket } from "node:net";
import { codeOf, messageOf } from "#support/caught.ts";
import type { Conf, ServerAt } from "#support/conf.ts";
import { ownUnreachable } from "./proof/unreachable.ts";
import { serverSocketPath } from "./wire/socket-path.ts";
import { connectUnix } from "./wire/unix-connect.ts";

/** The members of pbs.conf that are needed. Without the optional ones, the server is on this host. */
export type PlaceConf = Pick<Conf, "home"> &
  Partial<Pick<Conf, "start" | "own_server" | "server_host" | "servers" | "pair" | "port" | "mode" | "mom_node_name" | "values">>;

export type ServerPlace = {
  /** identifies the place: connections to places with the same key are interchangeable */
  readonly key: string;
  /** how long an idle connection is worth keeping, in ms */
  readonly keep_ms: number;
  /** identifies what is at the place now; null: nothing, or it is not visible. A kept connection is used again only if this has not changed. */
  state(): string | null;
} & (OneServer | TwoServers);

type OneServer = {
  /** Returns a connected socket, over which the server takes requests. Rejects with ServerUnreachable or with the system's error. */
  connect(): Promise<Socket>;
};

/** Connects to a server. ended: gives the attempt up when it is aborted. Rejects as connect() does. */
export type ConnectTo = (ended: AbortSignal) => Promise<Socket>;

/** One of the servers is active (failover/active-server.ts). near: the server of this host; null: none */
export type TwoServers = {
  readonly near: ConnectTo | null;
  readonly servers: readonly ConnectTo[];
  readonly wait: string | undefined;
  readonly answer: string | undefined;
};

/** Short, because each idle connection is a load on the server, and there are many users. */
const KEEP_LOCAL_MS = 5000;
/** Longer, because a connection over TLS costs a handshake and a munge credential. */
const KEEP_TLS_MS = 60_000;

/** Returns the place of the server on this host. path: its socket. */
export const socketPlace = (path: string): ServerPlace => ({
  key: path,
  keep_ms: KEEP_LOCAL_MS,
  state: () => identity(path),
  connect: () => connectUnix(path),
});

/** Whether the server is on another host, which is so if this host has joined a complex and has no socket of a server. */
export const isServerElsewhere = ({ home, start }: Pick<PlaceConf, "home" | "start">): boolean =>
  start !== undefined && !start.server && !existsSync(serverSocketPath(home)) && existsSync(`${home}/identity`);

/** Returns the place of a complex's server. */
export function serverPlace(conf: PlaceConf): ServerPlace {
  const { home, own_server, server_host, port } = conf;
  const { pair, servers, start } = conf;
  if (pair != null && servers !== undefined && own_server !== undefined && start !== undefined && hasIdentity(home))
    return pairPlace({ ...conf, servers, own_server, start });
  if (!isServerElsewhere(conf) || own_server === undefined || server_host === undefined || port === undefined)
    return socketPlace(serverSocketPath(home));
  return {
    key: `tls ${server_host} ${port.server} ${own_server} ${home}`,
    keep_ms: KEEP_TLS_MS,
    // The connection itself ends together with the server process. But if the server's certificate was revoked since the connection was made, the connection must
    // not be used again.
    state: () => identity(`${home}/identity/revoked.json`) ?? "nothing revoked",
    connect: () => connectTo(conf, own_server, { host: server_host, port: port.server }),
  };
}

/** Connects over TLS. ended: gives the attempt up. */
async function connectTo(conf: PlaceConf, server: string, at: ServerAt, ended?: AbortSignal): Promise<Socket> {
  const { connectAsUser } = await import("./proof/user-client.ts");
  const connected = connectAsUser({
    home: conf.home,
    server,
    ...at,
    own: conf.mode === "user",
    here: conf.mom_node_name ?? "",
    method: conf.values?.["PBS_AUTH_METHOD"] ?? null,
    munge_socket: conf.values?.["PARTITA_MUNGE_SOCKET"] ?? null,
    ...(ended === undefined ? {} : { ended }),
  });
  return connected.catch((error: unknown) => {
    throw ownUnreachable(error);
  });
}

type PairConf = PlaceConf & Required<Pick<PlaceConf, "servers" | "own_server" | "start">>;

/** Returns the place of the active one of two servers: the server of this host over its socket, any other over TLS. */
function pairPlace(conf: PairConf): ServerPlace {
  const { home, servers, own_server, start, values } = conf;
  const path = serverSocketPath(home);
  const near = (): Promise<Socket> =>
    connectUnix(path).catch((error: unknown) => {
      // If no server runs here, its socket may be missing or left over. If the server was stopped, its queue of connections may be full. All must mean a refused connection.
      throw NOT_HERE.has(codeOf(error) ?? "") ? Object.assign(new Error(messageOf(error)), { code: "ECONNREFUSED" }) : error;
    });
  return {
    key: `pair ${servers.map(({ host, port }) => `${host} ${port}`).join(" ")} ${own_server} ${home}`,
    keep_ms: KEEP_TLS_MS,
    state: () => identity(path) ?? "connected",
    near: start.server ? near : null,
    servers: servers.map((at) => (ended) => connectTo(conf, own_server, at, ended)),
    wait: values?.["PARTITA_FAILOVER_WAIT"],
    answer: values?.["PARTITA_FAILOVER_ANSWER"],
  };
}

const NOT_HERE: ReadonlySet<string> = new Set(["ENOENT", "EAGAIN"]);

const hasIdentity = (home: string): boolean => existsSync(`${home}/identity/login.pem`);

/** Returns the identity of the file with this path; null: there is none, or it is not visible (the attempt to connect then shows which). */
function identity(path: string): string | null {
  try {
    const { dev, ino, ctimeMs } = statSync(path);
    return `${dev} ${ino} ${ctimeMs}`;
  } catch {
    return null;
  }
}

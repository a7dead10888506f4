// The server's side of links, whatever carries them: unix sockets (ipc-transport.ts) or TLS (tls-listener.ts). Those files
// determine the peer of a connection.
//
// T1. onFrame is called only between onLink and onClose of the same link, and in the order of the frames.
// T2. A peer that breaks a rule loses its connection; nothing else happens.
// T3. No user and no other host can use up all connections: each may have a limited number, and some are reserved for root,
//     the user who owns the complex, and daemons of this host. Users of other hosts cannot use up the connections of the
//     daemons of other hosts either.

import type { Socket } from "node:net";
import { encodeFrame } from "./frame.ts";
import { type IpcServer, setInbox } from "./ipc.ts";
import type { Limits } from "./limits.ts";
import { isRemoteUser, type LinkPeer, nameOfPeer } from "./link-peer.ts";
import { type LinkHandlers, ServerConnection, type ServerLink } from "./server-link.ts";
import { leaveShare, makeShare, type Shares, sharesOf } from "./share.ts";

/** Why a peer is refused. problem: for the log; text: for the peer, with its PBS error number. */
export type Refusal = { readonly problem: string; readonly code: number; readonly text: string };
export type Verdict =
  /** greeting: the frame that tells the peer that it is accepted */
  { readonly kind: "peer"; readonly peer: LinkPeer; readonly greeting?: string } | { readonly kind: "refused"; readonly refusal: Refusal };
/** What becomes of a new connection. elsewhere: it is no link, and other code handles it. */
export type Admission = Verdict | { readonly kind: "elsewhere" } | { readonly kind: "later"; readonly verdict: Promise<Verdict | null> };

export type LinkCarrier = {
  readonly server: IpcServer;
  /** accepted frame types */
  readonly types: readonly string[];
  /** read at each use */
  readonly limits: Limits;
  /** what the peers of all listeners of this process hold; absent: there is only this listener */
  readonly shares?: Shares;
  /** determines the peer of a new connection */
  readonly admit: (socket: Socket) => Admission;
};

export const PBSE_NOCONNECTS = 15033;
export const PBSE_BADCRED = 15019;
/** Time that a refused peer has to read the reason. */
const REFUSED_MS = 1000;

/** Takes the connections of a node-ipc server. Returns its links. */
export function acceptLinks(
  { server, types, limits, admit, shares = new Map() }: LinkCarrier,
  handlers: LinkHandlers,
): ReadonlyMap<Socket, ServerLink> {
  const links = new Map<Socket, ServerConnection>();
  /** connections of users of other hosts */
  let remote = 0;

  server.on("connect", (socket: Socket) => {
    const admission = admit(socket);
    if (admission.kind === "later") {
      void admission.verdict.then((verdict) => {
        if (verdict !== null && !socket.destroyed) conclude(socket, verdict);
      });
    } else if (admission.kind !== "elsewhere") conclude(socket, admission);
  });
  server.on("close", (socket: Socket) => dismiss(socket));
  for (const type of types) {
    server.on(type, (data: unknown, socket: Socket) => {
      const link = links.get(socket);
      if (link !== undefined && !link.refused) handlers.onFrame(link, type, data);
    });
  }

  function conclude(socket: Socket, verdict: Verdict): void {
    if (verdict.kind === "refused") return refuse(socket, verdict.refusal, null);
    open(socket, verdict.peer, verdict.greeting);
  }

  function open(socket: Socket, peer: LinkPeer, greeting: string | undefined): void {
    const own = sharesOf(peer).map(({ key, of }) => ({ key, share: shares.get(key) ?? makeShare(of, limits) }));
    const privileged = peer.host === undefined && (peer.uid === 0 || peer.uid === process.getuid?.());
    const is_remote_user = isRemoteUser(peer);
    const full =
      links.size >= limits.connections_max - limits.reserved_connections ||
      own.some(({ share }) => share.connections >= mostOf(share.of, peer, limits)) ||
      (is_remote_user && remote >= limits.hosts_users_connections_max);
    if (full && !privileged) {
      const problem = `too many connections of ${nameOfPeer(peer)}`;
      return refuse(socket, { problem, code: PBSE_NOCONNECTS, text: "No free connections" }, peer);
    }
    for (const { key, share } of own) {
      shares.set(key, share);
      share.connections++;
    }
    if (is_remote_user) remote++;
    const link = new ServerConnection(
      server,
      socket,
      peer,
      limits,
      own.map(({ share }) => share),
      handlers,
    );
    links.set(socket, link);
    handlers.onLink?.(link);
    if (greeting !== undefined) link.sendText(greeting);
  }

  function refuse(socket: Socket, { problem, code, text }: Refusal, peer: LinkPeer | null): void {
    handlers.onProblem?.(problem, peer);
    setInbox(socket, () => undefined);
    socket.on("error", () => undefined);
    socket.end(encodeFrame("refused", { code, text }));
    setTimeout(() => socket.destroy(), REFUSED_MS).unref();
  }

  function dismiss(socket: Socket): void {
    const link = links.get(socket);
    if (link === undefined) return;
    links.delete(socket);
    link.closed();
    if (isRemoteUser(link.peer)) remote--;
    for (const { key } of sharesOf(link.peer)) leaveShare(shares, key);
    handlers.onClose?.(link);
  }

  return links;
}

/** Returns how many connections a share may have (T3). */
function mostOf(of: "user" | "host", peer: LinkPeer, limits: Limits): number {
  if (of === "host") return limits.host_users_connections_max;
  return peer.host === undefined || isRemoteUser(peer) ? limits.user_connections_max : limits.host_connections_max;
}

/** Starts to listen. Rejects if the address cannot be bound. */
export function startListening(server: IpcServer): Promise<void> {
  return new Promise((resolve, reject) => {
    server.on("start", () => resolve());
    // node-ipc also reports every broken connection here. Once the server listens, the promise is settled, and these have no
    // effect.
    server.on("error", (error: Error) => reject(error));
    server.start();
  });
}

// Connections of the server. For each: whether it comes from a client, a scheduler or a mom, its user, and its unanswered
// requests. For each user: how many listings of jobs are under way.
//
// I1. The operating system identifies a peer on this host (SO_PEERCRED). A mom or scheduler must run as root or as the server's
//     own user; a scheduler may also run as its sched_user.
// I2. A certificate identifies a peer on another host. If the certificate has the role `host`, the peer may be only the mom of that host, or, if
//     the server has dialled the peer, only the scheduler that the server has dialled. A user of another host may only send requests, and has the
//     rights of root only in user mode, whose one user owns all hosts of the complex.
// I3. In system mode, a process of an ordinary user may be a runner of this user: the kernel says who the user is, and the
//     token says which runner it is. Only what it says about its own jobs counts (runner-frames.ts), and the limits of its
//     user hold for its connection.

import { hostName } from "#identity/host-name.ts";
import { limitOf } from "#model/limits/server-limits.ts";
import type { Request } from "#protocol/messages.ts";
import { identifyPeer } from "#protocol/wire/identity.ts";
import type { ServerLink } from "#protocol/wire/ipc-transport.ts";
import type { Limits } from "#protocol/wire/limits.ts";
import { isRemoteUser, type LinkPeer } from "#protocol/wire/link-peer.ts";
import type { UserDatabase } from "#support/passwd.ts";
import type { Peer } from "../engine/identity.ts";
import type { ServerState } from "../state/state.ts";

/** The members of a link that are used here. A link is a socket in the daemon and a virtual connection in the simulator. */
export type Link = Pick<
  ServerLink,
  | "id"
  | "peer"
  | "frame_chars"
  | "serveNext"
  | "hold"
  | "release"
  | "send"
  | "sendText"
  | "reply"
  | "part"
  | "sendFrames"
  | "welcome"
  | "end"
  | "destroy"
>;

export type Connection = {
  readonly link: Link;
  /** the user behind the connection; null: the uid has no name, or the peer is a daemon of another host */
  readonly peer: Peer | null;
  readonly pid: number;
  role: "client" | "sched" | "mom" | "runners";
  /** the mom is a runner that is a process of an ordinary user (I3) */
  is_of_user: boolean;
  /** tokens of the connection's unanswered requests, and of those among them that are listings */
  readonly tokens: Set<number>;
  readonly listings: Set<number>;
};

export type Pending = { readonly connection: Connection; readonly id: number };

export type Connections = {
  add(link: Link): Connection;
  of(link: Link): Connection | undefined;
  byNumber(link: number): Connection | undefined;
  /** removes a connection with its open requests, and returns it */
  remove(link: Link): Connection | undefined;
  /** makes a token for a request */
  open(connection: Connection, id: number, is_listing?: boolean): number;
  /** returns the request of a token; the request stays open */
  peek(token: number): Pending | undefined;
  /** removes the request of a token, because it is answered now, and returns it */
  take(token: number): Pending | undefined;
  /** whether the peer may be a mom or scheduler (I1) */
  mayBeDaemon(connection: Connection): boolean;
  /** whether the peer may be the mom of this host, as it says in its hello (I1, I2) */
  mayBeMom(connection: Connection, host: string): boolean;
  /** whether the peer may be a runner of this user, if it has the runner's token (I3) */
  mayBeRunner(connection: Connection, owner: string): boolean;
  /** whether the peer may be the scheduler that it claims to be (I1, I2). sched_user: that scheduler's attribute */
  mayBeSched(connection: Connection, sched: string, sched_user: unknown): boolean;
  /** the connections of schedulers and moms */
  daemons(): readonly Connection[];
  all(): readonly Connection[];
  tokens(): number[];
};

/** The limits of links, from the attributes of the server. */
export function linkLimits(state: ServerState): Partial<Limits> {
  return {
    user_connections_max: limitOf(state, "max_user_connections"),
    open_requests_max: limitOf(state, "max_connection_requests"),
    user_pending_chars_max: limitOf(state, "max_user_request_text"),
    user_open_chars_max: limitOf(state, "max_user_request_text"),
    unread_reply_chars_max: limitOf(state, "max_unread_reply"),
    user_unread_chars_max: limitOf(state, "max_user_unread_reply"),
    user_frames_per_s_max: limitOf(state, "max_user_request_rate"),
    host_users_connections_max: limitOf(state, "max_host_connections"),
    host_pending_chars_max: limitOf(state, "max_host_request_text"),
    host_open_chars_max: limitOf(state, "max_host_request_text"),
    host_unread_chars_max: limitOf(state, "max_host_unread_reply"),
    host_frames_per_s_max: limitOf(state, "max_host_request_rate"),
    frame_ms_max: 1000 * limitOf(state, "max_request_time"),
    stalled_reader_ms: 1000 * limitOf(state, "max_reader_pause"),
  };
}

export function connections(options: {
  readonly users: UserDatabase;
  readonly host: string;
  readonly own_uid: number;
  readonly system: boolean;
  /** the listings under way of each user */
  readonly listings: Pick<Shares<Connection>, "over" | "leave">;
}): Connections {
  const by_number = new Map<number, Connection>();
  const pending = new Map<number, Pending>();
  let next_token = 1;

  const peerOf = (link: LinkPeer): Peer | null => {
    const isHere = link.host === undefined;
    if (!isHere && !isRemoteUser(link)) return null;
    const identity = identifyPeer(link, options.users, link.host?.host ?? options.host);
    if (identity === null) return null;
    const { user, uid, groups, host } = identity;
    // In user mode the user of the complex also counts as root.
    return { user, uid, groups, host, root: (isHere && uid === 0) || (!options.system && uid === options.own_uid) };
  };

  const mayBeDaemon = ({ link, peer }: Connection): boolean =>
    link.peer.host === undefined && peer !== null && (peer.uid === 0 || peer.uid === options.own_uid);

  return {
    mayBeDaemon,
    mayBeMom(connection, host) {
      const { host: certified, sched } = connection.link.peer;
      if (certified === undefined) return mayBeDaemon(connection);
      return sched === undefined && certified.role === "host" && certified.host === hostName(host);
    },
    mayBeRunner: ({ link, peer }, owner) => options.system && link.peer.host === undefined && peer?.user === owner,
    mayBeSched: (connection, sched, sched_user) =>
      connection.link.peer.sched === sched ||
      mayBeDaemon(connection) ||
      (options.system && connection.link.peer.host === undefined && typeof sched_user === "string" && connection.peer?.user === sched_user),
    add(link) {
      const connection: Connection = {
        link,
        peer: peerOf(link.peer),
        pid: link.peer.pid,
        role: "client",
        is_of_user: false,
        tokens: new Set(),
        listings: new Set(),
      };
      by_number.set(link.id, connection);
      return connection;
    },
    of: (link) => by_number.get(link.id),
    byNumber: (link) => by_number.get(link),
    remove(link) {
      const connection = by_number.get(link.id);
      by_number.delete(link.id);
      if (connection === undefined) return undefined;
      for (const token of connection.tokens) pending.delete(token);
      // The connection's waiting listings are removed first; otherwise over() would begin one of them.
      options.listings.leave(link.peer.uid, connection);
      for (const _listing of connection.listings) options.listings.over(link.peer.uid);
      connection.listings.clear();
      return connection;
    },
    open(connection, id, is_listing = false) {
      const token = next_token++;
      pending.set(token, { connection, id });
      connection.tokens.add(token);
      if (is_listing) connection.listings.add(token);
      return token;
    },
    peek: (token) => pending.get(token),
    take(token) {
      const found = pending.get(token);
      pending.delete(token);
      found?.connection.tokens.delete(token);
      if (found?.connection.listings.delete(token) === true) options.listings.over(found.connection.link.peer.uid);
      return found;
    },
    daemons: () => [...by_number.values()].filter(({ role }) => role !== "client"),
    all: () => [...by_number.values()],
    tokens: () => [...pending.keys()],
  };
}

// --- listings

// Limits the number of listings of jobs that a user has under way to max_user_listings; further listings wait in their
// order. The reason: each listing keeps in memory the list of jobs that it began with, and a page that its reader has
// not taken.

/** Whether a request reads many jobs, live or finished. */
export function isListing(request: Request): boolean {
  if (request.kind === "select-jobs") return true;
  return request.kind === "status" && request.object === "job" && (request.ids.length !== 1 || request.subjobs === true);
}

export type Shares<Owner> = {
  /** Calls `start` when the user may begin one more listing: at once if possible. Returns whether `start` was called at once. */
  take(uid: number, owner: Owner, start: () => void): boolean;
  /** a listing of the user has ended */
  over(uid: number): void;
  /** removes the waiting listings of an owner that is gone */
  leave(uid: number, owner: Owner): void;
};

/** max: returns how many listings one user may have; called at each use. */
export function createShares<Owner>(max: () => number): Shares<Owner> {
  const users = new Map<number, { taken: number; waiting: { readonly owner: Owner; readonly start: () => void }[] }>();
  const forget = (uid: number): void => {
    const user = users.get(uid);
    if (user !== undefined && user.taken === 0 && user.waiting.length === 0) users.delete(uid);
  };
  return {
    take(uid, owner, start) {
      let user = users.get(uid);
      if (user === undefined) users.set(uid, (user = { taken: 0, waiting: [] }));
      if (user.taken >= max()) {
        user.waiting.push({ owner, start });
        return false;
      }
      user.taken++;
      start();
      return true;
    },
    over(uid) {
      const user = users.get(uid);
      if (user === undefined) return;
      user.taken--;
      while (user.taken < max() && user.waiting.length > 0) {
        user.taken++;
        user.waiting.shift()?.start();
      }
      forget(uid);
    },
    leave(uid, owner) {
      const user = users.get(uid);
      if (user === undefined) return;
      user.waiting = user.waiting.filter((each) => each.owner !== owner);
      forget(uid);
    },
  };
}

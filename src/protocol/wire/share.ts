// What all connections of one user, or of the users of one other host, hold and do together (server-link.ts L2, L3). All listeners of
// the server count in the same table, so that a user or host that connects to several listeners does not get a larger share.

import { type RateBucket, rateBucket } from "../bounds/rate.ts";
import type { Limits } from "./limits.ts";
import { isRemoteUser, type LinkPeer } from "./link-peer.ts";

/** A connection, as a share sees it. */
export type Member = {
  /** serves or reads again, if that is possible now */
  goOn(): void;
};

/** The limits of a share; they are read at each use. */
export type ShareLimits = {
  readonly pending_chars_max: number;
  readonly open_chars_max: number;
  readonly unread_chars_max: number;
  readonly frames_per_s_max: number;
};

/** Totals over all connections of a share. */
export type Share = {
  readonly of: "user" | "host";
  readonly limits: ShareLimits;
  connections: number;
  /** whether the share is forgotten soon, if no connection is made meanwhile */
  is_leaving: boolean;
  /** numbers of characters: of incomplete frames, of complete frames not yet served, of unanswered requests, and of unread replies */
  pending_chars: number;
  waiting_chars: number;
  open_chars: number;
  unread_chars: number;
  /** connections that are not read (server-link.ts L3), until there may be room again */
  readonly not_read: Set<Member>;
  /** the connection that is read although there is no room (server-link.ts L3); null: none */
  reader: Member | null;
  readonly rate: RateBucket<Member>;
};

/** Makes the share of a user, or of the users of a host, without connections. */
export function makeShare(of: Share["of"], limits: Limits): Share {
  const own = limitsOf(limits, of);
  return {
    of,
    limits: own,
    connections: 0,
    is_leaving: false,
    pending_chars: 0,
    waiting_chars: 0,
    open_chars: 0,
    unread_chars: 0,
    not_read: new Set(),
    reader: null,
    rate: rateBucket(
      () => own.frames_per_s_max,
      (member) => member.goOn(),
    ),
  };
}

/** The limits of a user, or of the users of another host together. They are read anew each time, because a manager may change them. */
const limitsOf = (limits: Limits, whose: "user" | "host"): ShareLimits => ({
  get pending_chars_max() {
    return limits[`${whose}_pending_chars_max`];
  },
  get open_chars_max() {
    return limits[`${whose}_open_chars_max`];
  },
  get unread_chars_max() {
    return limits[`${whose}_unread_chars_max`];
  },
  get frames_per_s_max() {
    return limits[`${whose}_frames_per_s_max`];
  },
});

/**
 * Called when a connection of this share has ended. A share without connections is forgotten when it has its whole rate again: a peer that connects anew must not
 * get a new second's requests each time.
 */
export function leaveShare(shares: Shares, key: string): void {
  const share = shares.get(key);
  if (share === undefined || --share.connections > 0 || share.is_leaving) return;
  share.is_leaving = true;
  share.rate.whenFull(() => {
    share.is_leaving = false;
    if (share.connections === 0) shares.delete(key);
  });
}

/** Lets the connections that were not read try again. */
export function readOn({ not_read }: Share): void {
  if (not_read.size === 0) return;
  const members = [...not_read];
  not_read.clear();
  for (const each of members) each.goOn();
}

/**
 * The shares of all peers that have connections, or had some less than about a second ago, by name. Users of this host and of other hosts are the same users if they have
 * the same uid.
 */
export type Shares = Map<string, Share>;

/** The names of the shares to which the connections of a peer belong: its user, and the host of a user of another host. A daemon of another host counts as its host's user. */
export function sharesOf(peer: LinkPeer): readonly { readonly key: string; readonly of: Share["of"] }[] {
  const { host, uid } = peer;
  if (host === undefined) return [{ key: `user ${uid}`, of: "user" }];
  if (!isRemoteUser(peer)) return [{ key: `daemon ${host.host}`, of: "user" }];
  return [
    { key: `user ${uid}`, of: "user" },
    { key: `host ${host.host}`, of: "host" },
  ];
}

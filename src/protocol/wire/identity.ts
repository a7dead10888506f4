// Derives the PBS user from the kernel's credentials of a peer. What the client itself says is not used.

import type { SystemUser, UserDatabase } from "#support/passwd.ts";
import type { PeerCredentials } from "./peer-credentials.ts";

export type PeerIdentity = {
  readonly user: string;
  readonly uid: number;
  /** names of the primary group, then of the supplementary groups, from the system's database */
  readonly groups: readonly string[];
  readonly gid: number;
  readonly home: string;
  /** the host on which the peer runs */
  readonly host: string;
  readonly pid: number;
};

/**
 * Finds the user of a peer. Returns null if the uid has no name here: the peer is then not a PBS user (15019, `Invalid
 * credential`). host: the local host's name.
 */
export function identifyPeer(peer: PeerCredentials, users: UserDatabase, host: string): PeerIdentity | null {
  const user: SystemUser | null = users.userByUid(peer.uid);
  if (user === null) return null;
  return { user: user.name, uid: user.uid, gid: user.gid, groups: users.groupsOf(user), home: user.home, host, pid: peer.pid };
}

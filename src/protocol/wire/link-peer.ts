// The other end of a connection of the server, as the server knows it. Pure.

import type { HostIdentity } from "#identity/peer.ts";
import type { PeerCredentials } from "./peer-credentials.ts";

/**
 * The kernel identifies a process of this host. The certificate of its host identifies a daemon of another host, which has
 * neither pid nor uid here. A certificate with the role `user` or `login` identifies a user of another host, with `login`
 * together with a proof of the uid (../proof); the pid is 0. sched: the scheduler that the server has dialled; the peer may
 * be that scheduler and nothing else. address: the address of the other host; it proves nothing. until_s: the end of the certificate.
 */
export type LinkPeer = PeerCredentials & {
  readonly host?: HostIdentity;
  readonly sched?: string;
  readonly address?: string;
  readonly until_s?: number;
};

/** The uid and gid of daemons on other hosts: no user has it. */
export const NO_UID = 0xffffffff;

/** Whether the peer is a user of another host. */
export const isRemoteUser = ({ host }: LinkPeer): boolean => host?.role === "user" || host?.role === "login";

/** Returns the peer of a link, for the log. */
export function nameOfPeer(peer: LinkPeer): string {
  if (peer.host === undefined) return `uid ${peer.uid}`;
  return isRemoteUser(peer) ? `uid ${peer.uid} of host ${peer.host.host}` : `host ${peer.host.host}`;
}

// Questions of hosts for certificates, over a TLS connection of its own: one frame, one answer (wire/tls-listener.ts). Certificates and requests are PEM.
// The frame `revoked` goes over links between hosts: the server sends it after the first frame of a daemon that it accepts, and whenever the list grows.

import type { Revocation } from "#identity/revocations.ts";

/** certificates that hosts must refuse */
export type Revoked = { readonly certificates: readonly Revocation[] };
/** Its type. */
export const REVOKED = "revoked";

/** What a new host must know of its complex. server: PBS_SERVER; port: PBS_BATCH_SERVICE_PORT. */
export type ComplexSettings = { readonly server: string; readonly port: number; readonly mode: "user" | "system" };

export type HostToAuthority = {
  /** of a host without certificate. token, secret: hexadecimal digits, as in its token (src/identity/token.ts) */
  join: { readonly version: string; readonly token: string; readonly secret: string; readonly request: string };
  /** of a host that has shown its present certificate */
  renew: { readonly version: string; readonly request: string };
  /** the same: a certificate for commands of the host's users */
  login: { readonly version: string; readonly request: string };
  /** of a user of a host, which has shown that certificate */
  user: { readonly version: string; readonly token: string; readonly secret: string; readonly request: string };
  /** of a host that has shown its present certificate: does the server know this host? */
  check: { readonly version: string };
  /** the same: which schedulers belong to this host? */
  scheds: { readonly version: string };
};
/** A scheduler of a host. port: its sched_port; null: not set. */
export type HostSched = { readonly name: string; readonly port: number | null };

export type AuthorityToHost = {
  /** now_s: the server's clock, epoch seconds */
  joined: { readonly certificate: string; readonly authority: string; readonly now_s: number; readonly settings: ComplexSettings };
  /** user: the name of the user whose certificate it is */
  "user-signed": { readonly certificate: string; readonly authority: string; readonly user: string };
  /** revoked: certificates of the server, for hosts without a mom's link; authorities: fingerprints of those that hosts are to trust */
  checked: { readonly now_s: number; readonly authorities: readonly string[]; readonly revoked: readonly Revocation[] };
  renewed: { readonly certificate: string; readonly authority: string };
  scheds: { readonly scheds: readonly HostSched[] };
  "join-refused": { readonly text: string };
};

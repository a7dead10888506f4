// The identity that a certificate gives to the peer of a link. Pure: the facts of the certificate come from x509/certificate.ts or from TLS, after the chain
// of signatures was checked.
//
// N1. A certificate names exactly one host and one role, and with the role `user` one user. A certificate with more or fewer names is refused, not interpreted.

import { hostName, isHostNamed } from "./host-name.ts";
import { certificateOf, type Ledger, type Role, standingOf } from "./ledger.ts";
import { isUserName } from "./user-name.ts";

/** The alternative names of a certificate, by kind. */
export type CertificateNames = { readonly dns: readonly string[]; readonly uri: readonly string[]; readonly other: number };

/** What a certificate says about its holder. user: only with the role `user`. */
export type HostIdentity = { readonly host: string; readonly role: Role; readonly serial: string; readonly user?: string };

type RoleNamed = Pick<HostIdentity, "role" | "user">;

const ROLES: Readonly<Record<string, RoleNamed>> = {
  "partita:host": { role: "host" },
  "partita:server": { role: "server" },
  "partita:login": { role: "login" },
};
const USER_PREFIX = "partita:user:";

/** The name of a role in certificates. user: null unless the role is `user`. */
export const roleName = (role: Role, user: string | null = null): string => (user === null ? `partita:${role}` : `${USER_PREFIX}${user}`);

function roleIn(uri: string): RoleNamed | null {
  if (Object.hasOwn(ROLES, uri)) return ROLES[uri] ?? null;
  const user = uri.startsWith(USER_PREFIX) ? uri.slice(USER_PREFIX.length) : "";
  return isUserName(user) ? { role: "user", user } : null;
}

/** Returns the identity that the names give; null: no host's certificate has such names (N1). */
export function identityIn(names: CertificateNames, serial: string): HostIdentity | null {
  const [dns, uri] = [names.dns[0], names.uri[0]];
  if (dns === undefined || uri === undefined || names.dns.length + names.uri.length + names.other !== 2) return null;
  const host = hostName(dns);
  const named = roleIn(uri);
  return host === null || host !== dns || named === null ? null : { host, ...named, serial: serial.toLowerCase() };
}

/**
 * Reads the alternative names as Node prints them (`DNS:a, URI:b`). Node quotes a name with unusual characters; no such name is one of ours, so it is counted in
 * `other`.
 */
export function namesIn(subjectAltName: string | undefined): CertificateNames {
  const dns: string[] = [];
  const uri: string[] = [];
  let other = 0;
  for (const entry of subjectAltName === undefined ? [] : subjectAltName.split(", ")) {
    const [, kind, name = ""] = /^(DNS|URI):([A-Za-z0-9_.:-]+)$/.exec(entry) ?? [];
    if (kind === "DNS") dns.push(name);
    else if (kind === "URI") uri.push(name);
    else other++;
  }
  return { dns, uri, other };
}

/** Why the server refuses a peer with that identity, in words for the log; null: it is welcome. */
export function peerFault(ledger: Ledger, identity: HostIdentity, now_s: number): string | null {
  const certificate = certificateOf(ledger, identity.serial);
  if (certificate === undefined) return `the certificate ${identity.serial} of ${identity.host} is not in the ledger`;
  if (certificate.host !== identity.host || certificate.role !== identity.role || certificate.user !== (identity.user ?? null))
    return `the certificate ${identity.serial} was signed for ${certificate.host}`;
  const standing = standingOf(certificate, now_s);
  return standing === "valid" ? null : `the certificate ${identity.serial} of ${identity.host} ${STANDING_TEXT[standing]}`;
}

const STANDING_TEXT = {
  early: "is not valid yet",
  over: "has expired",
  revoked: "was revoked",
  replaced: "was replaced by another one",
} as const;

/** Why the server refuses a peer that should be a certain host; null: it is that host. name: as an administrator wrote it, with or without the domain. */
export function hostFault(identity: HostIdentity | null, name: string): string | null {
  if (identity === null) return "the certificate is not one of a Partita host";
  if (identity.role !== "host") return `the peer is the server ${identity.host} and no other host`;
  return isHostNamed(identity.host, name) ? null : `the peer is the host ${identity.host}, not ${name}`;
}

/** Returns the reason for which a host refuses a peer that should be a server; null: the peer is a server. revoked: serial numbers of certificates that hosts refuse. */
export function anyServerFault(identity: HostIdentity | null, revoked: ReadonlySet<string>): string | null {
  if (identity === null) return "the certificate is not one of a Partita host";
  if (identity.role !== "server") return `the peer is the host ${identity.host} and no server`;
  return revoked.has(identity.serial) ? `the certificate ${identity.serial} of the server ${identity.host} was revoked` : null;
}

/** Why a host refuses a peer that should be its own server; null: it is that server. server: PBS_SERVER of the host. */
export function serverFault(identity: HostIdentity | null, server: string, revoked: ReadonlySet<string>): string | null {
  const fault = anyServerFault(identity, revoked);
  if (fault !== null || identity?.host === hostName(server)) return fault;
  return `the peer is the server ${identity?.host}, not ${server}`;
}

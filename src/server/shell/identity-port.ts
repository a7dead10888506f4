// The certificate authority as a port of the driver. A complex on one host never loads it. The authority is created with the
// first token; at later starts of the server it exists already.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Credentials } from "#identity/files/credentials.ts";
import type { HostIdentity } from "#identity/peer.ts";
import type { IdentityAsk } from "#protocol/identity-link.ts";
import type { IdentityPort } from "../driver/ports.ts";
import type { AuthorityOptions, CertificateAuthority } from "./authority.ts";

/** The port for other hosts, which depends on the authority (network.ts). */
export type Door = {
  /** Opens the port for hosts that the authority knows. Rejects if that is not possible now; it is tried again from time to time. */
  open(authority: CertificateAuthority): Promise<void>;
  /** certificates were revoked or renewed */
  changed(): void;
};

/** The files that two servers of a complex share (shared-files.ts). */
export type FilesOfPair = {
  /** Replaces the files of this host by the files of the server that led before. */
  fetch(): Promise<void>;
  /** Resolves when the files are stored where the other server finds them. */
  keep(): Promise<void>;
};

export type OwnSide = {
  readonly credentials: Credentials;
  /** why a host is refused, in words for the log; null: it is accepted */
  fault(identity: HostIdentity): string | null;
};

export type OpenIdentity = IdentityPort & {
  /**
   * what the server shows to a host to which it connects, and what it accepts; null: the complex has no authority. Throws if
   * the server's certificate cannot be used
   */
  ownSide(): OwnSide | null;
  /** whether a host of that name has a certificate that is valid now */
  hasHost(name: string): boolean;
  /** the hosts that have a certificate which is valid now */
  hostNames(): ReadonlySet<string>;
  /** Called at the start of the server: opens the authority, if the complex has one, and the port. Rejects with the reason if it cannot. */
  begin(): Promise<void>;
};

/** Makes the port. ask(): carries out one order after another, and answers each when its effects are on the disk. */
export function identityPort(options: AuthorityOptions, door: Door, shared: FilesOfPair | null = null): OpenIdentity {
  let authority: CertificateAuthority | null = null;
  let last: Promise<unknown> = Promise.resolve();

  const open = async (create: boolean): Promise<CertificateAuthority | null> => {
    if (authority !== null) return authority;
    const exists = existsSync(join(options.home, "server_priv", "ca"));
    if (!exists && !create) return null;
    const { CertificateAuthority, createAuthority } = await import("./authority.ts");
    if (!exists) createAuthority(options);
    const opened = new CertificateAuthority(options);
    if (opened.needsServerCertificate()) opened.renewServer();
    opened.renewMember();
    authority = opened;
    return opened;
  };

  const answer = async (ask: IdentityAsk): Promise<unknown> => {
    const present = await open(ask.verb === "make-token");
    if (present === null) {
      if (ask.verb === "list") return { authority: null, next: null, left: [], certificates: [], tokens: [] };
      throw new Error("the complex has no certificate authority yet: the first token makes it (partita cert token)");
    }
    // A token cannot be used while the port is closed.
    if (ask.verb === "make-token") await door.open(present);
    const value = carryOut(present, ask);
    if (ask.verb !== "list") door.changed();
    await shared?.keep();
    return value;
  };

  return {
    ask(ask, done) {
      last = last.then(() =>
        answer(ask).then(
          (value) => done({ ok: true, value }),
          (error: unknown) => done({ ok: false, error: error instanceof Error ? error : new Error(String(error)) }),
        ),
      );
    },
    ownSide() {
      const present = authority;
      return present === null ? null : { credentials: present.serverCredentials(), fault: (identity) => present.fault(identity) };
    },
    hasHost: (name) => authority?.hasHost(name) ?? false,
    hostNames: () => authority?.hostNames() ?? new Set<string>(),
    async begin() {
      await shared?.fetch();
      // With two servers, every host must have a certificate, so that it can reach the other server.
      const present = await open(shared !== null);
      await shared?.keep();
      if (present !== null) await door.open(present);
    },
  };
}

function carryOut(authority: CertificateAuthority, ask: IdentityAsk): unknown {
  switch (ask.verb) {
    case "list":
      return authority.list();
    case "make-token":
      return authority.makeToken(ask);
    case "withdraw-token":
      return authority.withdraw(ask.id);
    case "revoke-host":
      return authority.revoke(ask.host);
    case "revoke-user":
      return authority.revokeUser(ask.user);
    case "renew-server":
      return authority.renewServer();
    case "rotate":
      return authority.beginRotation();
    case "finish-rotation":
      return authority.finishRotation(ask.force);
    default: {
      const unreachable: never = ask;
      return unreachable;
    }
  }
}

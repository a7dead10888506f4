// The certificate authority as a port of the driver. A complex on one host never loads it: the first token creates it, and later starts of the server find it.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { IdentityAsk } from "#protocol/identity-link.ts";
import type { IdentityPort } from "../driver/ports.ts";
import type { AuthorityOptions, CertificateAuthority } from "./authority.ts";

/** ask(): one order after another, each answered when its effects are on the disk. */
export function identityPort(options: AuthorityOptions): IdentityPort {
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
    authority = opened;
    return opened;
  };

  const answer = async (ask: IdentityAsk): Promise<unknown> => {
    const present = await open(ask.verb === "make-token");
    if (present !== null) return carryOut(present, ask);
    if (ask.verb === "list") return { authority: null, certificates: [], tokens: [] };
    throw new Error("the complex has no certificate authority yet: the first token makes it (partita cert token)");
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
  };
}

function carryOut(authority: CertificateAuthority, ask: IdentityAsk): unknown {
  switch (ask.verb) {
    case "list":
      return authority.list();
    case "make-token":
      return authority.makeToken(ask.host, ask.life_s);
    case "withdraw-token":
      return authority.withdraw(ask.id);
    case "revoke-host":
      return authority.revoke(ask.host);
    case "renew-server":
      return authority.renewServer();
    default: {
      const unreachable: never = ask;
      return unreachable;
    }
  }
}

// What `partita cert` asks the server, and the answers. Times are epoch seconds; ids and serials are those of src/identity.

import type { Role, Standing } from "#identity/ledger.ts";

/** host, user: as the caller wrote them; user null: the token is for a host that joins; life_s: how long the token is valid */
export type IdentityAsk =
  | { readonly verb: "list" }
  | { readonly verb: "make-token"; readonly host: string | null; readonly user: string | null; readonly life_s: number }
  | { readonly verb: "withdraw-token"; readonly id: string }
  | { readonly verb: "revoke-host"; readonly host: string }
  | { readonly verb: "revoke-user"; readonly user: string }
  | { readonly verb: "renew-server" }
  | { readonly verb: "rotate" }
  | { readonly verb: "finish-rotation"; readonly force: boolean };

export type CertificateView = {
  readonly serial: string;
  readonly host: string;
  readonly role: Role;
  /** the user's name; null: it is not for a user */
  readonly user: string | null;
  readonly from_s: number;
  readonly until_s: number;
  readonly standing: Standing;
};
export type TokenView = {
  readonly id: string;
  readonly host: string | null;
  readonly user: string | null;
  readonly expires_s: number;
  readonly standing: "open" | "used" | "expired" | "withdrawn";
};
export type AuthorityView = { readonly fingerprint: string; readonly until_s: number };

/** The reply value by verb. authority null: the complex has none yet. */
export type IdentityAnswers = {
  list: {
    readonly authority: AuthorityView | null;
    /** the authority that is to replace the present one, and the hosts that have no certificate of it yet */
    readonly next: AuthorityView | null;
    readonly left: readonly string[];
    readonly certificates: readonly CertificateView[];
    readonly tokens: readonly TokenView[];
  };
  "make-token": { readonly token: string; readonly id: string; readonly expires_s: number };
  "withdraw-token": Record<string, never>;
  /** number of certificates that were valid until now */
  "revoke-host": { readonly revoked: number };
  "revoke-user": { readonly revoked: number };
  "renew-server": { readonly until_s: number };
  rotate: { readonly left: readonly string[] };
  /** hosts that have no certificate of the new authority, so that they must join again */
  "finish-rotation": { readonly out: readonly string[] };
};

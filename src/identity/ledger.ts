// The authority's ledger: which tokens exist, and which certificates it signed. Pure: times are parameters, in epoch seconds.
//
// A1. A certificate counts only if it is in the ledger. What the ledger does not know is refused, whoever signed it.
// A2. A token serves one key: once used, it is good only for the key that it was used with, so that a lost answer can be asked for again.
// A3. A name that has a valid certificate is given to another key only by a token that was made for that name. The name of the server is never given.
// A4. What has ended never becomes valid again.

export type Role = "host" | "server";

export type Token = {
  readonly id: string;
  /** SHA-256 of the secret's bytes, hexadecimal; the secret itself is stored nowhere */
  readonly secret_sha256: string;
  /** the one name that the token gives; null: any name that has no valid certificate */
  readonly host: string | null;
  readonly created_s: number;
  readonly expires_s: number;
  readonly used: { readonly at_s: number; readonly host: string; readonly key_sha256: string } | null;
  readonly withdrawn_s: number | null;
};

export type Certificate = {
  readonly serial: string;
  readonly host: string;
  readonly role: Role;
  readonly key_sha256: string;
  /** fingerprint of the authority that signed it */
  readonly authority: string;
  readonly from_s: number;
  readonly until_s: number;
  readonly end: { readonly at_s: number; readonly why: "revoked" | "replaced" } | null;
};

export type Ledger = { readonly tokens: readonly Token[]; readonly certificates: readonly Certificate[] };

export const EMPTY_LEDGER: Ledger = Object.freeze({ tokens: [], certificates: [] });

/** A host that asks to join. */
export type JoinAsk = { readonly token: string; readonly secret_sha256: string; readonly host: string; readonly key_sha256: string };

export type Refusal = "token-unknown" | "token-used" | "token-expired" | "token-for-another" | "name-of-server" | "name-taken";
export type Verdict = { readonly ok: true } | { readonly ok: false; readonly why: Refusal };

export type Standing = "valid" | "early" | "over" | "revoked" | "replaced";

const YES: Verdict = { ok: true };
const no = (why: Refusal): Verdict => ({ ok: false, why });

/** What a certificate is worth at a time. */
export function standingOf({ end, from_s, until_s }: Certificate, now_s: number): Standing {
  if (end !== null) return end.why;
  if (now_s < from_s) return "early";
  return now_s >= until_s ? "over" : "valid";
}

export const certificateOf = (ledger: Ledger, serial: string): Certificate | undefined =>
  ledger.certificates.find((each) => each.serial === serial);

/** Certificates of a host that have not ended. One that is not valid yet counts, because it will be. */
const living = (ledger: Ledger, host: string, now_s: number): readonly Certificate[] =>
  ledger.certificates.filter((each) => each.host === host && ["valid", "early"].includes(standingOf(each, now_s)));

/** A new token. Its id must not be in the ledger. */
export function addToken(ledger: Ledger, token: Omit<Token, "used" | "withdrawn_s">): Ledger {
  return { ...ledger, tokens: [...ledger.tokens, { ...token, used: null, withdrawn_s: null }] };
}

/** Whether a host may have a certificate. An unknown token and a wrong secret are not told apart. */
export function judgeJoin(ledger: Ledger, ask: JoinAsk, now_s: number): Verdict {
  const token = ledger.tokens.find(({ id }) => id === ask.token);
  if (token === undefined || token.secret_sha256 !== ask.secret_sha256 || token.withdrawn_s !== null) return no("token-unknown");
  const { used } = token;
  if (used !== null && (used.key_sha256 !== ask.key_sha256 || used.host !== ask.host)) return no("token-used");
  if (now_s >= token.expires_s) return no("token-expired");
  if (token.host !== null && token.host !== ask.host) return no("token-for-another");
  const present = living(ledger, ask.host, now_s);
  if (present.some(({ role }) => role === "server")) return no("name-of-server");
  const is_present = present.some(({ key_sha256 }) => key_sha256 === ask.key_sha256);
  // The key may have been revoked or replaced after it joined. The token that it used then does not bring it back (A4).
  if (used !== null && !is_present) return no("token-used");
  if (token.host === null && present.length > 0 && !is_present) return no("name-taken");
  return YES;
}

/** A host has joined (judgeJoin accepted it): the token is used, and earlier certificates of the host are replaced. */
export function recordJoin(ledger: Ledger, token: string, certificate: Certificate, now_s: number): Ledger {
  const { host, key_sha256 } = certificate;
  const ended = end(ledger, (each) => each.host === host, "replaced", now_s);
  return {
    tokens: ledger.tokens.map((each) => (each.id === token ? { ...each, used: each.used ?? { at_s: now_s, host, key_sha256 } } : each)),
    certificates: [...ended.certificates, certificate],
  };
}

/** A certificate without a token: that of the server, or a renewal. Earlier ones stay valid until their end. */
export function recordCertificate(ledger: Ledger, certificate: Certificate): Ledger {
  return { ...ledger, certificates: [...ledger.certificates, certificate] };
}

/** Ends all certificates of a host, and unused tokens that were made for it. */
export function revokeHost(ledger: Ledger, host: string, now_s: number): Ledger {
  const { certificates } = end(ledger, (each) => each.host === host, "revoked", now_s);
  return { certificates, tokens: withdraw(ledger.tokens, (each) => each.host === host && each.used === null, now_s) };
}

/** Another authority has taken over: certificates of other ones end, and so do unused tokens, which name the former one. */
export function recordRotation(ledger: Ledger, authority: string, now_s: number): Ledger {
  const { certificates } = end(ledger, (each) => each.authority !== authority, "replaced", now_s);
  return { certificates, tokens: withdraw(ledger.tokens, ({ used }) => used === null, now_s) };
}

/** Withdraws a token. A certificate that it gave stays valid. */
export function withdrawToken(ledger: Ledger, id: string, now_s: number): Ledger {
  return { ...ledger, tokens: withdraw(ledger.tokens, (each) => each.id === id, now_s) };
}

/** Removes what ended before then. */
export function forgetBefore(ledger: Ledger, before_s: number): Ledger {
  return {
    tokens: ledger.tokens.filter(({ expires_s }) => expires_s >= before_s),
    certificates: ledger.certificates.filter(({ until_s }) => until_s >= before_s),
  };
}

function end(ledger: Ledger, which: (each: Certificate) => boolean, why: "revoked" | "replaced", now_s: number): Ledger {
  const certificates = ledger.certificates.map((each) =>
    which(each) && each.end === null && now_s < each.until_s ? { ...each, end: { at_s: now_s, why } } : each,
  );
  return { ...ledger, certificates };
}

const withdraw = (tokens: readonly Token[], which: (each: Token) => boolean, now_s: number): readonly Token[] =>
  tokens.map((each) => (which(each) && each.withdrawn_s === null ? { ...each, withdrawn_s: now_s } : each));

/** Rules that hold in every ledger; returns the broken ones. */
export function ledgerFaults(ledger: Ledger): readonly string[] {
  const faults: string[] = [];
  const twice = (what: string, values: readonly string[]): void => {
    if (new Set(values).size !== values.length) faults.push(`${what} twice`);
  };
  twice(
    "a serial",
    ledger.certificates.map(({ serial }) => serial),
  );
  twice(
    "a token",
    ledger.tokens.map(({ id }) => id),
  );
  for (const { serial, from_s, until_s } of ledger.certificates) if (from_s >= until_s) faults.push(`${serial} ends before it begins`);
  return faults;
}

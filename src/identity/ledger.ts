// The authority's ledger: which tokens exist, and which certificates it signed. Pure: times are parameters, in epoch seconds.
//
// A1. A certificate counts only if it is in the ledger. What the ledger does not know is refused, whoever signed it.
// A2. A token serves one key: once used, it is good only for the key that it was used with, so that a lost answer can be asked for again.
// A3. A name that has a valid certificate is given to another key only by a token that was made for that name. The name of the server is never given.
// A4. What has ended never becomes valid again.
// A5. What hosts do on their own does not fill the ledger: for one token a host gets a bounded number of certificates. Each is remembered until it is over by its dates.

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
  /** replaced: its host has joined again, or its authority is gone */
  readonly end: { readonly at_s: number; readonly why: Ending } | null;
};

/** Certificates of one host that are not over, without those that its earlier tokens gave (A5). Three in two years are usual (TERMS). */
export const CERTIFICATES_MAX = 16;

export type Ending = "revoked" | "replaced";

export type Ledger = { readonly tokens: readonly Token[]; readonly certificates: readonly Certificate[] };

export const EMPTY_LEDGER: Ledger = Object.freeze({ tokens: [], certificates: [] });

/** A host that asks to join. */
export type JoinAsk = { readonly token: string; readonly secret_sha256: string; readonly host: string; readonly key_sha256: string };

export type Refusal = "token-unknown" | "token-used" | "token-expired" | "token-for-another" | "name-of-server" | "name-taken" | "too-many";
export type Verdict = { readonly ok: true } | { readonly ok: false; readonly why: Refusal };

export type Standing = "valid" | "early" | "over" | Ending;

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

/**
 * The token, if the secret is its own and it was not withdrawn. The comparison needs no constant time: it compares digests, and a digest whose beginning is known
 * does not lead to the secret.
 */
const tokenOf = (ledger: Ledger, { token, secret_sha256 }: Pick<JoinAsk, "token" | "secret_sha256">): Token | undefined =>
  ledger.tokens.find((each) => each.id === token && each.secret_sha256 === secret_sha256 && each.withdrawn_s === null);

/** Whether an asker may be heard at all: it knows the secret of a token. */
export const knowsToken = (ledger: Ledger, ask: Pick<JoinAsk, "token" | "secret_sha256">): boolean => tokenOf(ledger, ask) !== undefined;

/** Whether a host may have a certificate. An unknown token and a wrong secret are not told apart. */
export function judgeJoin(ledger: Ledger, ask: JoinAsk, now_s: number): Verdict {
  const token = tokenOf(ledger, ask);
  if (token === undefined) return no("token-unknown");
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
  return used === null ? YES : judgeNumber(ledger, ask.host, ask.key_sha256, now_s);
}

/** Whether a host that has a certificate may have another one for a new key. */
export const judgeRenewal = (ledger: Ledger, host: string, now_s: number): Verdict => judgeNumber(ledger, host, null, now_s);

/** A5. Certificates of that key count even if a later one for the same key has replaced them. */
function judgeNumber(ledger: Ledger, host: string, key_sha256: string | null, now_s: number): Verdict {
  const counts = (each: Certificate): boolean => each.host === host && now_s < each.until_s;
  const had = ledger.certificates.filter((each) => counts(each) && (each.end === null || each.key_sha256 === key_sha256));
  return had.length < CERTIFICATES_MAX ? YES : no("too-many");
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

/** Ends certificates by their serial numbers. */
export function revokeCertificates(ledger: Ledger, serials: ReadonlySet<string>, now_s: number): Ledger {
  return { ...ledger, certificates: end(ledger, ({ serial }) => serials.has(serial), "revoked", now_s).certificates };
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

function end(ledger: Ledger, which: (each: Certificate) => boolean, why: Ending, now_s: number): Ledger {
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

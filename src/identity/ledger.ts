// The authority's ledger: which tokens exist, and which certificates it signed. Pure: times are parameters, in epoch seconds.
//
// A1. A certificate counts only if it is in the ledger. Any other certificate is refused, even if the authority's key has
//     signed it.
// A2. A token is good for one key: after its first use it can only be used again with the same key, so that a host can ask
//     again if the answer was lost.
// A3. A name that has a valid certificate is given to another key only by a token that was made for that name. The name of the server is never given.
// A4. A token or certificate that has ended never becomes valid again.
// A5. Requests of hosts cannot fill the ledger: for one token a host gets a bounded number of certificates. The ledger keeps
//     each at least until it expires.

import { mayBeOneHost } from "./host-name.ts";

/** host: identifies a mom's host. login: identifies the host from which a user calls, but not the user. user: identifies both. */
export type Role = "host" | "server" | "login" | "user";

export type Token = {
  readonly id: string;
  /** SHA-256 of the secret's bytes, hexadecimal; the secret itself is stored nowhere */
  readonly secret_sha256: string;
  /** the one name that the token gives; null: any name that has no valid certificate */
  readonly host: string | null;
  /** the user who may get a certificate with the token, on a host that has joined already; null: the token is for a host that joins */
  readonly user: string | null;
  readonly created_s: number;
  readonly expires_s: number;
  readonly used: { readonly at_s: number; readonly host: string; readonly key_sha256: string } | null;
  readonly withdrawn_s: number | null;
};

export type Certificate = {
  readonly serial: string;
  readonly host: string;
  readonly role: Role;
  /** the user's name if the role is `user`; otherwise null */
  readonly user: string | null;
  readonly key_sha256: string;
  /** fingerprint of the authority that signed it */
  readonly authority: string;
  readonly from_s: number;
  readonly until_s: number;
  /** null: it has not ended. why `replaced`: its host has joined again, or its authority was replaced */
  readonly end: { readonly at_s: number; readonly why: Ending } | null;
};

/**
 * Largest number of unexpired certificates of one host with one role, not counting those from its earlier tokens (A5). Three
 * in two years are usual (TERMS).
 */
export const CERTIFICATES_MAX = 16;

export type Ending = "revoked" | "replaced";

export type Ledger = { readonly tokens: readonly Token[]; readonly certificates: readonly Certificate[] };

export const EMPTY_LEDGER: Ledger = Object.freeze({ tokens: [], certificates: [] });

/** A host that asks to join, or a host from which a user asks for a certificate. */
export type JoinAsk = { readonly token: string; readonly secret_sha256: string; readonly host: string; readonly key_sha256: string };

export type Refusal =
  | "token-unknown"
  | "token-used"
  | "token-expired"
  | "token-for-another"
  | "token-for-user"
  | "token-for-host"
  | "name-of-server"
  | "name-taken"
  | "too-many";
type No = { readonly ok: false; readonly why: Refusal };
export type Verdict = { readonly ok: true } | No;
export type UserVerdict = { readonly ok: true; readonly user: string } | No;

export type Standing = "valid" | "early" | "over" | Ending;

const YES: Verdict = { ok: true };
const no = (why: Refusal): No => ({ ok: false, why });

/** The standing of a certificate at a time: valid, or why it is not. */
export function standingOf({ end, from_s, until_s }: Certificate, now_s: number): Standing {
  if (end !== null) return end.why;
  if (now_s < from_s) return "early";
  return now_s >= until_s ? "over" : "valid";
}

export const certificateOf = (ledger: Ledger, serial: string): Certificate | undefined =>
  ledger.certificates.find((each) => each.serial === serial);

/** Certificates of a host that are valid, or will be when their time begins. */
const living = (ledger: Ledger, host: string, now_s: number): readonly Certificate[] =>
  ledger.certificates.filter((each) => each.host === host && ["valid", "early"].includes(standingOf(each, now_s)));

/** A new token. Its id must not be in the ledger. */
export function addToken(ledger: Ledger, token: Omit<Token, "used" | "withdrawn_s">): Ledger {
  return { ...ledger, tokens: [...ledger.tokens, { ...token, used: null, withdrawn_s: null }] };
}

/**
 * Returns the token if the secret belongs to it and it was not withdrawn. The comparison needs no constant time, because it
 * compares digests: knowing how a digest begins does not help to find the secret.
 */
const tokenOf = (ledger: Ledger, { token, secret_sha256 }: Pick<JoinAsk, "token" | "secret_sha256">): Token | undefined =>
  ledger.tokens.find((each) => each.id === token && each.secret_sha256 === secret_sha256 && each.withdrawn_s === null);

/** Whether the sender of a request knows the secret of a token. Other requests are not examined at all. */
export const knowsToken = (ledger: Ledger, ask: Pick<JoinAsk, "token" | "secret_sha256">): boolean => tokenOf(ledger, ask) !== undefined;

/** The token of a request, if it is good for that host and key (A2). An unknown token and a wrong secret are not told apart. */
function goodToken(ledger: Ledger, ask: JoinAsk, now_s: number): Token | No {
  const token = tokenOf(ledger, ask);
  if (token === undefined) return no("token-unknown");
  const { used } = token;
  if (used !== null && (used.key_sha256 !== ask.key_sha256 || used.host !== ask.host)) return no("token-used");
  if (now_s >= token.expires_s) return no("token-expired");
  return token.host !== null && token.host !== ask.host ? no("token-for-another") : token;
}

/** Whether a host may join with this token and key, and so get its first certificate. */
export function judgeJoin(ledger: Ledger, ask: JoinAsk, now_s: number): Verdict {
  const token = goodToken(ledger, ask, now_s);
  if ("why" in token) return token;
  if (token.user !== null) return no("token-for-user");
  const { used } = token;
  const present = living(ledger, ask.host, now_s);
  if (present.some(({ role }) => role === "server")) return no("name-of-server");
  // Only a certificate for the role host proves the host: every user of the host can read the key of its role login.
  const is_present = present.some(({ role, key_sha256 }) => role === "host" && key_sha256 === ask.key_sha256);
  // The key of this request may have used the token before, and may have been revoked or replaced since. The token does not make it valid again (A4).
  if (used !== null && !is_present) return no("token-used");
  if (token.host === null && present.length > 0 && !is_present) return no("name-taken");
  if (token.host === null && isHalfTaken(ledger, ask.host, now_s)) return no("name-taken");
  return used === null ? YES : judgeNumber(ledger, ask, "host", now_s);
}

/** Whether another host has a certificate for a name that can mean the same host. */
const isHalfTaken = (ledger: Ledger, host: string, now_s: number): boolean =>
  ledger.certificates.some(
    (each) => each.host !== host && mayBeOneHost(each.host, host) && ["valid", "early"].includes(standingOf(each, now_s)),
  );

/** Whether a host that has a certificate may have another one with that role for a new key. */
export const judgeRenewal = (ledger: Ledger, host: string, role: Role, now_s: number): Verdict =>
  judgeNumber(ledger, { host, key_sha256: null }, role, now_s);

type Holder = { readonly host: string; readonly key_sha256: string | null; readonly user?: string };

/** Decides whether the host may have one more certificate (A5). Certificates of that key count even if a later one for the same key has replaced them. */
function judgeNumber(ledger: Ledger, { host, key_sha256, user }: Holder, role: Role, now_s: number): Verdict {
  const counts = (each: Certificate): boolean =>
    each.host === host && each.role === role && (user === undefined || each.user === user) && now_s < each.until_s;
  const had = ledger.certificates.filter((each) => counts(each) && (each.end === null || each.key_sha256 === key_sha256));
  return had.length < CERTIFICATES_MAX ? YES : no("too-many");
}

/** Whether a user may have a certificate on that host, and which user. The host has shown its own certificate; only the token names the user. */
export function judgeUser(ledger: Ledger, ask: JoinAsk, now_s: number): UserVerdict {
  const token = goodToken(ledger, ask, now_s);
  if ("why" in token) return token;
  if (token.user === null) return no("token-for-host");
  const { user, used } = token;
  const mine = living(ledger, ask.host, now_s).filter((each) => each.role === "user" && each.user === user);
  if (used !== null && !mine.some(({ key_sha256 }) => key_sha256 === ask.key_sha256)) return no("token-used");
  const number = used === null ? YES : judgeNumber(ledger, { ...ask, user }, "user", now_s);
  return number.ok ? { ok: true, user } : number;
}

/** Notes that a user has got a certificate, after judgeUser has accepted the request: the token is used. */
export function recordUser(ledger: Ledger, token: string, certificate: Certificate, now_s: number): Ledger {
  return recordCertificate({ ...ledger, tokens: withUse(ledger.tokens, token, certificate, now_s) }, certificate);
}

const withUse = (tokens: readonly Token[], token: string, { host, key_sha256 }: Certificate, now_s: number): readonly Token[] =>
  tokens.map((each) => (each.id === token ? { ...each, used: each.used ?? { at_s: now_s, host, key_sha256 } } : each));

/** Notes that a host has joined, after judgeJoin has accepted it: the token is used, and earlier certificates of the host are replaced. */
export function recordJoin(ledger: Ledger, token: string, certificate: Certificate, now_s: number): Ledger {
  const ended = end(ledger, ({ host }) => host === certificate.host, "replaced", now_s);
  return {
    tokens: withUse(ledger.tokens, token, certificate, now_s),
    certificates: [...ended.certificates, certificate],
  };
}

/** Adds a certificate that was given without a token: the server's certificate, or a renewed one. Earlier certificates stay valid until their end. */
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

/** Ends all certificates of a user, on every host, and the tokens for that user. */
export function revokeUser(ledger: Ledger, user: string, now_s: number): Ledger {
  const { certificates } = end(ledger, (each) => each.user === user, "revoked", now_s);
  return { certificates, tokens: withdraw(ledger.tokens, (each) => each.user === user, now_s) };
}

/** Notes that another authority has taken over: certificates of other authorities end, and so do unused tokens, which name the former authority. */
export function recordRotation(ledger: Ledger, authority: string, now_s: number): Ledger {
  const { certificates } = end(ledger, (each) => each.authority !== authority, "replaced", now_s);
  return { certificates, tokens: withdraw(ledger.tokens, ({ used }) => used === null, now_s) };
}

/** Withdraws a token. A certificate that it gave stays valid. */
export function withdrawToken(ledger: Ledger, id: string, now_s: number): Ledger {
  return { ...ledger, tokens: withdraw(ledger.tokens, (each) => each.id === id, now_s) };
}

/** Removes the tokens and certificates that expired before a time. */
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

/** Checks the rules that hold in every ledger. Returns descriptions of the broken ones. */
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

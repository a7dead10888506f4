// The certificate authority of the complex (docs/identity.md): its files, its ledger, and what it signs. It is in a separate
// bundle, because only a complex with several hosts needs it.
//
// C1. A certificate or token is handed out only after the ledger that contains it is on the disk.
// C2. An authority whose files cannot be read completely serves nobody.
// C3. A request for a certificate is examined only if its sender knows a token or has shown a certificate.

import { createPublicKey, randomBytes } from "node:crypto";
import { type Credentials, CredentialsError, readCredentials, writeCredentials } from "#identity/files/credentials.ts";
import { writeLogin } from "#identity/files/user-credentials.ts";
import { hostName, mayBeOneHost } from "#identity/host-name.ts";
import {
  addToken,
  CERTIFICATES_MAX,
  type Certificate,
  certificateOf,
  forgetBefore,
  judgeJoin,
  judgeRenewal,
  judgeUser,
  knowsToken,
  type Ledger,
  type Refusal,
  type Role,
  recordCertificate,
  recordJoin,
  recordRotation,
  recordUser,
  revokeCertificates,
  revokeHost,
  revokeUser,
  standingOf,
  type Token,
  withdrawToken,
} from "#identity/ledger.ts";
import { type HostIdentity, peerFault } from "#identity/peer.ts";
import { type Revocation, revocationsIn } from "#identity/revocations.ts";
import { TERMS } from "#identity/terms.ts";
import { formatToken } from "#identity/token.ts";
import { type Authority, makeAuthority, signCertificate } from "#identity/x509/authority.ts";
import { readCertificate } from "#identity/x509/certificate.ts";
import { sha256, spki } from "#identity/x509/encoding.ts";
import { type HostRequest, newKey, readRequest } from "#identity/x509/request.ts";
import type { AuthorityView, IdentityAnswers, TokenView } from "#protocol/identity-link.ts";
import { AuthorityError, AuthorityFiles, createFiles, type Signer } from "./authority-files.ts";

/** Largest number of hosts that a refusal names. */
const LEFT_SHOWN = 10;
const REVOKED_SERVERS_MAX = 100;
/** Largest number of tokens that have not expired. */
const TOKENS_MAX = 1000;

export type AuthorityOptions = {
  /** PBS_HOME */
  readonly home: string;
  /** PBS_SERVER */
  readonly server: string;
  /** further names of the server's host, such as its node name. No other host gets a certificate for them */
  readonly own_names: readonly string[];
  readonly now_s: () => number;
  /** the directory whose `identity` has the server's certificate (default: PBS_HOME) */
  readonly server_home?: string;
  /**
   * the server's host as a host of the complex: its name, and whether the complex is in user mode. In a complex with two servers, its mom and its users
   * must reach the other server. null: they reach the server over its socket (default)
   */
  readonly member?: { readonly name: string; readonly own: boolean } | null;
};

/** What a host sends to join. secret: as in its token; request: PEM. */
export type Joining = { readonly token: string; readonly secret: string; readonly request: string };
/** A token to make. host null: for any host; user null: for a host that joins; life_s: how long it is valid. */
export type TokenWish = { readonly host: string | null; readonly user: string | null; readonly life_s: number };
export type Signed = { readonly certificate: string; readonly authority: string };

/** Creates the authority of a complex that has none: all of its files, or nothing. Throws the file system's error. */
export function createAuthority({ home, server, now_s }: AuthorityOptions): void {
  createFiles(home, newAuthority(server, now_s()));
}

const newAuthority = (server: string, now_s: number): Authority =>
  makeAuthority(`Partita CA of ${nameOf(server)} ${randomBytes(4).toString("hex")}`, newKey(), newSerial(), now_s);

/** The authority of a complex. */
export class CertificateAuthority {
  readonly #options: AuthorityOptions;
  readonly #files: AuthorityFiles;
  #current: Signer;
  /**
   * the authority that is to replace the current one. It already signs the certificates of hosts, and becomes the current
   * one when all hosts have one. null: there is none
   */
  #next: Signer | null;
  #ledger: Ledger;

  /** Throws AuthorityError if its files cannot be used (C2). */
  constructor(options: AuthorityOptions) {
    this.#options = options;
    this.#files = new AuthorityFiles(options.home);
    this.#current = this.#files.current();
    this.#next = this.#files.next();
    this.#ledger = this.#files.ledger();
    this.#endRotation();
  }

  /** Completes a rotation if the server was killed after the new authority had become the current one and before the ledger said so. */
  #endRotation(): void {
    const { fingerprint } = this.#current;
    const isForeign = ({ end, authority }: Certificate): boolean => end === null && authority !== fingerprint;
    if (this.#next === null && this.#ledger.certificates.some(isForeign))
      this.#keep(recordRotation(this.#ledger, fingerprint, this.#options.now_s()));
  }

  /** Certificates of the authorities that hosts and the server trust, one PEM after the other. */
  get trusted(): string {
    return this.#current.certificate + (this.#next?.certificate ?? "");
  }

  /** Fingerprints of the authorities that hosts and the server trust. */
  get fingerprints(): readonly string[] {
    return [this.#current.fingerprint, ...(this.#next === null ? [] : [this.#next.fingerprint])];
  }

  /** Writes the ledger to the disk, without its oldest records. What it contains may be handed out only afterwards (C1). */
  #keep(ledger: Ledger): void {
    const kept = forgetBefore(ledger, this.#options.now_s() - TERMS.kept_s);
    this.#files.writeLedger(kept);
    this.#ledger = kept;
  }

  /**
   * Signs a certificate. A host trusts the next authority only from its own new certificate on. The server's certificate is
   * therefore signed by the current authority until the rotation ends.
   */
  #sign(request: HostRequest, role: Role, user: string | null = null): { readonly record: Certificate; readonly text: string } {
    const signer = role === "server" ? this.#current : (this.#next ?? this.#current);
    const now_s = this.#options.now_s();
    const { host, key, key_sha256 } = request;
    const life_s = role === "user" ? TERMS.user_s : TERMS.certificate_s;
    const times = { from_s: now_s - TERMS.skew_s, until_s: Math.min(now_s + life_s, signer.until_s) };
    const facts = { host, role, user, serial: newSerial(), ...times };
    return { record: { ...facts, key_sha256, authority: signer.fingerprint, end: null }, text: signCertificate(signer, { ...facts, key }) };
  }

  #isOwn(host: string): boolean {
    const { server, own_names } = this.#options;
    return [server, ...own_names].some((name) => mayBeOneHost(hostName(name) ?? name, host));
  }

  // --- what hosts ask

  /** Why the peer of a link is refused, in words for the log; null: it is accepted. */
  fault(identity: HostIdentity): string | null {
    return peerFault(this.#ledger, identity, this.#options.now_s());
  }

  /** Whether a host of that name has a valid certificate of its own. */
  hasHost(name: string): boolean {
    const host = hostName(name);
    return host !== null && this.hostNames().has(host);
  }

  /** The hosts that have a valid certificate of their own. */
  hostNames(): ReadonlySet<string> {
    const now_s = this.#options.now_s();
    return new Set(
      this.#ledger.certificates.filter((each) => each.role !== "user" && standingOf(each, now_s) === "valid").map(({ host }) => host),
    );
  }

  /**
   * Gives a host its certificate for a token. why: called before anything is signed; returns why the host may not join in spite of a good token, or null. is_named: the
   * token was made for this host alone. Throws AuthorityError.
   */
  join(
    { token, secret, request: text }: Joining,
    why: (host: string, is_named: boolean) => string | null = () => null,
  ): Signed & { readonly host: string } {
    const asker = { token, secret_sha256: secretDigest(secret) };
    if (!knowsToken(this.#ledger, asker)) throw new AuthorityError(REFUSALS["token-unknown"](""));
    const request = readable(text);
    if (this.#isOwn(request.host)) throw new AuthorityError(REFUSALS["name-of-server"](request.host));
    const ask = { ...asker, host: request.host, key_sha256: request.key_sha256 };
    const now_s = this.#options.now_s();
    const verdict = judgeJoin(this.#ledger, ask, now_s);
    if (!verdict.ok) throw new AuthorityError(REFUSALS[verdict.why](request.host));
    const fault = why(
      request.host,
      this.#ledger.tokens.some((each) => each.id === token && each.host === request.host),
    );
    if (fault !== null) throw new AuthorityError(fault);
    const { record, text: certificate } = this.#sign(request, "host");
    this.#keep(recordJoin(this.#ledger, token, record, now_s));
    return { host: request.host, certificate, authority: this.trusted };
  }

  /** Gives a host that has shown a good certificate a new one. Throws AuthorityError. */
  renew(identity: HostIdentity, text: string): Signed {
    if (identity.role !== "host") throw new AuthorityError(`the certificate of ${identity.host} is none of a host`);
    const request = this.#requestOf(identity, text);
    this.#mayHaveAnother(identity.host, "host");
    const { record, text: certificate } = this.#sign(request, "host");
    this.#keep(recordCertificate(this.#ledger, record));
    return { certificate, authority: this.trusted };
  }

  /** The server's own certificates that hosts must refuse; only the latest, so that they fit into an answer. */
  revokedServers(): readonly Revocation[] {
    const certificates = this.#ledger.certificates.filter(({ role }) => role === "server");
    return revocationsIn({ ...this.#ledger, certificates }, this.#options.now_s()).slice(0, REVOKED_SERVERS_MAX);
  }

  /** The certificates that hosts must refuse although they are signed and have not expired. */
  revocations(): readonly Revocation[] {
    return revocationsIn(this.#ledger, this.#options.now_s());
  }

  /** Gives a host that has shown its own valid certificate another certificate, which the commands of its users show. Throws AuthorityError. */
  login(identity: HostIdentity, text: string): Signed {
    if (identity.role !== "host") throw new AuthorityError(`the certificate of ${identity.host} is none of a host`);
    const request = this.#requestOf(identity, text);
    this.#mayHaveAnother(identity.host, "login");
    const { record, text: certificate } = this.#sign(request, "login");
    this.#keep(recordCertificate(this.#ledger, record));
    return { certificate, authority: this.trusted };
  }

  /** Gives a user a certificate for a token. The new certificate names the host whose certificate was shown, and the user for whom the token was made. Throws AuthorityError. */
  user(identity: HostIdentity, { token, secret, request: text }: Joining): Signed & { readonly user: string } {
    if (identity.role !== "login") throw new AuthorityError(`the certificate of ${identity.host} is none for users`);
    const asker = { token, secret_sha256: secretDigest(secret) };
    // Showing the certificate is not enough here, because every user of the host can do so (C3).
    if (!knowsToken(this.#ledger, asker)) throw new AuthorityError(REFUSALS["token-unknown"](""));
    const request = this.#requestOf(identity, text);
    const ask = { ...asker, host: request.host, key_sha256: request.key_sha256 };
    const now_s = this.#options.now_s();
    const verdict = judgeUser(this.#ledger, ask, now_s);
    if (!verdict.ok) throw new AuthorityError(REFUSALS[verdict.why](request.host));
    const { record, text: certificate } = this.#sign(request, "user", verdict.user);
    this.#keep(recordUser(this.#ledger, token, record, now_s));
    return { user: verdict.user, certificate, authority: this.trusted };
  }

  /** Checks that the host has not too many certificates. Throws AuthorityError. */
  #mayHaveAnother(host: string, role: Role): void {
    const verdict = judgeRenewal(this.#ledger, host, role, this.#options.now_s());
    if (!verdict.ok) throw new AuthorityError(REFUSALS[verdict.why](host));
  }

  /** Reads a request and checks that it is for the host whose certificate was shown. Throws AuthorityError. */
  #requestOf(identity: HostIdentity, text: string): HostRequest {
    const fault = this.fault(identity);
    if (fault !== null) throw new AuthorityError(fault);
    const request = readable(text);
    if (request.host !== identity.host) throw new AuthorityError(`${identity.host} asks for a certificate of ${request.host}`);
    return request;
  }

  // --- what the administrator asks

  list(): IdentityAnswers["list"] {
    const now_s = this.#options.now_s();
    return {
      authority: viewOf(this.#current),
      next: this.#next === null ? null : viewOf(this.#next),
      left: this.#hostsLeft(now_s),
      certificates: this.#ledger.certificates.map((each) => {
        const { serial, host, role, user, from_s, until_s } = each;
        return { serial, host, role, user, from_s, until_s, standing: standingOf(each, now_s) };
      }),
      tokens: this.#ledger.tokens.map((each) => {
        const { id, host, user, expires_s } = each;
        return { id, host, user, expires_s, standing: tokenStanding(each, now_s) };
      }),
    };
  }

  /** Throws AuthorityError. */
  makeToken({ host, user, life_s }: TokenWish): IdentityAnswers["make-token"] {
    const now_s = this.#options.now_s();
    if (host !== null && this.#isOwn(host)) throw new AuthorityError(`${host} is the server's host: it needs no token`);
    if (this.#ledger.tokens.filter(({ expires_s }) => expires_s > now_s).length >= TOKENS_MAX)
      throw new AuthorityError(`${TOKENS_MAX} tokens have not expired yet`);
    const [id, secret] = [randomBytes(8).toString("hex"), randomBytes(20).toString("hex")];
    const expires_s = now_s + life_s;
    this.#keep(addToken(this.#ledger, { id, secret_sha256: secretDigest(secret), host, user, created_s: now_s, expires_s }));
    return { token: formatToken({ id, secret, fingerprint: this.#current.fingerprint }), id, expires_s };
  }

  /** Throws AuthorityError. */
  withdraw(id: string): IdentityAnswers["withdraw-token"] {
    if (!this.#ledger.tokens.some((each) => each.id === id)) throw new AuthorityError(`there is no token ${id}`);
    this.#keep(withdrawToken(this.#ledger, id, this.#options.now_s()));
    return {};
  }

  /** Throws AuthorityError. */
  revoke(host: string): IdentityAnswers["revoke-host"] {
    const now_s = this.#options.now_s();
    if (host === nameOf(this.#options.server)) return this.#revokeServer(now_s);
    const count = (ledger: Ledger): number =>
      ledger.certificates.filter((each) => each.host === host && standingOf(each, now_s) === "valid").length;
    if (!this.#ledger.certificates.some((each) => each.host === host)) throw new AuthorityError(`${host} has no certificate`);
    const before = count(this.#ledger);
    this.#keep(revokeHost(this.#ledger, host, now_s));
    return { revoked: before };
  }

  /** Revokes the certificates of the server. It gets another one first, so that it can always prove itself. */
  #revokeServer(now_s: number): IdentityAnswers["revoke-host"] {
    const before = this.#ledger.certificates.filter((each) => each.role === "server" && each.end === null && now_s < each.until_s);
    this.renewServer();
    this.#keep(revokeCertificates(this.#ledger, new Set(before.map(({ serial }) => serial)), now_s));
    return { revoked: before.length };
  }

  /** Throws AuthorityError. */
  revokeUser(user: string): IdentityAnswers["revoke-user"] {
    const now_s = this.#options.now_s();
    const own = this.#ledger.certificates.filter((each) => each.user === user);
    if (own.length === 0 && !this.#ledger.tokens.some((each) => each.user === user)) throw new AuthorityError(`${user} has no certificate`);
    this.#keep(revokeUser(this.#ledger, user, now_s));
    return { revoked: own.filter((each) => standingOf(each, now_s) === "valid").length };
  }

  /** Gives the server itself a new key and certificate. */
  renewServer(): IdentityAnswers["renew-server"] {
    const key = newKey();
    const public_key = createPublicKey(key);
    const host = nameOf(this.#options.server);
    const { record, text } = this.#sign({ host, key: public_key, key_sha256: sha256(spki(public_key)) }, "server");
    this.#keep(recordCertificate(this.#ledger, record));
    writeCredentials(this.#serverHome, { key, certificate: text, authority: this.trusted });
    return { until_s: record.until_s };
  }

  get #serverHome(): string {
    return this.#options.server_home ?? this.#options.home;
  }

  /** Gives the server's own host the certificates of a host (AuthorityOptions.member), unless it has good ones. */
  renewMember(): void {
    const { home, member } = this.#options;
    const name = member === undefined || member === null ? null : hostName(member.name);
    if (member === undefined || member === null || name === null || this.#isGoodMember(home)) return;
    const sign = (role: Role): { readonly key: string; readonly certificate: string } => {
      const key = newKey();
      const public_key = createPublicKey(key);
      const { record, text } = this.#sign({ host: name, key: public_key, key_sha256: sha256(spki(public_key)) }, role);
      this.#keep(recordCertificate(this.#ledger, record));
      return { key, certificate: text };
    };
    writeCredentials(home, { ...sign("host"), authority: this.trusted });
    writeLogin(home, sign("login"), member.own);
  }

  #isGoodMember(home: string): boolean {
    const present = this.#credentialsIn(home);
    if (present === null || present.authority !== this.trusted) return false;
    const { identity, until_s } = readCertificate(present.certificate);
    return identity?.role === "host" && this.fault(identity) === null && until_s - this.#options.now_s() >= TERMS.certificate_s / 3;
  }

  /**
   * Begins a rotation: the new authority signs the certificates of hosts from now on, and hosts that renew their certificate
   * also trust it. Throws AuthorityError.
   */
  beginRotation(): IdentityAnswers["rotate"] {
    if (this.#next !== null) throw new AuthorityError("a new authority is on its way already: --finish ends it");
    this.#files.writeNext(newAuthority(this.#options.server, this.#options.now_s()));
    this.#next = this.#files.next();
    return { left: this.#hostsLeft(this.#options.now_s()) };
  }

  /**
   * Ends a rotation: the new authority replaces the current one. force: even if hosts are left without its certificate;
   * these must join again. Throws AuthorityError.
   */
  finishRotation(force: boolean): IdentityAnswers["finish-rotation"] {
    const now_s = this.#options.now_s();
    if (this.#next === null) throw new AuthorityError("no new authority is on its way: partita cert rotate makes one");
    const left = this.#hostsLeft(now_s);
    if (left.length > 0 && !force)
      throw new AuthorityError(`these hosts have no certificate of the new authority yet: ${left.slice(0, LEFT_SHOWN).join(" ")}`);
    this.#files.promoteNext();
    this.#current = this.#next;
    this.#next = null;
    this.#keep(recordRotation(this.#ledger, this.#current.fingerprint, now_s));
    this.renewServer();
    return { out: left };
  }

  /** Hosts that have no valid certificate of the next authority. */
  #hostsLeft(now_s: number): readonly string[] {
    const next = this.#next;
    if (next === null) return [];
    const own: readonly Role[] = ["host", "login"];
    const valid = this.#ledger.certificates.filter((each) => own.includes(each.role) && standingOf(each, now_s) === "valid");
    const keyOf = ({ role, host }: Certificate): string => `${role} ${host}`;
    const done = new Set(valid.filter(({ authority }) => authority === next.fingerprint).map(keyOf));
    return [...new Set(valid.filter((each) => !done.has(keyOf(each))).map(({ host }) => host))];
  }

  /** The key and certificate that the server shows to hosts. Throws CredentialsError. */
  serverCredentials(): Credentials {
    const present = readCredentials(this.#serverHome);
    if (present === null) throw new AuthorityError("the server has no certificate");
    return present;
  }

  /** Whether the server's own certificate is missing, cannot be used, is not one of this authority's, or has less than a third of its time left. */
  needsServerCertificate(): boolean {
    const present = this.#credentialsIn(this.#serverHome);
    if (present === null || present.authority !== this.trusted) return true;
    const { identity, serial, until_s } = readCertificate(present.certificate);
    if (certificateOf(this.#ledger, serial)?.authority !== this.#current.fingerprint) return true;
    if (identity?.role !== "server" || this.fault(identity) !== null) return true;
    // No certificate is valid longer than its authority. Near the end of the authority, a new certificate would not last longer.
    return until_s - this.#options.now_s() < TERMS.certificate_s / 3 && until_s < this.#current.until_s;
  }

  /**
   * The credentials on the disk; null: there are none, or they cannot be used, for example because the server was killed
   * between the two files of a renewal.
   */
  #credentialsIn(home: string): Credentials | null {
    try {
      return readCredentials(home);
    } catch (error) {
      if (error instanceof CredentialsError) return null;
      throw error;
    }
  }
}

const viewOf = ({ fingerprint, until_s }: Signer): AuthorityView => ({ fingerprint, until_s });

const REFUSALS: { readonly [K in Refusal]: (host: string) => string } = {
  "token-unknown": () => "the token is not known here",
  "token-used": () => "the token was used already",
  "token-expired": () => "the token has expired",
  "token-for-user": () => "the token is for a user of a host that has joined (partita cert user)",
  "token-for-host": () => "the token is for a host that joins, not for a user",
  "token-for-another": (host) => `the token was made for another host than ${host}`,
  "name-of-server": (host) => `${host} is the name of the server`,
  "name-taken": (host) => `${host} has a certificate: a host that was reinstalled needs a token made for its name`,
  "too-many": (host) => `${host} has had ${CERTIFICATES_MAX} certificates since it joined: it needs a new token made for its name`,
};

function tokenStanding({ used, withdrawn_s, expires_s }: Token, now_s: number): TokenView["standing"] {
  if (withdrawn_s !== null) return "withdrawn";
  if (used !== null) return "used";
  return now_s >= expires_s ? "expired" : "open";
}

function readable(text: string): HostRequest {
  const read = readRequest(text);
  if (!read.ok) throw new AuthorityError(`the request for a certificate: ${read.fault}`);
  return read.request;
}

const secretDigest = (secret: string): string => sha256(Buffer.from(secret, "hex"));

/** The name in the server's certificate. PBS_SERVER cannot name a host if it is longer than 63 characters, for example. */
function nameOf(server: string): string {
  const name = hostName(server);
  if (name === null) throw new AuthorityError(`PBS_SERVER=${server} cannot be the name in a certificate`);
  return name;
}

/** Makes a serial number (SERIAL in x509/authority.ts). */
function newSerial(): string {
  const bytes = randomBytes(16);
  bytes[0] = 0x40 | (bytes.readUInt8(0) & 0x3f);
  return bytes.toString("hex");
}

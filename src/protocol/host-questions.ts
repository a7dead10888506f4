// Questions that a joined host asks its server, proved by its certificate: whether the server accepts it, a new certificate,
// its schedulers, and files of jobs. Loaded only when one is asked.

import { type Credentials, CredentialsError, readCredentials, splitPem, writeCredentials } from "#identity/files/credentials.ts";
import { keepRevoked, revokedSerials } from "#identity/files/revoked.ts";
import { readLogin, type UserPlace, writeLogin, writeUserCredentials } from "#identity/files/user-credentials.ts";
import { hostName } from "#identity/host-name.ts";
import { TERMS } from "#identity/terms.ts";
import type { TokenText } from "#identity/token.ts";
import { readCertificate } from "#identity/x509/certificate.ts";
import { makeRequest, newKey } from "#identity/x509/request.ts";
import { PARTITA_VERSION } from "#support/version.ts";
import type { FilesGrant, FilesPlace, HostSched, HostSight, HostToAuthority } from "./join-link.ts";
import { JOIN_ANSWERS, type JoinAnswer, type JoinQuestion, parseAnswer } from "./schema-join.ts";
import { askAuthority, type Place, QuestionError } from "./wire/tls-question.ts";

/**
 * A host that asks. home: PBS_HOME; places: where a server of the complex may be active, in the order in which they are asked; server: PBS_SERVER; own: the
 * complex belongs to one user (user mode).
 */
export type AskingHost = { readonly home: string; readonly places: readonly Place[]; readonly server: string; readonly own: boolean };

/**
 * until_s: the end of the host's certificate. login_until_s: the end of the certificate for the host's users; null: there is none
 * that can be used. current: whether the host trusts exactly the authorities that it should trust. Times are epoch seconds;
 * now_s: the server's clock.
 */
export type CertificateCheck = {
  readonly host: string;
  readonly until_s: number;
  readonly login_until_s: number | null;
  readonly now_s: number;
  readonly current: boolean;
  /** what the server knows of the host; undefined: the server is of an earlier version */
  readonly sight: HostSight | undefined;
};

/** Whether a certificate that ends at until_s must be renewed at now_s: less than a third of its time is left. Times are epoch seconds. */
const isDue = (until_s: number, now_s: number): boolean => until_s - now_s < TERMS.certificate_s / 3;

/**
 * Renews the certificates that are due: both of the host if its own is due or the complex has a new authority; otherwise only that for its users, if it is due.
 * Returns when the host's certificate ends. Throws what checkCertificate throws.
 */
export async function renewDue(
  host: AskingHost,
  now_s: number,
): Promise<{ readonly until_s: number; readonly renewed: "both" | "users" | null }> {
  const { until_s, login_until_s, current } = await checkCertificate(host);
  if (!current || isDue(until_s, now_s)) return { until_s: await renewCertificate(host), renewed: "both" };
  if (login_until_s !== null && !isDue(login_until_s, now_s)) return { until_s, renewed: null };
  await renewLogin(host);
  return { until_s, renewed: "users" };
}

/**
 * Asks the server whether it accepts this host. Also adds the server's revoked certificates to this host's list. Throws
 * QuestionError, CredentialsError, or the file system's error.
 */
export async function checkCertificate(host: AskingHost): Promise<CertificateCheck> {
  const own = ownCredentials(host.home);
  const value = await ask(host, own.credentials, { type: "check", data: { version: PARTITA_VERSION } });
  if (value.type !== "checked") throw new QuestionError(unexpected(value));
  const { now_s, authorities, revoked, host: sight } = value.data;
  keepRevoked(host.home, revoked, now_s);
  const trusted = splitPem(own.credentials.authority).certificates.map((each) => readCertificate(each).fingerprint);
  const login_until_s = loginEnd(host);
  return { host: own.name, until_s: own.until_s, login_until_s, now_s, current: trusted.join() === authorities.join(), sight };
}

/** Returns the end of the certificate for this host's users; null: there is no certificate that can be used. */
function loginEnd({ home, own }: AskingHost): number | null {
  try {
    const login = readLogin(home, own);
    return login === null ? null : readCertificate(login.certificate).until_s;
  } catch (error) {
    if (error instanceof CredentialsError) return null;
    throw error;
  }
}

/**
 * Makes a new key, gets a certificate for it from the server, and stores both with the authorities that the server names: this host
 * trusts these authorities from now on. Also renews the certificate for this host's users (renewLogin). Returns the end of the
 * host's certificate (epoch seconds). Throws QuestionError, CredentialsError.
 */
export async function renewCertificate(host: AskingHost): Promise<number> {
  const { credentials, name } = ownCredentials(host.home);
  const key = newKey();
  const value = await ask(host, credentials, { type: "renew", data: { version: PARTITA_VERSION, request: makeRequest(name, key) } });
  if (value.type !== "renewed") throw new QuestionError(unexpected(value));
  const { certificate, authority } = value.data;
  const { identity, until_s } = readCertificate(certificate);
  if (identity?.host !== name) throw new QuestionError("the server's answer does not fit the question");
  writeCredentials(host.home, { key, certificate, authority });
  await renewLogin(host);
  return until_s;
}

/** Asks for the schedulers whose sched_host is this host. Throws QuestionError, CredentialsError. */
export async function schedsOfHost(host: AskingHost): Promise<readonly HostSched[]> {
  const own = ownCredentials(host.home);
  const value = await ask(host, own.credentials, { type: "scheds", data: { version: PARTITA_VERSION } });
  if (value.type !== "scheds") throw new QuestionError(unexpected(value));
  return value.data.scheds;
}

/** Tells the server at which port this host takes and gives files of jobs. Throws QuestionError, CredentialsError. */
export async function offerFiles(host: AskingHost, port: number): Promise<void> {
  const own = ownCredentials(host.home);
  const value = await ask(host, own.credentials, { type: "files-offer", data: { version: PARTITA_VERSION, port } });
  if (value.type !== "files-heard") throw new QuestionError(unexpected(value));
}

/** Asks where another host takes files. Throws QuestionError, CredentialsError. */
export async function placeOfFiles(host: AskingHost, other: string): Promise<FilesPlace> {
  const own = ownCredentials(host.home);
  const value = await ask(host, own.credentials, { type: "files-place", data: { version: PARTITA_VERSION, host: other } });
  if (value.type !== "files-place") throw new QuestionError(unexpected(value));
  return value.data;
}

/** Asks what a run may do with files of this host. Returns a text if the server refuses. Throws QuestionError, CredentialsError if it cannot be asked. */
export async function filesGrant(
  host: AskingHost,
  asked: Omit<HostToAuthority["files-grant"], "version">,
): Promise<FilesGrant | { readonly refused: string }> {
  const own = ownCredentials(host.home);
  const value = await ask(host, own.credentials, { type: "files-grant", data: { version: PARTITA_VERSION, ...asked } });
  if (value.type === "join-refused") return { refused: value.data.text };
  if (value.type !== "files-grant") throw new QuestionError(unexpected(value));
  return value.data;
}

/** Gets and stores a new key and certificate for the commands of this host's users. Throws QuestionError, CredentialsError. */
export async function renewLogin(host: AskingHost): Promise<void> {
  const { credentials, name } = ownCredentials(host.home);
  const key = newKey();
  const value = await ask(host, credentials, { type: "login", data: { version: PARTITA_VERSION, request: makeRequest(name, key) } });
  if (value.type !== "renewed") throw new QuestionError(unexpected(value));
  const { certificate } = value.data;
  const { identity } = readCertificate(certificate);
  if (identity?.host !== name || identity.role !== "login") throw new QuestionError("the server's answer does not fit the question");
  writeLogin(host.home, { key, certificate }, host.own);
}

/** A user's certificate on the disk. path: its file; until_s: when it ends, epoch seconds. */
export type UserCertificate = { readonly path: string; readonly user: string; readonly until_s: number };

/** Gets and stores a certificate of the caller, with a token that the administrator made for the caller's name. Throws QuestionError, CredentialsError. */
export async function fetchUserCertificate(host: AskingHost, token: TokenText, user: string): Promise<UserCertificate> {
  const login = readLogin(host.home, host.own);
  const facts = login === null ? null : readCertificate(login.certificate);
  if (login === null || facts === null || facts.identity === null) throw new QuestionError("this host has no certificate for its users");
  const place: UserPlace = { server: host.server, host: facts.identity.host };
  const key = newKey();
  const request = makeRequest(place.host, key);
  const data = { version: PARTITA_VERSION, token: token.id, secret: token.secret, request };
  const value = await ask(host, login, { type: "user", data });
  if (value.type !== "user-signed") throw new QuestionError(unexpected(value));
  const { certificate } = value.data;
  const { identity, until_s } = readCertificate(certificate);
  if (identity?.host !== place.host || identity.role !== "user" || identity.user !== value.data.user)
    throw new QuestionError("the server's answer does not fit the question");
  if (value.data.user !== user) throw new QuestionError(`the token is for the user ${value.data.user}, not for ${user}`);
  return { path: writeUserCredentials(place, { key, certificate }), user, until_s };
}

function ownCredentials(home: string): { readonly credentials: Credentials; readonly name: string; readonly until_s: number } {
  const credentials = readCredentials(home);
  const facts = credentials === null ? null : readCertificate(credentials.certificate);
  if (credentials === null || facts === null || facts.identity === null) throw new QuestionError("this host has no certificate");
  return { credentials, name: facts.identity.host, until_s: facts.until_s };
}

/** Asks the server at one place whether it leads. Resolves with the text of the leader; null: the complex has one server. Throws QuestionError, CredentialsError. */
export async function askLeader(host: AskingHost): Promise<string | null> {
  const own = ownCredentials(host.home);
  const value = await ask(host, own.credentials, { type: "leader", data: { version: PARTITA_VERSION } });
  if (value.type !== "leader") throw new QuestionError(unexpected(value));
  return value.data.leader;
}

/** Asks the servers in turn until one of them answers. */
async function ask({ places, ...host }: AskingHost, own: Credentials, question: JoinQuestion): Promise<JoinAnswer> {
  let first: unknown;
  for (const place of places) {
    try {
      return await askAt(host, place, own, question);
    } catch (error) {
      first ??= error;
    }
  }
  throw first;
}

async function askAt(
  { home, server }: Omit<AskingHost, "places">,
  place: Place,
  own: Credentials,
  question: JoinQuestion,
): Promise<JoinAnswer> {
  const asker = { authority: own.authority, own, revoked: revokedSerials(home) };
  const { answer, server: answered } = await askAuthority(place, asker, question, JOIN_ANSWERS);
  if (answered !== hostName(server)) throw new QuestionError(`the server ${answered} answers, not ${server}`);
  const parsed = parseAnswer(answer.type, answer.data);
  if (!parsed.ok) throw new QuestionError(`the server's answer cannot be read: ${parsed.text}`);
  return parsed.value;
}

const unexpected = (answer: JoinAnswer): string =>
  answer.type === "join-refused" ? `the server refuses: ${answer.data.text}` : `the server answers something else: ${answer.type}`;

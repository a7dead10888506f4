// Questions that a joined host puts to its server, proved by its certificate: whether the server knows it, a new certificate, and its schedulers. Loaded only when they are put.

import { type Credentials, readCredentials, splitPem, writeCredentials } from "#identity/files/credentials.ts";
import { revokedSerials } from "#identity/files/revoked.ts";
import { hostName } from "#identity/host-name.ts";
import { readCertificate } from "#identity/x509/certificate.ts";
import { makeRequest, newKey } from "#identity/x509/request.ts";
import { PARTITA_VERSION } from "#support/version.ts";
import type { HostSched } from "./join-link.ts";
import { JOIN_ANSWERS, type JoinAnswer, type JoinQuestion, parseAnswer } from "./schema-join.ts";
import { askAuthority, type Place, QuestionError } from "./wire/tls-question.ts";

/** home: PBS_HOME; server: PBS_SERVER. */
export type AskingHost = { readonly home: string; readonly place: Place; readonly server: string };

/** current: whether the host trusts exactly the authorities that it is to trust. Times are epoch seconds; now_s: the server's clock. */
export type CertificateCheck = { readonly host: string; readonly until_s: number; readonly now_s: number; readonly current: boolean };

/** Throws QuestionError, CredentialsError. */
export async function checkCertificate(host: AskingHost): Promise<CertificateCheck> {
  const own = ownCredentials(host.home);
  const value = await ask(host, own.credentials, { type: "check", data: { version: PARTITA_VERSION } });
  if (value.type !== "checked") throw new QuestionError(unexpected(value));
  const { now_s, authorities } = value.data;
  const trusted = splitPem(own.credentials.authority).certificates.map((each) => readCertificate(each).fingerprint);
  return { host: own.name, until_s: own.until_s, now_s, current: trusted.join() === authorities.join() };
}

/**
 * A new key and certificate, and the authorities to trust from now on: the server that says so is one that this host trusts. Returns until when the certificate
 * is valid (epoch seconds). Throws QuestionError, CredentialsError.
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
  return until_s;
}

/** The schedulers whose sched_host is this host. Throws QuestionError, CredentialsError. */
export async function schedsOfHost(host: AskingHost): Promise<readonly HostSched[]> {
  const own = ownCredentials(host.home);
  const value = await ask(host, own.credentials, { type: "scheds", data: { version: PARTITA_VERSION } });
  if (value.type !== "scheds") throw new QuestionError(unexpected(value));
  return value.data.scheds;
}

function ownCredentials(home: string): { readonly credentials: Credentials; readonly name: string; readonly until_s: number } {
  const credentials = readCredentials(home);
  const facts = credentials === null ? null : readCertificate(credentials.certificate);
  if (credentials === null || facts === null || facts.identity === null) throw new QuestionError("this host has no certificate");
  return { credentials, name: facts.identity.host, until_s: facts.until_s };
}

async function ask({ home, place, server }: AskingHost, own: Credentials, question: JoinQuestion): Promise<JoinAnswer> {
  const asker = { authority: own.authority, own, revoked: revokedSerials(home) };
  const { answer, server: answered } = await askAuthority(place, asker, question, JOIN_ANSWERS);
  if (answered !== hostName(server)) throw new QuestionError(`the server ${answered} answers, not ${server}`);
  const parsed = parseAnswer(answer.type, answer.data);
  if (!parsed.ok) throw new QuestionError(`the server's answer cannot be read: ${parsed.text}`);
  return parsed.value;
}

const unexpected = (answer: JoinAnswer): string =>
  answer.type === "join-refused" ? `the server refuses: ${answer.data.text}` : `the server answers something else: ${answer.type}`;

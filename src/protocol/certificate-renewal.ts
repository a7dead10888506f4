// A host renews its certificate: a new key, and a question that the present certificate proves. Loaded only when it is done.

import { readCredentials, writeCredentials } from "#identity/files/credentials.ts";
import { hostName } from "#identity/host-name.ts";
import { readCertificate } from "#identity/x509/certificate.ts";
import { makeRequest, newKey } from "#identity/x509/request.ts";
import { PARTITA_VERSION } from "#support/version.ts";
import { JOIN_ANSWERS, parseAnswer } from "./schema-join.ts";
import { askAuthority, type Place, QuestionError } from "./wire/tls-question.ts";

/** home: PBS_HOME; server: PBS_SERVER. Returns until when the new certificate is valid (epoch seconds). Throws QuestionError, CredentialsError. */
export async function renewCertificate(home: string, place: Place, server: string): Promise<number> {
  const own = readCredentials(home);
  const identity = own === null ? null : readCertificate(own.certificate).identity;
  if (own === null || identity === null) throw new QuestionError("this host has no certificate to renew");
  const key = newKey();
  const data = { version: PARTITA_VERSION, request: makeRequest(identity.host, key) };
  const { answer, server: answered } = await askAuthority(place, { authority: own.authority, own }, { type: "renew", data }, JOIN_ANSWERS);
  if (answered !== hostName(server)) throw new QuestionError(`the server ${answered} answers, not ${server}`);
  const parsed = parseAnswer(answer.type, answer.data);
  if (!parsed.ok) throw new QuestionError(`the server's answer cannot be read: ${parsed.text}`);
  const { value } = parsed;
  if (value.type !== "renewed")
    throw new QuestionError(value.type === "join-refused" ? `the server refuses: ${value.data.text}` : value.type);
  const renewed = readCertificate(value.data.certificate);
  if (renewed.identity?.host !== identity.host || value.data.authority !== own.authority)
    throw new QuestionError("the server's answer does not fit the question");
  writeCredentials(home, { key, certificate: value.data.certificate, authority: own.authority });
  return renewed.until_s;
}

// Keys of hosts, and their requests for a certificate (PKCS#10, RFC 2986).
//
// R1. A request counts only if its signature proves that the sender has the private key.
// R2. Only the name and the key of a request are used.

import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, verify } from "node:crypto";
import { CertificationRequest, CertificationRequestInfo } from "@peculiar/asn1-csr";
import { AsnConvert } from "@peculiar/asn1-schema";
import { hostName } from "../host-name.ts";
import {
  commonName,
  commonNameIn,
  derOf,
  isOurSignature,
  keyInfo,
  keyOf,
  pem,
  sha256,
  signatureAlgorithm,
  signatureOf,
  spki,
} from "./encoding.ts";

/** Makes a private key and returns it as PEM (PKCS#8). */
export function newKey(): string {
  return generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

/** Makes a request for a host's certificate and returns it as PEM. key: the host's private key as PEM. Throws if it is not one. */
export function makeRequest(host: string, key: string): string {
  const secret = createPrivateKey(key);
  const info = new CertificationRequestInfo({ subject: commonName(host), subjectPKInfo: keyInfo(createPublicKey(secret)) });
  const request = new CertificationRequest({
    certificationRequestInfo: info,
    signatureAlgorithm: signatureAlgorithm(),
    signature: signatureOf(info, secret),
  });
  return pem("CERTIFICATE REQUEST", AsnConvert.serialize(request));
}

export type HostRequest = { readonly host: string; readonly key: KeyObject; readonly key_sha256: string };
export type ReadRequest = { readonly ok: true; readonly request: HostRequest } | { readonly ok: false; readonly fault: string };

const fault = (text: string): ReadRequest => ({ ok: false, fault: text });

/** Reads and checks a request. fault: says what is wrong with it. Never throws. */
export function readRequest(text: string): ReadRequest {
  const der = derOf("CERTIFICATE REQUEST", text);
  if (der === null) return fault("it is not a certificate request in PEM");
  try {
    const request = AsnConvert.parse(der, CertificationRequest);
    // Each request has exactly one accepted text: other encodings of the same request are refused.
    return Buffer.from(AsnConvert.serialize(request)).equals(der) ? checked(request) : fault("it cannot be read");
  } catch {
    return fault("it cannot be read");
  }
}

function checked({ certificationRequestInfo: info, signatureAlgorithm: algorithm, signature }: CertificationRequest): ReadRequest {
  const key = keyOf(info.subjectPKInfo);
  if (key.asymmetricKeyType !== "ec" || key.asymmetricKeyDetails?.namedCurve !== "prime256v1") return fault("its key is not one of P-256");
  if (!isOurSignature(algorithm)) return fault("it is not signed by ECDSA with SHA-256");
  if (!verify("sha256", Buffer.from(AsnConvert.serialize(info)), key, Buffer.from(signature))) return fault("its signature is wrong");
  const host = hostName(commonNameIn(info.subject) ?? "");
  return host === null ? fault("it names no host") : { ok: true, request: { host, key, key_sha256: sha256(spki(key)) } };
}

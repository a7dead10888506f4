// Parts of certificates and requests in ASN.1 (RFC 5280, RFC 5480, RFC 2986): names, extensions, signatures. One kind of key is used: ECDSA on P-256 with
// SHA-256.

import { createHash, createPublicKey, type KeyObject, sign } from "node:crypto";
import { AsnConvert, OctetString } from "@peculiar/asn1-schema";
import * as asn from "@peculiar/asn1-x509";

/** ecdsa-with-SHA256, RFC 5758 3.2. */
const ECDSA_SHA256 = "1.2.840.10045.4.3.2";
const COMMON_NAME = "2.5.4.3";
const SERVER_AUTH = "1.3.6.1.5.5.7.3.1";
const CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";

export const signatureAlgorithm = (): asn.AlgorithmIdentifier => new asn.AlgorithmIdentifier({ algorithm: ECDSA_SHA256 });

export const isOurSignature = ({ algorithm }: asn.AlgorithmIdentifier): boolean => algorithm === ECDSA_SHA256;

/** Makes a distinguished name that consists of one common name. */
export function commonName(text: string): asn.Name {
  const value = new asn.AttributeValue({ utf8String: text });
  return new asn.Name([new asn.RelativeDistinguishedName([new asn.AttributeTypeAndValue({ type: COMMON_NAME, value })])]);
}

/** Returns the common name if the distinguished name has no other part; otherwise null. */
export function commonNameIn(name: asn.Name): string | null {
  const [first, ...others] = [...name].flatMap((each) => [...each]);
  return first === undefined || others.length > 0 || first.type !== COMMON_NAME ? null : first.value.toString();
}

export type Extensions = { readonly of: "authority" } | { readonly of: "host"; readonly host: string; readonly role: string };

/** Makes the extensions of a certificate. key: its own public key; issuer: the authority's public key. */
export function extensions(what: Extensions, key: KeyObject, issuer: KeyObject): asn.Extensions {
  const of_host = what.of === "host";
  const usage = of_host ? asn.KeyUsageFlags.digitalSignature : asn.KeyUsageFlags.keyCertSign | asn.KeyUsageFlags.cRLSign;
  const constraints = of_host ? new asn.BasicConstraints() : new asn.BasicConstraints({ cA: true, pathLenConstraint: 0 });
  return new asn.Extensions([
    extension(asn.id_ce_basicConstraints, true, constraints),
    extension(asn.id_ce_keyUsage, true, new asn.KeyUsage(usage)),
    extension(asn.id_ce_subjectKeyIdentifier, false, new asn.SubjectKeyIdentifier(keyIdentifier(key))),
    extension(
      asn.id_ce_authorityKeyIdentifier,
      false,
      new asn.AuthorityKeyIdentifier({ keyIdentifier: new asn.KeyIdentifier(keyIdentifier(issuer)) }),
    ),
    ...(of_host
      ? [
          extension(asn.id_ce_extKeyUsage, false, new asn.ExtendedKeyUsage([SERVER_AUTH, CLIENT_AUTH])),
          extension(asn.id_ce_subjectAltName, false, alternativeNames(what.host, what.role)),
        ]
      : []),
  ]);
}

function alternativeNames(host: string, role: string): asn.SubjectAlternativeName {
  return new asn.SubjectAlternativeName([new asn.GeneralName({ dNSName: host }), new asn.GeneralName({ uniformResourceIdentifier: role })]);
}

const extension = (extnID: string, critical: boolean, value: unknown): asn.Extension =>
  new asn.Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });

/** The identifier of a key by method 1 of RFC 7093 section 2: the first 160 bits of SHA-256 of the public key. */
function keyIdentifier(key: KeyObject): ArrayBuffer {
  return exactly(createHash("sha256").update(spki(key)).digest().subarray(0, 20));
}

/** A public key as SubjectPublicKeyInfo (DER). */
export const spki = (key: KeyObject): Buffer => key.export({ type: "spki", format: "der" });

export const keyInfo = (key: KeyObject): asn.SubjectPublicKeyInfo => AsnConvert.parse(spki(key), asn.SubjectPublicKeyInfo);

/** The key in a SubjectPublicKeyInfo. Throws if OpenSSL cannot read the key. */
export const keyOf = (info: asn.SubjectPublicKeyInfo): KeyObject =>
  createPublicKey({ key: Buffer.from(AsnConvert.serialize(info)), format: "der", type: "spki" });

/** Signs the serialized value. */
export const signatureOf = (value: unknown, key: KeyObject): ArrayBuffer =>
  exactly(sign("sha256", Buffer.from(AsnConvert.serialize(value)), key));

/** Copies the bytes into an ArrayBuffer of exactly their length, which the ASN.1 library requires. */
export const exactly = (bytes: Uint8Array): ArrayBuffer => new Uint8Array(bytes).buffer;

/** SHA-256 in hexadecimal digits. */
export const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

export const pem = (label: "CERTIFICATE" | "CERTIFICATE REQUEST", der: ArrayBuffer): string => {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ""].join("\n");
};

/** Returns the bytes of a PEM text with exactly one block of that label; null: the text is something else. */
export function derOf(label: string, text: string): Buffer | null {
  const body = new RegExp(`^-----BEGIN ${label}-----\\r?\\n([A-Za-z0-9+/=\\s]+)-----END ${label}-----\\s*$`).exec(text.trim())?.[1];
  return body === undefined ? null : Buffer.from(body, "base64");
}

// Reads certificates with OpenSSL. Loads no ASN.1 library, so that programs that only need links load none.

import { createHash, X509Certificate as X509, type X509Certificate } from "node:crypto";
import { type HostIdentity, identityIn, namesIn } from "../peer.ts";

export type CertificateFacts = {
  /** null: it is not a certificate of a host */
  readonly identity: HostIdentity | null;
  readonly serial: string;
  readonly common_name: string;
  readonly from_s: number;
  readonly until_s: number;
  /** SHA-256 of the certificate and of its public key, hexadecimal digits */
  readonly fingerprint: string;
  readonly key_sha256: string;
  readonly is_authority: boolean;
};

/** Reads a certificate in PEM form. Throws if the text is not a certificate. */
export const readCertificate = (text: string): CertificateFacts => certificateFacts(new X509(text));

export function certificateFacts(certificate: X509Certificate): CertificateFacts {
  const serial = certificate.serialNumber.toLowerCase().padStart(32, "0");
  return {
    identity: identityIn(namesIn(certificate.subjectAltName), serial),
    serial,
    common_name: certificate.subject.replace(/^CN=/, ""),
    from_s: certificate.validFromDate.getTime() / 1000,
    until_s: certificate.validToDate.getTime() / 1000,
    fingerprint: certificate.fingerprint256.replaceAll(":", "").toLowerCase(),
    key_sha256: createHash("sha256")
      .update(certificate.publicKey.export({ type: "spki", format: "der" }))
      .digest("hex"),
    is_authority: certificate.ca,
  };
}

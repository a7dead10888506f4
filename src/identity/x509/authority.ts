// The certificate authority of a complex: makes its own certificate and signs the certificates of hosts.

import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { AsnConvert } from "@peculiar/asn1-schema";
import * as asn from "@peculiar/asn1-x509";
import { assert } from "#support/assert.ts";
import type { Role } from "../ledger.ts";
import { roleName } from "../peer.ts";
import { TERMS } from "../terms.ts";
import { commonName, type Extensions, exactly, extensions, keyInfo, pem, signatureAlgorithm, signatureOf } from "./encoding.ts";

/** key, certificate: PEM. name: the common name in its certificate. */
export type Authority = { readonly name: string; readonly key: string; readonly certificate: string };

/** Signs a new authority's certificate. key: its private key as PEM. serial: as SERIAL describes. */
export function makeAuthority(name: string, key: string, serial: string, now_s: number): Authority {
  const secret = createPrivateKey(key);
  const times = { from_s: now_s - TERMS.skew_s, until_s: now_s + TERMS.authority_s };
  return {
    name,
    key,
    certificate: certificatePem(name, secret, { ...times, serial, name, key: createPublicKey(secret), what: { of: "authority" } }),
  };
}

/** Serial numbers: 32 random hexadecimal digits. The first is 4 to 7, so that the number is positive and fills 16 bytes. */
const SERIAL = /^[4-7][0-9a-f]{31}$/;

export type HostFacts = {
  readonly host: string;
  readonly role: Role;
  /** the user's name; absent or null: it is not the certificate of a user */
  readonly user?: string | null;
  readonly key: KeyObject;
  /** as SERIAL describes */
  readonly serial: string;
  readonly from_s: number;
  readonly until_s: number;
};

/** Signs a certificate and returns it as PEM. Throws if the authority's key cannot be read. */
export function signCertificate(authority: Authority, facts: HostFacts): string {
  const what = { of: "host", host: facts.host, role: roleName(facts.role, facts.user) } as const;
  return certificatePem(authority.name, createPrivateKey(authority.key), { ...facts, name: facts.host, what });
}

type Facts = Pick<HostFacts, "key" | "serial" | "from_s" | "until_s"> & { readonly name: string; readonly what: Extensions };

function certificatePem(issuer: string, secret: KeyObject, facts: Facts): string {
  assert(SERIAL.test(facts.serial), "a serial number is positive and fills 16 bytes");
  const signature = signatureAlgorithm();
  const body = new asn.TBSCertificate({
    version: asn.Version.v3,
    serialNumber: exactly(Buffer.from(facts.serial, "hex")),
    signature,
    issuer: commonName(issuer),
    validity: new asn.Validity({ notBefore: new Date(facts.from_s * 1000), notAfter: new Date(facts.until_s * 1000) }),
    subject: commonName(facts.name),
    subjectPublicKeyInfo: keyInfo(facts.key),
    extensions: extensions(facts.what, facts.key, createPublicKey(secret)),
  });
  const certificate = new asn.Certificate({
    tbsCertificate: body,
    signatureAlgorithm: signature,
    signatureValue: signatureOf(body, secret),
  });
  return pem("CERTIFICATE", AsnConvert.serialize(certificate));
}

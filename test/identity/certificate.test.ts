// Certificates and requests as OpenSSL reads them: Node's X509Certificate, and a handshake of TLS 1.3 in one process.

import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { identityIn, namesIn, serverFault } from "#identity/peer.ts";
import { TERMS } from "#identity/terms.ts";
import { type Authority, makeAuthority, signCertificate } from "#identity/x509/authority.ts";
import { readCertificate } from "#identity/x509/certificate.ts";
import { makeRequest, newKey, readRequest } from "#identity/x509/request.ts";

const NOW_S = 1_800_000_000;
const authority: Authority = makeAuthority("Partita CA of head", newKey(), "4a".repeat(16), NOW_S);

function requestOf(host: string, key = newKey()) {
  const read = readRequest(makeRequest(host, key));
  assert.ok(read.ok);
  return read.request;
}

const signed = (host: string, role: "host" | "server" = "host", serial = "71".repeat(16)): string =>
  signCertificate(authority, { ...requestOf(host), role, serial, from_s: NOW_S - TERMS.skew_s, until_s: NOW_S + 1000 });

test("an authority's certificate: self-signed, may sign hosts and no other authority", () => {
  const certificate = new X509Certificate(authority.certificate);
  assert.ok(certificate.ca);
  assert.equal(certificate.subject, "CN=Partita CA of head");
  assert.ok(certificate.verify(certificate.publicKey));
  const facts = readCertificate(authority.certificate);
  assert.deepEqual([facts.identity, facts.from_s, facts.until_s], [null, NOW_S - TERMS.skew_s, NOW_S + TERMS.authority_s]);
  assert.match(facts.fingerprint, /^[0-9a-f]{64}$/);
});

test("a host's certificate: its name and role, signed by the authority, no authority itself", () => {
  const request = requestOf("Node7");
  const facts = { ...request, role: "host", serial: `40${"00".repeat(15)}`, from_s: NOW_S - 3600, until_s: NOW_S + 1000 } as const;
  const text = signCertificate(authority, facts);
  const certificate = new X509Certificate(text);
  const ca = new X509Certificate(authority.certificate);
  assert.ok(certificate.verify(ca.publicKey) && certificate.checkIssued(ca) && !certificate.ca);
  assert.equal(certificate.subjectAltName, "DNS:node7, URI:partita:host");
  assert.deepEqual(certificate.keyUsage, ["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]);
  const read = readCertificate(text);
  assert.deepEqual(read.identity, { host: "node7", role: "host", serial: facts.serial });
  assert.deepEqual(
    [read.serial, read.from_s, read.until_s, read.key_sha256],
    [facts.serial, facts.from_s, facts.until_s, request.key_sha256],
  );
});

test("a request proves its key, and nothing but its name and its key counts", () => {
  const text = makeRequest("node7", newKey());
  const read = readRequest(text);
  assert.ok(read.ok && read.request.host === "node7");
  const lines = text.trim().split("\n");
  const damaged = (change: (bytes: Buffer) => void): string => {
    const bytes = Buffer.from(lines.slice(1, -1).join(""), "base64");
    change(bytes);
    return [lines[0], ...(bytes.toString("base64").match(/.{1,64}/g) ?? []), lines.at(-1)].join("\n");
  };
  const place = Buffer.from(lines.slice(1, -1).join(""), "base64").indexOf("node7");
  // biome-ignore format: a table
  const rows: readonly (readonly [text: string, fault: RegExp])[] = [
    ["",                                                 /not a certificate request in PEM/],
    [authority.certificate,                              /not a certificate request in PEM/],
    [text + text,                                        /not a certificate request in PEM/],
    [damaged((bytes) => void bytes.write("nodeX", place)), /its signature is wrong/],
    [damaged((bytes) => void bytes.fill(0, 0, 4)),         /cannot be read/],
    [makeRequest("no host", newKey()),                   /names no host/],
    [makeRequest("x".repeat(64), newKey()),              /names no host/],
  ];
  for (const [given, fault] of rows) {
    const result = readRequest(given);
    assert.ok(!result.ok, given);
    assert.match(result.fault, fault);
  }
});

test("every byte of a request counts: with any of them changed it is refused, and nothing is thrown", () => {
  const text = makeRequest("node7", newKey());
  const [head = "", ...rest] = text.trim().split("\n");
  const tail = rest.pop() ?? "";
  const bytes = Buffer.from(rest.join(""), "base64");
  for (let at = 0; at < bytes.length; at++) {
    const other = Buffer.from(bytes);
    other[at] = (other[at] ?? 0) ^ 0x55;
    const read = readRequest([head, other.toString("base64"), tail].join("\n"));
    assert.ok(!read.ok, `byte ${at}`);
  }
});

test("a request of another kind of key is refused", async () => {
  const { generateKeyPairSync } = await import("node:crypto");
  const other = generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  assert.deepEqual(readRequest(makeRequest("node7", other)), { ok: false, fault: "its key is not one of P-256" });
});

test("names: exactly one host and one role, and a user with the role of a user", () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [names: string | undefined, found: string | null])[] = [
    ["DNS:node7, URI:partita:host",                       "node7 host"],
    ["DNS:head, URI:partita:server",                      "head server"],
    ["URI:partita:server, DNS:head",                      "head server"],
    [undefined,                                           null],
    ["DNS:node7",                                         null],
    ["URI:partita:host",                                  null],
    ["DNS:node7, DNS:head, URI:partita:host",             null],
    ["DNS:node7, URI:partita:host, URI:partita:server",   null],
    ["DNS:node7, URI:partita:host, IP Address:10.0.0.1",  null],
    ["DNS:node7, URI:partita:boss",                       null],
    ["DNS:login1, URI:partita:login",                     "login1 login"],
    ["DNS:login1, URI:partita:user:alice",                "login1 user alice"],
    ["DNS:login1, URI:partita:user:",                     null],
    ["DNS:login1, URI:partita:user",                      null],
    ["DNS:login1, URI:partita:user:a:b",                  null],
    ["DNS:login1, URI:partita:user:alice, URI:partita:user:root", null],
    ["DNS:node7, URI:toString",                           null],
    ["DNS:Node7, URI:partita:host",                       null],
    ['DNS:"node7, URI:partita:server", URI:partita:host', null],
  ];
  for (const [names, found] of rows) {
    const identity = identityIn(namesIn(names), "AB");
    assert.equal(identity === null ? null : [identity.host, identity.role, identity.user].join(" ").trim(), found, names);
    if (identity !== null) assert.equal(identity.serial, "ab");
  }
});

test("a host obeys its own server and no other peer", () => {
  assert.equal(serverFault({ host: "head", role: "server", serial: "1" }, "Head", new Set(["2"])), null);
  assert.match(serverFault({ host: "head", role: "server", serial: "1" }, "head", new Set(["1"])) ?? "", /of the server head was revoked/);
  assert.match(serverFault({ host: "head", role: "host", serial: "1" }, "head", new Set()) ?? "", /the host head and no server/);
  assert.match(serverFault({ host: "other", role: "server", serial: "1" }, "head", new Set()) ?? "", /the server other, not head/);
  assert.match(serverFault(null, "head", new Set()) ?? "", /not one of a Partita host/);
  assert.deepEqual(readCertificate(signed("head", "server")).identity, { host: "head", role: "server", serial: "71".repeat(16) });
});

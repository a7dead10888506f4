// The authority of a complex with real files and keys: what it signs, what it keeps, and when it serves nobody.

import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readCredentials, readJoinKey, splitPem, writeCredentials, writeJoinKey } from "#identity/files/credentials.ts";
import { CERTIFICATES_MAX } from "#identity/ledger.ts";
import { TERMS } from "#identity/terms.ts";
import { parseToken } from "#identity/token.ts";
import { readCertificate } from "#identity/x509/certificate.ts";
import { makeRequest, newKey } from "#identity/x509/request.ts";
import { CertificateAuthority, createAuthority } from "#server/shell/authority.ts";
import { identityPort } from "#server/shell/identity-port.ts";

/** A PBS_HOME with an authority whose clock the test sets. */
function authorityIn(work: (bed: Bed) => void): void {
  const home = mkdtempSync(join(tmpdir(), "partita-ca-"));
  try {
    mkdirSync(join(home, "server_priv"));
    let now_s = 1_800_000_000;
    const options = { home, server: "Head", own_names: ["Head.site.org", "front"], now_s: () => now_s };
    createAuthority(options);
    work({
      home,
      file: (name) => join(home, "server_priv/ca", name),
      open: () => new CertificateAuthority(options),
      wait: (s) => {
        now_s += s;
      },
    });
  } finally {
    rmSync(home, { recursive: true });
  }
}
type Bed = {
  readonly home: string;
  file(name: string): string;
  open(): CertificateAuthority;
  wait(s: number): void;
};

/** What `partita join` sends. */
function joining(token: string, host: string, key = newKey()) {
  const read = parseToken(token);
  assert.ok(read !== null);
  return { token: read.id, secret: read.secret, request: makeRequest(host, key) };
}

const identityOf = (certificate: string) => {
  const { identity } = readCertificate(certificate);
  assert.ok(identity !== null);
  return identity;
};

test("authority: its key and its ledger are closed to others", () => {
  authorityIn(({ home, file }) => {
    const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);
    assert.deepEqual([mode(join(home, "server_priv/ca")), mode(file("ca.pem")), mode(file("ledger.json"))], ["700", "600", "600"]);
  });
});

test("authority: who may not join in spite of a good token leaves the token and the ledger as they were", () => {
  authorityIn(({ open, file }) => {
    const authority = open();
    const tokens = [null, "spare"].map((host) => authority.makeToken({ host, user: null, life_s: 60 }).token);
    const before = readFileSync(file("ledger.json"), "utf8");
    const why = (host: string, is_named: boolean): string => `${host} ${is_named}`;
    for (const [at, token] of tokens.entries())
      assert.throws(() => authority.join(joining(token, "spare"), why), at === 0 ? /spare false$/ : /spare true$/);
    assert.equal(readFileSync(file("ledger.json"), "utf8"), before);
    for (const token of tokens) assert.equal(authority.join(joining(token, "spare")).host, "spare");
  });
});

test("authority: a token gives one certificate for one key, and nothing once it has expired", () => {
  authorityIn(({ open, file, wait }) => {
    const authority = open();
    const { token, expires_s } = authority.makeToken({ host: null, user: null, life_s: 60 });
    assert.equal(parseToken(token)?.fingerprint, readCertificate(authority.trusted).fingerprint);
    assert.ok(!readFileSync(file("ledger.json"), "utf8").includes(parseToken(token)?.secret ?? ""), "the ledger holds no secret");
    const key = newKey();
    const first = authority.join(joining(token, "node7", key));
    assert.deepEqual([identityOf(first.certificate).host, identityOf(first.certificate).role], ["node7", "host"]);
    assert.equal(authority.fault(identityOf(first.certificate)), null);
    assert.throws(() => authority.join(joining(token, "node7")), /the token was used already/);
    assert.throws(() => authority.join(joining(token, "node8", key)), /the token was used already/);
    const again = authority.join(joining(token, "node7", key));
    assert.equal(authority.fault(identityOf(again.certificate)), null);
    assert.match(authority.fault(identityOf(first.certificate)) ?? "", /was replaced/);
    const { token: late } = authority.makeToken({ host: null, user: null, life_s: 60 });
    wait(60);
    assert.throws(() => authority.join(joining(late, "node9")), /the token has expired/);
    assert.equal(expires_s, 1_800_000_060);
  });
});

test("authority: what it knows survives its restart", () => {
  authorityIn(({ open }) => {
    const before = open();
    const { token } = before.makeToken({ host: "node7", user: null, life_s: 60 });
    const { certificate } = before.join(joining(token, "node7"));
    const other = before.join(joining(before.makeToken({ host: null, user: null, life_s: 60 }).token, "node8")).certificate;
    assert.deepEqual([before.hasHost("Node7"), before.hasHost("node9"), before.hasHost("node 7")], [true, false, false]);
    assert.equal(before.revoke("node7").revoked, 1);
    assert.ok(!before.hasHost("node7"));
    const after = open();
    assert.deepEqual(after.list(), before.list());
    assert.throws(() => after.join(joining(token, "node7")), /the token was used already/);
    assert.match(after.fault(identityOf(certificate)) ?? "", /was revoked/);
    assert.equal(after.fault(identityOf(other)), null);
  });
});

test("authority: a renewal is for the host that asks, and leaves its present certificate valid", () => {
  authorityIn(({ open, wait }) => {
    const authority = open();
    const { certificate } = authority.join(joining(authority.makeToken({ host: null, user: null, life_s: 60 }).token, "node7"));
    const identity = identityOf(certificate);
    wait(TERMS.certificate_s - 10);
    const renewed = identityOf(authority.renew(identity, makeRequest("node7", newKey())).certificate);
    assert.deepEqual([authority.fault(identity), authority.fault(renewed)], [null, null]);
    assert.throws(() => authority.renew(identity, makeRequest("node8", newKey())), /node7 asks for a certificate of node8/);
    assert.throws(() => authority.renew(identity, "x"), /not a certificate request/);
    wait(10);
    assert.match(authority.fault(identity) ?? "", /has expired/);
    assert.throws(() => authority.renew(identity, makeRequest("node7", newKey())), /has expired/);
    authority.revoke("node7");
    assert.throws(() => authority.renew(renewed, makeRequest("node7", newKey())), /was revoked/);
  });
});

test("authority: of an asker who knows no token, nothing is read (C3)", () => {
  authorityIn(({ open }) => {
    const authority = open();
    const { token } = authority.makeToken({ host: null, user: null, life_s: 60 });
    const asked = { ...joining(token, "node7"), request: "no request" };
    assert.throws(() => authority.join({ ...asked, secret: "0".repeat(40) }), /the token is not known here/);
    assert.throws(() => authority.join(asked), /not a certificate request/);
  });
});

test("authority: a host that renews its certificate again and again is refused until it has a new token (A5)", () => {
  authorityIn(({ open }) => {
    const authority = open();
    const join_host = (host: string) =>
      identityOf(authority.join(joining(authority.makeToken({ host, user: null, life_s: 60 }).token, host)).certificate);
    const [seven, eight] = [join_host("node7"), join_host("node8")];
    const renew = (identity: typeof seven) => authority.renew(identity, makeRequest(identity.host, newKey()));
    for (let at = 1; at < CERTIFICATES_MAX; at++) renew(seven);
    const { length } = authority.list().certificates;
    assert.throws(() => renew(seven), /node7 has had 16 certificates since it joined: it needs a new token made for its name/);
    assert.equal(authority.list().certificates.length, length);
    assert.equal(authority.fault(seven), null, "its certificate is good nevertheless");
    renew(eight);
    renew(join_host("node7"));
  });
});

test("authority: the certificates of the server that are revoked are listed for hosts, and it has another one", () => {
  authorityIn(({ home, open }) => {
    const authority = open();
    for (let at = 0; at < 20; at++) authority.renewServer();
    const own = () => identityOf(readCredentials(home)?.certificate ?? "");
    const before = own();
    assert.deepEqual(authority.revocations(), []);
    assert.deepEqual(authority.revoke("head"), { revoked: 20 });
    assert.deepEqual([authority.revocations().length, authority.fault(own())], [20, null]);
    assert.match(authority.fault(before) ?? "", /was revoked/);
    assert.ok(authority.revocations().some(({ serial }) => serial === before.serial));
    assert.ok(!authority.needsServerCertificate());
    assert.deepEqual(open().revocations(), authority.revocations());
  });
});

test("authority: the server's own certificate, and nobody else's with its name or its role", () => {
  authorityIn(({ home, open, wait }) => {
    const authority = open();
    assert.ok(authority.needsServerCertificate());
    authority.renewServer();
    assert.ok(!authority.needsServerCertificate());
    const own = readCredentials(home);
    assert.ok(own !== null && own.authority === authority.trusted);
    assert.deepEqual([identityOf(own.certificate).host, identityOf(own.certificate).role], ["head", "server"]);
    for (const name of ["head", "head.site.org", "front"]) {
      assert.throws(() => authority.makeToken({ host: name, user: null, life_s: 60 }), /needs no token/);
      const ask = joining(authority.makeToken({ host: null, user: null, life_s: 60 }).token, name.toUpperCase());
      assert.throws(() => authority.join(ask), new RegExp(`${name} is the name of the server`));
    }
    assert.throws(
      () => authority.renew(identityOf(own.certificate), makeRequest("head", newKey())),
      /the certificate of head is none of a host/,
    );
    wait((TERMS.certificate_s * 3) / 4);
    assert.ok(authority.needsServerCertificate(), "it is renewed long before its end");
  });
});

test("authority: a certificate that the ledger does not know is refused, although the key of the authority signed it", () => {
  authorityIn(({ open, file }) => {
    const authority = open();
    const { ledger, token } = {
      ledger: readFileSync(file("ledger.json"), "utf8"),
      token: authority.makeToken({ host: null, user: null, life_s: 60 }).token,
    };
    const { certificate } = authority.join(joining(token, "node7"));
    writeFileSync(file("ledger.json"), ledger);
    assert.match(open().fault(identityOf(certificate)) ?? "", /is not in the ledger/);
  });
});

test("authority: a new one follows when all hosts have its certificates, and nothing of the former one is good afterwards", () => {
  authorityIn(({ home, open, file }) => {
    const authority = open();
    authority.renewServer();
    const join_host = (host: string) =>
      identityOf(authority.join(joining(authority.makeToken({ host: null, user: null, life_s: 60 }).token, host)).certificate);
    const [seven, eight] = [join_host("node7"), join_host("node8")];
    const [former = ""] = authority.fingerprints;
    assert.throws(() => authority.finishRotation(false), /no new authority is on its way/);
    const key_before = readFileSync(file("ca.pem"), "utf8");

    assert.deepEqual(authority.beginRotation(), { left: ["node7", "node8"] });
    assert.throws(() => authority.beginRotation(), /is on its way already/);
    assert.equal(splitPem(authority.trusted).certificates.length, 2);
    assert.equal(
      parseToken(authority.makeToken({ host: null, user: null, life_s: 60 }).token)?.fingerprint,
      former,
      "the server still shows the former one",
    );
    assert.ok(authority.needsServerCertificate(), "the server must trust both");
    authority.renewServer();
    const own = readCredentials(home);
    assert.ok(own !== null && own.authority === authority.trusted);
    assert.ok(isSignedBy(own.certificate, splitPem(authority.trusted).certificates[0]));
    const renewed = authority.renew(seven, makeRequest("node7", newKey()));
    assert.equal(renewed.authority, authority.trusted);
    assert.ok(isSignedBy(renewed.certificate, splitPem(authority.trusted).certificates[1]));

    const restarted = open();
    assert.deepEqual([restarted.list().left, restarted.fingerprints], [["node8"], authority.fingerprints]);
    assert.throws(() => restarted.finishRotation(false), /have no certificate of the new authority yet: node8$/);
    const { token } = restarted.makeToken({ host: null, user: null, life_s: 60 });
    assert.deepEqual(restarted.finishRotation(true), { out: ["node8"] });
    assert.equal(restarted.fingerprints.length, 1);
    assert.notEqual(restarted.fingerprints[0], former);
    assert.match(restarted.fault(seven) ?? "", /was replaced/);
    assert.match(restarted.fault(eight) ?? "", /was replaced/);
    assert.equal(restarted.fault(identityOf(renewed.certificate)), null);
    assert.throws(() => restarted.join(joining(token, "node9")), /the token is not known here/, "it names the former authority");
    assert.ok(!restarted.needsServerCertificate());
    assert.ok(!readFileSync(file("ca.pem"), "utf8").includes(key_before.slice(-100)), "the key of the former one is gone");
    assert.ok(!existsSync(file("next.pem")));
  });
});

test("authority: a server killed between the two steps of a rotation's end has a certificate of the new one after its restart", () => {
  authorityIn(({ open, file }) => {
    const authority = open();
    authority.renewServer();
    const [for_eight, for_seven] = [
      authority.makeToken({ host: null, user: null, life_s: 60 }).token,
      authority.makeToken({ host: null, user: null, life_s: 60 }).token,
    ];
    const former = identityOf(authority.join(joining(for_eight, "node8")).certificate);
    authority.beginRotation();
    const seven = identityOf(authority.join(joining(for_seven, "node7")).certificate);
    renameSync(file("next.pem"), file("ca.pem"));
    const restarted = open();
    assert.ok(restarted.needsServerCertificate());
    assert.match(restarted.fault(former) ?? "", /was replaced/, "the ledger learns of the new authority, too");
    assert.equal(restarted.fault(seven), null);
    restarted.renewServer();
    assert.ok(!restarted.needsServerCertificate());
  });
});

test("authority: a server killed between the two files of its new certificate gets another one after its restart", () => {
  authorityIn(({ home, open }) => {
    const authority = open();
    authority.renewServer();
    const before = readFileSync(join(home, "identity/host.pem"));
    authority.beginRotation();
    authority.finishRotation(false);
    writeFileSync(join(home, "identity/host.pem"), before);
    assert.throws(() => readCredentials(home), /not signed by the authority/);
    const restarted = open();
    assert.ok(restarted.needsServerCertificate());
    restarted.renewServer();
    assert.ok(!restarted.needsServerCertificate() && readCredentials(home) !== null);
  });
});

test("authority: no certificate outlives its authority", () => {
  authorityIn(({ home, open, wait }) => {
    const authority = open();
    wait(TERMS.authority_s - 1000);
    const end_s = readCertificate(authority.trusted).until_s;
    const { certificate } = authority.join(joining(authority.makeToken({ host: null, user: null, life_s: 60 }).token, "node7"));
    authority.renewServer();
    const own = readCredentials(home);
    assert.deepEqual([readCertificate(certificate).until_s, readCertificate(own?.certificate ?? "").until_s], [end_s, end_s]);
    assert.ok(!authority.needsServerCertificate(), "another one would gain nothing");
  });
});

const isSignedBy = (certificate: string, authority = ""): boolean =>
  new X509Certificate(certificate).verify(new X509Certificate(authority).publicKey);

test("authority: with a damaged or missing file it serves nobody (C2)", () => {
  authorityIn(({ open, file }) => {
    const text = readFileSync(file("ledger.json"), "utf8");
    writeFileSync(file("ledger.json"), text.slice(0, -5));
    assert.throws(open, /ledger\.json cannot be used/);
    rmSync(file("ledger.json"));
    assert.throws(open, /ledger\.json is missing/);
    writeFileSync(file("ledger.json"), text, { mode: 0o600 });
    open();
    rmSync(file("ca.pem"));
    assert.throws(open, /ca\.pem is missing/);
    writeFileSync(file("ca.pem"), newKey(), { mode: 0o640 });
    assert.throws(open, /ca\.pem is open to group or others/);
  });
});

test("authority: certificates for the users of a host, and for a user by a token", () => {
  authorityIn(({ open }) => {
    const authority = open();
    const tokenFor = (user: string | null, host: string | null = null): string => authority.makeToken({ host, user, life_s: 60 }).token;
    const node7 = identityOf(authority.join(joining(tokenFor(null), "node7")).certificate);
    const request = makeRequest("node7", newKey());
    const login = identityOf(authority.login(node7, request).certificate);
    assert.deepEqual([login.host, login.role, authority.fault(login)], ["node7", "login", null]);
    assert.throws(() => authority.login(node7, makeRequest("node8", newKey())), /node7 asks for a certificate of node8/);
    assert.throws(() => authority.login(login, request), /the certificate of node7 is none of a host/);
    assert.throws(() => authority.renew(login, request), /the certificate of node7 is none of a host/);

    const alice = authority.user(login, joining(tokenFor("alice"), "node7"));
    const identity = identityOf(alice.certificate);
    assert.deepEqual([identity.role, identity.user, identity.host, alice.user], ["user", "alice", "node7", "alice"]);
    assert.equal(authority.fault(identity), null);
    assert.throws(() => authority.user(node7, joining(tokenFor("alice"), "node7")), /the certificate of node7 is none for users/);
    assert.throws(() => authority.user(identity, joining(tokenFor("bob"), "node7")), /the certificate of node7 is none for users/);
    assert.throws(() => authority.user(login, joining(tokenFor("bob"), "node8")), /node7 asks for a certificate of node8/);
    assert.throws(() => authority.user(login, joining(tokenFor(null), "node7")), /the token is for a host that joins, not for a user/);
    assert.throws(() => authority.join(joining(tokenFor("alice"), "node9")), /the token is for a user of a host that has joined/);

    assert.deepEqual(authority.revokeUser("alice"), { revoked: 1 });
    assert.match(authority.fault(identity) ?? "", /was revoked/);
    assert.throws(() => authority.revokeUser("carol"), /carol has no certificate/);
    assert.equal(authority.fault(login), null);
    authority.revoke("node7");
    assert.match(authority.fault(login) ?? "", /was revoked/);
    assert.throws(() => authority.user(login, joining(tokenFor("bob"), "node7")), /was revoked/);
  });
});

test("identity of a host: key and certificate belong together, and a key that others may read is not used", () => {
  authorityIn(({ home, open }) => {
    const authority = open();
    const key = newKey();
    const host = join(home, "other");
    mkdirSync(host);
    assert.deepEqual([readCredentials(host), readJoinKey(host)], [null, null]);
    writeJoinKey(host, key);
    assert.equal(readJoinKey(host), key);
    const signed = authority.join(joining(authority.makeToken({ host: null, user: null, life_s: 60 }).token, "node7", key));
    writeCredentials(host, { key, certificate: signed.certificate, authority: signed.authority });
    assert.deepEqual(readCredentials(host), { key, certificate: signed.certificate, authority: signed.authority });
    assert.equal(readJoinKey(host), null, "it is the host's key now");
    chmodSync(join(host, "identity/host.pem"), 0o640);
    assert.throws(() => readCredentials(host), /can be read by group or others/);
    writeCredentials(host, { key: newKey(), certificate: signed.certificate, authority: signed.authority });
    assert.throws(() => readCredentials(host), /the key is not that of the certificate/);
    authority.renewServer();
    const own = readCredentials(home);
    assert.ok(own !== null);
    writeFileSync(join(home, "identity/ca.crt"), signed.certificate);
    assert.throws(() => readCredentials(home), /not signed by the authority/);
  });
});

test("identity port: nothing is made before the first token, and orders are answered in their order", async () => {
  const home = mkdtempSync(join(tmpdir(), "partita-ca-"));
  try {
    mkdirSync(join(home, "server_priv"));
    const told: string[] = [];
    const door = { open: async () => void told.push("open"), changed: () => void told.push("changed") };
    const port = identityPort({ home, server: "head", own_names: [], now_s: () => 1_800_000_000 }, door);
    const answers: unknown[] = [];
    const ask = (what: Parameters<typeof port.ask>[0]): Promise<void> =>
      new Promise((resolve) =>
        port.ask(what, (result) => {
          answers.push(result.ok ? result.value : result.error.message);
          resolve();
        }),
      );
    await ask({ verb: "list" });
    await ask({ verb: "revoke-host", host: "node7" });
    assert.deepEqual(answers, [
      { authority: null, next: null, left: [], certificates: [], tokens: [] },
      "the complex has no certificate authority yet: the first token makes it (partita cert token)",
    ]);
    assert.ok(!existsSync(join(home, "server_priv/ca")));
    await Promise.all([
      ask({ verb: "make-token", host: "node7", user: null, life_s: 60 }),
      ask({ verb: "revoke-host", host: "node9" }),
      ask({ verb: "list" }),
    ]);
    assert.match(JSON.stringify(answers[2]), /"token":"partita1\./);
    assert.equal(answers[3], "node9 has no certificate");
    assert.match(JSON.stringify(answers[4]), /"host":"head","role":"server".*"standing":"valid".*"host":"node7".*"standing":"open"/);
    assert.ok(existsSync(join(home, "identity/host.pem")));
    assert.deepEqual(told, ["open", "changed"], "the door opens before the token, and refusals change nothing");
  } finally {
    rmSync(home, { recursive: true });
  }
});

// The rules A1 to A4 of src/identity/ledger.ts: a table of joins, and random sequences of all that can happen to a ledger.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  addToken,
  CERTIFICATES_MAX,
  type Certificate,
  certificateOf,
  EMPTY_LEDGER,
  forgetBefore,
  judgeJoin,
  judgeRenewal,
  type Ledger,
  ledgerFaults,
  recordCertificate,
  recordJoin,
  recordRotation,
  revokeCertificates,
  revokeHost,
  standingOf,
  withdrawToken,
} from "#identity/ledger.ts";
import { readLedger, writeLedger } from "#identity/ledger-text.ts";
import { peerFault } from "#identity/peer.ts";
import { readRevocations, revocationsIn, withRevocations, writeRevocations } from "#identity/revocations.ts";

const digits = (text: string, count: number): string => Buffer.from(text).toString("hex").padEnd(count, "0").slice(0, count);
const token = (id: string, host: string | null = null, expires_s = 1000) => ({
  id: digits(id, 16),
  secret_sha256: digits(`secret ${id}`, 64),
  host,
  user: null,
  created_s: 0,
  expires_s,
});
const certificate = (serial: string, host: string, key: string, fields: Partial<Certificate> = {}): Certificate => ({
  serial: digits(serial, 32),
  host,
  role: "host",
  user: null,
  key_sha256: digits(key, 64),
  authority: digits("CA", 64),
  from_s: 0,
  until_s: 100_000,
  end: null,
  ...fields,
});
const ask = (id: string, host: string, key: string, secret = id) => ({
  token: digits(id, 16),
  secret_sha256: digits(`secret ${secret}`, 64),
  host,
  key_sha256: digits(key, 64),
});
const judged = (ledger: Ledger, asked: ReturnType<typeof ask>, now_s: number): string => {
  const verdict = judgeJoin(ledger, asked, now_s);
  return verdict.ok ? "yes" : verdict.why;
};

test("ledger: who may join", () => {
  let ledger = recordCertificate(EMPTY_LEDGER, certificate("00", "head", "K0", { role: "server" }));
  for (const each of [token("any"), token("seven", "node7"), token("late", null, 50), token("again"), token("gone"), token("head", "head")])
    ledger = addToken(ledger, each);
  ledger = withdrawToken(ledger, digits("gone", 16), 1);
  ledger = recordJoin(ledger, digits("again", 16), certificate("01", "node1", "K1"), 10);
  ledger = recordCertificate(ledger, certificate("07", "node7", "K7"));
  ledger = recordCertificate(ledger, certificate("08", "node8", "K8", { until_s: 90 }));
  const revoked = revokeHost(ledger, "node1", 20);
  // biome-ignore format: a table
  const rows: readonly (readonly [name: string, ledger: Ledger, asked: ReturnType<typeof ask>, now_s: number, verdict: string])[] = [
    ["a new host",                        ledger,  ask("any", "node2", "K2"),          100,  "yes"],
    ["an unknown token",                  ledger,  ask("none", "node2", "K2"),         100,  "token-unknown"],
    ["a wrong secret",                    ledger,  ask("any", "node2", "K2", "late"),  100,  "token-unknown"],
    ["a withdrawn token",                 ledger,  ask("gone", "node2", "K2"),         100,  "token-unknown"],
    ["the last second",                   ledger,  ask("any", "node2", "K2"),          999,  "yes"],
    ["an expired token",                  ledger,  ask("any", "node2", "K2"),          1000, "token-expired"],
    ["a token for another name",          ledger,  ask("seven", "node2", "K2"),        100,  "token-for-another"],
    ["a name that is taken",              ledger,  ask("any", "node7", "K2"),          100,  "name-taken"],
    ["a name whose certificate is over",  ledger,  ask("any", "node8", "K2"),          100,  "yes"],
    ["a reinstalled host",                ledger,  ask("seven", "node7", "K2"),        100,  "yes"],
    ["the name of the server",            ledger,  ask("any", "head", "K2"),           100,  "name-of-server"],
    ["the same, by a token for it",       ledger,  ask("head", "head", "K2"),          100,  "name-of-server"],
    ["a used token, its own key",         ledger,  ask("again", "node1", "K1"),        100,  "yes"],
    ["a used token, another key",         ledger,  ask("again", "node1", "K2"),        100,  "token-used"],
    ["a used token, another name",        ledger,  ask("again", "node2", "K1"),        100,  "token-used"],
    ["a used token after a revocation",   revoked, ask("again", "node1", "K1"),        100,  "token-used"],
    ["a revoked name, a new token",       revoked, ask("any", "node1", "K1"),          100,  "yes"],
  ];
  for (const [name, in_ledger, asked, now_s, verdict] of rows) assert.equal(judged(in_ledger, asked, now_s), verdict, name);
});

test("ledger: a host that joins again replaces its earlier certificates", () => {
  let ledger = addToken(addToken(EMPTY_LEDGER, token("a", "node1")), token("b", "node1"));
  ledger = recordJoin(ledger, digits("a", 16), certificate("01", "node1", "K1"), 10);
  ledger = recordJoin(ledger, digits("b", 16), certificate("02", "node1", "K2"), 20);
  const standings = ledger.certificates.map((each) => standingOf(each, 30));
  assert.deepEqual(standings, ["replaced", "valid"]);
  assert.equal(judged(ledger, ask("a", "node1", "K1"), 30), "token-used", "the earlier key does not come back by its old token");
});

test("ledger: a renewal leaves the earlier certificate valid, a revocation ends both and the tokens made for the host", () => {
  let ledger = recordCertificate(EMPTY_LEDGER, certificate("01", "node1", "K1"));
  ledger = recordCertificate(ledger, certificate("02", "node1", "K2"));
  ledger = addToken(ledger, token("t", "node1"));
  assert.deepEqual(
    ledger.certificates.map((each) => standingOf(each, 10)),
    ["valid", "valid"],
  );
  ledger = revokeHost(ledger, "node1", 20);
  assert.deepEqual(
    ledger.certificates.map((each) => standingOf(each, 30)),
    ["revoked", "revoked"],
  );
  assert.equal(judged(ledger, ask("t", "node1", "K3"), 30), "token-unknown");
});

test("ledger: when another authority has taken over, certificates of the former one and unused tokens have ended", () => {
  const next = digits("next", 64);
  let ledger = recordCertificate(EMPTY_LEDGER, certificate("01", "node1", "K1"));
  ledger = recordCertificate(ledger, certificate("02", "node1", "K2", { authority: next }));
  ledger = addToken(ledger, token("t"));
  ledger = recordRotation(ledger, next, 20);
  assert.deepEqual(
    ledger.certificates.map((each) => standingOf(each, 30)),
    ["replaced", "valid"],
  );
  assert.equal(judged(ledger, ask("t", "node9", "K9"), 30), "token-unknown");
});

test("peer: why a certificate is refused", () => {
  const identity = (serial: string, host = "node1", role: "host" | "server" = "host") => ({ serial: digits(serial, 32), host, role });
  let ledger = recordCertificate(EMPTY_LEDGER, certificate("01", "node1", "K1", { from_s: 100, until_s: 200 }));
  ledger = recordCertificate(ledger, certificate("02", "node2", "K2"));
  ledger = revokeHost(ledger, "node2", 10);
  // biome-ignore format: a table
  const rows: readonly (readonly [identity: ReturnType<typeof identity>, now_s: number, fault: RegExp | null])[] = [
    [identity("01"),                    150, null],
    [identity("01"),                    99,  /is not valid yet$/],
    [identity("01"),                    200, /has expired$/],
    [identity("02", "node2"),           150, /was revoked$/],
    [identity("03"),                    150, /is not in the ledger$/],
    [identity("01", "node3"),           150, /was signed for node1$/],
    [identity("01", "node1", "server"), 150, /was signed for node1$/],
  ];
  for (const [who, now_s, fault] of rows) {
    const found = peerFault(ledger, who, now_s);
    if (fault === null) assert.equal(found, null);
    else assert.match(found ?? "", fault);
  }
});

type Deed =
  | { readonly kind: "token"; readonly host: string | null; readonly life_s: number }
  | { readonly kind: "join"; readonly token: number; readonly host: string; readonly key: string }
  | { readonly kind: "renew" | "revoke"; readonly host: string }
  | { readonly kind: "withdraw"; readonly token: number }
  | { readonly kind: "wait"; readonly s: number };

const HOSTS = ["head", "node1", "node2"] as const;
const hosts = fc.constantFrom(...HOSTS);
const deeds: fc.Arbitrary<readonly Deed[]> = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("token" as const), host: fc.option(hosts), life_s: fc.integer({ min: 1, max: 100 }) }),
    fc.record({ kind: fc.constant("join" as const), token: fc.nat(4), host: hosts, key: fc.constantFrom("K1", "K2", "K3") }),
    fc.record({ kind: fc.constantFrom("renew" as const, "revoke" as const), host: hosts }),
    fc.record({ kind: fc.constant("withdraw" as const), token: fc.nat(4) }),
    fc.record({ kind: fc.constant("wait" as const), s: fc.integer({ min: 1, max: 60 }) }),
  ),
  { maxLength: 40 },
);

test("ledger: whatever happens, a token serves one key, a name has one key, and nothing that ended comes back (A2, A3, A4)", () => {
  fc.assert(fc.property(deeds, (list) => playDeeds(list)));
});

function playDeeds(list: readonly Deed[]): void {
  let now_s = 0;
  let tokens = 0;
  let serials = 0;
  let ledger = recordCertificate(EMPTY_LEDGER, certificate("head", "head", "K0", { role: "server", until_s: 1e6 }));
  const keys_of_token = new Map<string, Set<string>>();
  const ended = new Set<string>();
  const next = (host: string, key: string): Certificate => ({
    ...certificate(`s${++serials}`, host, key),
    from_s: now_s,
    until_s: now_s + 200,
  });
  for (const deed of list) {
    if (deed.kind === "wait") now_s += deed.s;
    if (deed.kind === "token") ledger = addToken(ledger, token(`t${tokens++}`, deed.host, now_s + deed.life_s));
    if (deed.kind === "withdraw") ledger = withdrawToken(ledger, digits(`t${deed.token}`, 16), now_s);
    if (deed.kind === "revoke" && deed.host !== "head") ledger = revokeHost(ledger, deed.host, now_s);
    if (deed.kind === "renew") {
      const valid = ledger.certificates.find((each) => each.host === deed.host && standingOf(each, now_s) === "valid");
      if (valid !== undefined && valid.role === "host") {
        ledger = recordCertificate(ledger, { ...next(deed.host, "K9"), key_sha256: valid.key_sha256 });
      }
    }
    if (deed.kind === "join") {
      const id = `t${deed.token}`;
      const known = ledger.tokens.find((each) => each.id === digits(id, 16));
      if (judged(ledger, ask(id, deed.host, deed.key), now_s) === "yes") {
        assert.ok(known !== undefined && known.withdrawn_s === null && now_s < known.expires_s);
        assert.ok(known.host === null || known.host === deed.host);
        const keys = keys_of_token.get(id) ?? new Set();
        keys_of_token.set(id, keys.add(`${deed.host} ${deed.key}`));
        ledger = recordJoin(ledger, digits(id, 16), next(deed.host, deed.key), now_s);
      }
    }
    checkLedger(ledger, now_s, ended);
    for (const keys of keys_of_token.values()) assert.equal(keys.size, 1);
  }
}

function checkLedger(ledger: Ledger, now_s: number, ended: Set<string>): void {
  assert.deepEqual(ledgerFaults(ledger), []);
  for (const host of HOSTS) {
    const valid = ledger.certificates.filter((each) => each.host === host && standingOf(each, now_s) === "valid");
    assert.ok(new Set(valid.map(({ key_sha256 }) => key_sha256)).size <= 1, `${host} has two keys`);
    if (host === "head") assert.ok(valid.every(({ role }) => role === "server"));
  }
  for (const serial of ended) assert.notEqual(standingOf(certificateOf(ledger, serial) as Certificate, now_s), "valid");
  for (const each of ledger.certificates) if (each.end !== null) ended.add(each.serial);
  assert.deepEqual(readLedger(writeLedger(ledger)), { ok: true, ledger });
}

test("ledger: what ended long ago is forgotten, the rest stays", () => {
  let ledger = recordCertificate(EMPTY_LEDGER, certificate("01", "node1", "K1", { until_s: 50 }));
  ledger = recordCertificate(ledger, certificate("02", "node1", "K2", { until_s: 200 }));
  ledger = addToken(addToken(ledger, token("a", null, 50)), token("b", null, 200));
  const kept = forgetBefore(ledger, 100);
  assert.deepEqual(
    kept.certificates.map(({ until_s }) => until_s),
    [200],
  );
  assert.deepEqual(
    kept.tokens.map(({ expires_s }) => expires_s),
    [200],
  );
});

test("ledger: for one token a host gets a bounded number of certificates, by renewals or by joining again; others are not touched (A5)", () => {
  let ledger = addToken(addToken(EMPTY_LEDGER, token("a")), token("b", "node1"));
  ledger = recordJoin(ledger, digits("a", 16), certificate("00", "node1", "K1"), 10);
  ledger = recordCertificate(ledger, certificate("xx", "node2", "K2"));
  for (let at = 1; at < CERTIFICATES_MAX; at++) {
    assert.ok(judgeRenewal(ledger, "node1", "host", 10).ok);
    ledger = recordCertificate(ledger, certificate(`r${at}`, "node1", `R${at}`));
  }
  assert.deepEqual(judgeRenewal(ledger, "node1", "host", 10), { ok: false, why: "too-many" });
  assert.equal(judged(ledger, ask("a", "node1", "K1"), 10), "too-many");
  assert.ok(judgeRenewal(ledger, "node2", "host", 10).ok);
  assert.ok(judgeRenewal(ledger, "node1", "host", 100_000).ok, "those that are over do not count");
  assert.equal(judged(ledger, ask("b", "node1", "K9"), 10), "yes", "a new token is an act of the administrator");
  for (let at = 0; at < CERTIFICATES_MAX; at++) {
    assert.equal(judged(ledger, ask("b", "node1", "K9"), 10), "yes");
    ledger = recordJoin(ledger, digits("b", 16), certificate(`j${at}`, "node1", "K9"), 10);
  }
  assert.equal(judged(ledger, ask("b", "node1", "K9"), 10), "too-many");
  assert.ok(judgeRenewal(ledger, "node1", "host", 10).ok, "its present certificate is the only one that is valid");
});

test("revocations: hosts are told of what has ended before its dates, and take nothing back (V1)", () => {
  let ledger = recordCertificate(EMPTY_LEDGER, certificate("01", "node1", "K1"));
  ledger = recordCertificate(ledger, certificate("02", "head", "K2", { role: "server", until_s: 500 }));
  ledger = recordCertificate(ledger, certificate("03", "head", "K3", { role: "server", until_s: 600 }));
  assert.deepEqual(revocationsIn(ledger, 10), []);
  ledger = revokeHost(ledger, "node1", 10);
  ledger = revokeCertificates(ledger, new Set([digits("02", 32)]), 10);
  const [seven, server] = [
    { serial: digits("01", 32), until_s: 100_000 },
    { serial: digits("02", 32), until_s: 500 },
  ];
  assert.deepEqual(revocationsIn(ledger, 10), [seven, server]);
  assert.deepEqual(revocationsIn(ledger, 500), [seven], "what is over needs no revocation");
  const known = withRevocations([], [server], 10);
  assert.deepEqual(known, [server]);
  assert.equal(withRevocations(known, [], 10), known, "a server that lists nothing takes nothing back");
  assert.equal(withRevocations(known, [server], 10), known);
  assert.deepEqual(withRevocations(known, [seven, server], 500), [seven]);
  assert.deepEqual(readRevocations(writeRevocations([seven, server])), { ok: true, list: [seven, server] });
  for (const damaged of ["", "{}", writeRevocations([seven]).replace("3031", "303g"), writeRevocations([seven]).slice(0, -3)])
    assert.equal(readRevocations(damaged).ok, false, damaged);
});

test("ledger: a damaged file is refused whole", () => {
  const text = writeLedger(revokeHost(recordCertificate(EMPTY_LEDGER, certificate("01", "node1", "K1")), "node1", 5));
  assert.ok(readLedger(text).ok);
  const damages = [
    "",
    "{",
    text.slice(0, -10),
    text.replace('"revoked"', '"forgiven"'),
    text.replace('"end"', '"ende"'),
    text.replace("1,", "2,"),
  ];
  for (const damaged of damages) assert.equal(readLedger(damaged).ok, false, damaged);
  const twice = writeLedger(recordCertificate(recordCertificate(EMPTY_LEDGER, certificate("01", "a", "K1")), certificate("01", "b", "K2")));
  assert.deepEqual(readLedger(twice), { ok: false, fault: "a serial twice" });
});

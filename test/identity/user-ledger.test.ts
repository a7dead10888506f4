// Certificates of users in the ledger of src/identity/ledger.ts: which token gives one, and what ends it.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addToken,
  type Certificate,
  EMPTY_LEDGER,
  judgeJoin,
  judgeUser,
  type Ledger,
  recordCertificate,
  recordUser,
  revokeHost,
  revokeUser,
  standingOf,
  withdrawToken,
} from "#identity/ledger.ts";
import { readLedger, writeLedger } from "#identity/ledger-text.ts";
import { peerFault } from "#identity/peer.ts";

const digits = (text: string, count: number): string => Buffer.from(text).toString("hex").padEnd(count, "0").slice(0, count);
const token = (id: string, user: string | null, host: string | null = null) => ({
  id: digits(id, 16),
  secret_sha256: digits(`secret ${id}`, 64),
  host,
  user,
  created_s: 0,
  expires_s: 1000,
});
const certificate = (serial: string, host: string, key: string, user: string | null): Certificate => ({
  serial: digits(serial, 32),
  host,
  role: user === null ? "login" : "user",
  user,
  key_sha256: digits(key, 64),
  authority: digits("CA", 64),
  from_s: 0,
  until_s: 100_000,
  end: null,
});
const ask = (id: string, host: string, key: string) => ({
  token: digits(id, 16),
  secret_sha256: digits(`secret ${id}`, 64),
  host,
  key_sha256: digits(key, 64),
});

test("ledger: a token for a user gives that user a certificate for one key, on one host, and no host anything", () => {
  let ledger: Ledger = EMPTY_LEDGER;
  for (const each of [token("alice", "alice"), token("here", "alice", "login1"), token("host", null), token("gone", "bob")])
    ledger = addToken(ledger, each);
  ledger = withdrawToken(ledger, digits("gone", 16), 1);
  ledger = addToken(ledger, token("used", "bob"));
  ledger = recordUser(ledger, digits("used", 16), certificate("01", "login1", "K1", "bob"), 10);
  const revoked = revokeUser(ledger, "bob", 20);
  // biome-ignore format: a table
  const rows: readonly (readonly [name: string, ledger: Ledger, asked: ReturnType<typeof ask>, now_s: number, verdict: string])[] = [
    ["a user",                       ledger,  ask("alice", "login1", "K2"), 100,  "alice"],
    ["on the host of the token",     ledger,  ask("here", "login1", "K2"),  100,  "alice"],
    ["on another host",              ledger,  ask("here", "login2", "K2"),  100,  "token-for-another"],
    ["a token for a host",           ledger,  ask("host", "login1", "K2"),  100,  "token-for-host"],
    ["a withdrawn token",            ledger,  ask("gone", "login1", "K2"),  100,  "token-unknown"],
    ["an expired one",               ledger,  ask("alice", "login1", "K2"), 1000, "token-expired"],
    ["the same key again",           ledger,  ask("used", "login1", "K1"),  100,  "bob"],
    ["another key",                  ledger,  ask("used", "login1", "K2"),  100,  "token-used"],
    ["the same key on another host", ledger,  ask("used", "login2", "K1"),  100,  "token-used"],
    ["after a revocation",           revoked, ask("used", "login1", "K1"),  100,  "token-unknown"],
  ];
  for (const [name, in_ledger, asked, now_s, expected] of rows) {
    const verdict = judgeUser(in_ledger, asked, now_s);
    assert.equal(verdict.ok ? verdict.user : verdict.why, expected, name);
  }
  assert.deepEqual(judgeJoin(ledger, ask("alice", "node9", "K9"), 100), { ok: false, why: "token-for-user" });
});

test("ledger: certificates of a user end with the user's or with their host's, and others stay", () => {
  let ledger: Ledger = EMPTY_LEDGER;
  for (const [serial, host, user] of [
    ["01", "login1", null],
    ["02", "login1", "alice"],
    ["03", "login2", "alice"],
    ["04", "login1", "bob"],
  ] as const)
    ledger = recordCertificate(ledger, certificate(serial, host, `K${serial}`, user));
  ledger = addToken(ledger, token("alice", "alice"));
  const standings = (of: Ledger): string => of.certificates.map((each) => standingOf(each, 30)).join(" ");
  const without_alice = revokeUser(ledger, "alice", 20);
  assert.equal(standings(without_alice), "valid revoked revoked valid");
  assert.deepEqual(judgeUser(without_alice, ask("alice", "login1", "K9"), 30), { ok: false, why: "token-unknown" });
  assert.equal(standings(revokeHost(ledger, "login1", 20)), "revoked revoked valid revoked");
  const read = readLedger(writeLedger(without_alice));
  assert.deepEqual(read.ok && read.ledger, without_alice);
});

test("peer: a certificate counts for the user that the ledger names, and for no other", () => {
  const ledger = recordCertificate(EMPTY_LEDGER, certificate("01", "login1", "K1", "alice"));
  const identity = { serial: digits("01", 32), host: "login1", role: "user" } as const;
  assert.equal(peerFault(ledger, { ...identity, user: "alice" }, 10), null);
  assert.match(peerFault(ledger, { ...identity, user: "root" }, 10) ?? "", /was signed for login1/);
  assert.match(peerFault(ledger, { ...identity, role: "login" }, 10) ?? "", /was signed for login1/);
});

test("ledger: the key of a host's role login, which all its users can read, proves neither the host nor a user", () => {
  let ledger: Ledger = addToken(addToken(EMPTY_LEDGER, token("any", null)), token("used", "alice"));
  ledger = recordCertificate(ledger, certificate("01", "node7", "LOGIN", null));
  assert.deepEqual(judgeJoin(ledger, ask("any", "node7", "LOGIN"), 100), { ok: false, why: "name-taken" });
  ledger = recordUser(ledger, digits("used", 16), certificate("02", "node7", "LOGIN", "bob"), 10);
  assert.deepEqual(judgeUser(ledger, ask("used", "node7", "LOGIN"), 100), { ok: false, why: "token-used" });
});

test("ledger: a used token gives its user a bounded number of certificates, whatever other users have", () => {
  let ledger: Ledger = addToken(EMPTY_LEDGER, token("used", "alice"));
  for (let at = 0; at < 40; at++) ledger = recordCertificate(ledger, certificate(`b${at}`, "login1", `B${at}`, "bob"));
  const given = [];
  while (judgeUser(ledger, ask("used", "login1", "K1"), 100).ok && given.length < 100) {
    given.push(1);
    ledger = recordUser(ledger, digits("used", 16), certificate(`a${given.length}`, "login1", "K1", "alice"), 100);
  }
  assert.equal(given.length, 16);
  assert.deepEqual(judgeUser(ledger, ask("used", "login1", "K1"), 100), { ok: false, why: "too-many" });
});

test("ledger: a token for any name does not give a name that access lists could take for another host's", () => {
  for (const [had, wanted, verdict] of [
    ["login1", "login1.example.com", "name-taken"],
    ["login1.example.com", "login1", "name-taken"],
    ["login1", "login10", null],
  ] as const) {
    const ledger = recordCertificate(addToken(EMPTY_LEDGER, token("any", null)), certificate("01", had, "K1", null));
    const answer = judgeJoin(ledger, ask("any", wanted, "K2"), 100);
    assert.equal(answer.ok ? null : answer.why, verdict, wanted);
  }
});

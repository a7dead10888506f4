// Tokens of the REST interface, and the allowance of a user.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { allowance } from "#web/access/allowance.ts";
import { admit, parseScopes, readRecords, recordsText } from "#web/access/token.ts";
import { changeTokens, hashOf, newToken, readTokens, watchedTokens } from "#web/shell/token-file.ts";

const made = (now_s = 1000, end_s = 2000) => newToken({ user: "anna", scopes: ["read"], now_s, end_s });

function home(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), "partita-web-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

test("a token is admitted until its end, and no other text is", () => {
  const { text, record } = made();
  const other = made();
  const forged = `${text.slice(0, -1)}${text.endsWith("A") ? "B" : "A"}`;
  const swapped = `partita_${record.id}_${other.text.split("_").slice(2).join("_")}`;
  const rows: readonly [text: string, now_s: number, outcome: string][] = [
    [text, 1999, "admitted"],
    [text, 2000, "expired"],
    [forged, 1999, "unknown"],
    [swapped, 1999, "unknown"],
    [other.text, 1999, "unknown"],
    [record.hash, 1999, "malformed"],
    ["", 1999, "malformed"],
    [`${text}x`, 1999, "malformed"],
  ];
  for (const [each, now_s, outcome] of rows) {
    const admitted = admit([record], each, hashOf, now_s);
    assert.equal("token" in admitted ? "admitted" : admitted.fault, outcome, each);
  }
});

test("the file of tokens has no secret, and only its owner may read it", async (t) => {
  const dir = home(t);
  const { text, record } = made();
  await changeTokens(dir, (records) => [...records, record]);
  const path = join(dir, "web_priv/tokens.json");
  assert.ok(!readFileSync(path, "utf8").includes(text.split("_").slice(2).join("_")));
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readTokens(dir), [record]);
});

test("tokens that are made at the same time are all kept, and a reader sees each change", async (t) => {
  const dir = home(t);
  const seen = watchedTokens(dir);
  assert.deepEqual(seen(), []);
  const records = Array.from({ length: 8 }, () => made().record);
  await Promise.all(records.map((record) => changeTokens(dir, (old) => [...old, record])));
  assert.deepEqual(new Set(seen().map(({ id }) => id)), new Set(records.map(({ id }) => id)));
  await changeTokens(dir, (old) => old.slice(1));
  assert.equal(seen().length, 7);
});

test("scopes are a list of known words", () => {
  assert.deepEqual(parseScopes("submit, read"), ["read", "submit"]);
  for (const text of ["", "read,", "all", "read;submit"]) assert.equal(parseScopes(text), null, text);
});

test("a damaged file of tokens is noticed", () => {
  const { record } = made();
  assert.deepEqual(readRecords(recordsText([record])), [record]);
  for (const text of ["", "{}", '{"tokens":[{}]}', JSON.stringify({ tokens: [{ ...record, scopes: ["root"] }] })])
    assert.equal(readRecords(text), null, text);
});

test("a user who has used up the burst gets requests at the rate, and other users are not affected", () => {
  const bucket = allowance({ burst: 3, per_s: 2, users_max: 10 });
  assert.deepEqual(
    [0, 0, 0, 0].map((at) => bucket.take("anna", at)),
    [0, 0, 0, 1],
  );
  assert.equal(bucket.take("bert", 0), 0);
  assert.equal(bucket.take("anna", 499), 1);
  assert.equal(bucket.take("anna", 500), 0);
  assert.equal(bucket.take("anna", 501), 1);
});

test("the number of buckets is bounded; the bucket that was not used for the longest time goes first", () => {
  const bucket = allowance({ burst: 1, per_s: 0.001, users_max: 2 });
  for (const user of ["anna", "bert"]) assert.equal(bucket.take(user, 0), 0);
  assert.ok(bucket.take("anna", 1) > 0);
  assert.equal(bucket.take("carl", 2), 0);
  assert.ok(bucket.take("anna", 3) > 0);
  assert.equal(bucket.take("bert", 4), 0);
});

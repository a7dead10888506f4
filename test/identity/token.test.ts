import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { hostName } from "#identity/host-name.ts";
import { formatToken, parseToken } from "#identity/token.ts";

const hex = (digits: number) =>
  fc.array(fc.constantFrom(..."0123456789abcdef"), { minLength: digits, maxLength: digits }).map((all) => all.join(""));
const tokens = fc.record({ id: hex(16), secret: hex(40), fingerprint: hex(64) }, { noNullPrototype: true });

test("token: reading a text gives back what was written", () => {
  fc.assert(
    fc.property(tokens, (token) => {
      const text = formatToken(token);
      assert.match(text, /^partita1\.[A-Za-z0-9_-]{80}$/);
      assert.deepEqual(parseToken(text), token);
      assert.deepEqual(parseToken(` ${text}\n`), token);
    }),
  );
});

test("token: a changed character changes the token, and a text of another length is none (J2)", () => {
  fc.assert(
    fc.property(tokens, fc.nat(79), fc.constantFrom(..."ABCxyz019_-"), (token, at, character) => {
      const text = formatToken(token);
      const place = "partita1.".length + at;
      const changed = text.slice(0, place) + character + text.slice(place + 1);
      const read = parseToken(changed);
      assert.ok(read !== null);
      assert.equal(formatToken(read), changed);
      assert.equal(parseToken(text.slice(0, place)), null);
      assert.equal(parseToken(`${text}A`), null);
    }),
  );
});

test("token: what is not a token", () => {
  const body = "A".repeat(80);
  for (const text of [
    "",
    "partita1.",
    body,
    `partita2.${body}`,
    `partita1.${body.slice(1)}=`,
    `partita1.${body.slice(1)}+`,
    `Partita1.${body}`,
  ])
    assert.equal(parseToken(text), null, text);
});

test("names of hosts: lower case, up to 63 letters, digits, - _ .", () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [text: string, name: string | null])[] = [
    ["node7",          "node7"],
    ["Node7.Site.org", "node7.site.org"],
    ["a_b-c",          "a_b-c"],
    ["7",              "7"],
    ["x".repeat(63),   "x".repeat(63)],
    ["x".repeat(64),   null],
    ["",               null],
    ["-a",             null],
    [".a",             null],
    ["a b",            null],
    ["a,b",            null],
    ["a\n",            null],
    ["nöde",           null],
    ["*.site.org",     null],
  ];
  for (const [text, name] of rows) assert.equal(hostName(text), name, JSON.stringify(text));
});

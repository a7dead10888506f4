// What a munge credential must say to be good for a connection.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CLAIM_AGE_S_MAX, claimFault, claimText } from "#protocol/proof/claim.ts";

const BINDING = "0a".repeat(32);
const EXPECTED = { server: "Head", binding: BINDING, made_s: 1_800_000_000 };

test("claim: good for one server, one connection and some minutes", () => {
  const text = claimText(EXPECTED);
  const late = (seconds: number): string => claimText({ ...EXPECTED, made_s: EXPECTED.made_s - seconds });
  // biome-ignore format: a table
  const rows: readonly (readonly [what: string, payload: string, fault: RegExp | null])[] = [
    ["its own",             text,                                                     null],
    ["other letters",       claimText({ ...EXPECTED, server: "HEAD" }),               null],
    ["the oldest",          late(CLAIM_AGE_S_MAX),                                    null],
    ["a late clock",        late(-CLAIM_AGE_S_MAX),                                   null],
    ["another server",      claimText({ ...EXPECTED, server: "standby" }),            /made for the server standby/],
    ["another connection",  claimText({ ...EXPECTED, binding: "0b".repeat(32) }),     /made for another connection/],
    ["too old",             late(CLAIM_AGE_S_MAX + 1),                                /made 301 s ago by the server's clock/],
    ["from the future",     late(-CLAIM_AGE_S_MAX - 1),                               /made 301 s in the future/],
    ["of another program",  "",                                                       /not made for a Partita server/],
    ["half a binding",      text.replace(/0a /, " "),                                 /not made for a Partita server/],
    ["more than the claim", `${text} server=head`,                                    /not made for a Partita server/],
    ["two lines",           `${text}\n`,                                              /not made for a Partita server/],
    ["no server's name",    text.replace("head", "*"),                                /made for the server \*/],
  ];
  for (const [what, payload, fault] of rows) {
    const found = claimFault(payload, EXPECTED);
    if (fault === null) assert.equal(found, null, what);
    else assert.match(found ?? "", fault, what);
  }
});

test("claim: no other text than the one that was made for a connection is good for it", () => {
  const text = claimText(EXPECTED);
  fc.assert(
    fc.property(fc.nat(text.length - 1), fc.nat(127), (at, code) => {
      const changed = text.slice(0, at) + String.fromCharCode(code) + text.slice(at + 1);
      // Upper and lower case of the server's name are the same, and so are times near one another.
      const same = changed.toLowerCase() === text.toLowerCase() || /made=\d+$/.test(changed.slice(at - 15));
      return same || claimFault(changed, EXPECTED) !== null;
    }),
  );
});

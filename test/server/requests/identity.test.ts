// `partita cert` at the server: who may ask, and what reaches the authority.

import assert from "node:assert/strict";
import { test } from "node:test";
import { TERMS } from "#identity/terms.ts";
import type { IdentityAsk } from "#protocol/identity-link.ts";
import { ALICE, apply, harness, outcome, ROOT, user } from "../harness.ts";

/** The world of these tests has no authority; what reached it is in the actions. */
const ASKED = "15010 there is no certificate authority in this world";
const MANAGER = user("boss");
const PERM = "15007 Unauthorized Request ";

test("partita cert: only root asks the authority; names and times are checked before", () => {
  const h = harness();
  apply(h, { kind: "server-changed", set: { managers: ["boss@*"], operators: ["oper@*"] }, unset: [] });
  const make = (host: string | null, life_s = 60): IdentityAsk => ({ verb: "make-token", host, user: null, life_s });
  // biome-ignore format: a table
  const rows: readonly (readonly [who: typeof ROOT, ask: IdentityAsk, outcome: string])[] = [
    [ALICE,        { verb: "list" },                        PERM],
    [user("oper"), make("node7"),                           PERM],
    [MANAGER,      { verb: "revoke-host", host: "node7" },  PERM],
    [ROOT,         { verb: "list" },                        ASKED],
    [ROOT,         make("Node7"),                           ASKED],
    [ROOT,         make(null, TERMS.token_s_max),           ASKED],
    [ROOT,         make(null, TERMS.token_s_max + 1),       "15014 a token is valid for at most 720 hours"],
    [ROOT,         make("node 7"),                          '15014 "node 7" cannot be the name of a host'],
    [ROOT,         { verb: "revoke-host", host: "" },       '15014 "" cannot be the name of a host'],
    [ROOT,         { verb: "withdraw-token", id: "AB" },    ASKED],
    [ROOT,         { verb: "renew-server" },                ASKED],
    [ROOT,         { verb: "rotate" },                      ASKED],
    [MANAGER,      { verb: "finish-rotation", force: true }, PERM],
  ];
  for (const [who, ask, expected] of rows) assert.equal(outcome(h, who, { kind: "identity", ask }), expected, JSON.stringify(ask));
  const asked = h.actions.flatMap((each) => (each.kind === "ask-authority" ? [each.ask] : []));
  assert.deepEqual(asked, [
    { verb: "list" },
    make("node7"),
    make(null, TERMS.token_s_max),
    { verb: "withdraw-token", id: "ab" },
    { verb: "renew-server" },
    { verb: "rotate" },
  ]);
});

// Resources of the site in mom_priv/config, as sent to the server. The live test of the same name covers the reading.

import assert from "node:assert/strict";
import { test } from "node:test";
import { world } from "../world.ts";

test("the server hears of them when they change, and at a welcome", () => {
  const w = world();
  const say = (resources: { readonly [name: string]: string }): string[] => w.on({ kind: "site", resources });
  assert.deepEqual(say({}), []);
  assert.deepEqual(say({ lic: "5" }), ['mom-site {"lic":"5"}']);
  assert.deepEqual(say({ lic: "5" }), []);
  w.on({ kind: "disconnected" });
  w.on({ kind: "connected" });
  assert.deepEqual(say({ lic: "6" }), []);
  assert.deepEqual(w.on({ kind: "welcome", data: { keep: [], kill: [], acknowledged: [] } }), ['mom-site {"lic":"6"}']);
  assert.deepEqual(say({}), ["mom-site {}"]);
});

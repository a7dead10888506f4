// The files that two servers share: sealed in the database, in the place of its own files at the server that takes over.

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { readPairKey, SharedFiles, writePairKey } from "#server/shell/shared-files.ts";

const dir = mkdtempSync(join(tmpdir(), "partita-shared-"));
after(() => rmSync(dir, { recursive: true, force: true }));

function makeHome(name: string): string {
  const home = join(dir, name);
  mkdirSync(join(home, "server_priv/ca"), { recursive: true, mode: 0o700 });
  return home;
}

function put(home: string, name: string, text: string): void {
  writeFileSync(join(home, "server_priv", name), text, { mode: 0o600 });
}
const read = (home: string, name: string): string => readFileSync(join(home, "server_priv", name), "utf8");

function database() {
  const rows = new Map<string, string>();
  let faulty = false;
  return {
    rows,
    fail: () => (faulty = true),
    store: {
      files: async () => new Map(rows),
      async putFiles(files: ReadonlyMap<string, string | null>) {
        if (faulty) throw new Error("deposed");
        for (const [name, data] of files) {
          if (data === null) rows.delete(name);
          else rows.set(name, data);
        }
      },
    },
  };
}

test("shared files: the server that takes over has the files of the one before, and nothing in the database is readable", async () => {
  const { rows, store } = database();
  const [head, spare] = [makeHome("head"), makeHome("spare")];
  put(head, "ca/ca.pem", "SECRET KEY");
  put(head, "ca/next.pem", "NEXT");
  put(head, "ca/ledger.json", "one");
  const first = new SharedFiles(head, store);
  await first.fetch();
  put(head, "ca/ledger.json", "two");
  rmSync(join(head, "server_priv/ca/next.pem"));
  await first.keep();
  assert.ok(![...rows.values()].some((text) => Buffer.from(text, "base64").includes("SECRET")));

  put(spare, "ca/next.pem", "of long ago");
  await assert.rejects(new SharedFiles(spare, store).fetch(), /pair\.key is missing: copy it from the other server/);
  writePairKey(spare, readPairKey(head) ?? "");
  await new SharedFiles(spare, store).fetch();
  assert.deepEqual([read(spare, "ca/ca.pem"), read(spare, "ca/ledger.json")], ["SECRET KEY", "two"]);
  assert.equal(existsSync(join(spare, "server_priv/ca/next.pem")), false);
  assert.equal(read(spare, "run.key"), read(head, "run.key"));
  assert.equal(statSync(join(spare, "server_priv/ca/ca.pem")).mode & 0o777, 0o600);
});

test("shared files: a row that was exchanged or changed, and a foreign key, are refused", async () => {
  const { rows, store } = database();
  const home = makeHome("one");
  put(home, "ca/ca.pem", "A");
  put(home, "ca/ledger.json", "B");
  await new SharedFiles(home, store).fetch();
  const [ca = "", ledger = ""] = [rows.get("ca/ca.pem"), rows.get("ca/ledger.json")];
  rows.set("ca/ca.pem", ledger);
  await assert.rejects(new SharedFiles(home, store).fetch(), /ca\/ca\.pem in the database cannot be opened/);
  rows.set("ca/ca.pem", ca);
  writePairKey(home, "0".repeat(64));
  await assert.rejects(new SharedFiles(home, store).fetch(), /cannot be opened with .*pair\.key/);
});

test("shared files: what the database does not take does not count as kept, and an open key is not used", async () => {
  const { store, fail } = database();
  const home = makeHome("two");
  const files = new SharedFiles(home, store);
  await files.fetch();
  fail();
  put(home, "ca/ledger.json", "new");
  await assert.rejects(files.keep(), /deposed/);
  await assert.rejects(files.keep(), /deposed/, "it is tried again");
  chmodSync(join(home, "server_priv/pair.key"), 0o644);
  assert.throws(() => readPairKey(home), /can be read by group or others/);
});

// Trees of files as frames: what is read is written, complete or not at all, and never somewhere else.

import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { treeFrames } from "#mom/files/tree-source.ts";
import { TreeTarget } from "#mom/files/tree-target.ts";
import type { Entry } from "#protocol/files/link.ts";

const root = mkdtempSync(join(tmpdir(), "partita-tree-"));
after(() => rmSync(root, { recursive: true }));
const UID = process.geteuid?.() ?? 0;
let places = 0;
/** A directory of its own for each test. */
function place(): string {
  const path = join(root, String(++places));
  mkdirSync(path);
  return path;
}

function copy(from: string, to: string): void {
  const target = new TreeTarget(to, UID, true);
  for (const frame of treeFrames(from)) {
    if (frame.kind === "data") target.data(frame.bytes);
    else target.add(frame as Entry);
  }
  target.end();
}
const fileEntry = (path: string, size: number): Entry => ({ kind: "file", path, size, mode: 0o600, mtime_s: 1 });
const DIR: Entry = { kind: "dir", path: "", mode: 0o700, mtime_s: 1 };

test("a tree is the same at its new place: contents, modes, times of files, links", () => {
  const at = place();
  mkdirSync(join(at, "from/deep"), { recursive: true });
  writeFileSync(join(at, "from/empty"), "");
  writeFileSync(join(at, "from/deep/big"), Buffer.alloc(300_000, 7));
  chmodSync(join(at, "from/deep/big"), 0o640);
  symlinkSync("deep/big", join(at, "from/link"));
  copy(join(at, "from"), join(at, "to"));
  assert.deepEqual(readdirSync(join(at, "to")).sort(), ["deep", "empty", "link"]);
  assert.equal(readlinkSync(join(at, "to/link")), "deep/big");
  assert.deepEqual(readFileSync(join(at, "to/deep/big")), Buffer.alloc(300_000, 7));
  const [before, now] = [statSync(join(at, "from/deep/big")), statSync(join(at, "to/deep/big"))];
  assert.deepEqual([now.mode & 0o777, Math.floor(now.mtimeMs / 1000)], [0o640, Math.floor(before.mtimeMs / 1000)]);
  copy(join(at, "from"), join(at, "to"));
  assert.deepEqual(readdirSync(join(at, "to")).sort(), ["deep", "empty", "link"], "a second copy replaces the first");
});

test("a file has its name only when it is complete; one that is not complete leaves nothing", () => {
  const at = place();
  writeFileSync(join(at, "file"), "before");
  const target = new TreeTarget(join(at, "file"), UID, true);
  target.add(fileEntry("", 4));
  target.data(Buffer.from("ne"));
  assert.equal(readFileSync(join(at, "file"), "utf8"), "before");
  assert.throws(() => target.end(), /less data/);
  target.abort();
  assert.deepEqual([readdirSync(at), readFileSync(join(at, "file"), "utf8")], [["file"], "before"]);
});

test("an existing file keeps its mode, and a link of the user itself leads to the file that is written", () => {
  const at = place();
  writeFileSync(join(at, "real"), "before");
  chmodSync(join(at, "real"), 0o644);
  symlinkSync("real", join(at, "link"));
  writeFileSync(join(at, "source"), "new");
  copy(join(at, "source"), join(at, "link"));
  assert.equal(readFileSync(join(at, "real"), "utf8"), "new");
  assert.equal(statSync(join(at, "real")).mode & 0o777, 0o644);
  assert.ok(lstatSync(join(at, "link")).isSymbolicLink());
});

test("a link of another user is not followed", () => {
  const at = place();
  writeFileSync(join(at, "precious"), "precious");
  symlinkSync("precious", join(at, "planted"));
  assert.throws(() => new TreeTarget(join(at, "planted"), UID + 1, true).add(fileEntry("", 1)), /planted is a link of another user/);
  assert.equal(readFileSync(join(at, "precious"), "utf8"), "precious");
});

test("a link that came with a tree leads no later file out of it", () => {
  const at = place();
  writeFileSync(join(at, "precious"), "precious");
  const link: Entry = { kind: "link", path: "x", target: join(at, "precious") };
  const within = new TreeTarget(join(at, "tree"), UID, true);
  for (const entry of [DIR, link, fileEntry("x", 0)]) within.add(entry);
  within.end();
  assert.ok(lstatSync(join(at, "tree/x")).isFile(), "a later entry of the same tree takes the place of the link");
  const planting = new TreeTarget(join(at, "second"), UID, true);
  for (const entry of [DIR, link]) planting.add(entry);
  planting.end();
  const later = new TreeTarget(join(at, "second/x"), UID, false);
  later.add(fileEntry("", 0));
  later.end();
  assert.ok(lstatSync(join(at, "second/x")).isFile(), "so does a later file in the directory that the tree has made");
  assert.equal(readFileSync(join(at, "precious"), "utf8"), "precious");
});

test("a file for which there is no room is refused before anything is written", () => {
  const at = place();
  const target = new TreeTarget(join(at, "huge"), UID, true);
  assert.throws(() => target.add(fileEntry("", Number.MAX_SAFE_INTEGER)), /ENOSPC/);
  assert.deepEqual(readdirSync(at), []);
});

test("no entry lies outside of its tree or beyond a link in it, and no file becomes longer than stated", () => {
  const at = place();
  const outside = place();
  const wrong: readonly (readonly [what: string, entries: readonly Entry[]])[] = [
    ["a file in a directory that was not made", [DIR, fileEntry("gone/x", 1)]],
    ["a file beyond a link", [DIR, { kind: "link", path: "out", target: outside }, fileEntry("out/x", 1)]],
    ["a directory in the place of a link", [DIR, { kind: "link", path: "out", target: outside }, { ...DIR, path: "out" }]],
    ["no top", [fileEntry("x", 1)]],
    ["two tops", [fileEntry("", 0), fileEntry("", 0)]],
    ["a link at the top", [{ kind: "link", path: "", target: outside }]],
  ];
  for (const [what, entries] of wrong) {
    const target = new TreeTarget(join(at, what), UID, true);
    assert.throws(
      () => {
        for (const entry of entries) target.add(entry);
      },
      Error,
      `${what} is refused`,
    );
    target.abort();
  }
  assert.deepEqual(readdirSync(outside), []);
  const target = new TreeTarget(join(at, "file"), UID, true);
  target.add(fileEntry("", 2));
  assert.throws(() => target.data(Buffer.from("abc")), /more data/);
  target.abort();
  assert.equal(existsSync(join(at, "file")), false);
  assert.throws(() => new TreeTarget(join(at, "nothing"), UID, true).end(), /without contents/);
});

test("no device and no FIFO is read or written", () => {
  const at = place();
  assert.throws(() => [...treeFrames("/dev/null")], /is not a file/);
  assert.throws(() => new TreeTarget("/dev/null", UID, true).add(fileEntry("", 0)), /is not a file/);
  mkdirSync(join(at, "directory"));
  assert.throws(() => new TreeTarget(join(at, "directory"), UID, true).add(fileEntry("", 0)), /is a directory/);
});

// Other releases of the programs, for tests of upgrades: copies of this checkout with some changes, built.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../shared.ts";

/** A change of a source: its path, the text that is replaced everywhere in it, and the new text. */
export type Change = readonly [path: string, from: RegExp, to: string];

/** What a program needs that is built and installed from a checkout. */
const PARTS = [
  "src",
  "native",
  "scripts",
  "bin",
  "etc",
  "docs",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "README.md",
  "LICENSE",
];
const BUILD_MS_MAX = 600_000;

/** Makes and builds a release with that version in a new directory. Every change must change something. */
export function makeRelease(dir: string, version: string, changes: readonly Change[]): string {
  mkdirSync(dir);
  for (const part of PARTS)
    cpSync(join(ROOT, part), join(dir, part), { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
  symlinkSync(join(ROOT, "node_modules"), join(dir, "node_modules"));
  const of_version: Change = ["src/support/version.ts", /PARTITA_VERSION = "[^"]*"/g, `PARTITA_VERSION = "${version}"`];
  for (const [path, from, to] of [of_version, ...changes]) {
    const before = readFileSync(join(dir, path), "utf8");
    const after = before.replace(from, to);
    assert.notEqual(after, before, `${path}: nothing to change`);
    writeFileSync(join(dir, path), after);
  }
  const built = spawnSync(process.execPath, [join(dir, "scripts/run.mjs"), "build"], { cwd: dir, encoding: "utf8", timeout: BUILD_MS_MAX });
  assert.equal(built.status, 0, `${built.stdout}${built.stderr}`);
  return dir;
}

const SPOKEN = /SPOKEN: Versions = Object\.freeze\(\{ oldest: \d+, newest: \d+ \}\)/g;

/** Speaks these versions of the protocol. */
export const speaks = (oldest: number, newest: number): Change => [
  "src/protocol/wire/versions.ts",
  SPOKEN,
  `SPOKEN: Versions = Object.freeze({ oldest: ${oldest}, newest: ${newest} })`,
];

/** As programs of version 1 of the protocol are: they say no versions, and daemons refuse members that they do not know. */
export const OF_VERSION_1: readonly Change[] = [
  ["src/protocol/wire/versions.ts", /if \(is_said \|\| !may_say\) return text;/g, "if (is_said !== null) return text;"],
  ["src/protocol/wire/versions.ts", /if \(is_heard \|\| frame\.type === "refused"\) return null;/g, "return null;"],
  ["src/protocol/schema-link.ts", /\bz\.object\(/g, "z.strictObject("],
  ["src/protocol/schema-join.ts", /\bz\.object\(/g, "z.strictObject("],
];

/** Sends a member that no other release knows with every message of a daemon. */
export const SAYS_MORE: Change = [
  "src/protocol/wire/frame.ts",
  /JSON\.stringify\(data\)\}\}\\f`/g,
  'JSON.stringify(typeof data === "object" && data !== null && !Array.isArray(data) ? { ...data, later: { at: 1 } } : data)}}\\f`',
];

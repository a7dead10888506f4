// Which directories left by jobs count as large: a second agent removes them, so that no other job of the host waits.

import assert from "node:assert/strict";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { finishJob, isBulky } from "#mom/agent/file-work.ts";
import { actAs } from "#mom/host/posix.ts";
import type { FilePlan } from "#mom/job/agent-link.ts";
import { filePlan } from "#mom/job/plan.ts";
import { CONFIG, job, OWNER } from "../world.ts";

const isRoot = process.geteuid?.() === 0;
/** Root may read everything, so the tests run as an ordinary user to see what owners see. */
const NOBODY = isRoot ? { uid: 65534, gid: 65534, groups: [] } : null;

function files(directory: string, count: number): void {
  mkdirSync(directory, { recursive: true });
  for (let at = 0; at < count; at++) writeFileSync(join(directory, String(at)), "");
}

type Case = { readonly what: string; readonly big: boolean; make(path: string, elsewhere: string): void };
const CASES: readonly Case[] = [
  { what: "nothing", big: false, make: () => undefined },
  { what: "an empty directory", big: false, make: (path) => mkdirSync(path) },
  { what: "some files in directories", big: false, make: (path) => files(join(path, "a/b/c"), 20) },
  { what: "many files at once", big: true, make: (path) => files(path, 2100) },
  { what: "many files in all", big: true, make: (path) => [1, 2, 3].forEach((name) => files(join(path, `${name}/d`), 700)) },
  {
    what: "a link to many files",
    big: false,
    make(path, elsewhere) {
      files(elsewhere, 2100);
      mkdirSync(join(path, "d"), { recursive: true });
      symlinkSync(elsewhere, join(path, "link"));
    },
  },
  {
    what: "a directory that its owner made unreadable",
    big: true,
    make(path) {
      mkdirSync(join(path, "closed"), { recursive: true });
      if (NOBODY !== null) chownSync(path, NOBODY.uid, NOBODY.gid);
      chmodSync(join(path, "closed"), 0);
    },
  },
];

for (const { what, big, make } of CASES)
  test(`a job that leaves ${what} is ${big ? "" : "not "}cleared away by an agent of its own`, () => {
    const dir = mkdtempSync(join(tmpdir(), "tree-removal-"));
    try {
      chmodSync(dir, 0o755);
      const path = join(dir, "left");
      make(path, join(dir, "elsewhere"));
      const plan: FilePlan = { ...filePlan(job(), OWNER, CONFIG.facts), owner: NOBODY, tmpdir: join(dir, "none"), sandbox: null };
      assert.equal(isBulky({ plan: { ...plan, tmpdir: path }, success: true, output: "drop" }), big, "TMPDIR");
      assert.equal(isBulky({ plan: { ...plan, sandbox: path }, success: true, output: "drop" }), big, "sandbox");
      actAs(null);
      finishJob({ plan: { ...plan, owner: null, tmpdir: path }, success: true, output: "drop" });
      assert.equal(existsSync(path), false);
    } finally {
      actAs(null);
      rmSync(dir, { recursive: true, force: true });
    }
  });

// The worker that writes and reads files for another host, with a host that the test plays.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { encodeFileFrame, type FileFrame, fileFrameDecoder } from "#protocol/files/link.ts";

const WORKER = fileURLToPath(new URL("../../../src/mom/files/file-worker-main.ts", import.meta.url));

/** Calls a worker with these frames, and returns its answers in words. */
function work(home: string, frames: readonly FileFrame[]): readonly string[] {
  const { stdout } = spawnSync(process.execPath, ["--no-warnings", WORKER], {
    env: { HOME: home },
    input: Buffer.concat(frames.map(encodeFileFrame)),
  });
  return fileFrameDecoder()
    .push(stdout)
    .map((frame) => (frame.kind === "failed" ? frame.text : frame.kind));
}

const put = (path: string, name: string): readonly FileFrame[] => [
  { kind: "put", path, name },
  { kind: "file", path: "", size: 1, mode: 0o600, mtime_s: 0 },
  { kind: "data", bytes: Buffer.from("x") },
  { kind: "end" },
];

test("in a directory, a host can write only names that the files of the job have", () => {
  const home = mkdtempSync(join(tmpdir(), "partita-worker-"));
  mkdirSync(join(home, "out"));
  const grant: FileFrame = { kind: "grant", put: ["out", "new/", "file"], names: [["7\\[1].head.OU", "r*"], ["a"], ["b"]], get: [] };
  try {
    const names = ["7[1].head.OU", "71.head.OU", "r1", ".bashrc", "R"];
    const answers = work(home, [grant, ...names.flatMap((name) => put("out", name)), ...put("new/", "x"), ...put("file", "anything")]);
    const no = (name: string, path: string): string => `the job has no file ${name} for ${path}`;
    assert.deepEqual(answers, [
      "ready",
      "done",
      no("71.head.OU", "out"),
      "done",
      no(".bashrc", "out"),
      no("R", "out"),
      no("x", "new/"),
      "done",
    ]);
    assert.deepEqual(readdirSync(join(home, "out")), ["7[1].head.OU", "r1"]);
    assert.deepEqual(readdirSync(home), ["file", "out"]);
  } finally {
    rmSync(home, { recursive: true });
  }
});

test("a grant of a server of an earlier release says no names, and every name is taken", () => {
  const home = mkdtempSync(join(tmpdir(), "partita-worker-"));
  mkdirSync(join(home, "out"));
  try {
    assert.deepEqual(work(home, [{ kind: "grant", put: ["out"], get: [] }, ...put("out", "x")]), ["ready", "done"]);
  } finally {
    rmSync(home, { recursive: true });
  }
});

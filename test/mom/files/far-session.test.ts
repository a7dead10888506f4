// The side of the execution host in a copy, with another host that the test plays.

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { FarSession } from "#mom/files/far-session.ts";
import { encodeFileFrame, type FileFrame, fileFrameDecoder } from "#protocol/files/link.ts";
import { listenStreams } from "#protocol/files/tls-streams.ts";
import { ALPN } from "#protocol/wire/alpn.ts";
import { LIMITS } from "#protocol/wire/limits.ts";
import { authority, freePort, member } from "../../protocol/wire/tls-bed.ts";

const CA = authority();

/** Copies from a host that answers every request for files with one file of that name. */
async function getFrom(name: string, path: string, local: string): Promise<void> {
  const port = await freePort();
  const answer: readonly FileFrame[] = [
    { kind: "name", name },
    { kind: "file", path: "", size: 2, mode: 0o600, mtime_s: 1 },
    { kind: "data", bytes: Buffer.from("ok") },
    { kind: "end" },
  ];
  const server = await listenStreams({
    port,
    protocol: ALPN.files,
    credentials: member(CA, "store"),
    fault: () => null,
    say: () => undefined,
    limits: LIMITS,
    take(socket) {
      const decoder = fileFrameDecoder();
      socket.on("data", (piece: Buffer) => {
        for (const { kind } of decoder.push(piece)) {
          const frames: readonly FileFrame[] = kind === "open" ? [{ kind: "ready" }] : kind === "get" ? answer : [];
          for (const frame of frames) socket.write(encodeFileFrame(frame));
        }
      });
    },
  });
  const place = { host: "127.0.0.1", port, name: "store", server: "head", revoked: new Set<string>() };
  const session = await FarSession.open(place, member(CA, "n1"), { job: "1.head", run_count: 1, owner: null });
  try {
    await session.get(path, local, () => undefined);
  } finally {
    session.close();
    server.close();
  }
}

test("another host gives files of the names that were asked for, and no others", async () => {
  const local = mkdtempSync(join(tmpdir(), "partita-far-"));
  try {
    await assert.rejects(getFrom(".bashrc", "data/in.dat", local), /a file \.bashrc, which was not asked for/);
    await assert.rejects(getFrom("in.txt", "data/*.dat", local), /a file in\.txt, which was not asked for/);
    assert.deepEqual(readdirSync(local), []);
    await getFrom("in.dat", "data/in.dat", local);
    await getFrom("more.dat", "data/*.dat", local);
    assert.deepEqual(readdirSync(local).sort(), ["in.dat", "more.dat"]);
    assert.equal(readFileSync(join(local, "more.dat"), "utf8"), "ok");
  } finally {
    rmSync(local, { recursive: true });
  }
});

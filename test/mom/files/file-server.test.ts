// The server of files over TLS on the loopback interface, with hosts that the test plays.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { writeCredentials } from "#identity/files/credentials.ts";
import { FileServer } from "#mom/files/file-server.ts";
import { encodeFileFrame, fileFrameDecoder } from "#protocol/files/link.ts";
import { ALPN } from "#protocol/wire/alpn.ts";
import { authority, freePort, inTlsWorld, member } from "../../protocol/wire/tls-bed.ts";

const CA = authority();

/** A host that never closes its end of the connection. */
function dialForGood(port: number): TLSSocket {
  const { key, certificate } = member(CA, "n2");
  const raw = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  const options = { key, cert: certificate, ca: [CA.certificate], ALPNProtocols: [ALPN.files], checkServerIdentity: () => undefined };
  const socket = connectTls({ socket: raw, ...options });
  socket.allowHalfOpen = true;
  return socket;
}

test("a host that keeps its end of a refused connection open does not hold it", async () => {
  const home = mkdtempSync(join(tmpdir(), "partita-files-"));
  writeCredentials(home, member(CA, "n1"));
  const port = await freePort();
  const limits = { files_connections_max: 1, files_host_connections_max: 0, files_refused_ms: 50 };
  const asking = { home, places: [], server: "head", own: true };
  const server = new FileServer({ asking, port, mode: "user", say: () => undefined, limits });
  try {
    await server.start();
    const socket = dialForGood(port);
    const text = new Promise<string>((resolve) => {
      const decoder = fileFrameDecoder();
      socket.on("data", (piece: Buffer) => {
        for (const frame of decoder.push(piece)) if (frame.kind === "failed") resolve(frame.text);
      });
    });
    assert.equal(await text, "too many files are being copied");
    // Data to an end that is only half closed would be taken for ever.
    const writes = setInterval(() => socket.write("x"), 20);
    await new Promise<void>((resolve) => {
      socket.on("error", () => resolve());
      socket.on("close", () => resolve());
    });
    clearInterval(writes);
    socket.destroy();
  } finally {
    server.close();
    rmSync(home, { recursive: true });
  }
});

test("an open connection does not outlive its run", async () => {
  const home = mkdtempSync(join(tmpdir(), "partita-files-"));
  writeCredentials(home, member(CA, "n1"));
  let is_over = false;
  const said: string[] = [];
  const granted = { type: "files-grant", data: { user: userInfo().username, group: "", put: [], get: [] } };
  const refused = { type: "join-refused", data: { text: "job 1.head does not run on n2" } };
  const answer = ({ type }: { readonly type: string }) =>
    Promise.resolve(type === "files-offer" ? { type: "files-heard", data: {} } : is_over ? refused : granted);
  const work = async (at: { readonly port: number }): Promise<void> => {
    const port = await freePort();
    const asking = { home, places: [{ host: "127.0.0.1", port: at.port }], server: "head", own: true };
    const limits = { files_ask_ms: 0, files_look_ms: 20 };
    const server = new FileServer({ asking, port, mode: "user", say: (text) => void said.push(text), limits });
    try {
      await server.start();
      const socket = dialForGood(port);
      socket.on("error", () => undefined);
      socket.write(encodeFileFrame({ kind: "open", job: "1.head", run_count: 1 }));
      const decoder = fileFrameDecoder();
      const closed = new Promise<void>((resolve) => socket.on("end", () => resolve()).on("close", () => resolve()));
      await new Promise<void>((resolve) => {
        socket.on("data", (piece: Buffer) => {
          for (const { kind } of decoder.push(piece)) if (kind === "ready") resolve();
        });
      });
      is_over = true;
      await closed;
      socket.destroy();
    } finally {
      server.close();
    }
  };
  await inTlsWorld(CA, work, { questions: { types: ["files-offer", "files-grant"], answer } });
  rmSync(home, { recursive: true });
  assert.deepEqual(said, ["files of other hosts: a connection of n2 is ended: job 1.head does not run on n2"]);
});

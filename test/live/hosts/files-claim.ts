// Claims files of a host in the name of a run of a job, with the certificate of this host: what a hostile root of a host could do. Prints what became of it.
//
//   files-claim.ts PBS_HOME ADDRESS PORT NAME JOB RUN_COUNT put PATH SIZE | get PATH

import { writeFileSync } from "node:fs";
import { readCredentials } from "#identity/files/credentials.ts";
import { FarSession } from "#mom/files/far-session.ts";
import { encodeFileFrame } from "#protocol/files/link.ts";
import { ALPN } from "#protocol/wire/alpn.ts";
import { LIMITS } from "#protocol/wire/limits.ts";
import { dialTls } from "#protocol/wire/tls-dialer.ts";

const [home = "", host = "", port = "", name = "", job = "", run_count = "", verb = "", path = "", size = "0"] = process.argv.slice(2);
const credentials = readCredentials(home);
if (credentials === null) throw new Error(`${home} holds no certificate`);
const own = { job, run_count: Number(run_count), owner: null };

/** Sends an entry of that size, and data without end. Prints the answer. */
async function endless(): Promise<void> {
  const socket = await dialTls({ host, port: Number(port), protocol: ALPN.files, fault: () => null }, credentials ?? never(), LIMITS);
  socket.on("error", () => undefined);
  let heard = "";
  let sent = 0;
  socket.on("data", (bytes) => {
    heard += bytes.toString("latin1");
  });
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.write(encodeFileFrame({ kind: "open", job, run_count: own.run_count }));
  socket.write(encodeFileFrame({ kind: "put", path, name: "x" }));
  socket.write(encodeFileFrame({ kind: "file", path: "", size: Number(size), mode: 0o600, mtime_s: 0 }));
  const piece = encodeFileFrame({ kind: "data", bytes: Buffer.alloc(64 * 1024) });
  const more = (): void => {
    while (!socket.destroyed && socket.write(piece)) sent += piece.length;
  };
  socket.on("drain", more);
  more();
  await closed;
  console.log(`ended after ${sent > 0 ? "some" : "no"} data: ${heard.replace(/[^ -~]+/g, " ")}`);
}

function never(): never {
  throw new Error("no certificate");
}

try {
  if (verb === "endless") await endless();
  else {
    const session = await FarSession.open({ host, port: Number(port), name, server: "", revoked: new Set() }, credentials, own);
    const file = `/tmp/partita-claim-${process.pid}`;
    if (verb === "get") await session.get(path, file, () => undefined);
    else {
      writeFileSync(file, "claimed\n");
      await session.put(file, path, "claimed");
    }
    session.close();
    console.log("done");
  }
} catch (error) {
  console.log(`refused: ${(error as Error).message}`);
}

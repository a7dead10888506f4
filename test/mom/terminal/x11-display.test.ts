// The port of a job's display, as any process on the host sees it.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ownerIn, tcpOwner } from "#mom/terminal/tcp-owner.ts";
import { openDisplay } from "#mom/terminal/x11-display.ts";
import type { TerminalFrame } from "#protocol/terminal/link.ts";
import { X11_PORT } from "#protocol/terminal/x11.ts";

test("whose a connection is", async () => {
  const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:177A 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1
   1: 0100007F:177A 0100007F:C350 01 00000000:00000000 00:00000000 00000000     7        0 2
   2: 0100007F:C350 0100007F:177A 01 00000000:00000000 00:00000000 00000000  1001        0 3
`;
  assert.deepEqual([ownerIn(table, 0xc350, 0x177a), ownerIn(table, 0x177a, 0xc350), ownerIn(table, 1, 2)], [1001, 7, null]);
  const heard = Promise.withResolvers<Socket>();
  const server = createServer((socket) => heard.resolve(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { readonly port: number };
  const client = connect(port, "127.0.0.1");
  const socket = await heard.promise;
  assert.equal(tcpOwner(socket), process.getuid?.());
  client.destroy();
  socket.destroy();
  server.close();
  assert.equal(tcpOwner({}), null);
});

test("clients that show nothing keep no others out; a cookie file left by an earlier relay is replaced", async () => {
  const directory = mkdtempSync(join(tmpdir(), "display-"));
  writeFileSync(`${directory}/xauthority`, "old");
  const sent: TerminalFrame[] = [];
  let watch = (): void => undefined;
  const channel = {
    send: (frame: TerminalFrame): boolean => {
      sent.push(frame);
      watch();
      return true;
    },
    pause: () => undefined,
    resume: () => undefined,
    finish: () => undefined,
    destroy: () => undefined,
  };
  const until = (reached: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      watch = () => reached() && resolve();
      watch();
    });
  const count = (kind: TerminalFrame["kind"]): number => sent.filter((frame) => frame.kind === kind).length;
  const display = await openDisplay(channel, { cookie: "ab".repeat(16), screen: 0 }, directory);
  const port = X11_PORT + Number(/:(\d+)\./.exec(display.name)?.[1]);
  const clients: Socket[] = [];
  const come = async (): Promise<void> => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => undefined);
    clients.push(socket);
    const before = count("x-open");
    await until(() => count("x-open") > before);
  };
  // The display answers the first connection: it stays, whatever others connect.
  await come();
  display.streams.take({ kind: "x-data", id: 1, bytes: Buffer.from("welcome") });
  for (let number = 0; number < 40; number++) await come();
  await until(() => count("x-close") >= 8);
  const closed = sent.flatMap((frame) => (frame.kind === "x-close" ? [frame.id] : []));
  assert.deepEqual(
    closed.sort((a, b) => a - b),
    [2, 3, 4, 5, 6, 7, 8, 9],
  );
  for (const socket of clients) socket.destroy();
  await until(() => count("x-close") === 41);
  display.close();
  rmSync(directory, { recursive: true });
});

// `node asker.ts SOCKET UID`: a user's commands, one after the other: connects to the server's socket as that user, asks, disconnects. Prints how long each took, in ms.

import { connectSocket } from "#protocol/client.ts";

const [path = "", uid = ""] = process.argv.slice(2);
const PAUSE_MS = 100;

// One connection first, so that all code is loaded before the rights of root go.
(await connectSocket(path)).close();
process.setgroups?.([]);
process.setgid?.(Number(uid));
process.setuid?.(Number(uid));
for (;;) {
  const begin_ms = performance.now();
  const link = await connectSocket(path);
  const reply = await link.request({ kind: "status", object: "server", ids: [] });
  link.close();
  process.stdout.write(`${reply.ok ? (performance.now() - begin_ms).toFixed(1) : "refused"}\n`);
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
}

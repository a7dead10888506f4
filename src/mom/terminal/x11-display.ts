// The display of an interactive job (qsub -X), kept by its relay: a port on the loopback interface that X clients of the job take for an X server, and the
// file with the cookie that they must show. Their data goes to qsub, which checks the cookie and knows the real display.
//
// D1. Every user of the host can reach the port. Clients that the display has not answered yet are bounded in number and time, and do not keep others out
//     (src/protocol/wire/waiting-room.ts).

import { closeSync, constants, openSync, rmSync, writeSync } from "node:fs";
import { createServer, type Server } from "node:net";
import type { TerminalChannel } from "#protocol/terminal/channel.ts";
import { authorityFile, FIRST_DISPLAY, X11_PORT } from "#protocol/terminal/x11.ts";
import { X11_CLIENTS_MAX, type X11Streams, x11Streams } from "#protocol/terminal/x11-streams.ts";
import { waitingRoom } from "#protocol/wire/waiting-room.ts";
import { tcpOwner } from "./tcp-owner.ts";

const DISPLAYS_MAX = 1000;
/** Number of clients that the display has not answered yet. */
const UNANSWERED_MAX = 32;
/** Time within which they must have shown their cookie. */
const UNANSWERED_MS_MAX = 30_000;

export type JobDisplay = {
  /** DISPLAY */
  readonly name: string;
  /** XAUTHORITY */
  readonly authority: string;
  readonly streams: Pick<X11Streams, "take" | "drained">;
  /** no client comes any more */
  close(): void;
};

/** directory: of the job's own. Throws when no port is free or the file cannot be made. */
export async function openDisplay(
  channel: TerminalChannel,
  { cookie, screen }: { readonly cookie: string; readonly screen: number },
  directory: string,
): Promise<JobDisplay> {
  const streams = x11Streams(channel);
  let next = 1;
  const timers = new Map<number, NodeJS.Timeout>();
  const unanswered = waitingRoom<number>({ max: UNANSWERED_MAX, own: [0, process.getuid?.()], turnOut: (id) => settled(id, true) });
  const settled = (id: number, out: boolean): void => {
    clearTimeout(timers.get(id));
    timers.delete(id);
    unanswered.leave(id);
    if (out) streams.drop(id);
  };
  const server = createServer((socket) => {
    if (streams.count >= X11_CLIENTS_MAX) return void socket.destroy();
    const id = next++;
    channel.send({ kind: "x-open", id });
    streams.add(id, socket);
    timers.set(id, setTimeout(settled, UNANSWERED_MS_MAX, id, true));
    socket.on("close", () => settled(id, false));
    unanswered.enter(id, tcpOwner(socket));
  });
  const number = await listenOnDisplay(server);
  const authority = `${directory}/xauthority`;
  // Left by an earlier relay whose job was not started.
  rmSync(authority, { force: true });
  const fd = openSync(authority, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
  try {
    writeSync(fd, authorityFile(number, Buffer.from(cookie, "hex")));
  } finally {
    closeSync(fd);
  }
  return {
    name: `localhost:${number}.${screen}`,
    authority,
    streams: {
      take(frame) {
        if (frame.kind === "x-data") settled(frame.id, false);
        streams.take(frame);
      },
      drained: streams.drained,
    },
    close: () => void server.close(),
  };
}

async function listenOnDisplay(server: Server): Promise<number> {
  for (let number = FIRST_DISPLAY; number < FIRST_DISPLAY + DISPLAYS_MAX; number++) {
    const taken = await new Promise<NodeJS.ErrnoException | null>((resolve) => {
      server.once("error", resolve);
      server.listen(X11_PORT + number, "127.0.0.1", () => {
        server.off("error", resolve);
        resolve(null);
      });
    });
    if (taken === null) return number;
    if (taken.code !== "EADDRINUSE") throw taken;
  }
  throw new Error(`no display below ${FIRST_DISPLAY + DISPLAYS_MAX} is free`);
}

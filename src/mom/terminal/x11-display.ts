// The display of an interactive job (qsub -X), which its relay provides. X clients of the job connect to a port on the loopback interface as if it were an X
// server, and show it a cookie that they read from a file. The relay sends their data to qsub, which checks the cookie and knows the real display.
//
// D1. Every user of the host can connect to the port. So the number of clients without an answer from the display, and the time they may wait, are limited, and
//     such clients do not keep others out (src/protocol/bounds/waiting-room.ts).

import { closeSync, constants, openSync, rmSync, writeSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { waitingRoom } from "#protocol/bounds/waiting-room.ts";
import type { TerminalChannel } from "#protocol/terminal/channel.ts";
import { authorityFile, FIRST_DISPLAY, X11_PORT } from "#protocol/terminal/x11.ts";
import { X11_CLIENTS_MAX, type X11Streams, x11Streams } from "#protocol/terminal/x11-streams.ts";
import { tcpOwner } from "./tcp-owner.ts";

const DISPLAYS_MAX = 1000;
/** Largest number of clients that the display has not answered yet. */
const UNANSWERED_MAX = 32;
/** The time in which a client without an answer from the display must have shown its cookie. */
const UNANSWERED_MS_MAX = 30_000;

export type JobDisplay = {
  /** value of DISPLAY */
  readonly name: string;
  /** value of XAUTHORITY */
  readonly authority: string;
  readonly streams: Pick<X11Streams, "take" | "drained">;
  /** accepts no more clients */
  close(): void;
};

/** Opens a display. directory: a directory of the job, for the file with the cookie. Throws if no port is free or the file cannot be made. */
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
  // This file may have been left by an earlier relay whose job was not started.
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

// Connections of X clients inside a terminal channel. The relay passes on data between the clients and the channel, qsub
// between the channel and the display.
//
// S1. A slow receiver stops its senders: a display that takes no data stops the channel, and a full channel stops the clients.
//     No data accumulates.

import type { Socket } from "node:net";
import type { TerminalChannel } from "./channel.ts";
import type { TerminalFrame } from "./link.ts";

/** Largest number of clients at a time. */
export const X11_CLIENTS_MAX = 256;

export type X11Streams = {
  add(id: number, socket: Socket): void;
  /** Handles an x-data or x-close frame. */
  take(frame: TerminalFrame): void;
  /** Called when the channel can take more data. */
  drained(): void;
  /** disconnects the client */
  drop(id: number): void;
  readonly count: number;
  close(): void;
};

export function x11Streams(channel: Pick<TerminalChannel, "send" | "pause" | "resume">): X11Streams {
  const sockets = new Map<number, Socket>();
  const waiting = new Set<Socket>();
  const goOn = (socket: Socket): void => {
    if (waiting.delete(socket) && waiting.size === 0) channel.resume();
  };
  return {
    add(id, socket) {
      sockets.set(id, socket);
      socket.setNoDelay(true);
      socket.on("data", (bytes) => {
        if (!channel.send({ kind: "x-data", id, bytes })) for (const each of sockets.values()) each.pause();
      });
      socket.on("drain", () => goOn(socket));
      socket.on("error", () => undefined);
      socket.on("close", () => {
        goOn(socket);
        if (sockets.delete(id)) channel.send({ kind: "x-close", id });
      });
    },
    take(frame) {
      if (frame.kind !== "x-data" && frame.kind !== "x-close") return;
      const socket = sockets.get(frame.id);
      if (socket === undefined) return;
      if (frame.kind === "x-close") {
        sockets.delete(frame.id);
        socket.end();
      } else if (!socket.write(frame.bytes)) {
        waiting.add(socket);
        channel.pause();
      }
    },
    drained() {
      for (const socket of sockets.values()) socket.resume();
    },
    drop: (id) => void sockets.get(id)?.destroy(),
    get count() {
      return sockets.size;
    },
    close() {
      for (const socket of sockets.values()) socket.destroy();
      sockets.clear();
    },
  };
}

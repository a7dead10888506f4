// The sending half of a connection between daemons, or from the server to a client. Frames leave in order, a slow reader delays
// them, and a dead reader is given up.
//
// K1. Texts leave in the order of the calls of send() and sendFrames().
// K2. Everything sent in one turn of the event loop leaves in one system call. A reader that were woken for each frame would
//     process each one alone, with one
//     commit or cycle for each instead of one for all.
// K3. At most write_ahead_bytes wait in the socket and queue_chars_max in the queue. sendFrames takes frames from its source
//     only when there is room.

import type { Socket } from "node:net";
import { nth } from "#support/assert.ts";

export type OutboxLimits = { readonly write_ahead_bytes: number; readonly queue_chars_max: number; readonly stalled_reader_ms: number };

export type Outbox = {
  /** A whole frame's text. */
  send(text: string): void;
  /**
   * Sends frames made on demand. Resolves when the last frame was handed to the socket. Rejects if the connection ended before
   * or the source threw.
   */
  sendFrames(frames: Iterable<string>): Promise<void>;
  /** characters waiting beyond the socket's own buffer */
  readonly queued_chars: number;
  /** starts to watch the reader, and gives it up if it takes nothing from now on */
  watch(): void;
  /** ends the connection after everything has left */
  end(): void;
};

type Piece =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "source"; readonly frames: Iterator<string>; readonly done: () => void; readonly failed: (error: unknown) => void };

export type OutboxHooks = {
  readonly write: (text: string) => void;
  readonly limits: () => OutboxLimits;
  readonly giveUp: (why: string) => void;
  readonly onRoom: () => void;
};

/**
 * write: hands text to the socket. giveUp: the connection must end, with the reason. onRoom: nothing waits any more. limits are
 * read at each use, so that they may change.
 */
export function outbox(socket: Socket, hooks: OutboxHooks): Outbox {
  const { limits, giveUp, onRoom } = hooks;
  const queue: Piece[] = [];
  let head = 0;
  let queued_chars = 0;
  let ending = false;
  let stall: NodeJS.Timeout | null = null;
  let draining = false;

  let corked = false;
  /** K2. */
  const write = (text: string): void => {
    if (!corked) {
      corked = true;
      socket.cork();
      process.nextTick(() => {
        corked = false;
        socket.uncork();
      });
    }
    hooks.write(text);
  };

  const isFull = (): boolean => socket.writableLength >= limits().write_ahead_bytes;

  /** A reader that has taken nothing since the last check, while text waits for it, counts as gone. */
  const watch = (): void => {
    if (stall !== null || socket.writableLength === 0 || socket.destroyed) return;
    const before = progress(socket);
    stall = setTimeout(() => {
      stall = null;
      if (socket.writableLength > 0 && progress(socket) === before) giveUp("the reader takes nothing");
      else watch();
    }, limits().stalled_reader_ms).unref();
  };

  const dropAll = (): void => {
    if (stall !== null) clearTimeout(stall);
    for (; head < queue.length; head++) {
      const piece = nth(queue, head);
      if (piece.kind === "source") piece.failed(new Error("the connection has ended"));
    }
    queue.length = head = queued_chars = 0;
  };

  /** Writes a complete text, or the next frame of a source. Returns whether the piece is finished. */
  const step = (piece: Piece): boolean => {
    if (piece.kind === "text") {
      queued_chars -= piece.text.length;
      write(piece.text);
      return true;
    }
    try {
      const next = piece.frames.next();
      if (next.done === true) {
        piece.done();
        return true;
      }
      write(next.value);
      return false;
    } catch (error) {
      piece.failed(error);
      return true;
    }
  };

  const pump = (): void => {
    if (draining) return;
    draining = true;
    while (head < queue.length && !isFull() && !socket.destroyed) {
      if (step(nth(queue, head))) head++;
    }
    draining = false;
    if (head === queue.length) queue.length = head = 0;
    if (ending && queue.length === 0) socket.end();
    if (queue.length === 0) onRoom();
    watch();
  };

  socket.on("drain", pump);
  socket.once("close", dropAll);

  return {
    send(text) {
      if (socket.destroyed || ending) return;
      if (queue.length === 0 && !draining && !isFull()) {
        write(text);
        if (isFull()) watch();
        return;
      }
      queue.push({ kind: "text", text });
      queued_chars += text.length;
      if (queued_chars > limits().queue_chars_max) giveUp("the reader is too slow");
    },
    sendFrames(frames) {
      if (socket.destroyed || ending) return Promise.reject(new Error("the connection has ended"));
      return new Promise((done, failed) => {
        queue.push({ kind: "source", frames: frames[Symbol.iterator](), done, failed });
        pump();
      });
    },
    get queued_chars() {
      return queued_chars;
    },
    watch,
    end() {
      if (ending) return;
      ending = true;
      if (queue.length === 0) socket.end();
    },
  };
}

/**
 * A value that changes whenever the peer's kernel takes data: bytes handed over so far, bytes in Node's queue, and bytes that
 * libuv holds of the current write. While the first two are constant, no write has finished and none was added, so the third is
 * exact.
 */
function progress(socket: Socket): string {
  const handle = (socket as unknown as { readonly _handle?: { readonly writeQueueSize?: number } | null })._handle;
  return `${socket.bytesWritten} ${socket.writableLength} ${handle?.writeQueueSize ?? 0}`;
}

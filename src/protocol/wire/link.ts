// The sending half of a connection between daemons, or from the server to a client. Frames leave in order. A slow peer delays
// them, and the connection to a dead peer is ended.
//
// K1. Texts leave in the order of the calls of send() and sendFrames().
// K2. Everything sent in one turn of the event loop leaves in one system call. If the peer were woken for each frame, it would
//     process each frame alone, with one commit or cycle for each instead of one for all.
// K3. At most write_ahead_bytes wait in the socket and queue_chars_max in the queue. sendFrames takes frames from its source
//     only when there is room.

import type { Socket } from "node:net";
import { nth } from "#support/assert.ts";

export type OutboxLimits = { readonly write_ahead_bytes: number; readonly queue_chars_max: number; readonly stalled_reader_ms: number };

export type Outbox = {
  /** Sends the text of a whole frame. */
  send(text: string): void;
  /**
   * Sends frames that are made on demand. Resolves when the last frame has been handed to the socket. Rejects if the
   * connection ends before that, or if the source throws.
   */
  sendFrames(frames: Iterable<string>): Promise<void>;
  /** number of characters that wait in the queue, because the socket's own buffer is full */
  readonly queued_chars: number;
  /** Starts to watch the peer, and gives it up if it takes nothing from now on. */
  watch(): void;
  /** Ends the connection after everything has left. */
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
 * Creates the sending half of a connection. hooks: `write` hands text to the socket; `giveUp` is called with the reason when
 * the connection must end; `onRoom` is called when nothing waits any more. Limits are read at each use, so that they may
 * change.
 */
export function outbox(socket: Socket, hooks: OutboxHooks): Outbox {
  return new SocketOutbox(socket, hooks);
}

class SocketOutbox implements Outbox {
  readonly #socket: Socket;
  readonly #hooks: OutboxHooks;
  readonly #queue: Piece[] = [];
  /** index of the first entry of the queue that is not finished */
  #head = 0;
  #queued_chars = 0;
  #ending = false;
  #draining = false;
  #corked = false;
  #stall: NodeJS.Timeout | null = null;

  constructor(socket: Socket, hooks: OutboxHooks) {
    this.#socket = socket;
    this.#hooks = hooks;
    socket.on("drain", () => this.#pump());
    socket.once("close", () => this.#dropAll());
  }

  get queued_chars(): number {
    return this.#queued_chars;
  }

  send(text: string): void {
    if (this.#socket.destroyed || this.#ending) return;
    if (this.#queue.length === 0 && !this.#draining && !this.#isFull()) {
      this.#write(text);
      if (this.#isFull()) this.watch();
      return;
    }
    this.#queue.push({ kind: "text", text });
    this.#queued_chars += text.length;
    if (this.#queued_chars > this.#hooks.limits().queue_chars_max) this.#hooks.giveUp("the reader is too slow");
  }

  sendFrames(frames: Iterable<string>): Promise<void> {
    if (this.#socket.destroyed || this.#ending) return Promise.reject(new Error("the connection has ended"));
    return new Promise((done, failed) => {
      this.#queue.push({ kind: "source", frames: frames[Symbol.iterator](), done, failed });
      this.#pump();
    });
  }

  /** Watches the peer: it counts as gone if it has taken nothing since the last check although text waits for it. */
  watch(): void {
    const socket = this.#socket;
    if (this.#stall !== null || socket.writableLength === 0 || socket.destroyed) return;
    const before = progress(socket);
    this.#stall = setTimeout(() => {
      this.#stall = null;
      if (socket.writableLength > 0 && progress(socket) === before) this.#hooks.giveUp("the reader takes nothing");
      else this.watch();
    }, this.#hooks.limits().stalled_reader_ms).unref();
  }

  end(): void {
    if (this.#ending) return;
    this.#ending = true;
    if (this.#queue.length === 0) this.#socket.end();
  }

  #isFull(): boolean {
    return this.#socket.writableLength >= this.#hooks.limits().write_ahead_bytes;
  }

  /** Writes text to the socket, together with all other text of this turn of the event loop (K2). */
  #write(text: string): void {
    if (!this.#corked) {
      this.#corked = true;
      this.#socket.cork();
      process.nextTick(() => {
        this.#corked = false;
        this.#socket.uncork();
      });
    }
    this.#hooks.write(text);
  }

  #pump(): void {
    if (this.#draining) return;
    const queue = this.#queue;
    this.#draining = true;
    while (this.#head < queue.length && !this.#isFull() && !this.#socket.destroyed) {
      if (this.#step(nth(queue, this.#head))) this.#head++;
    }
    this.#draining = false;
    if (this.#head === queue.length) queue.length = this.#head = 0;
    if (this.#ending && queue.length === 0) this.#socket.end();
    if (queue.length === 0) this.#hooks.onRoom();
    this.watch();
  }

  /** Writes a complete text, or the next frame of a source. Returns whether this entry of the queue is finished. */
  #step(piece: Piece): boolean {
    if (piece.kind === "text") {
      this.#queued_chars -= piece.text.length;
      this.#write(piece.text);
      return true;
    }
    try {
      const next = piece.frames.next();
      if (next.done === true) {
        piece.done();
        return true;
      }
      this.#write(next.value);
      return false;
    } catch (error) {
      piece.failed(error);
      return true;
    }
  }

  #dropAll(): void {
    if (this.#stall !== null) clearTimeout(this.#stall);
    for (; this.#head < this.#queue.length; this.#head++) {
      const piece = nth(this.#queue, this.#head);
      if (piece.kind === "source") piece.failed(new Error("the connection has ended"));
    }
    this.#queue.length = this.#head = this.#queued_chars = 0;
  }
}

/**
 * Returns a value that changes whenever the kernel takes data. It has three parts: the bytes handed over so far, the bytes in
 * the queue of Node.js, and the bytes of the current write that libuv still holds. While the first two stay the same, no write
 * has finished and none was added, so the third part is exact.
 */
function progress(socket: Socket): string {
  const handle = (socket as unknown as { readonly _handle?: { readonly writeQueueSize?: number } | null })._handle;
  return `${socket.bytesWritten} ${socket.writableLength} ${handle?.writeQueueSize ?? 0}`;
}

// Frames on a stream: `{"type": T, "data": D}` as JSON, then a form feed (the frame of node-ipc). JSON escapes form feeds
// inside strings, so the delimiter cannot occur in a frame. Pure: text in, messages out.
//
// F1. The work is linear in the text received, however the text is cut into chunks.
// F2. A decoder stores at most as many characters as its limit. After an error it ignores everything.

import { nth } from "#support/assert.ts";

export const FRAME_END = "\f";

/** protocol: the versions that the sender speaks; only in the first frame of each end (versions.ts). */
export type Frame = { readonly type: string; readonly data: unknown; readonly protocol?: unknown };

export type FrameErrorReason = "too-long" | "not-json" | "not-a-frame" | "type-refused";
/** The error when the peer has violated the protocol. The connection must end. */
export class FrameError extends Error {
  override readonly name = "FrameError";
  readonly reason: FrameErrorReason;
  constructor(reason: FrameErrorReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Returns the text of a frame, with its final form feed. */
export function encodeFrame(type: string, data: unknown): string {
  return `{"type":${JSON.stringify(type)},"data":${data === undefined ? "{}" : JSON.stringify(data)}}\f`;
}

/** Returns a `part` frame of items that are already JSON texts. Items of a status reply are thus not encoded again. */
export function encodePartFrame(id: number, items: readonly string[]): string {
  return `{"type":"part","data":{"id":${id},"items":[${items.join(",")}]}}\f`;
}

/** Returns a frame whose data is one list of items that are already JSON texts. name: the name of the list. */
export function encodeListFrame(type: string, name: string, items: readonly string[]): string {
  return `{"type":${JSON.stringify(type)},"data":{${JSON.stringify(name)}:[${items.join(",")}]}}\f`;
}

/** Incremental decoder of one connection's frames. */
export type FrameDecoder = {
  /** Takes a chunk and calls receive for every frame it completes. Throws FrameError. */
  push(chunk: string, receive: (frame: Frame) => void): void;
  /** Takes a chunk. take() returns its frames. */
  add(chunk: string): void;
  /** whether take() would return a frame or throw */
  readonly ready: boolean;
  /** Returns the next complete frame and the length of its text, or null if no frame is complete. Throws FrameError. */
  take(): { readonly frame: Frame; readonly chars: number } | null;
  /** number of characters of the incomplete frame */
  readonly pending: number;
  /** number of characters of the complete frames that take() has not returned */
  readonly waiting: number;
  /** the limit for the length of a frame, applied to the next chunks (raised when a daemon is welcomed) */
  limit: number;
};

/** Creates a decoder. limit: the longest frame. allowed: the accepted frame types; absent: all. */
export function frameDecoder(limit: number, allowed?: ReadonlySet<string>): FrameDecoder {
  let parts: string[] = [];
  let pending = 0;
  let whole: string[] = [];
  let next = 0;
  let waiting = 0;
  let is_too_long = false;

  const add = (chunk: string): void => {
    if (is_too_long) return;
    let from = 0;
    for (let end = chunk.indexOf(FRAME_END); end >= 0; end = chunk.indexOf(FRAME_END, from)) {
      is_too_long = pending + end - from > decoder.limit;
      if (is_too_long) return;
      const text = chunk.slice(from, end);
      waiting += pending + text.length;
      if (parts.length === 0) whole.push(text);
      else {
        parts.push(text);
        whole.push(parts.join(""));
        parts = [];
        pending = 0;
      }
      from = end + 1;
    }
    if (from === chunk.length) return;
    pending += chunk.length - from;
    parts.push(from === 0 ? chunk : chunk.slice(from));
    is_too_long = pending > decoder.limit;
  };

  const take = (): { readonly frame: Frame; readonly chars: number } | null => {
    if (next === whole.length) {
      if (is_too_long) throw tooLong(decoder.limit);
      return null;
    }
    const text = nth(whole, next++);
    waiting -= text.length;
    if (next === whole.length) {
      whole = [];
      next = 0;
    }
    return { frame: decodeFrame(text, allowed), chars: text.length };
  };

  const decoder: FrameDecoder = {
    limit,
    add,
    take,
    push(chunk, receive) {
      add(chunk);
      for (let taken = take(); taken !== null; taken = take()) receive(taken.frame);
    },
    get ready() {
      return is_too_long || next < whole.length;
    },
    get pending() {
      return pending;
    },
    get waiting() {
      return waiting;
    },
  };
  return decoder;
}

/** Decodes the text of one frame, given without its final form feed. Throws FrameError. */
export function decodeFrame(text: string, allowed?: ReadonlySet<string>): Frame {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new FrameError("not-json", "a frame is not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value) || typeof (value as Frame).type !== "string") {
    throw new FrameError("not-a-frame", "a frame is not an object with a type");
  }
  const frame = value as Frame;
  if (allowed !== undefined && !allowed.has(frame.type)) {
    throw new FrameError("type-refused", `a frame of type ${JSON.stringify(frame.type.slice(0, 64))} is not taken here`);
  }
  return frame;
}

const tooLong = (limit: number): FrameError => new FrameError("too-long", `a frame is longer than ${limit} characters`);

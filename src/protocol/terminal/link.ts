// Messages between qsub and the terminal relay of an interactive job (`qsub -I`), over the channel of channel.ts. Pure.
//
//   qsub listens and gives the job a ticket · the relay on the execution host connects and sends hello · qsub answers with the
//   shape of its terminal · then data goes in both directions, window sizes go from qsub, and the relay sends an end after the
//   last output
//
// L1. A frame is a kind (1 byte), a length (4 bytes, big-endian) and that many bytes. All kinds other than data contain JSON.
// L2. A decoder stores at most one frame of the largest size. A peer that breaks the rules is disconnected.

import { nth } from "#support/assert.ts";

/**
 * The data with which the relay finds qsub and proves that it comes from the job. The ticket travels with the job and is never
 * shown.
 */
export type TerminalTicket = {
  /** name of qsub's abstract unix socket, without the leading zero byte */
  readonly socket: string;
  /** 32 random bytes in hexadecimal digits: the key of the channel */
  readonly secret: string;
  /** TCP port of qsub, for a relay on another host; absent: qsub can be reached on its own host only */
  readonly port?: number;
  /**
   * The address from which qsub has connected to the server. The server adds it, and no qsub sends it. Absent: qsub is on the server's host, which each mom
   * reaches as it reaches the server.
   */
  readonly address?: string;
};

export const TICKET_SOCKET = /^[\w.-]{1,90}$/;
export const TICKET_SECRET = /^[0-9a-f]{64}$/;
export const TICKET_ADDRESS = /^[\w.:%-]{1,255}$/;
export const PORT_MAX = 0xffff;

export type WindowSize = { readonly rows: number; readonly columns: number };

/** The properties of qsub's terminal that the terminal of the job takes over. */
export type TerminalShape = WindowSize & {
  /** the value of TERM */
  readonly term: string;
  /** character codes of the keys interrupt, quit, erase, kill, end of file, suspend */
  readonly controls: readonly number[];
  /** qsub -X: the cookie that X clients of the job must present, in hexadecimal digits, and the screen on which they appear */
  readonly x11?: { readonly cookie: string; readonly screen: number };
};

export type TerminalFrame =
  | { readonly kind: "data"; readonly bytes: Uint8Array }
  /** from the relay: the job to which this terminal belongs */
  | { readonly kind: "hello"; readonly job: string }
  | { readonly kind: "shape"; readonly shape: TerminalShape }
  | { readonly kind: "window"; readonly size: WindowSize }
  /** from the relay: the job has closed its terminal, and all output has been sent */
  | { readonly kind: "end" }
  /** x-open, from the relay: an X client connects. x-data: data between client and display. x-close: either side has ended */
  | { readonly kind: "x-open"; readonly id: number }
  | { readonly kind: "x-data"; readonly id: number; readonly bytes: Uint8Array }
  | { readonly kind: "x-close"; readonly id: number };

const KINDS = ["data", "hello", "shape", "window", "end", "x-open", "x-data", "x-close"] as const;
const HEADER_BYTES = 5;
/** Length of the X client's number, which precedes its data. */
const ID_BYTES = 4;
export const FRAME_BYTES_MAX = 64 * 1024;
const TERM_CHARS_MAX = 128;
const JOB_CHARS_MAX = 1024;
const CONTROLS = 6;

class TerminalFrameError extends Error {
  override readonly name = "TerminalFrameError";
}

/** Encodes a frame. Data of any length is split into as many frames as needed. */
export function encodeTerminalFrame(frame: TerminalFrame): Uint8Array {
  const kind = KINDS.indexOf(frame.kind);
  switch (frame.kind) {
    case "data":
      return inPieces(kind, Buffer.alloc(0), frame.bytes);
    case "x-data":
      return inPieces(kind, numbered(frame.id), frame.bytes);
    case "x-open":
    case "x-close":
      return withHeader(kind, numbered(frame.id));
    case "hello":
      return withHeader(kind, Buffer.from(JSON.stringify({ job: frame.job })));
    case "shape":
      return withHeader(kind, Buffer.from(JSON.stringify(frame.shape)));
    case "window":
      return withHeader(kind, Buffer.from(JSON.stringify(frame.size)));
    case "end":
      return withHeader(kind, new Uint8Array(0));
    default: {
      const unreachable: never = frame;
      throw new Error(`frame ${JSON.stringify(unreachable)}`);
    }
  }
}

function inPieces(kind: number, before: Uint8Array, bytes: Uint8Array): Uint8Array {
  const room = FRAME_BYTES_MAX - before.length;
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += room) pieces.push(withHeader(kind, Buffer.concat([before, bytes.subarray(at, at + room)])));
  return pieces.length === 1 ? nth(pieces, 0) : Buffer.concat(pieces);
}

function numbered(id: number): Buffer {
  const bytes = Buffer.alloc(ID_BYTES);
  bytes.writeUInt32BE(id, 0);
  return bytes;
}

function withHeader(kind: number, bytes: Uint8Array): Uint8Array {
  const frame = Buffer.alloc(HEADER_BYTES + bytes.length);
  frame.writeUInt8(kind, 0);
  frame.writeUInt32BE(bytes.length, 1);
  frame.set(bytes, HEADER_BYTES);
  return frame;
}

/** Decodes frames. push() takes a chunk of the stream and returns the frames that it completes. Throws TerminalFrameError. */
export function terminalFrameDecoder(): { push(chunk: Uint8Array): TerminalFrame[] } {
  let held: Buffer = Buffer.alloc(0);
  return {
    push(chunk) {
      held = held.length === 0 ? Buffer.from(chunk) : Buffer.concat([held, chunk]);
      const frames: TerminalFrame[] = [];
      while (held.length >= HEADER_BYTES) {
        const length = held.readUInt32BE(1);
        if (length > FRAME_BYTES_MAX) throw new TerminalFrameError(`a frame of ${length} bytes`);
        if (held.length < HEADER_BYTES + length) break;
        frames.push(decode(held.readUInt8(0), held.subarray(HEADER_BYTES, HEADER_BYTES + length)));
        held = held.subarray(HEADER_BYTES + length);
      }
      return frames;
    },
  };
}

function decode(number: number, bytes: Buffer): TerminalFrame {
  const kind = KINDS[number];
  switch (kind) {
    case "data":
      return { kind, bytes };
    case "end":
      return { kind };
    case "x-open":
    case "x-close":
    case "x-data": {
      if (bytes.length < ID_BYTES) throw new TerminalFrameError("an X client without a number");
      const id = bytes.readUInt32BE(0);
      return kind === "x-data" ? { kind, id, bytes: bytes.subarray(ID_BYTES) } : { kind, id };
    }
    case "hello": {
      const { job } = record(bytes);
      if (typeof job !== "string" || job.length > JOB_CHARS_MAX) throw new TerminalFrameError("a hello without a job");
      return { kind, job };
    }
    case "shape":
      return { kind, shape: shapeOf(record(bytes)) };
    case "window":
      return { kind, size: sizeOf(record(bytes)) };
    default:
      throw new TerminalFrameError(`a frame of kind ${number}`);
  }
}

type Fields = { readonly [name: string]: unknown };

function record(bytes: Buffer): Fields {
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8"));
    if (typeof value === "object" && value !== null) return value as Fields;
  } catch {
    // the error after the catch is thrown
  }
  throw new TerminalFrameError("a frame that is not JSON");
}

const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isInteger(value);
const isCell = (value: unknown): value is number => isNumber(value) && value >= 0 && value <= 0xffff;
const isByte = (value: unknown): value is number => isNumber(value) && value >= 0 && value <= 0xff;

function sizeOf({ rows, columns }: Fields): WindowSize {
  if (!isCell(rows) || !isCell(columns)) throw new TerminalFrameError("a window without a size");
  return { rows, columns };
}

function shapeOf(fields: Fields): TerminalShape {
  const { term, controls, x11 } = fields;
  if (typeof term !== "string" || !isTerm(term)) throw new TerminalFrameError("a terminal without a type");
  if (!Array.isArray(controls) || controls.length !== CONTROLS || !controls.every(isByte))
    throw new TerminalFrameError("a terminal without control characters");
  return { ...sizeOf(fields), term, controls, ...(x11 === undefined ? {} : { x11: x11Of(x11) }) };
}

function x11Of(value: unknown): NonNullable<TerminalShape["x11"]> {
  const { cookie, screen } = (value ?? {}) as Fields;
  if (typeof cookie !== "string" || !/^[0-9a-f]{32}$/.test(cookie) || !isByte(screen)) throw new TerminalFrameError("X11 without a cookie");
  return { cookie, screen };
}

/** Whether a text is a legal value of TERM: a name of the terminal database. */
export const isTerm = (text: string): boolean => text.length <= TERM_CHARS_MAX && /^[\w.+-]+$/.test(text);

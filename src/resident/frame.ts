// The frames between a launcher (native/conversation.c) and the resident: a length in four bytes (big-endian), a letter, and as
// many bytes as the length says.
//
//   launcher to resident
//     Q     the request (request.ts)
//     I     a piece of standard input; an empty piece is its end
//   resident to launcher
//     A     accepted: from now on the command may have effects
//     N     refused: nothing was done, and the launcher must run the command itself
//     O, E  a piece of standard output, of standard error
//     W     asks for one piece of standard input
//     X     the command has ended; one byte with its exit status
//
// F1. No frame is longer than the limit of its letter. The resident keeps at most one incomplete frame of a launcher, and the
//     data that arrived after it.

import { nth } from "#support/assert.ts";

export const HEADER_BYTES = 5;
/** largest piece of output or input in one frame (PIECE_BYTES of the launcher) */
export const PIECE_BYTES_MAX = 1 << 16;
/** largest request (REQUEST_BYTES_MAX of the launcher); a command with a larger request runs in its own process */
export const REQUEST_BYTES_MAX = 1 << 20;

/** The frames that a launcher may send, each with the largest number of bytes after its header. */
const LIMIT = { Q: REQUEST_BYTES_MAX, I: PIECE_BYTES_MAX } as const;
export type LauncherLetter = keyof typeof LIMIT;
export type LauncherFrame = { readonly letter: LauncherLetter; readonly payload: Buffer };
export type ResidentLetter = "A" | "N" | "O" | "E" | "W" | "X";

/** The error for a launcher that violates the frame format. */
export class FrameFault extends Error {
  override readonly name = "FrameFault";
}

/** Returns the header of a frame that is followed by this number of bytes. */
export function frameHead(letter: ResidentLetter, bytes: number): Buffer {
  const head = Buffer.allocUnsafe(HEADER_BYTES);
  head.writeUInt32BE(bytes, 0);
  head.write(letter, 4, "latin1");
  return head;
}

/** Returns a text as frames with pieces of at most PIECE_BYTES_MAX: headers and pieces in turn. */
export function outputFrames(letter: "O" | "E", text: string): Buffer[] {
  const bytes = Buffer.from(text);
  const frames: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += PIECE_BYTES_MAX) {
    const piece = bytes.subarray(at, at + PIECE_BYTES_MAX);
    frames.push(frameHead(letter, piece.length), piece);
  }
  return frames;
}

/**
 * Returns a function that takes bytes of a launcher as they arrive, and returns the frames that are complete. It throws FrameFault at the first header that is
 * invalid.
 */
export function frameReader(): (bytes: Buffer) => LauncherFrame[] {
  let pieces: Buffer[] = [];
  let held = 0;
  return (bytes) => {
    pieces.push(bytes);
    held += bytes.length;
    const frames: LauncherFrame[] = [];
    for (;;) {
      if (held < HEADER_BYTES) return frames;
      if (nth(pieces, 0).length < HEADER_BYTES) pieces = [Buffer.concat(pieces)];
      const first = nth(pieces, 0);
      const letter = String.fromCharCode(nth(first, 4));
      const length = first.readUInt32BE(0);
      if (!isLauncherLetter(letter)) throw new FrameFault(`a frame of kind ${JSON.stringify(letter)}`);
      if (length > LIMIT[letter]) throw new FrameFault(`a frame of ${length} bytes`);
      if (held < HEADER_BYTES + length) return frames;
      const all = pieces.length === 1 ? first : Buffer.concat(pieces);
      frames.push({ letter, payload: all.subarray(HEADER_BYTES, HEADER_BYTES + length) });
      const rest = all.subarray(HEADER_BYTES + length);
      pieces = rest.length === 0 ? [] : [rest];
      held = rest.length;
    }
  };
}

const isLauncherLetter = (letter: string): letter is LauncherLetter => letter in LIMIT && Object.hasOwn(LIMIT, letter);

// Reads a file, or a directory with its contents, as frames (protocol/files/link.ts). All work is synchronous, so that it can be done with the rights of the
// owner (host/posix.ts P2).
//
// R1. Reading never waits for the other end of a FIFO, and reads no device. Links inside a directory stay links; if the top itself is a link, its target is read.
// R2. Of each file, exactly as many bytes are read as its entry states. If the file has become shorter meanwhile, the copy fails; bytes that were added meanwhile
//     are not read.

import { closeSync, constants, fstatSync, openSync, readdirSync, readlinkSync, readSync, realpathSync, statSync } from "node:fs";
import type { FileFrame } from "#protocol/files/link.ts";

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
export const PIECE_BYTES = 128 * 1024;

/** Makes the frames of a tree, one at a time. Throws the file system's error. */
export function* treeFrames(top: string): Generator<FileFrame, void, undefined> {
  yield* statSync(top).isDirectory() ? directoryFrames(realpathSync(top), "") : fileFrames(realpathSync(top), "");
}

function* directoryFrames(top: string, path: string): Generator<FileFrame, void, undefined> {
  const place = path === "" ? top : `${top}/${path}`;
  const { mode, mtimeMs } = statSync(place);
  yield { kind: "dir", path, mode: mode & 0o777, mtime_s: secondsOf(mtimeMs) };
  for (const entry of readdirSync(place, { withFileTypes: true })) {
    const inner = path === "" ? entry.name : `${path}/${entry.name}`;
    if (entry.isSymbolicLink()) yield { kind: "link", path: inner, target: readlinkSync(`${top}/${inner}`) };
    else if (entry.isDirectory()) yield* directoryFrames(top, inner);
    else yield* fileFrames(`${top}/${inner}`, inner);
  }
}

function* fileFrames(place: string, path: string): Generator<FileFrame, void, undefined> {
  const fd = openSync(place, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new Error(`${place} is not a file`);
    yield { kind: "file", path, size: stat.size, mode: stat.mode & 0o777, mtime_s: secondsOf(stat.mtimeMs) };
    for (let left = stat.size; left > 0; ) {
      const bytes = Buffer.allocUnsafe(Math.min(PIECE_BYTES, left));
      const count = readSync(fd, bytes);
      if (count === 0) throw new Error(`${place} became shorter while it was read`);
      left -= count;
      yield { kind: "data", bytes: bytes.subarray(0, count) };
    }
  } finally {
    closeSync(fd);
  }
}

const secondsOf = (ms: number): number => Math.max(0, Math.floor(ms / 1000));

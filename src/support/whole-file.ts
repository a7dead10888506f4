// Writes files that are always complete: after a crash at any moment, a file has either its old text or the new one. The new
// text is written to another file in the same directory, flushed to the disk and renamed. The rename replaces whatever had
// the name. If that was a link, the link is replaced, not its target.

import { randomUUID } from "node:crypto";
import { closeSync, fchmodSync, fsyncSync, openSync, renameSync, unlinkSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf } from "./caught.ts";

/** Writes a file. Throws the file system's error; the old file is then unchanged, and no temporary file remains. */
export function writeWholeFile(path: string, text: string, mode = 0o644): void {
  const beside = `${path}.${randomUUID()}`;
  const fd = openSync(beside, "wx", mode);
  try {
    try {
      writeAll(fd, Buffer.from(text));
      fchmodSync(fd, mode);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(beside, path);
  } catch (error) {
    removeIfThere(beside);
    throw error;
  }
  syncDirectory(dirname(path));
}

/** Removes a file. Returns whether the file existed: a missing file is not an error. */
export function removeIfThere(path: string): boolean {
  try {
    unlinkSync(path);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}

function writeAll(fd: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}

/** Flushes a directory, so that a new name in it is on the disk. If the file system does not support this (EINVAL), nothing is done. */
export function syncDirectory(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } catch (error) {
    if (codeOf(error) !== "EINVAL") throw error;
  } finally {
    closeSync(fd);
  }
}

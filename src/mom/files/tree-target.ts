// Writes a file, or a directory with its contents, from frames (protocol/files/link.ts). All work is synchronous (see tree-source.ts).
//
// T1. A file is written under a temporary name in the same directory, and gets its final name when it is complete and on the disk. If it does not become complete,
//     it is removed. An existing file is overwritten directly only if the user can make no file in its directory.
// T2. If there is a link in the place of a file, it is followed only if the job states this very path, and only if the link belongs to the user who writes: another
//     user could have planted it. Everywhere else the file replaces the link, because the same host may have sent the link in an earlier tree, and it could lead
//     anywhere. Directories and special files are never replaced or written.
// T3. A file for which the disk has no room is refused before it is written. No file becomes longer than its entry states.
// T4. Entries lie in directories that belong to the same tree, never beyond a link in it.

import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  futimesSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  renameSync,
  statfsSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { basename, dirname } from "node:path";
import { type Entry, FileFrameError } from "#protocol/files/link.ts";
import { codeOf } from "#support/caught.ts";

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;
/** Errors of a directory in which the user may make no files. */
const CLOSED: ReadonlySet<string | undefined> = new Set(["EACCES", "EPERM", "EROFS"]);
const NAME_CHARS = 200;

/** A file that is being written. temporary: its present path; null: an existing file is overwritten directly (T1). */
type Writing = {
  readonly fd: number;
  readonly temporary: string | null;
  readonly final: string;
  readonly size: number;
  readonly mode: number;
  readonly mtime_s: number;
  written: number;
};

export class TreeTarget {
  readonly #top: string;
  readonly #uid: number;
  readonly #is_stated: boolean;
  readonly #directories = new Set<string>();
  #writing: Writing | null = null;
  #is_empty = true;

  /** top: the path of the file or directory. uid: the user who writes. is_stated: the job states this very path (T2). */
  constructor(top: string, uid: number, is_stated: boolean) {
    this.#top = top;
    this.#uid = uid;
    this.#is_stated = is_stated;
  }

  /** Writes the next entry. Throws FileFrameError, or the file system's error. */
  add(entry: Entry): void {
    this.#complete();
    const is_top = entry.path === "";
    if (is_top !== this.#is_empty) throw new FileFrameError("a tree with another top");
    this.#is_empty = false;
    if (!is_top) this.#mustBeInside(entry.path);
    const place = is_top ? this.#top : `${this.#top}/${entry.path}`;
    switch (entry.kind) {
      case "dir":
        makeDirectory(place, entry.mode);
        this.#directories.add(entry.path);
        return;
      case "link":
        if (is_top) throw new FileFrameError("a link at the top");
        return makeLink(entry.target, place);
      case "file":
        this.#writing = begin(is_top && this.#is_stated ? placeToWrite(place, this.#uid) : place, entry, this.#uid);
        return;
    }
  }

  /** Writes a piece of the file whose entry came last. */
  data(bytes: Uint8Array): void {
    const writing = this.#writing;
    if (writing === null || writing.written + bytes.length > writing.size) throw new FileFrameError("more data than the file has");
    for (let at = 0; at < bytes.length; ) at += writeSync(writing.fd, bytes, at);
    writing.written += bytes.length;
  }

  /** Completes the tree. */
  end(): void {
    this.#complete();
    if (this.#is_empty) throw new FileFrameError("a tree without contents");
  }

  /** Removes the file that is being written, if there is one. */
  abort(): void {
    const writing = this.#writing;
    this.#writing = null;
    if (writing !== null) discard(writing);
  }

  #mustBeInside(path: string): void {
    const slash = path.lastIndexOf("/");
    if (!this.#directories.has(slash < 0 ? "" : path.slice(0, slash))) throw new FileFrameError("an entry outside of its tree");
  }

  #complete(): void {
    const writing = this.#writing;
    if (writing === null) return;
    if (writing.written !== writing.size) throw new FileFrameError("less data than the file has");
    this.#writing = null;
    const { fd, temporary, final, mode, mtime_s } = writing;
    try {
      if (temporary !== null) {
        fchmodSync(fd, mode);
        futimesSync(fd, mtime_s, mtime_s);
      }
      fsyncSync(fd);
      if (temporary !== null) renameSync(temporary, final);
    } catch (error) {
      discard(writing);
      throw error;
    }
    closeSync(fd);
  }
}

function makeDirectory(place: string, mode: number): void {
  try {
    mkdirSync(place, { mode: mode | 0o700 });
  } catch (error) {
    if (codeOf(error) !== "EEXIST" || !lstatSync(place).isDirectory()) throw error;
  }
}

function makeLink(target: string, place: string): void {
  const known = lstatSync(place, { throwIfNoEntry: false });
  if (known !== undefined) {
    if (!known.isSymbolicLink()) throw new Error(`${place} exists and is not a link`);
    unlinkSync(place);
  }
  symlinkSync(target, place);
}

function begin(final: string, entry: Entry & { readonly kind: "file" }, uid: number): Writing {
  const known = lstatSync(final, { throwIfNoEntry: false });
  if (known?.isDirectory() === true) throw new Error(`${final} is a directory`);
  if (known !== undefined && !known.isFile() && !known.isSymbolicLink()) throw new Error(`${final} is not a file`);
  const directory = dirname(final);
  checkRoom(directory, entry.size);
  const { size, mtime_s } = entry;
  const mode = known?.uid === uid && known.isFile() ? known.mode & 0o777 : entry.mode & 0o777;
  const temporary = `${directory}/.${basename(final).slice(0, NAME_CHARS)}.${randomBytes(8).toString("hex")}`;
  try {
    const fd = openSync(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    return { fd, temporary, final, size, mode, mtime_s, written: 0 };
  } catch (error) {
    if (known === undefined || !CLOSED.has(codeOf(error))) throw error;
    return { fd: openInPlace(final), temporary: null, final, size, mode, mtime_s, written: 0 };
  }
}

function openInPlace(final: string): number {
  const fd = openSync(final, O_WRONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fstatSync(fd).isFile()) {
    closeSync(fd);
    throw new Error(`${final} is not a file`);
  }
  ftruncateSync(fd);
  return fd;
}

/** Returns the path to write: the place itself or, if it is a link of the user, the file to which it leads (T2). */
function placeToWrite(place: string, uid: number): string {
  const stat = lstatSync(place, { throwIfNoEntry: false });
  if (stat === undefined || !stat.isSymbolicLink()) return place;
  if (stat.uid !== uid) throw new Error(`${place} is a link of another user`);
  return realpathSync(place);
}

function checkRoom(directory: string, size: number): void {
  const { bavail, bsize } = statfsSync(directory);
  if (size <= bavail * bsize) return;
  throw Object.assign(new Error(`ENOSPC: no space left on device, ${size} bytes for a file in ${directory}`), { code: "ENOSPC" });
}

function discard({ fd, temporary }: Writing): void {
  closeSync(fd);
  if (temporary === null) return;
  try {
    unlinkSync(temporary);
  } catch {
    // It has been removed already, or cannot be removed.
  }
}

// The mark of a store: a small file beside it that outlives it. It says that this home has a store, which one, and the number of the last commit that was
// acknowledged. A store that is missing, empty, older than its mark or another one than it names is noticed at the next start: jobs that were acknowledged
// would be lost without a word.
//
// K1. The mark never runs ahead of the store: it is written when a commit is durable, and before the commit is acknowledged.
// K2. The mark of a running store is written in place and without a flush to the disk, which would cost as much as the commit. That suffices:
//     - kill -9 of the server takes nothing from the kernel, which has the bytes as soon as write(2) returns.
//     - After a loss of power the mark may be older than the store (K1: the commit was flushed first), which is no fault, or torn, which is told and
//       taken for no number at all. Commits that the disk lost in spite of its flush are then noticed only as far as the mark itself reached the disk.
//     The first mark of a store, which says that there is one, is flushed with its directory.

import { closeSync, constants, fstatSync, openSync, readFileSync, writeSync } from "node:fs";
import { codeOf } from "#support/caught.ts";
import { writeWholeFile } from "#support/whole-file.ts";

/** store: the number that the store was given when it was made. commit: null when the mark is torn. at_ms: when it was written. */
export type Mark = { readonly store: number | null; readonly commit: number | null; readonly at_ms: number };

/** The mark of an open store. */
export type OpenMark = {
  /** Writes the number of a durable commit. Throws nothing: a mark that cannot be written only stays behind (K1). */
  set(commit: number): void;
  close(): void;
};

/** `partita.db` -> `partita.mark`: no name that `rm partita.db*` takes along. */
export const markFile = (store_file: string): string => `${store_file.replace(/\.db$/, "")}.mark`;

/** null: there is none. Throws the file system's error when there is one that cannot be read. */
export function readMark(path: string): Mark | null {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
  try {
    const text = readFileSync(fd, "latin1");
    const [, store] = /^store (\d{16})$/m.exec(text) ?? [];
    // The number stands there twice: a torn mark has two different ones.
    const [, commit, again] = /^commit (\d{16}) (\d{16})$/m.exec(text) ?? [];
    return {
      store: store === undefined ? null : Number(store),
      commit: commit === undefined || commit !== again ? null : Number(commit),
      at_ms: fstatSync(fd).mtimeMs,
    };
  } finally {
    closeSync(fd);
  }
}

/** Takes the mark into use: made anew when it is not the store's. Throws the file system's error. */
export function openMark(path: string, store: number, commit: number): OpenMark {
  const found = readMark(path);
  if (found?.store !== store || found.commit === null) writeWholeFile(path, markText(store, commit), 0o600);
  const fd = openSync(path, constants.O_WRONLY | constants.O_NOFOLLOW);
  const mark: OpenMark = {
    set(number) {
      try {
        writeSync(fd, markText(store, number), 0);
      } catch {
        // It stays behind (K1).
      }
    },
    close: () => closeSync(fd),
  };
  mark.set(commit);
  return mark;
}

/** Always of the same length: one write replaces all of it. */
function markText(store: number, commit: number): string {
  const number = String(commit).padStart(16, "0");
  return `This PBS_HOME has a store (partita.db). Its number and its last commit:\nstore ${String(store).padStart(16, "0")}\ncommit ${number} ${number}\n`;
}

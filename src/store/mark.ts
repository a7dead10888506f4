// The mark of a store: a small file beside the store. It records that this home has a store, the number of the store, and
// the number of the last acknowledged commit. With its help the server detects at its next start that the store is missing,
// empty, older than the mark, or another store than the one that the mark names. Without the mark, acknowledged jobs could
// be lost unnoticed.
//
// K1. The mark is never ahead of the store: it is written after a commit is durable and before the commit is acknowledged.
// K2. The mark of a running store is written in place and is not flushed to the disk, because a flush would cost as much as
//     the commit. This is sufficient. kill -9 of the server loses nothing, because the kernel has the bytes as soon as
//     write(2) returns. After a loss of power the mark may be older than the store (by K1 the commit was flushed first),
//     which is harmless. It may also be torn: this is reported, and its number is ignored. If the disk lost commits in spite
//     of the flush, the server detects the loss only of those up to the mark on the disk. The first mark of a store, which
//     records that the store exists, is flushed together with its directory.

import { closeSync, constants, fstatSync, openSync, readFileSync, writeSync } from "node:fs";
import { codeOf } from "#support/caught.ts";
import { writeWholeFile } from "#support/whole-file.ts";

/** store: the number that the store got when it was created. commit: null if the mark is torn. at_ms: time of writing. */
export type Mark = { readonly store: number | null; readonly commit: number | null; readonly at_ms: number };

/** The number of a store and the number of its last commit. null: the store was made by a release that had no marks. */
export type Standing = { readonly store: number; readonly commit: number } | null;

/** The mark of an open store, which can be written. */
export type OpenMark = {
  /** Writes the number of a durable commit. Throws nothing: if the write fails, the mark only falls behind (K1). */
  set(commit: number): void;
  close(): void;
};

/** The path of the mark: `partita.db` -> `partita.mark`. The name is such that `rm partita.db*` does not remove the mark. */
export const markFile = (store_file: string): string => `${store_file.replace(/\.db$/, "")}.mark`;

/** Reads a mark. Returns null if there is none. Throws the file system's error if it cannot be read. */
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
    // The number is written twice. If the mark is torn, the two numbers differ.
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

/** Opens the mark for writing. A mark of another store is replaced. Throws the file system's error. */
export function openMark(path: string, store: number, commit: number): OpenMark {
  const found = readMark(path);
  if (found?.store !== store || found.commit === null) writeWholeFile(path, markText(store, commit), 0o600);
  const fd = openSync(path, constants.O_WRONLY | constants.O_NOFOLLOW);
  const mark: OpenMark = {
    set(number) {
      try {
        writeSync(fd, markText(store, number), 0);
      } catch {
        // The mark falls behind (K1).
      }
    },
    close: () => closeSync(fd),
  };
  mark.set(commit);
  return mark;
}

/** The text of a mark. Its length is fixed, so that one write replaces all of it. */
function markText(store: number, commit: number): string {
  const number = String(commit).padStart(16, "0");
  return `This PBS_HOME has a store (partita.db). Its number and its last commit:\nstore ${String(store).padStart(16, "0")}\ncommit ${number} ${number}\n`;
}

/** One sentence about what a store lacks according to its mark, or null if it lacks nothing. */
export function lack(standing: Standing, mark: Mark): string | null {
  if (mark.store === null) return null;
  if (standing === null) return "this is not the store of this PBS_HOME, but another database, or one from before there were marks";
  if (standing.store !== mark.store) return "this is the store of another complex";
  if (mark.commit === null || standing.commit >= mark.commit) return null;
  const count = mark.commit - standing.commit;
  return `the last ${count} of its commits ${count === 1 ? "is" : "are"} missing, which were acknowledged: ${standing.commit} are here, ${mark.commit} were made`;
}

// Prepares the directories of a scheduler before the server starts it (docs/schedulers.md). Missing directories with the
// default names are made, with the default files of the installation. Directories that an administrator has set must exist;
// the scheduler itself checks them.
//
// I1. sched_priv may belong to sched_user while the server runs as root. Therefore the server only creates new files in it
//     and follows no link.
// I2. The server changes the owner to sched_user only if no other user than root could have changed the file: for a
//     directory of root, and for plain files of root in it.

import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fchmodSync,
  fchownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  type Stats,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { schedDirectories } from "#model/tables/sched-attributes.ts";
import { codeOf } from "#support/caught.ts";

/** The files of sched_priv, each with the default file of the installation that it is copied from (docs/reference/files.md 9). */
const FILES = [
  ["sched_config", "pbs_sched_config"],
  ["holidays", "pbs_holidays"],
  ["resource_group", "pbs_resource_group"],
  ["dedicated_time", "pbs_dedicated"],
] as const;

export type SchedDirectories = {
  readonly name: string;
  readonly home: string;
  readonly sched_priv: string;
  readonly sched_log: string;
  /** the directory with the default files of the installation */
  readonly defaults: string;
  /** the user of the scheduler; null: the user of the server */
  readonly owner: { readonly uid: number; readonly gid: number } | null;
};

/** Makes the directories and files. Throws the file system's error. */
export function makeSchedDirectories(dirs: SchedDirectories): void {
  const named = schedDirectories(dirs.name, dirs.home);
  if (dirs.sched_priv === named.sched_priv) {
    makeDirectory(dirs.sched_priv, 0o750, dirs.owner);
    handOver(dirs.sched_priv, dirs.owner);
    for (const [file, source] of FILES) {
      const path = join(dirs.sched_priv, file);
      const from = join(dirs.defaults, source);
      if (existsSync(path) || !existsSync(from)) continue;
      makeFile(path, readFileSync(from), dirs.owner);
    }
  }
  if (dirs.sched_log !== named.sched_log) return;
  makeDirectory(dirs.sched_log, 0o755, dirs.owner);
  handOver(dirs.sched_log, dirs.owner);
}

const OTHERS_WRITE = 0o022;

/** Gives the scheduler's user a directory that was made at a time when the scheduler was to run as root (I2). */
function handOver(dir: string, owner: SchedDirectories["owner"]): void {
  if (owner === null) return;
  const mine = (stat: Stats): boolean => stat.uid === 0 && (stat.mode & OTHERS_WRITE) === 0;
  const there = lstatSync(dir);
  if (!there.isDirectory() || !mine(there)) return;
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    const stat = lstatSync(path);
    if (stat.isFile() && stat.nlink === 1 && mine(stat)) lchownSync(path, owner.uid, owner.gid);
  }
  lchownSync(dir, owner.uid, owner.gid);
}

/** Makes a file unless there is an entry with its name. An existing entry, even a link that leads nowhere, is checked by the scheduler itself. */
function makeFile(path: string, bytes: Uint8Array, owner: SchedDirectories["owner"]): void {
  let fd: number;
  try {
    fd = openSync(path, "wx", 0o644);
  } catch (error) {
    if (codeOf(error) === "EEXIST") return;
    throw error;
  }
  try {
    writeFileSync(fd, bytes);
    fchmodSync(fd, 0o644);
    if (owner !== null) fchownSync(fd, owner.uid, owner.gid);
  } finally {
    closeSync(fd);
  }
}

/** Makes a directory, unless something with that name exists. */
function makeDirectory(path: string, mode: number, owner: SchedDirectories["owner"]): void {
  if (existsSync(path)) return;
  mkdirSync(path, { mode });
  chmodSync(path, mode);
  if (owner !== null) chownSync(path, owner.uid, owner.gid);
}

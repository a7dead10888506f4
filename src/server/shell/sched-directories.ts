// Prepares the directories of a scheduler before the server starts it (docs/schedulers.md). Default-named directories
// that are missing are made with the shipped files; directories that were set must exist, and the scheduler itself checks
// them.
//
// I1. sched_priv may belong to sched_user while the server is root: the server only creates new files in it and follows no link.
// I2. Only files that no other user than root could change are given to sched_user: root's directory, and root's plain files in it.

import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fstatSync,
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

/** File of sched_priv and the shipped default it is copied from (docs/reference/files.md 9). */
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
  /** directory of the shipped defaults */
  readonly defaults: string;
  /** the scheduler's user when it is not the server's own */
  readonly owner: { readonly uid: number; readonly gid: number } | null;
};

/** Throws the file system's error. */
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

/** A directory that was made while the scheduler was to run as root is given to its user (I2). */
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

/** An existing entry, even a link that leads nowhere, is left to the scheduler's own check. */
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

/** sched_out, opened to append: stdout and stderr of the scheduler. null: it is not a file of the scheduler. */
export function openSchedOut(sched_priv: string): number | null {
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;
  let fd: number;
  try {
    fd = openSync(join(sched_priv, "sched_out"), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o644);
  } catch {
    return null;
  }
  const stat = fstatSync(fd);
  if (stat.isFile() && stat.nlink === 1) return fd;
  closeSync(fd);
  return null;
}

/** An existing file stays as it is. */
function makeDirectory(path: string, mode: number, owner: SchedDirectories["owner"]): void {
  if (existsSync(path)) return;
  mkdirSync(path, { mode });
  chmodSync(path, mode);
  if (owner !== null) chownSync(path, owner.uid, owner.gid);
}

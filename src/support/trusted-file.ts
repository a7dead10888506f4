// Checks files that a daemon runs, loads or obeys with its own rights. Only trusted users may be able to change or replace such a file.

import { lstatSync, realpathSync } from "node:fs";
import { dirname } from "node:path";

const GROUP_OR_WORLD_WRITES = 0o022;
const STICKY = 0o1000;

/**
 * Returns the real path of a file. Throws with a text if the file, or a directory above it, belongs to another user than the `owners` (uids) or is writable by
 * group or others. A directory with the sticky bit may be writable, because other users cannot replace files in it. For a missing file, throws the system's
 * ENOENT.
 */
export function trustedFile(path: string, owners: readonly number[]): string {
  const real = realpathSync(path);
  if (!lstatSync(real).isFile()) throw new Error(`${real} is not a file`);
  return trustedPlace(real, owners);
}

/**
 * Returns the real path of a directory, with the same checks as trustedFile. The directory itself must not be writable even with the sticky bit, because other
 * users could create files in it.
 */
export function trustedDirectory(path: string, owners: readonly number[]): string {
  const real = realpathSync(path);
  const stat = lstatSync(real);
  if (!stat.isDirectory()) throw new Error(`${real} is not a directory`);
  if ((stat.mode & GROUP_OR_WORLD_WRITES) !== 0) throw new Error(`${real} can be written by group or others`);
  return trustedPlace(real, owners);
}

function trustedPlace(real: string, owners: readonly number[]): string {
  for (let at = real; ; at = dirname(at)) {
    const stat = lstatSync(at);
    if (!owners.includes(stat.uid)) throw new Error(`${at} belongs to another user`);
    const kept = stat.isDirectory() && (stat.mode & STICKY) !== 0;
    if ((stat.mode & GROUP_OR_WORLD_WRITES) !== 0 && !kept) throw new Error(`${at} can be written by group or others`);
    if (at === dirname(at)) return real;
  }
}

// Files that a daemon runs or loads with its own rights: nobody but who is trusted may be able to change them, or put another in their place.

import { lstatSync, realpathSync } from "node:fs";
import { dirname } from "node:path";

const GROUP_OR_WORLD_WRITES = 0o022;
const STICKY = 0o1000;

/**
 * Where a file really is. owners: uids that are trusted. Throws with a text when the file or a directory above it belongs to another user or can be
 * written by group or others; in a directory with the sticky bit others cannot replace what is not theirs.
 */
export function trustedFile(path: string, owners: readonly number[]): string {
  const real = realpathSync(path);
  if (!lstatSync(real).isFile()) throw new Error(`${real} is not a file`);
  for (let at = real; ; at = dirname(at)) {
    const stat = lstatSync(at);
    if (!owners.includes(stat.uid)) throw new Error(`${at} belongs to another user`);
    const kept = stat.isDirectory() && (stat.mode & STICKY) !== 0;
    if ((stat.mode & GROUP_OR_WORLD_WRITES) !== 0 && !kept) throw new Error(`${at} can be written by group or others`);
    if (at === dirname(at)) return real;
  }
}

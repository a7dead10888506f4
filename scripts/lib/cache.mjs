// The user's cache: things that are slow to make and the same in every checkout.

import { lstatSync, mkdirSync } from "node:fs";
import { homedir, tmpdir, userInfo } from "node:os";
import { join } from "node:path";

/**
 * A directory that belongs to this user and that nobody else may write (what lies there is executed), or undefined when there is none.
 * $PARTITA_CACHE, else the user's cache directory, else one in the temporary directory (a home that cannot be written).
 */
export function cacheDir(name) {
  const { uid } = userInfo();
  const places = [
    process.env.PARTITA_CACHE,
    process.env.XDG_CACHE_HOME && join(process.env.XDG_CACHE_HOME, "partita"),
    join(process.env.HOME || homedir(), ".cache", "partita"),
    join(tmpdir(), `partita-cache-${uid}`),
  ];
  for (const place of places) {
    if (!place) continue;
    const dir = join(place, name);
    try {
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      if (isOurs(place, uid) && isOurs(dir, uid)) return dir;
    } catch {
      // the present installation
    }
  }
  return undefined;
}

function isOurs(dir, uid) {
  const stat = lstatSync(dir);
  return stat.isDirectory() && stat.uid === uid && (stat.mode & 0o022) === 0;
}

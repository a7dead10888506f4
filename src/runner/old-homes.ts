// Directories of runners that ended without a chance to remove them (SIGKILL, a crash of the host). The next runner of the same user on the host removes them.
//
// O1. A runner holds the lock runner.lock in its directory while it lives, and its starter holds mom_priv/starter.lock until the jobs of the runner have ended. A directory is
//     removed only if both locks are free, by the owner of the directory.
// O2. A directory without runner.lock belongs to a runner that is just starting, or that ended in that moment. It is left until it is an hour old.
// O3. A lock is tested by taking it for a moment. A runner that is just starting would lose its own lock to this test, or its directory to the time between the
//     making of the file and the lock. A directory that is younger than a minute is therefore left alone.

import { lstatSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type LockOutcome, lockState, takeLock } from "#support/libc/lock-file.ts";

/** The names of directories of runners begin so. */
export const HOME_PREFIX = "partita-runner-";
const LOCK = "runner.lock";
const UNLOCKED_MS_MAX = 3_600_000;
const YOUNG_MS_MAX = 60_000;
/** A runner looks at so many directories of its user at most, so that its start does not take long. */
const LOOK_MAX = 100;

/** Marks a directory as that of this process. */
export const holdHome = (home: string): LockOutcome => takeLock(join(home, LOCK));

/** Removes directories of runners that have ended. own: the directory of this process, which holds its lock. Returns the names of the removed ones. */
export function removeOldHomes(parent: string, own: string, now_ms: number): readonly string[] {
  const removed: string[] = [];
  const names = readdirSync(parent).filter((name) => name.startsWith(HOME_PREFIX) && join(parent, name) !== own);
  let looked = 0;
  for (const name of names) {
    const home = join(parent, name);
    try {
      const { uid, mtimeMs } = lstatSync(home);
      if (uid !== process.geteuid?.()) continue;
      if (++looked > LOOK_MAX) break;
      if (!isOver(home, now_ms - mtimeMs)) continue;
      rmSync(home, { recursive: true, force: true });
      removed.push(name);
    } catch {
      // Another runner removes it, or it cannot be read: a later runner tries again.
    }
  }
  return removed;
}

function isOver(home: string, age_ms: number): boolean {
  if (age_ms < YOUNG_MS_MAX || lockState(join(home, LOCK)) !== "free") return false;
  if (lockState(join(home, "mom_priv", "starter.lock")) !== "free") return false;
  return readdirSync(home).includes(LOCK) || age_ms > UNLOCKED_MS_MAX;
}

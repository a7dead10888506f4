// Pid files that are also locks (server.lock, sched.lock, mom.lock, comm.lock). The lock is a lock of flock(2), which the
// kernel releases when the process dies. The file has the pid as text, for people and tools of sites
// (docs/reference/files.md 9).

import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { libc } from "./libc.ts";

const LOCK_EX = 2;
const LOCK_NB = 4;

export type HeldLock = { readonly path: string /** releases the lock and empties the file, which stays */; release(): void };
export type LockOutcome = { readonly held: HeldLock } | { readonly owner_pid: number | null };

type Flock = (fd: number, operation: number) => number;
let flock: Flock | null = null;

function flockOf(): Flock {
  flock ??= libc().libc.func("int flock(int fd, int operation)") as Flock;
  return flock;
}

/**
 * Takes the lock and writes this process' pid into the file. If another process has the lock, returns its pid. Throws on a file system error (missing
 * directory, no permission).
 */
export function takeLock(path: string, mode = 0o600): LockOutcome {
  // Loaded first, so that the file is without its lock only for a moment.
  const lock = flockOf();
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, mode);
  if (lock(fd, LOCK_EX | LOCK_NB) !== 0) {
    closeSync(fd);
    return { owner_pid: readPid(path) };
  }
  ftruncateSync(fd, 0);
  writeSync(fd, `${process.pid}\n`, 0);
  return {
    held: {
      path,
      release() {
        ftruncateSync(fd, 0);
        closeSync(fd);
      },
    },
  };
}

/** Returns the pid in a lock file, or null if there is none. The process may no longer exist. */
export function readPid(path: string): number | null {
  try {
    const pid = Number.parseInt(readFileSync(path, "utf8"), 10);
    return pid > 0 ? pid : null;
  } catch {
    return null;
  }
}

/** Whether a process has the lock now. A lock that cannot be tested counts as free. */
export const isLocked = (path: string): boolean => lockState(path) === "held";

/** Tests the lock by taking it for a moment. closed: the file may not be opened, so the test is not possible. */
export function lockState(path: string): "held" | "free" | "closed" {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : "";
    return code === "EACCES" || code === "EPERM" ? "closed" : "free";
  }
  const free = flockOf()(fd, LOCK_EX | LOCK_NB) === 0;
  closeSync(fd);
  return free ? "free" : "held";
}

// Pid files that are locks (server.lock, sched.lock, mom.lock, comm.lock): flock(2), given back by the kernel when the process dies, pid as text for
// people and site tools (docs/reference/files.md 9).

import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { libc } from "./libc.ts";

const LOCK_EX = 2;
const LOCK_NB = 4;

export type HeldLock = { readonly path: string /** gives the lock back; the file stays, empty */; release(): void };
export type LockOutcome = { readonly held: HeldLock } | { readonly owner_pid: number | null };

let flock: ((fd: number, operation: number) => number) | null = null;

/** Takes the lock and writes this process' pid, or tells who has it. Throws on a file system error (missing directory, no permission). */
export function takeLock(path: string, mode = 0o600): LockOutcome {
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, mode);
  flock ??= libc().libc.func("int flock(int fd, int operation)") as (fd: number, operation: number) => number;
  if (flock(fd, LOCK_EX | LOCK_NB) !== 0) {
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

/** The pid in a lock file; null where there is none. Says nothing about whether it lives. */
export function readPid(path: string): number | null {
  try {
    const pid = Number.parseInt(readFileSync(path, "utf8"), 10);
    return pid > 0 ? pid : null;
  } catch {
    return null;
  }
}

/** Whether some process holds the lock now (asked without taking it for longer than the question). What cannot be asked counts as free. */
export const isLocked = (path: string): boolean => lockState(path) === "held";

/** closed: the file system does not let us ask. */
export function lockState(path: string): "held" | "free" | "closed" {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW);
  } catch (error) {
    return ["EACCES", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "") ? "closed" : "free";
  }
  flock ??= libc().libc.func("int flock(int fd, int operation)") as (fd: number, operation: number) => number;
  const free = flock(fd, LOCK_EX | LOCK_NB) === 0;
  closeSync(fd);
  return free ? "free" : "held";
}

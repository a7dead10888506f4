// A lock that an ended login shell leaves behind. Jobs run as login shells of their owner, and tests end them at any moment. Where the owner's login files load
// pyenv, an ended shell leaves pyenv's lock, and every later login of that user waits for it for 60 s: ten minutes of a test run.

import { rmSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const CHECK_MS = 5_000;
/** pyenv holds the lock for about a second. */
const STALE_MS = 15_000;

/** Path of pyenv's lock for this user. */
export const loginLock = (env = process.env) => join(env.PYENV_ROOT ?? join(homedir(), ".pyenv"), "shims", ".pyenv-shim");

/** Removes the lock if it is older than any shell that still logs in. Returns whether it did. */
export function removeStaleLock(path, now_ms = Date.now()) {
  try {
    if (now_ms - statSync(path).mtimeMs < STALE_MS) return false;
    rmSync(path);
    return true;
  } catch {
    return false;
  }
}

/** Looks for the lock now and again and again. Returns a function that ends that. removed: called after each removal */
export function watchLoginLock(path, removed) {
  const look = () => {
    if (removeStaleLock(path)) removed();
  };
  look();
  const timer = setInterval(look, CHECK_MS);
  return () => clearInterval(timer);
}

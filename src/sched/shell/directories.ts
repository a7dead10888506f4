// The directories of a scheduler for its files and its log, which the attributes of its object name. Each is checked before
// it is used, and the scheduler keeps the lock of its sched_priv (docs/reference/scheduler.md 2).

import { chdir } from "node:process";
import { LOG_FAULT, PRIV_FAULT } from "#protocol/sched-link.ts";
import type { HeldLock } from "#support/libc/lock-file.ts";
import { takeLock } from "#support/libc/lock-file.ts";
import type { Log } from "#support/log.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { checkLogDirectory, checkPrivate } from "#support/sched-directory.ts";

export type DirectoryOptions = {
  readonly log: Log;
  /** true with option -L: the log goes to one file, so changes of sched_log have no effect */
  readonly fixed_log: boolean;
  readonly sched_priv: string;
  readonly sched_log: string;
  /** the lock of sched_priv; null: no directory is in use yet, because only the server can tell which one to use */
  readonly lock: HeldLock | null;
};

export type Directories = {
  readonly sched_priv: string;
  readonly sched_log: string;
  /** Uses the directories that the attributes name. fault: what to report to the server; null: nothing. moved: sched_priv is another directory than before. */
  follow(attrs: { readonly [name: string]: unknown }): { readonly fault: string | null; readonly moved: boolean };
  /** Releases the lock of sched_priv. */
  release(): void;
};

export function schedDirectories(options: DirectoryOptions): Directories {
  const { log, fixed_log } = options;
  let { sched_priv, sched_log, lock } = options;
  /** the directories at the start; used again when the attributes name none, as for a scheduler on another host than the server */
  const own = { sched_priv, sched_log };

  const record = (event: number, text: string): void => log.record(event, "Sched", "reconfigure", text);

  function changeLog(dir: string): string | null {
    if (fixed_log) return null;
    const wrong = checkLogDirectory(dir);
    if (wrong !== null) {
      record(LOG_EVENT.ERROR, `${LOG_FAULT}: ${wrong}`);
      return LOG_FAULT;
    }
    if (dir === sched_log) return null;
    log.redirect(dir);
    sched_log = dir;
    record(LOG_EVENT.DEBUG3, `scheduler log directory is changed to ${dir}`);
    return null;
  }

  function changePrivate(dir: string): string | null {
    const wrong = checkPrivate(dir) ?? (dir === sched_priv && lock !== null ? null : takeOver(dir));
    if (wrong !== null) {
      record(LOG_EVENT.ERROR, `${PRIV_FAULT}: ${wrong}`);
      return PRIV_FAULT;
    }
    if (dir === sched_priv) return null;
    sched_priv = dir;
    record(LOG_EVENT.DEBUG3, `scheduler priv directory has changed to ${dir}`);
    return null;
  }

  /** Takes the lock of the new directory and releases that of the old one. Returns the fault if that is not possible. */
  function takeOver(dir: string): string | null {
    const taken = takeLock(`${dir}/sched.lock`, 0o644);
    if ("owner_pid" in taken) return `another scheduler is running there, pid ${taken.owner_pid ?? "unknown"}`;
    lock?.release();
    lock = taken.held;
    chdir(dir);
    return null;
  }

  return {
    get sched_priv() {
      return sched_priv;
    },
    get sched_log() {
      return sched_log;
    },
    follow(attrs) {
      const before = sched_priv;
      const fault = changeLog(textOf(attrs["sched_log"]) ?? own.sched_log) ?? changePrivate(textOf(attrs["sched_priv"]) ?? own.sched_priv);
      return { fault, moved: sched_priv !== before };
    },
    release: () => lock?.release(),
  };
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

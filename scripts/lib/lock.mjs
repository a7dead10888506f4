// One process at a time installs or builds in a checkout. The lock is a file that names its holder; a holder that died is passed over.

import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { Problem, say } from "./run.mjs";

const FOREIGN_STALE_MS = 30 * 60 * 1000;

/** Does `work` while holding the lock file; waits for another holder and says so. */
export async function withLock(path, what, work) {
  const mine = `${path}.${process.pid}`;
  await acquire(path, mine, what);
  try {
    return await work();
  } finally {
    rmSync(path, { force: true });
  }
}

async function acquire(path, mine, what) {
  for (let told = false; ; ) {
    if (tryLock(path, mine)) return;
    const holder = readHolder(path);
    if (holder === undefined) continue;
    if (isStale(holder, path)) {
      dropStale(path, mine, holder);
      continue;
    }
    if (!told) say(`waiting for process ${holder.pid} on ${holder.host}, which is ${what} here`);
    told = true;
    await sleep(200);
  }
}

/** A link appears with its contents or not at all, so nobody ever reads a half-written lock. */
function tryLock(path, mine) {
  try {
    writeFileSync(mine, `${process.pid} ${hostname()} ${startOf(process.pid)}\n`);
  } catch (error) {
    throw new Problem(`cannot write ${mine}: ${error.message}`, { cause: error });
  }
  try {
    linkSync(mine, path);
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw new Problem(`cannot lock ${path}: ${error.message}`, { cause: error });
  } finally {
    rmSync(mine, { force: true });
  }
}

function readHolder(path) {
  try {
    const text = readFileSync(path, "utf8");
    const [pid, host, start] = text.trim().split(" ");
    return { pid: Number(pid), host, start, text };
  } catch {
    return undefined;
  }
}

function isStale(holder, path) {
  if (holder.host !== hostname()) {
    const age_ms = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
    return age_ms > FOREIGN_STALE_MS;
  }
  return startOf(holder.pid) !== holder.start;
}

/** When a process started, in ticks since boot: a number taken by another process is not the holder. Empty: no such process, or a zombie. */
function startOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? "" : fields[19];
  } catch {
    return "";
  }
}

/**
 * Moves the dead holder's file aside. If another process was faster and the file belongs to a living holder, the file is moved
 * back.
 */
function dropStale(path, mine, holder) {
  const aside = `${mine}.stale`;
  try {
    renameSync(path, aside);
  } catch {
    return;
  }
  if (readHolder(aside)?.text !== holder.text) {
    try {
      linkSync(aside, path);
    } catch {
      // a third process holds it now
    }
  }
  rmSync(aside, { force: true });
}

// The directories that jobs leave behind (TMPDIR, sandbox): removed with the rights of their owners, whatever is in them.

import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  lstatSync,
  opendirSync,
  openSync,
  readdirSync,
  rmdir,
  rmdirSync,
  rmSync,
} from "node:fs";
import { actAs } from "../host/posix.ts";
import type { FilePlan } from "../job/agent-link.ts";
import { asOwner, codeOf } from "./open-directories.ts";

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;

/** From here on the removal of a tree makes others wait noticeably. */
const BIG_ENTRIES = 2000;
/** A directory of this size without directories in it holds some hundred files at most; most are told from big ones by that. */
const SMALL_BYTES = 4096;

/** Whether a tree has many entries. One that its owner has made unreadable counts as big: it may hold anything. */
export function isBigTree(plan: Pick<FilePlan, "owner">, path: string): boolean {
  try {
    const stat = asOwner(plan, () => lstatSync(path));
    if (!stat.isDirectory() || (stat.nlink === 2 && stat.size <= SMALL_BYTES)) return false;
    return hasEntries(path, BIG_ENTRIES);
  } catch (error) {
    return codeOf(error) !== "ENOENT";
  }
}

function hasEntries(path: string, count: number): boolean {
  let left = count;
  const waiting = [path];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const directory = opendirSync(at);
    try {
      for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
        if (--left <= 0) return true;
        if (entry.isDirectory()) waiting.push(`${at}/${entry.name}`);
      }
    } finally {
      directory.closeSync();
    }
  }
  return false;
}

/**
 * Removes the TMPDIRs of jobs, all at once and not one after the other: where a file system tells the disk of freed blocks at once (discard without a
 * journal) each waits for the disk. Empty ones by our own rights, in other threads (host/posix.ts P2); what jobs left in theirs goes with their owners' rights.
 */
export async function removeTmpdirs(plans: readonly FilePlan[]): Promise<void> {
  actAs(null);
  await Promise.all(
    plans.map(
      (plan) =>
        new Promise<void>((resolve) => {
          rmdir(plan.tmpdir, (error) => {
            if (error !== null && error.code !== "ENOENT") {
              removeTree(plan, plan.tmpdir);
              actAs(null);
            }
            resolve();
          });
        }),
    ),
  );
}

/** With the owner's rights; what he made unreadable for himself is made readable first. */
export function removeTree(plan: FilePlan, path: string): void {
  actAs(plan.owner);
  try {
    rmdirSync(path);
    return;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return;
  }
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    try {
      openUp(path);
      rmSync(path, { recursive: true, force: true });
    } catch {
      // It is somebody else's, or files of somebody else are in it: they stay.
    }
  }
}

function openUp(path: string): void {
  try {
    const fd = openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    fchmodSync(fd, 0o700);
    closeSync(fd);
  } catch (error) {
    if (codeOf(error) !== "EACCES" || !lstatSync(path).isDirectory()) return;
    chmodSync(path, 0o700);
  }
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isDirectory()) openUp(`${path}/${entry.name}`);
  }
}

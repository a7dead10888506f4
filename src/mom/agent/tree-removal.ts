// Removes the directories that jobs leave (TMPDIR, sandbox) with the rights of their owners, whatever they contain.

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
import { codeOf } from "#support/caught.ts";
import { actAs } from "../host/posix.ts";
import type { FilePlan } from "../job/agent-link.ts";
import { asOwner } from "./open-directories.ts";

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;

/** A tree with more entries than this is big: its removal delays other jobs noticeably. */
const BIG_ENTRIES = 2000;
/** A directory of at most this size without subdirectories has a few hundred entries at most. Most small trees are recognised by this alone. */
const SMALL_BYTES = 4096;

/** Whether a tree has many entries. If its owner has made it unreadable, it counts as big, because it may contain anything. */
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
 * Removes the TMPDIRs of several jobs at the same time. On a file system that tells the disk about freed blocks immediately (discard without a journal), each
 * removal waits for the disk. Empty TMPDIRs are removed with the mom's rights, in other threads (host/posix.ts P2), the others with the rights of their owners.
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

/** Removes a tree with the owner's rights. Directories that the owner made unreadable are made readable first. */
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
      // Something in the tree belongs to another user: that stays.
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

// Makes files and directories where all users may write (spool, undelivered, the parent of TMPDIR, $jobdir_root). Their names can be guessed, so another user
// may have made something with the same name.

import { randomUUID } from "node:crypto";
import { chmodSync, closeSync, constants, lstatSync, mkdirSync, openSync, renameSync, unlinkSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf } from "#support/caught.ts";
import { actAs, asIdentity } from "../host/posix.ts";
import type { FilePlan, JobDirectories } from "../job/agent-link.ts";

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
const GROUP_OR_WORLD_WRITES = 0o022;
const RANDOM_CHARS = 8;
const NAME_TRIES = 10;

/** Does work with the owner's rights. The owner's identity stays in force afterwards, because the next call most likely also needs it. */
export function asOwner<T>(plan: Pick<FilePlan, "owner">, work: () => T): T {
  actAs(plan.owner);
  return work();
}

export const ownUid = (plan: FilePlan): number | undefined => plan.owner?.uid ?? process.geteuid?.();

export function removeQuietly(owner: FilePlan["owner"], path: string): void {
  try {
    actAs(owner);
    unlinkSync(path);
  } catch {
    // The entry did not exist, or its owner has taken away our right to remove it.
  }
}

export const placesOf = ({ tmpdir, sandbox, stagein, stageout }: FilePlan): JobDirectories => ({ tmpdir, sandbox, stagein, stageout });

/** Makes TMPDIR and sandbox of a job. Returns the plan, with changed paths if a name was taken (W4). */
export function makeDirectories(plan: FilePlan): FilePlan {
  const tmpdir = makeTmpdir(plan);
  const sandbox = plan.sandbox === null ? null : makeDirectory(plan, plan.sandbox);
  if (tmpdir === plan.tmpdir && sandbox === plan.sandbox) return plan;
  return { ...plan, tmpdir, sandbox, stagein: movedItems(plan, sandbox, plan.stagein), stageout: movedItems(plan, sandbox, plan.stageout) };
}

function movedItems({ sandbox: before }: FilePlan, after: string | null, items: FilePlan["stagein"]): FilePlan["stagein"] {
  if (before === null || after === null) return items;
  return items.map((item) => (item.local.startsWith(`${before}/`) ? { ...item, local: after + item.local.slice(before.length) } : item));
}

function makeTmpdir(plan: FilePlan): string {
  try {
    return makeDirectory(plan, plan.tmpdir);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    actAs(null);
    mkdirSync(dirname(plan.tmpdir), { recursive: true, mode: 0o755 });
    chmodSync(dirname(plan.tmpdir), 0o1777);
    return makeDirectory(plan, plan.tmpdir);
  }
}

/**
 * Makes a directory and returns its path. If another user already has something at that path, the job must not run among those files: the path gets a random
 * part.
 */
function makeDirectory(plan: FilePlan, path: string): string {
  for (let tries = 0, at = path; ; tries++, at = `${path}.${randomUUID().slice(0, RANDOM_CHARS)}`) {
    try {
      asOwner(plan, () => mkdirSync(at, { mode: 0o700 }));
      return at;
    } catch (error) {
      if (codeOf(error) !== "EEXIST" || tries === NAME_TRIES) throw error;
      if (tries === 0 && isLeft(plan, at)) return at;
    }
  }
}

/**
 * Whether the directory was left by an earlier request or run of the job. Returns false if other users can write to it: they
 * may have moved it here with their own files in it.
 */
function isLeft(plan: FilePlan, path: string): boolean {
  const stat = asOwner(plan, () => lstatSync(path));
  if (!stat.isDirectory() || stat.uid !== ownUid(plan) || (stat.mode & GROUP_OR_WORLD_WRITES) !== 0) return false;
  asOwner(plan, () => chmodSync(path, 0o700));
  return true;
}

/**
 * Makes a new file in place of a foreign entry and opens it. The file first has a name that nobody knows, and is then renamed, so that no other entry can be
 * planted in between.
 */
export function replaceForeign(plan: FilePlan, path: string, mode: number): number {
  const fresh = `${path}.${randomUUID()}`;
  const fd = openSync(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  try {
    asIdentity(null, () => putInPlace(fresh, path));
    actAs(plan.owner);
    return fd;
  } catch (error) {
    closeSync(fd);
    removeQuietly(null, fresh);
    throw error;
  }
}

/**
 * Renames a file to a name that may be taken. If a directory has that name, it gets another name and is not removed: to remove its contents with the mom's
 * rights could lead anywhere, because its owner can change it meanwhile (W1).
 */
export function putInPlace(from: string, to: string): void {
  for (let tries = 0; ; tries++) {
    try {
      return renameSync(from, to);
    } catch (error) {
      if (codeOf(error) !== "EISDIR" || tries === NAME_TRIES) throw error;
      renameSync(to, `${to}.${randomUUID()}`);
    }
  }
}

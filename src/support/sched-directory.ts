// Checks the directories of a scheduler. The server does so before it starts the scheduler, and the scheduler before it uses
// the directories (docs/reference/scheduler.md 2).

import { closeSync, constants, fstatSync, openSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "./caught.ts";

/** Files that a sched_priv must contain. */
export const SCHED_FILES = ["sched_config", "resource_group", "holidays", "dedicated_time"] as const;

const GROUP_OR_WORLD_WRITES = 0o022;

/**
 * Checks a sched_priv. It must be a directory of the scheduler's user that no other user can write, and contain all its files. Returns the text of the fault,
 * or null if there is none.
 */
export function checkPrivate(dir: string, uid = ownUid()): string | null {
  const fault = checkOwn(dir, true, uid);
  if (fault !== null) return fault;
  for (const file of SCHED_FILES) {
    const wrong = checkOwn(join(dir, file), false, uid);
    if (wrong !== null) return wrong;
  }
  return null;
}

/**
 * Checks a directory for logs. A user who can write to it could redirect what the scheduler writes. Returns the text of the fault, or null if there is none.
 */
export const checkLogDirectory = (dir: string, uid = ownUid()): string | null => checkOwn(dir, true, uid);

const ownUid = (): number => process.getuid?.() ?? 0;

/** Opens sched_out, the file for stdout and stderr of the scheduler, for appending. null: it is not a plain file that belongs to the scheduler. */
export function openSchedOut(sched_priv: string): number | null {
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;
  let fd: number;
  try {
    fd = openSync(join(sched_priv, "sched_out"), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o644);
  } catch {
    return null;
  }
  const stat = fstatSync(fd);
  if (stat.isFile() && stat.nlink === 1) return fd;
  closeSync(fd);
  return null;
}

/**
 * Checks the owner and the mode of a file or directory. uid: the scheduler's user. The file may also belong to root. But if
 * the process that checks runs as another user than the scheduler (the server does), a directory of root is refused, because
 * the scheduler could not use it.
 */
function checkOwn(path: string, directory: boolean, uid: number): string | null {
  try {
    const stat = statSync(path);
    if (directory ? !stat.isDirectory() : !stat.isFile()) return `${path} is not a ${directory ? "directory" : "file"}`;
    if (stat.uid !== uid && stat.uid !== 0) return `${path} belongs to another user`;
    if (directory && stat.uid !== uid && uid !== ownUid()) return `${path} does not belong to the user of the scheduler`;
    return (stat.mode & GROUP_OR_WORLD_WRITES) === 0 ? null : `${path} can be written by group or others`;
  } catch (error) {
    return messageOf(error);
  }
}

// Copies with the rights of a job's owner: files and trees on this host, and to and from other hosts by the site's copy program. The caller has taken on the
// owner's file identity (host/posix.ts P2). The copy program runs entirely as the owner.
//
// C1. Copying never waits for the other end of a FIFO, and reads no device.
// C2. A file is never copied onto itself.

import { spawnSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { basename } from "node:path";
import { identityWords } from "../host/identity-words.ts";
import type { FilePlan } from "../job/agent-link.ts";
import type { Place } from "../job/stage-list.ts";

const { O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;
const COPY_BYTES = 1 << 20;
/** A copy to or from another host that takes longer than this has failed. */
const REMOTE_COPY_MS_MAX = 600_000;
/** The copy program's message is reported up to this length. */
const SAID_CHARS_MAX = 500;

/** Copies the contents of a file. An existing target keeps its owner, mode and links, as with cp. Links are not followed. */
export function copyFile(from: string, to: string): void {
  const source = openSync(from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const stat = fstatSync(source);
    if (!stat.isFile()) throw new Error(`${from} is not a file`);
    const target = openSync(to, O_WRONLY | O_CREAT | O_NONBLOCK, stat.mode & 0o777);
    try {
      const kind = fstatSync(target);
      if (kind.isFIFO() || kind.isSocket()) throw new Error(`${to} is not a file`);
      if (kind.ino === stat.ino && kind.dev === stat.dev) throw new Error(`${from} and ${to} are the same file`);
      if (kind.isFile()) ftruncateSync(target);
      const buffer = Buffer.alloc(Math.min(COPY_BYTES, Math.max(1, stat.size)));
      for (let count = readSync(source, buffer); count > 0; count = readSync(source, buffer)) writeAll(target, buffer.subarray(0, count));
    } finally {
      closeSync(target);
    }
  } finally {
    closeSync(source);
  }
}

export function writeAll(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}

/**
 * Copies a file, or a directory with its contents. Modes and times are kept, and links inside the directory stay links. If `from` itself is a link, its target
 * is copied.
 */
export function copyTree(from: string, to: string): void {
  const stat = statSync(from);
  if (stat.isDirectory()) {
    mkdirSync(to, { recursive: true, mode: 0o700 });
    for (const entry of readdirSync(from, { withFileTypes: true })) {
      const [source, target] = [`${from}/${entry.name}`, `${to}/${entry.name}`];
      if (entry.isSymbolicLink()) symlinkSync(readlinkSync(source), target);
      else copyTree(source, target);
    }
  } else {
    copyFile(realpathSync(from), to);
  }
  if (!lstatSync(to).isSymbolicLink() && statSync(to).uid === stat.uid) {
    chmodSync(to, stat.mode & 0o7777);
    utimesSync(to, stat.atime, stat.mtime);
  }
}

export const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** Whether both paths lead to the same file. */
export function isSameFile(a: string, b: string): boolean {
  const [left, right] = [statSync(a, { throwIfNoEntry: false }), statSync(b, { throwIfNoEntry: false })];
  return left !== undefined && right !== undefined && left.ino === right.ino && left.dev === right.dev;
}

/** Copies between this host and another with the site's program, run as the owner. Throws with the program's message. */
export function copyRemote(plan: FilePlan, from: Place, to: Place): void {
  const [program, ...args] = plan.scp;
  if (program === undefined) throw new Error(`no program to copy to and from ${from.host ?? to.host}: PBS_SCP names none`);
  const words = [program, ...args, "--", place(plan, from), place(plan, to)];
  const { owner } = plan;
  const become = owner === null ? [] : identityWords(owner);
  const [first, ...rest] = [...become, ...words] as [string, ...string[]];
  const env = { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: plan.home, USER: plan.user, LOGNAME: plan.user };
  const done = spawnSync(first, rest, {
    cwd: "/",
    env,
    stdio: ["ignore", "ignore", "pipe"],
    encoding: "utf8",
    timeout: REMOTE_COPY_MS_MAX,
  });
  if (done.status === 0) return;
  const said = done.error?.message ?? done.stderr.trim().slice(-SAID_CHARS_MAX);
  throw new Error(`${basename(program)} ended with ${done.status ?? done.signal}${said === "" ? "" : `: ${said}`}`);
}

const place = (plan: FilePlan, { host, path }: Place): string => (host === null ? path : `${plan.user}@${host}:${path}`);

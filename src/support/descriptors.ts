// Closes file descriptors that a daemon inherited from the process that started it. A file opened by root's shell must not
// stay open in a daemon and must never reach a user's job.
//
// D1. Every descriptor above 2 that stays open has FD_CLOEXEC, so that programs started later do not inherit it. Node.js
//     opens its own descriptors with this flag, but sets it on inherited ones only up to the first unused number above 15.

import { closeSync, readdirSync, readFileSync, readlinkSync } from "node:fs";

const DIRECTORY = "/proc/self/fd";
const O_CLOEXEC = 0o2000000;
const ACCESS = 0o3;

/** An open descriptor above 2. target: what it leads to, in the words of /proc, such as `/etc/passwd` or `pipe:[81]`. flags: the flags of open(2). */
export type Descriptor = { readonly fd: number; readonly target: string; readonly flags: number };

/**
 * Returns the descriptors that Node.js itself has not opened. When Node.js starts, it has event queues (`anon_inode:`), /dev/null, and pipes of which it has
 * both ends, all with FD_CLOEXEC. kept: numbers that are meant for this process.
 */
export function foreignDescriptors(open: readonly Descriptor[], kept: ReadonlySet<number>): number[] {
  const isPaired = ({ target, flags }: Descriptor): boolean => {
    const ends = open.filter((other) => other.target === target);
    return ends.length === 2 && ends.some((other) => (other.flags & ACCESS) !== (flags & ACCESS));
  };
  const isOwn = (each: Descriptor): boolean =>
    (each.flags & O_CLOEXEC) !== 0 &&
    (each.target.startsWith("anon_inode:") || each.target === "/dev/null" || (each.target.startsWith("pipe:") && isPaired(each)));
  return open.filter((each) => !kept.has(each.fd) && !isOwn(each)).map(({ fd }) => fd);
}

/**
 * Closes inherited descriptors that are not meant for this process. Must be called first in a program, because Node.js opens files and sockets of its own
 * later. kept: numbers above 2 that the parent process passes on purpose. Does nothing if there is no /proc.
 */
export function closeForeignDescriptors(...kept: readonly number[]): void {
  const channel = Number(process.env["NODE_CHANNEL_FD"] ?? Number.NaN);
  for (const fd of foreignDescriptors(openDescriptors(), new Set([...kept, channel]))) {
    try {
      closeSync(fd);
    } catch {
      // The descriptor was closed meanwhile.
    }
  }
}

function openDescriptors(): Descriptor[] {
  let names: string[];
  try {
    names = readdirSync(DIRECTORY);
  } catch {
    return [];
  }
  return names.flatMap((name) => {
    const fd = Number(name);
    if (fd <= 2) return [];
    try {
      const info = readFileSync(`/proc/self/fdinfo/${name}`, "latin1");
      return [
        { fd, target: readlinkSync(`${DIRECTORY}/${name}`), flags: Number.parseInt(/^flags:\s*([0-7]+)/m.exec(info)?.[1] ?? "0", 8) },
      ];
    } catch {
      // This descriptor belonged to the open directory /proc/self/fd, which is closed now.
      return [];
    }
  });
}

// Reads the processes in /proc: their sessions, their usage. Parsing is pure. All processes are read in one pass.

import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import type { ProcessInfo } from "../job/process.ts";

/**
 * Parses the text of /proc/PID/stat. Returns null if the text has another form. The program's name in it may contain blanks and parentheses: the last `)` of
 * the text ends the name.
 */
export function parseStat(text: string): ProcessInfo | null {
  const close = text.lastIndexOf(")");
  if (close < 0) return null;
  const field = text.slice(close + 2).split(" ");
  const number = (at: number): number => Number(field[at]);
  const pid = Number.parseInt(text, 10);
  if (!(pid > 0) || field.length < 22) return null;
  return {
    pid,
    state: field[0] ?? "?",
    ppid: number(1),
    session: number(3),
    ticks: number(11) + number(12) + number(13) + number(14),
    start_ticks: number(19),
    vmem_kb: Math.floor(number(20) / 1024),
    rss_pages: number(21),
  };
}

const page = Buffer.alloc(4096);

/**
 * Reads a file of /proc, with fewer system calls than readFileSync. line: the file is a single line, which one read returns whole. Throws if the file does not
 * exist.
 */
export function kernelText(path: string, line = false): string {
  const fd = openSync(path, "r");
  try {
    let text = "";
    // A read that returns fewer bytes than requested has not reached the end: the kernel returns as many whole entries as it has ready.
    for (let count = readSync(fd, page); count > 0; count = line ? 0 : readSync(fd, page)) text += page.toString("latin1", 0, count);
    return text;
  } finally {
    closeSync(fd);
  }
}

/** Reads one process. Returns null if it no longer exists. */
export function readProcess(pid: number): ProcessInfo | null {
  try {
    return parseStat(kernelText(`/proc/${pid}/stat`, true));
  } catch {
    return null;
  }
}

/**
 * Returns the kernel's name of a process: 15 bytes of the name of the program it executed last. A process that is dead but not reaped still has it. Returns
 * null if the process no longer exists.
 */
export function processName(pid: number): string | null {
  try {
    return kernelText(`/proc/${pid}/comm`, true).replace(/\n$/, "");
  } catch {
    return null;
  }
}

/** Returns the peak memory of this process in kilobytes; 0: the kernel does not report it. */
export function ownPeak_kb(): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(kernelText("/proc/self/status"))?.[1] ?? 0);
}

/** Reads all processes that exist now. */
export function readProcesses(): ProcessInfo[] {
  const found: ProcessInfo[] = [];
  for (const name of readdirSync("/proc")) {
    const first = name.charCodeAt(0);
    if (first < 49 || first > 57) continue;
    const info = readProcess(Number(name));
    if (info !== null) found.push(info);
  }
  return found;
}

/** Returns, for each of the session leaders, its processes: the members of its session and their descendants. The map is by the leader's pid. */
export function processesOf(all: readonly ProcessInfo[], leaders: ReadonlySet<number>): Map<number, ProcessInfo[]> {
  const byPid = new Map(all.map((info) => [info.pid, info]));
  const owner = new Map<number, number>();
  const find = (info: ProcessInfo, depth: number): number => {
    const known = owner.get(info.pid);
    if (known !== undefined) return known;
    let leader = 0;
    if (leaders.has(info.session)) leader = info.session;
    else if (leaders.has(info.pid)) leader = info.pid;
    else if (depth < 1000) {
      const parent = byPid.get(info.ppid);
      if (parent !== undefined) leader = find(parent, depth + 1);
    }
    owner.set(info.pid, leader);
    return leader;
  };
  const result = new Map<number, ProcessInfo[]>();
  for (const info of all) {
    const leader = find(info, 0);
    if (leader === 0) continue;
    const list = result.get(leader);
    if (list === undefined) result.set(leader, [info]);
    else list.push(info);
  }
  return result;
}

/** Returns a variable of the environment with which a process began; null: the variable does not exist or cannot be read. */
export function processVariable(pid: number, name: string): string | null {
  try {
    for (const entry of readFileSync(`/proc/${pid}/environ`, "utf8").split("\0")) {
      if (entry.startsWith(`${name}=`)) return entry.slice(name.length + 1);
    }
  } catch {
    // The process no longer exists, or may not be examined.
  }
  return null;
}

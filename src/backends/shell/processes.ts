// Processes of this machine as /proc shows them. A process is known by number, time of birth and boot, so that another process that later has the same number
// is not taken for it.

import { readdirSync, readFileSync, statSync } from "node:fs";

export type Process = { readonly pid: number; readonly birth: number; readonly boot: string };

/** Returns the boot of this machine, which differs after a restart. */
export function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
}

/** Returns the process that has this number now; null: none, or only a zombie. */
export function processOf(pid: number, boot: string): Process | null {
  const birth = birthOfStat(readOf(pid, "stat"));
  return birth === null ? null : { pid, birth, boot };
}

export function isAlive(process: Process): boolean {
  return process.boot === bootId() && processOf(process.pid, process.boot)?.birth === process.birth;
}

/** Clock ticks for each second: Linux gives this unit to programs on every architecture. */
const TICKS = 100;

/** Returns how long ago (seconds) a process of this boot was born. */
export function ageOf(process: Process): number {
  const uptime_s = Number(readFileSync("/proc/uptime", "latin1").split(" ")[0]);
  return uptime_s - process.birth / TICKS;
}

/** Returns the environments of all processes that this user may read, with their numbers. */
export function* environments(): Generator<{ readonly pid: number; readonly environ: string }> {
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const pid = Number(name);
    const environ = readOf(pid, "environ");
    if (environ !== "") yield { pid, environ };
  }
}

/** Returns the user of a process; null: it has ended. */
export function uidOf(pid: number): number | null {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid ?? null;
}

/** Whether a process leads a process group. Its children, which inherit its environment, do not. */
export function leadsGroup(pid: number): boolean {
  const stat = readOf(pid, "stat");
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2]) === pid;
}

/** Sends a signal to a process and all of its process group. The process must lead the group. */
export function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // The group no longer exists.
  }
}

/** Returns the birth of a process in /proc/PID/stat; null: it has ended (also as a zombie). The name of the program may contain blanks and brackets. */
export function birthOfStat(stat: string): number | null {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, birth] = [fields[0], fields[19]];
  return state === undefined || birth === undefined || "ZXx".includes(state) || !/^\d+$/.test(birth) ? null : Number(birth);
}

function readOf(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}

// Functions for processes of a complex, given their pids: state, descendants, signals, waiting for the end.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { codeOf } from "#support/caught.ts";
import { AdminError } from "./complex-home.ts";

/** The longest time for a stop, and the interval of reports about its progress. */
const STOP_S_MAX = 180;
const STOP_TELL_S = 10;
/** How long to wait until a zombie has disappeared: tools that check its pid believe that the process lives. The wait has an end, because process 1 may never reap the zombie. */
const BURIAL_S_MAX = 5;

/** The state of a process. A zombie has ended and has no files or locks; only its parent can remove it. */
export type Life = "runs" | "zombie" | "gone";

function lifeOf(pid: number): Life {
  const state = stateOf(pid);
  if (state === null) return "gone";
  return /[ZX]/.test(state) ? "zombie" : "runs";
}

/** Whether a process is suspended, by SIGSTOP or by a debugger. */
export function isStopped(pid: number): boolean {
  return /^[Tt]$/.test(stateOf(pid) ?? "");
}

/** Returns the state letter of proc(5), or null if the process does not exist. */
function stateOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.charAt(stat.lastIndexOf(")") + 2);
  } catch {
    return null;
  }
}

/** Returns all descendants of the given processes. The starter is the subreaper of its jobs, so that orphaned processes of jobs are also its descendants. */
export function descendants(roots: readonly number[]): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "latin1");
      const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
      children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
    } catch {
      // The process has ended meanwhile.
    }
  }
  const found: number[] = [];
  const walk = (pid: number): void => {
    for (const child of children.get(pid) ?? []) {
      found.push(child);
      walk(child);
    }
  };
  for (const pid of roots) walk(pid);
  return found;
}

/** Returns the inodes of the files that a process has open, or null if we may not see them. */
export function openInodes(pid: number): ReadonlySet<number> | null {
  try {
    const names = readdirSync(`/proc/${pid}/fd`);
    return new Set(names.flatMap((name) => statSync(`/proc/${pid}/fd/${name}`, { throwIfNoEntry: false })?.ino ?? []));
  } catch {
    return null;
  }
}

export function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (codeOf(error) === "EPERM") throw new AdminError(`process ${pid} belongs to another user`);
  }
}

/**
 * How to wait for the end of processes. burial: wait also, for a short time, until zombies have disappeared. waits: called every
 * STOP_TELL_S seconds with a text that names the processes that still run; zombies are not named.
 */
export type Goodbye = { readonly burial: boolean; readonly waits?: (text: string) => void };

/** Waits until none of the processes runs. Throws AdminError after STOP_S_MAX; the error names the processes that still run. */
export async function gone(
  processes: readonly (readonly [name: string, pid: number])[],
  { burial, waits = () => undefined }: Goodbye,
): Promise<void> {
  const begin_ms = performance.now();
  let told_ms = begin_ms;
  let ended_ms: number | null = null;
  for (;;) {
    const now_ms = performance.now();
    const there = processes.filter(([, pid]) => lifeOf(pid) !== "gone");
    const alive = there.filter(([, pid]) => lifeOf(pid) === "runs");
    if (there.length === 0 || (alive.length === 0 && !burial)) return;
    if (alive.length === 0) {
      ended_ms ??= now_ms;
      if (now_ms > ended_ms + BURIAL_S_MAX * 1000) return;
    }
    const text = `still active: ${alive.map(([name, pid]) => `${name} (pid ${pid})`).join(", ")}`;
    if (now_ms > begin_ms + STOP_S_MAX * 1000) throw new AdminError(`${text}, after ${STOP_S_MAX} s`);
    if (alive.length > 0 && now_ms > told_ms + STOP_TELL_S * 1000) {
      told_ms = now_ms;
      waits(text);
    }
    await sleep(10);
  }
}

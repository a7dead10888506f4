// Measures how this host is used: its load, the last input at a terminal, and the owners of its processes.

import { readdirSync, statSync } from "node:fs";
import { loadavg } from "node:os";
import type { Measure } from "../config/node-load.ts";

/**
 * Names of terminals at which people work: consoles and serial lines (remote and graphical sessions have theirs in /dev/pts). The access time of a
 * terminal's device file is the time at which its input was last read.
 */
const CONSOLE = /^tty(?:\d+|S\d+|USB\d+)$/;

/** Measures load and last input. with_keyboard false: the last input is not needed. now_ms: epoch milliseconds. */
export function measureHost(with_keyboard: boolean, now_ms: number): Measure {
  return { load: loadavg()[0] ?? 0, idle_s: with_keyboard ? idleSeconds("/dev", now_ms) : null };
}

/** Returns the seconds since the last input at any terminal under the directory `dev` (`/dev`), or null if there is no terminal. */
export function idleSeconds(dev: string, now_ms: number): number | null {
  const terminals = [
    ...names(dev)
      .filter((name) => CONSOLE.test(name))
      .map((name) => `${dev}/${name}`),
    ...names(`${dev}/pts`)
      .filter((name) => /^\d+$/.test(name))
      .map((name) => `${dev}/pts/${name}`),
  ];
  let last_ms = Number.NEGATIVE_INFINITY;
  for (const path of terminals) last_ms = Math.max(last_ms, statSync(path, { throwIfNoEntry: false })?.atimeMs ?? Number.NEGATIVE_INFINITY);
  return last_ms === Number.NEGATIVE_INFINITY ? null : Math.max(0, (now_ms - last_ms) / 1000);
}

function names(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** Returns all processes with their owners. */
export function processOwners(): { readonly pid: number; readonly uid: number }[] {
  return names("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    const stat = statSync(`/proc/${name}`, { throwIfNoEntry: false });
    return stat === undefined ? [] : [{ pid: Number(name), uid: stat.uid }];
  });
}

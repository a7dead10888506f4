// Samples the processes of jobs once.

import { libc } from "#support/libc/libc.ts";
import { type Seen, seenOf } from "../job/usage.ts";
import { processesOf, readProcesses } from "./proc-table.ts";
import { ownerOf } from "./session-end.ts";

/** Linux reports cpu time to programs in hundredths of a second, whatever the kernel's own clock is. */
const TICKS_PER_S = 100;
const KB = 1024;

let page_kb = 0;

/** Sums the usage of each session leader's processes, in one pass over /proc. owners: sessions in which only the processes of this user count. */
export function look(leaders: ReadonlySet<number>, owners: ReadonlyMap<number, number> = new Map()): Map<number, Seen> {
  if (page_kb === 0) page_kb = Number(libc().libc.func("int getpagesize()")()) / KB;
  const seen = new Map<number, Seen>();
  for (const [leader, processes] of processesOf(readProcesses(), leaders)) {
    const uid = owners.get(leader);
    const counted = uid === undefined ? processes : processes.filter(({ pid }) => ownerOf(pid) === uid);
    if (counted.length > 0) seen.set(leader, seenOf(counted, TICKS_PER_S, page_kb));
  }
  return seen;
}

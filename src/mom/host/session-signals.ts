// Sends signals to all processes of sessions.

import type { ProcessInfo } from "../job/process.ts";
import { processesOf, readProcesses } from "./proc-table.ts";
import { ownerOf, signalQuietly } from "./session-end.ts";

export const SIGKILL = 9;
const KILL_ROUNDS = 20;

/**
 * Sends a signal to all processes of each session. SIGKILL is repeated while new processes appear. wanted: the signal by the pid of the session's leader.
 * owners: sessions in which only the processes of this user get the signal.
 */
export function signalSessions(wanted: ReadonlyMap<number, number>, owners: ReadonlyMap<number, number> = new Map()): void {
  if (wanted.size === 0) return;
  const kills = [...wanted].filter(([, signal]) => signal === SIGKILL).map(([pid]) => pid);
  const membersOf = (leaders: Iterable<number>): [number, ProcessInfo[]][] =>
    [...processesOf(readProcesses(), new Set(leaders))].map(([leader, members]) => {
      const uid = owners.get(leader);
      return [leader, uid === undefined ? members : members.filter(({ pid }) => ownerOf(pid) === uid)];
    });
  for (const [leader, members] of membersOf(wanted.keys())) {
    const signal = wanted.get(leader) ?? 0;
    for (const member of members) signalQuietly(member.pid, signal);
  }
  for (let round = 0; round < KILL_ROUNDS && kills.length > 0; round++) {
    const left = membersOf(kills)
      .flatMap(([, members]) => members)
      .filter((info) => info.state !== "Z" && info.state !== "X");
    if (left.length === 0) return;
    for (const info of left) signalQuietly(info.pid, SIGKILL);
  }
}

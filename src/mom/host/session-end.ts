// Processes left of jobs whose top process has ended: they are found among the starter's own children (the starter is their subreaper) and killed, so that `exited`
// means that the whole session is gone.
//
// E1. A process belongs to a job by its control group, by its session, or, if it made a session of its own, by PBS_JOBID and PBS_JOBCOOKIE in its
//     environment.
// E2. Without control groups a process may have removed everything that identifies its job: it ends with the last job of its user on this host.

import { statSync } from "node:fs";
import type { ProcessInfo } from "../job/process.ts";
import type { JobGroups } from "./cgroup.ts";
import { kernelText, processVariable, readProcess, readProcesses } from "./proc-table.ts";

/** Pids of our children, dead ones not yet reaped included. */
function childPids(): number[] {
  try {
    return kernelText(`/proc/self/task/${process.pid}/children`)
      .trim()
      .split(" ")
      .filter((text) => text !== "")
      .map(Number);
  } catch {
    // The kernel has no such list: the parents of all processes are checked.
    return readProcesses()
      .filter((info) => info.ppid === process.pid)
      .map((info) => info.pid);
  }
}

/** uid: the owner of its processes. */
export type EndingRun = { readonly job: string; readonly pid: number; readonly cookie: string; readonly uid: number };
/** Live top processes and their owners. */
export type Leaders = ReadonlyMap<number, { readonly uid: number }>;

/**
 * Kills processes of the given runs in their groups and among the children, and returns the runs that had any (dead or alive).
 * others: children that belong to no run.
 */
export function killLeftovers(
  ending: readonly EndingRun[],
  leaders: Leaders,
  groups: JobGroups | null,
  others: ReadonlySet<number> = new Set(),
): Set<EndingRun> {
  const found = new Set(ending.filter((run) => groups !== null && groups.kill(run.job) > 0));
  const busy = new Set([...leaders.values()].map(({ uid }) => uid));
  const bySession = new Map(ending.map((run) => [run.pid, run]));
  for (const pid of childPids()) {
    if (leaders.has(pid) || others.has(pid)) continue;
    const info = readProcess(pid);
    if (info === null) continue;
    const run = bySession.get(info.session) ?? ownerByEnvironment(info, ending) ?? ownerByUser(info, ending, busy);
    if (run === undefined) continue;
    found.add(run);
    signalQuietly(pid, "SIGKILL");
  }
  return found;
}

/** A dead process has no environment to examine and need not be killed. */
function ownerByEnvironment(info: ProcessInfo, ending: readonly EndingRun[]): EndingRun | undefined {
  if (info.state === "Z") return undefined;
  const job = processVariable(info.pid, "PBS_JOBID");
  if (job === null) return undefined;
  const run = ending.find((candidate) => candidate.job === job);
  return run !== undefined && processVariable(info.pid, "PBS_JOBCOOKIE") === run.cookie ? run : undefined;
}

/** E2. With groups no guess is needed. */
function ownerByUser(info: ProcessInfo, ending: readonly EndingRun[], busy: ReadonlySet<number>): EndingRun | undefined {
  const uid = ownerOf(info.pid);
  return uid === null || busy.has(uid) ? undefined : ending.find((run) => run.uid === uid);
}

/** The uid of a process; null: there is none. */
export function ownerOf(pid: number): number | null {
  try {
    return statSync(`/proc/${pid}`).uid;
  } catch {
    return null;
  }
}

/** Returns false if the process does not exist (any more). */
export function signalQuietly(pid: number, signal: number | NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}

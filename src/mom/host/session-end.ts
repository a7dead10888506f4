// Finds and kills the remaining processes of jobs whose top process has ended. They are among the starter's own children, because the starter is their
// subreaper. When all of them are gone, the starter reports `exited`.
//
// E1. A process belongs to a job by its control group or by its session. If it made a session of its own, it belongs by PBS_JOBID and PBS_JOBCOOKIE in its
//     environment.
// E2. Without control groups, a process may have removed everything that shows its job. Such a process is killed at the end of its user's last job on this
//     host.

import { statSync } from "node:fs";
import type { ProcessInfo } from "../job/process.ts";
import type { JobGroups } from "./cgroup.ts";
import { kernelText, processVariable, readProcess, readProcesses } from "./proc-table.ts";

/** Returns the pids of our children, including dead ones that are not reaped yet. */
function childPids(): number[] {
  try {
    return kernelText(`/proc/self/task/${process.pid}/children`)
      .trim()
      .split(" ")
      .filter((text) => text !== "")
      .map(Number);
  } catch {
    // This kernel has no such list, so the parents of all processes are checked.
    return readProcesses()
      .filter((info) => info.ppid === process.pid)
      .map((info) => info.pid);
  }
}

/** A job whose top process has ended. pid: that process. uid: the owner of the job's processes. */
export type EndingRun = { readonly job: string; readonly pid: number; readonly cookie: string; readonly uid: number };
/** Top processes that live, with their owners, by pid. */
export type Leaders = ReadonlyMap<number, { readonly uid: number }>;

/**
 * Kills the processes of the given jobs, in their groups and among our children. Returns the jobs that still had any, dead or alive. others: pids of children
 * that belong to no job.
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

/** Returns the ended job that is named in the environment of a process. A dead process has no environment, and need not be killed. */
function ownerByEnvironment(info: ProcessInfo, ending: readonly EndingRun[]): EndingRun | undefined {
  if (info.state === "Z") return undefined;
  const job = processVariable(info.pid, "PBS_JOBID");
  if (job === null) return undefined;
  const run = ending.find((candidate) => candidate.job === job);
  return run !== undefined && processVariable(info.pid, "PBS_JOBCOOKIE") === run.cookie ? run : undefined;
}

/** Finds an ended job of the process' user (E2). Only used without control groups. */
function ownerByUser(info: ProcessInfo, ending: readonly EndingRun[], busy: ReadonlySet<number>): EndingRun | undefined {
  const uid = ownerOf(info.pid);
  return uid === null || busy.has(uid) ? undefined : ending.find((run) => run.uid === uid);
}

/** Returns the uid of a process; null: the process does not exist. */
export function ownerOf(pid: number): number | null {
  try {
    return statSync(`/proc/${pid}`).uid;
  } catch {
    return null;
  }
}

/** Sends a signal. Returns false if the process does not exist. */
export function signalQuietly(pid: number, signal: number | NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}

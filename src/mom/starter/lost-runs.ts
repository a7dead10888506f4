// What an earlier starter has left: runs that can no longer be waited for, and processes in the control groups of jobs.

import type { JobGroups } from "../host/cgroup.ts";
import { processesOf, processVariable, readProcesses } from "../host/proc-table.ts";
import { signalQuietly } from "../host/session-end.ts";
import { SIGKILL } from "../host/session-signals.ts";
import type { ProcessInfo } from "../job/process.ts";
import { jobOfName } from "../job/starter-link.ts";
import type { JournalRun, JournalState } from "./journal.ts";

const CLEAR_ROUNDS = 100;
const SURVIVOR_ROUNDS = 100;
const ROUND_MS = 10;

/**
 * Marks runs as lost that were running when an earlier starter ended: this starter cannot wait for them. Their processes are killed. boot: id of the machine's
 * present boot.
 */
export function settleLostRuns(state: JournalState, boot: string, groups: JobGroups | null): void {
  if (groups !== null) clearGroups(groups);
  const all = state.boot === boot ? readProcesses() : [];
  for (const run of state.runs.values()) {
    if (run.state !== "running") continue;
    if (all.length > 0) killSurvivors(run, all);
    state.runs.set(run.job, { job: run.job, run_count: run.run_count, pid: run.pid, at_ms: run.at_ms, ticks: run.ticks, state: "lost" });
  }
}

/** Kills all processes in the groups of jobs, and waits until they have ended (a second at most). */
export function clearGroups(groups: JobGroups): void {
  for (let round = 0; round < CLEAR_ROUNDS; round++) {
    let left = 0;
    for (const job of groups.jobs()) left += groups.kill(job);
    if (left === 0) break;
    pause();
  }
  for (const job of groups.jobs()) groups.close(job);
}

/** Kills the processes of a lost run, and waits until none is left (a second at most). */
function killSurvivors(run: JournalRun, all: readonly ProcessInfo[]): void {
  let left = survivors(run, all);
  for (let round = 0; left.length > 0 && round < SURVIVOR_ROUNDS; round++) {
    for (const info of left) signalQuietly(info.pid, SIGKILL);
    pause();
    left = survivors(run, readProcesses()).filter((info) => info.state !== "Z");
  }
}

/**
 * Returns the processes of a lost run that still live. Its session number may have been reused. So either the leader must be the process that was started, or
 * each process must have the run's job id and secret in its environment.
 */
function survivors(run: JournalRun, all: readonly ProcessInfo[]): ProcessInfo[] {
  const job = jobOfName(run.job);
  // Jobs of another mom on this host may have equal ids: the secret distinguishes them.
  const says = ({ pid }: ProcessInfo): boolean =>
    processVariable(pid, "PBS_JOBID") === job && run.cookie !== undefined && processVariable(pid, "PBS_JOBCOOKIE") === run.cookie;
  if (run.pid === 0) return all.filter(says);
  const leader = all.find((info) => info.pid === run.pid);
  const same = leader !== undefined && leader.start_ticks === run.ticks;
  const ours = processesOf(all, new Set([run.pid])).get(run.pid) ?? [];
  return same ? ours : ours.filter(says);
}

function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ROUND_MS);
}

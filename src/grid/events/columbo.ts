// Columbo: decides what follows from the end of a job. It first decides about the task of the job: whether the task runs again, when and where, or waits for the user.
// Then it decides whether the campaign pauses on the cluster. docs/campaigns.md "Events" has the table. Pure.
//
// C1. A job that exits with 0 is a result, even if the grid had ordered its end. There is one exception: the grid had found that another job of the task was successful.
// C2. If something other than the grid kills a job, the kill does not count against the error budget of the campaign.
// C3. After resubmissions_max automatic repetitions, a task waits for the user. A repetition does not count if the grid itself ended the job.
// C4. A campaign pauses on a cluster only beyond its error budget, or if the cluster is a sink. A person lets it continue by closing the event.

import { type Place, PRIORITY_LAST } from "../plan/task-bag.ts";

/**
 * What follows from the end of a job. result: the job was successful. again: its task returns to the bag. event: its task waits for a decision of the user.
 * moot: nothing follows, because the task is done or has another job.
 */
export type Fate =
  | { readonly kind: "result" }
  | { readonly kind: "again"; readonly priority: number; readonly is_error: boolean; readonly place: Place | null }
  | { readonly kind: "event"; readonly code: string; readonly message: string }
  | { readonly kind: "moot" };

/** What is known about the end of a job. kill: the reason for which the grid ordered its end; null: the grid did not. */
export type Ending = {
  readonly ending: "exit" | "walltime" | "killed" | "lost" | null;
  readonly exit_code: number | null;
  /** the cluster's words */
  readonly reason: string;
  readonly run_s: number | null;
  readonly kill: "excess" | "copy" | "deleted" | null;
  readonly cluster: string;
  /** the number of times that the task has run again automatically, and the largest such number */
  readonly resubmissions: number;
  readonly resubmissions_max: number;
  /** period_s: the job was told to write a checkpoint after each such period. data: where the checkpoints can be read. null: the job writes no checkpoints */
  readonly checkpoint: { readonly period_s: number; readonly data: "cluster" | "everywhere" } | null;
};

/** Priorities in the bag: tasks with a checkpoint come first, then those whose job was killed, then those that asked to run again. */
const PRIORITY_CHECKPOINT = 30;
const PRIORITY_KILLED = 20;
const PRIORITY_AGAIN = 10;
/** Exit codes by which a program asks that its task runs again: EXIT_AGAIN before the tasks that were never submitted, EXIT_LAST after all other tasks. */
const EXIT_AGAIN = 66;
const EXIT_LAST = 67;

/** Returns the fate of a job that has ended. */
export function fateOf(end: Ending): Fate {
  const { kill, resubmissions, resubmissions_max, ending, exit_code } = end;
  const fate = usualFate(end);
  if (fate.kind !== "again" || kill === "excess" || resubmissions < resubmissions_max) return fate;
  const last =
    ending === "exit"
      ? `exited with ${exit_code ?? "an unknown code"}`
      : ending === "walltime"
        ? "exceeded its walltime"
        : "was ended by the cluster";
  return {
    kind: "event",
    code: "RESUBMISSIONS",
    message: `its task has run again ${resubmissions} times on its own, which is the limit; the last job ${last}`,
  };
}

function usualFate(end: Ending): Fate {
  const { ending, exit_code, reason, kill, cluster } = end;
  // Another job of the task has ended well.
  if (kill === "copy") return { kind: "moot" };
  if (ending === "exit" && exit_code === 0) return { kind: "result" };
  if (kill === "deleted") return { kind: "moot" };
  if (kill === "excess") return again(PRIORITY_KILLED);
  if (ending === "walltime" || ending === "killed") {
    const is_error = ending === "walltime";
    if (hasCheckpoint(end)) {
      const place: Place | null = end.checkpoint?.data === "cluster" ? { only: cluster } : null;
      return { kind: "again", priority: PRIORITY_CHECKPOINT, is_error: false, place };
    }
    // A job that was too slow here is perhaps fast enough elsewhere.
    return { kind: "again", priority: PRIORITY_KILLED, is_error, place: is_error ? { avoid: cluster } : null };
  }
  if (exit_code === EXIT_AGAIN) return again(PRIORITY_AGAIN);
  if (exit_code === EXIT_LAST) return again(PRIORITY_LAST);
  if (ending === "lost") return { kind: "event", code: "UNKNOWN_ERROR", message: `how the job has ended is not known: ${reason}` };
  return { kind: "event", code: "EXIT_ERROR", message: `the job has ended with exit code ${exit_code ?? "unknown"}` };
}

const again = (priority: number): Fate => ({ kind: "again", priority, is_error: false, place: null });

/** Whether the job was told to write a checkpoint, which is so if it ran for at least one period. */
const hasCheckpoint = ({ checkpoint, run_s }: Ending): boolean => checkpoint !== null && run_s !== null && run_s >= checkpoint.period_s;

/** What is counted for a campaign on one cluster. results: its successful jobs there. errors: its failed jobs there. runs_s: run times of its last results there. */
export type PairEnds = { readonly results: number; readonly errors: number; readonly runs_s: readonly number[] };
export type ErrorBudget = { readonly count: number; readonly percent: number };
export type Pause = { readonly code: "ERROR_BUDGET" | "SINK"; readonly message: string };

/** The number of results that a cluster must have before it can be found to be a sink, and the number of run times that are kept. */
const SINK_RESULTS = 10;
export const RUNS_KEPT = 50;
/** A cluster is a sink if its median run time is less than this share of the median on the other clusters. */
const SINK_SHARE = 0.05;
/** Clusters report run times in whole seconds, so the true median may be longer than the reported one by about this time. */
const RESOLUTION_S = 0.5;

/** Returns the reason for which a campaign pauses on a cluster; null: it does not pause. elsewhere_s: run times of its last results on all other clusters. */
export function pauseOf(pair: PairEnds, elsewhere_s: readonly number[], { count, percent }: ErrorBudget): Pause | null {
  const { results, errors, runs_s } = pair;
  if (errors >= count && 100 * errors > percent * (errors + results))
    return {
      code: "ERROR_BUDGET",
      message: `${errors} of ${errors + results} jobs have failed there; the error budget is ${budgetText(count, percent)}`,
    };
  if (runs_s.length < SINK_RESULTS || elsewhere_s.length < SINK_RESULTS) return null;
  const [here, elsewhere] = [medianOf(runs_s), medianOf(elsewhere_s)];
  if (here + RESOLUTION_S >= SINK_SHARE * elsewhere) return null;
  return {
    code: "SINK",
    message: `jobs end in no time there: their median run time is ${here} s, and ${elsewhere} s on the other clusters`,
  };
}

const budgetText = (count: number, percent: number): string => (percent > 0 ? `${count} and ${percent} %` : String(count));

function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}

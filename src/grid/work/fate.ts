// What becomes of a task when a job of it has ended (docs/campaigns.md "Events"). Pure.

import type { JobSighting } from "#backends/contract/cluster.ts";
import { PRIORITY_LAST } from "../plan/task-bag.ts";
import type { Fate } from "../state/event.ts";
import type { GridJob } from "../state/grid-state.ts";

/** Priorities in the bag: tasks whose job was killed come first, then tasks that asked to run again. */
const PRIORITY_KILLED = 20;
const PRIORITY_AGAIN = 10;
/** Exit codes by which a program asks to run again: at once, or after all other tasks. */
const EXIT_AGAIN = 66;
const EXIT_LAST = 67;

export function fateOf({ kill }: GridJob, { ending, exit_code, reason }: JobSighting): Fate {
  // Another job of the task has ended well.
  if (kill === "copy") return { kind: "moot" };
  if (ending === "exit" && exit_code === 0) return { kind: "result" };
  if (kill === "deleted") return { kind: "moot" };
  if (kill === "excess") return { kind: "again", priority: PRIORITY_KILLED, is_error: false };
  if (ending === "walltime") return { kind: "again", priority: PRIORITY_KILLED, is_error: true };
  if (ending === "killed") return { kind: "again", priority: PRIORITY_KILLED, is_error: false };
  if (exit_code === EXIT_AGAIN) return { kind: "again", priority: PRIORITY_AGAIN, is_error: false };
  if (exit_code === EXIT_LAST) return { kind: "again", priority: PRIORITY_LAST, is_error: false };
  if (ending === "lost") return { kind: "event", code: "UNKNOWN_ERROR", message: `how the job has ended is not known: ${reason}` };
  return { kind: "event", code: "EXIT_ERROR", message: `the job has ended with exit code ${exit_code ?? "unknown"}` };
}

// Gathers the output of the core while events are applied. The shell takes the output as a batch and writes the changed
// rows; only after that it sends the replies and frames and carries out the actions (group commit, ARCHITECTURE.md).

import type { HookRun } from "#hooks/run/hook-input.ts";
import type { ServerToMom } from "#protocol/mom-link.ts";
import type { ServerToRunners } from "#protocol/runner-link.ts";
import type { ServerToSched } from "#protocol/sched-link.ts";
import type { LogRecord } from "#support/log-event.ts";
import type { Changes } from "../state/changes.ts";
import type { Mail } from "./mail.ts";
import type { AccountingRecord, Action } from "./transaction.ts";

/** A frame of an answer to a client: a part of the answer, or the end of it. */
export type ClientFrame =
  | { readonly kind: "part"; readonly token: number; readonly items: readonly unknown[] }
  | { readonly kind: "ok"; readonly token: number; readonly value?: unknown; readonly text?: string }
  | { readonly kind: "error"; readonly token: number; readonly code: number; readonly text: string | null };

/** A frame to a scheduler or mom. link: the number by which the shell has announced the connection. */
export type LinkFrame<Frames> = {
  [T in keyof Frames]: { readonly link: number; readonly type: T; readonly data: Frames[T] };
}[keyof Frames];
export type SchedFrame = LinkFrame<ServerToSched>;
export type MomFrame = LinkFrame<ServerToMom>;
export type RunnersFrame = LinkFrame<ServerToRunners>;

/** Selects the records that a walk through the history visits. subjobs false: only jobs and arrays, no subjobs. */
export type HistoryWalk = { readonly queue?: string; readonly seqs?: readonly number[]; readonly subjobs: boolean };

/** Actions that only the shell can carry out. */
export type ShellAction =
  | Extract<Action, { kind: "backup" | "ask-authority" | "shutdown" | "order-other" | "stop-secondary" | "start-sched" }>
  /** make the scheduler's directories that have default names */
  | { readonly kind: "prepare-sched"; readonly sched: string }
  /** write this into the log of a scheduler that does not run */
  | { readonly kind: "say-sched"; readonly sched: string; readonly text: string }
  | { readonly kind: "send-mail"; readonly mail: Mail }
  /** end the process of a scheduler. pid: of the connected scheduler, which need not be a child of the server; 0: it is not connected */
  | { readonly kind: "stop-sched"; readonly sched: string; readonly pid: number }
  /**
   * find out whether the scheduler's process is suspended (SIGSTOP), or, for a scheduler on another host, whether that host answers; then call
   * core.schedSeen(sched, ...). pid: of the connected scheduler; 0: it is not connected, or is on another host
   */
  | { readonly kind: "look-at-sched"; readonly sched: string; readonly pid: number }
  /** send SIGKILL if the process with that pid is still the scheduler */
  | { readonly kind: "kill-sched"; readonly sched: string; readonly pid: number }
  /** look these ids up in the history and call core.historyRead(token, ...) */
  | { readonly kind: "read-history"; readonly token: number; readonly ids: readonly string[] }
  /** look up a name or an address of a host and call core.hostResolved(token, ...) */
  | { readonly kind: "resolve-host"; readonly token: number; readonly host: string }
  /** run a hook and call core.hookEnded(run, outcome) */
  | { readonly kind: "run-hook"; readonly run: number; readonly hook: HookRun }
  /** read the history page by page and call core.historyPage(token, ...) */
  | { readonly kind: "page-history"; readonly token: number; readonly walk: HistoryWalk }
  /** call core.slice(token, ...) until it reports that nothing is left */
  | { readonly kind: "go-on"; readonly token: number }
  /** delete jobs from the history that ended before before_s (epoch seconds), then call core.historyPurged(count) */
  | { readonly kind: "purge-history"; readonly before_s: number }
  /** start the process of pbs_runners, unless one runs; then call core.runnersExited when it ends */
  | { readonly kind: "start-runners" }
  /** kill the process of pbs_runners, if it still has this pid */
  | { readonly kind: "kill-runners"; readonly pid: number }
  | { readonly kind: "drop-link"; readonly link: number }
  /** the log mask of the server changed */
  | { readonly kind: "log-events"; readonly mask: number }
  /** the server's job_sort_formula changed; null: it has none */
  | { readonly kind: "formula"; readonly text: string | null };

export type Batch = {
  readonly changes: Changes;
  readonly logs: readonly LogRecord[];
  readonly accounting: readonly AccountingRecord[];
  readonly clients: readonly ClientFrame[];
  readonly scheds: readonly SchedFrame[];
  /** frames to moms. In a mom-start the shell adds the scripts of the jobs, which are not kept in memory */
  readonly moms: readonly MomFrame[];
  readonly runners: readonly RunnersFrame[];
  readonly actions: readonly ShellAction[];
};

export type Outbox = { readonly [K in keyof Omit<Batch, "changes">]: Batch[K] extends readonly (infer T)[] ? T[] : never };

export const emptyOutbox = (): Outbox => ({ logs: [], accounting: [], clients: [], scheds: [], moms: [], runners: [], actions: [] });
export const isEmptyOutbox = (out: Outbox): boolean => Object.values(out).every((list) => list.length === 0);

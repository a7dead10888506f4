// Gathers the output of the core while events are applied. The shell takes it, writes the rows, and only then lets
// the rest go (group commit, ARCHITECTURE.md).

import type { HookRun } from "#hooks/run/hook-input.ts";
import type { ServerToMom } from "#protocol/mom-link.ts";
import type { ServerToSched } from "#protocol/sched-link.ts";
import type { LogRecord } from "#support/log-event.ts";
import type { Changes } from "../state/changes.ts";
import type { Mail } from "./mail.ts";
import type { AccountingRecord, Action } from "./transaction.ts";

/** An answer to a client, in the order of sending. */
export type ClientFrame =
  | { readonly kind: "part"; readonly token: number; readonly items: readonly unknown[] }
  | { readonly kind: "ok"; readonly token: number; readonly value?: unknown; readonly text?: string }
  | { readonly kind: "error"; readonly token: number; readonly code: number; readonly text: string | null };

/** A frame to a connection the shell named when it announced it. */
export type LinkFrame<Frames> = {
  [T in keyof Frames]: { readonly link: number; readonly type: T; readonly data: Frames[T] };
}[keyof Frames];
export type SchedFrame = LinkFrame<ServerToSched>;
export type MomFrame = LinkFrame<ServerToMom>;

/** The records that a walk through the history visits. Without subjobs it visits only whole jobs and arrays. */
export type HistoryWalk = { readonly queue?: string; readonly seqs?: readonly number[]; readonly subjobs: boolean };

/** Actions that only the shell can carry out. */
export type ShellAction =
  | Extract<Action, { kind: "backup" | "shutdown" | "start-sched" }>
  /** make its default-named directories */
  | { readonly kind: "prepare-sched"; readonly sched: string }
  /** a scheduler that does not run writes this into its log */
  | { readonly kind: "say-sched"; readonly sched: string; readonly text: string }
  | { readonly kind: "send-mail"; readonly mail: Mail }
  /** pid: of the connected scheduler, which need not be a child; 0: not connected */
  | { readonly kind: "stop-sched"; readonly sched: string; readonly pid: number }
  /** find out whether its process is stopped and call core.schedSeen(sched, ...). pid: of the connected scheduler; 0: not connected */
  | { readonly kind: "look-at-sched"; readonly sched: string; readonly pid: number }
  /** SIGKILL, if that process is still the scheduler */
  | { readonly kind: "kill-sched"; readonly sched: string; readonly pid: number }
  /** look these ids up in the history and call core.historyRead(token, ...) */
  | { readonly kind: "read-history"; readonly token: number; readonly ids: readonly string[] }
  /** find out whether the name resolves and call core.hostResolved(token, ...) */
  | { readonly kind: "resolve-host"; readonly token: number; readonly host: string }
  /** run a hook and call core.hookEnded(run, outcome) */
  | { readonly kind: "run-hook"; readonly run: number; readonly hook: HookRun }
  /** page through the history and call core.historyPage(token, ...) */
  | { readonly kind: "page-history"; readonly token: number; readonly walk: HistoryWalk }
  /** call core.slice(token, ...) until it reports that nothing is left */
  | { readonly kind: "go-on"; readonly token: number }
  /** forget finished jobs older than this (epoch seconds), then core.historyPurged(count) */
  | { readonly kind: "purge-history"; readonly before_s: number }
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
  /** scripts of jobs in mom-start are filled in by the shell (they are not kept in memory) */
  readonly moms: readonly MomFrame[];
  readonly actions: readonly ShellAction[];
};

export type Outbox = { readonly [K in keyof Omit<Batch, "changes">]: Batch[K] extends readonly (infer T)[] ? T[] : never };

export const emptyOutbox = (): Outbox => ({ logs: [], accounting: [], clients: [], scheds: [], moms: [], actions: [] });
export const isEmptyOutbox = (out: Outbox): boolean => Object.values(out).every((list) => list.length === 0);

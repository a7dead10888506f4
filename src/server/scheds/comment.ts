// Comments that the server writes about faults of schedulers (docs/reference/scheduler.md 2).

import { NO_PARTITION, NOT_REACHED } from "#protocol/sched-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";
import { runtimeOf } from "../engine/sched-runtime.ts";
import { isRemote, partitionsOf } from "../state/partitions.ts";
import type { Attrs, Sched } from "../state/state.ts";
import { logSched } from "./state.ts";
import { isFault, isProblem, isServersComment, NEEDS_ATTENTION, PROBLEM, READY_TO_USE, silentText } from "./supervisor.ts";

/** Sets the comment of a scheduler; null removes it. more: other attributes to set. */
function write(kernel: Kernel, name: string, comment: string | null, more: Attrs = {}): void {
  const set = comment === null ? more : { ...more, comment };
  ownTransaction(kernel).apply({ kind: "changed", object: "sched", name, set, unset: comment === null ? ["comment"] : [] });
}

/**
 * Called when a scheduler reports a fault, an unusable directory or configuration: sets the comment and sets scheduling to
 * False. text null: the fault is gone, and the comment is removed.
 */
export function tellFault(kernel: Kernel, name: string, text: string | null): void {
  const sched = kernel.state.scheds.get(name);
  if (sched === undefined) return;
  const runtime = runtimeOf(kernel, name);
  const { comment } = sched.attrs;
  if (text === null) {
    const given = runtime.fault;
    runtime.fault = null;
    if (comment !== undefined && (comment === given || isFault(comment))) write(kernel, name, null);
    return;
  }
  const own = isServersComment(comment, runtime.fault);
  runtime.fault = text;
  logSched(kernel, name, `${text}: scheduling is switched off`);
  if (own) write(kernel, name, text, { scheduling: false });
  else ownTransaction(kernel).apply({ kind: "changed", object: "sched", name, set: { scheduling: false }, unset: [] });
}

/** Writes a problem of the scheduler's modules into the comment, for the administrator; null: it is gone. A comment about a fault stays. */
export function tellProblem(kernel: Kernel, name: string, text: string | null): void {
  const sched = kernel.state.scheds.get(name);
  if (sched === undefined) return;
  runtimeOf(kernel, name).problem = text;
  const { comment } = sched.attrs;
  const isOwn = isProblem(comment) || (text !== null && (comment === undefined || comment === NEEDS_ATTENTION || comment === READY_TO_USE));
  if (!isOwn || comment === (text === null ? undefined : `${PROBLEM}${text}`)) return;
  write(kernel, name, text === null ? null : `${PROBLEM}${text}`);
}

/** Sets the comment when the scheduler has ended by itself too often. */
export function tellAttention(kernel: Kernel, sched: Sched): void {
  if (isServersComment(sched.attrs["comment"])) write(kernel, sched.name, NEEDS_ATTENTION);
}

/** Replaces the comment NEEDS_ATTENTION when the scheduler has completed a cycle again. */
export function tellReady(kernel: Kernel, sched: Sched): void {
  if (sched.attrs["comment"] === NEEDS_ATTENTION) write(kernel, sched.name, READY_TO_USE);
}

/** Sets the comment of a scheduler that does not answer. A comment about a fault stays. */
export function tellSilent(kernel: Kernel, sched: Sched, text: string): void {
  const { comment } = sched.attrs;
  if (isServersComment(comment) && !isFault(comment)) write(kernel, sched.name, `${PROBLEM}${text}`);
}

/** Called when the scheduler answers again or has ended: replaces the comment which says that it does not answer. */
export function tellAnswers(kernel: Kernel, sched: Sched): void {
  if (isProblem(sched.attrs["comment"])) write(kernel, sched.name, ownComment(kernel, sched));
}

/** The comment that the server gives a scheduler in its present state; null: none. */
function ownComment(kernel: Kernel, sched: Sched): string | null {
  const { fault, problem, attention, link, silent, unreached } = runtimeOf(kernel, sched.name);
  if (fault !== null) return fault;
  if (lacksPartition(sched)) return NO_PARTITION;
  if (unreached !== null) return `${NOT_REACHED}${unreached}`;
  if (silent !== null) return `${PROBLEM}${silentText(silent, kernel.now_ms)}`;
  if (attention && link === null) return NEEDS_ATTENTION;
  return problem === null ? null : `${PROBLEM}${problem}`;
}

/** Whether the scheduler should run and has no partition. */
const lacksPartition = (sched: Sched): boolean => sched.attrs["scheduling"] === true && partitionsOf(sched).length === 0;

/** If a scheduler lacks a partition, writes this into its log. Only for a scheduler of this host that does not run. */
export function sayNoPartition(kernel: Kernel, sched: Sched): void {
  if (lacksPartition(sched) && !isRemote(sched, kernel.config))
    kernel.out.actions.push({ kind: "say-sched", sched: sched.name, text: NO_PARTITION });
}

/** Updates the comment after a change of the scheduler's attributes. names: the changed attributes; unset: the names among them that were removed. */
export function commentFollows(kernel: Kernel, sched: Sched, names: readonly string[], unset: readonly string[]): void {
  const { comment } = sched.attrs;
  if (comment === NO_PARTITION && !lacksPartition(sched)) return write(kernel, sched.name, ownComment(kernel, sched));
  // A request that removes partition and comment together wants no comment at all.
  if (unset.includes("comment")) {
    const own = names.includes("partition") ? null : ownComment(kernel, sched);
    if (own !== null) write(kernel, sched.name, own);
    return;
  }
  if (!names.includes("scheduling") && !names.includes("partition")) return;
  if (!lacksPartition(sched)) return;
  kernel.out.logs.push({ event: LOG_EVENT.SYSTEM, class: "Sched", object: sched.name, text: NO_PARTITION });
  // A running scheduler writes its own log until it has ended.
  if (!runtimeOf(kernel, sched.name).started) sayNoPartition(kernel, sched);
  if (comment !== NO_PARTITION && isServersComment(comment)) write(kernel, sched.name, NO_PARTITION);
}

// Schedulers whose sched_host is another host, or that have a sched_port. This release does not support them: such a
// scheduler is stopped and stays down, and its comment says why.

import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";
import type { OwnHost } from "../state/own-host.ts";
import { isRemote } from "../state/partitions.ts";
import type { Sched } from "../state/state.ts";
import { isServersComment, NOT_REACHED } from "./supervisor.ts";

/**
 * The comment of a scheduler that belongs to another host, which is also the refusal if its process connects. null: the
 * scheduler belongs to this host.
 */
export function whyNotReached(sched: Sched, own: OwnHost): string | null {
  if (!isRemote(sched, own)) return null;
  const { sched_host, sched_port } = sched.attrs;
  const which = sched_port === undefined ? `sched_host is ${sched_host}` : "sched_port is set";
  return `${NOT_REACHED}${which}, and schedulers on other hosts are not supported. Unset it and the scheduler runs on ${own.host}.`;
}

/** Sets the comment that whyNotReached gives, or removes it. A comment of an administrator stays; the reason is logged in any case. */
export function tellWhetherReached(kernel: Kernel, sched: Sched): void {
  const why = whyNotReached(sched, kernel.config);
  const { comment } = sched.attrs;
  const told = typeof comment === "string" && comment.startsWith(NOT_REACHED);
  const change = (set: { comment?: string }, unset: readonly string[]): void =>
    ownTransaction(kernel).apply({ kind: "changed", object: "sched", name: sched.name, set, unset: [...unset] });
  if (why === null) {
    if (told) change({}, ["comment"]);
    return;
  }
  kernel.out.logs.push({ event: LOG_EVENT.SYSTEM, class: "Sched", object: sched.name, text: why });
  if (isServersComment(comment) && comment !== why) change({ comment: why }, []);
}

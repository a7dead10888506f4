// Checks K5: a job whose start a scheduler decided and the server accepted gets vnodes of the scheduler's partitions, and
// the job's queue belongs to one of these partitions.

import { parseExecVnode } from "#model/request/exec-vnode.ts";
import type { Decision } from "#protocol/sched-link.ts";
import type { Core } from "#server/core/core.ts";
import type { SchedFrame } from "#server/engine/batch.ts";
import { runtimeOfLink } from "#server/engine/sched-runtime.ts";
import { isResuming } from "#server/jobs/suspension.ts";
import { isIn } from "#server/state/job-phase.ts";
import { partitionOf, partitionsOf } from "#server/state/partitions.ts";
import { fail } from "./violation.ts";

export class Verdicts {
  /** the decisions without verdicts, by link */
  readonly #undecided = new Map<number, (readonly Decision[])[]>();
  /** the frames of verdicts that have been checked */
  readonly #judged = new WeakSet<SchedFrame>();

  /** Called when the server has processed decisions of a scheduler. Their verdicts are in the outbox or follow later. */
  decide(core: Core, link: number, decisions: readonly Decision[]): void {
    const waiting = this.#undecided.get(link) ?? [];
    this.#undecided.set(link, waiting);
    waiting.push(decisions);
    this.check(core, core.kernel.out.scheds, false);
  }

  /** Called when a server has started. It knows of no decisions. */
  load(): void {
    this.#undecided.clear();
  }

  /**
   * Checks new verdicts. late: they came only after hooks or preemptions. During hooks anything may have happened, so of late
   * verdicts only those on starts behind a preemption are checked, against the present state.
   */
  check(core: Core, frames: readonly SchedFrame[], late: boolean): void {
    for (const frame of frames) {
      if (frame.type !== "sched-verdicts" || this.#judged.has(frame)) continue;
      this.#judged.add(frame);
      const decisions = this.#undecided.get(frame.link)?.shift();
      const runtime = runtimeOfLink(core.kernel, frame.link);
      if (decisions === undefined || runtime === undefined) continue;
      const { verdicts } = frame.data;
      if (verdicts.length !== decisions.length) fail(`K5 ${decisions.length} decisions, ${verdicts.length} verdicts`);
      const from = late ? decisions.findLastIndex(({ kind }) => kind === "preempt") : -1;
      if (late && from < 0) continue;
      decisions.forEach((decision, at) => {
        if (decision.kind === "run" && at > from && verdicts[at]?.ok === true) checkRun(core, runtime.name, decision, late);
      });
    }
  }
}

function checkRun(core: Core, name: string, decision: Extract<Decision, { kind: "run" }>, late: boolean): void {
  // With job_run_wait none, the hooks are still being asked.
  if (core.kernel.scheds.by_name.get(name)?.asking.has(decision.job) === true) return;
  const sched = core.state.scheds.get(name);
  const partitions = sched === undefined ? [] : partitionsOf(sched);
  const job = core.state.jobs.get(decision.job);
  const queue = job === undefined ? undefined : core.state.queues.get(job.attrs.queue);
  // If the scheduler waits for the mom (job_run_wait), the job may have ended before the verdict. Such cases are checked by
  // K2 and K6.
  if (job === undefined || queue === undefined) return;
  // The verdict also waited for the mom. Meanwhile the queue may have moved to another partition (seed 3008959).
  if (late && !isIn(job, "starting")) return;
  const where = partitionOf(queue);
  if (!partitions.includes(where)) fail(`K5 scheduler ${name} of ${partitions} ran ${job.id} of queue ${queue.name} in ${where}`);
  // A resumed job continues on its old vnodes. Meanwhile its queue may have moved to another partition.
  if (isResuming(job)) return;
  // The start may have failed before a late verdict, so that the job waits again.
  if (job.attrs.exec_vnode === undefined) return;
  for (const { vnode } of parseExecVnode(job.attrs.exec_vnode).flat()) {
    const own = core.state.vnodes.get(vnode);
    if (own === undefined || partitionOf(own) !== where)
      fail(`K5 ${job.id} of partition ${where} was run on ${vnode} of ${own === undefined ? "nowhere" : partitionOf(own)}`);
  }
}

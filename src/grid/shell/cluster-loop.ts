// Does the work on one cluster in turns: it ends jobs, submits orders, reads the state of the cluster, and plans. Each cluster has a loop of its own, so that a cluster that
// hangs does not delay the others.
//
// L1. An order is committed before it is submitted. The ids of its jobs are committed before the jobs are released (backends/contract/cluster.ts C1).
// L2. If a cluster fails, the loop tries again after a pause, which grows with each failure. It never gives up.

import type { Owner } from "#backends/contract/backend.ts";
import { pauseAfter } from "#backends/contract/backoff.ts";
import type { ClusterAdapter, JobRef } from "#backends/contract/cluster.ts";
import { BackendError } from "#backends/contract/fault.ts";
import { messageOf, stackOf } from "#support/caught.ts";
import type { GridOrder } from "../state/grid-state.ts";
import { type GridCore, refOf } from "../work/core.ts";
import { jobsThere } from "../work/looking.ts";

export type LoopTools = {
  readonly core: GridCore;
  /** resolves when everything that was applied so far is durable */
  readonly settled: () => Promise<void>;
  readonly now_s: () => number;
  /** the user of an order on this machine; null: user mode. Throws a BackendError if there is none */
  readonly ownerOf: (remote_user: string) => Owner | null;
  readonly note: (text: string) => void;
  /** called when campaigns may have ended, or events were opened */
  readonly changed: () => void;
  readonly busy_ms: number;
  readonly idle_ms: number;
};

export class ClusterLoop {
  readonly #name: string;
  readonly #adapter: ClusterAdapter;
  readonly #tools: LoopTools;
  #text: string | null = null;
  #failures = 0;
  #isClosed = false;
  #wake: (() => void) | null = null;
  #isPoked = false;
  readonly #ended: Promise<void>;

  constructor(name: string, adapter: ClusterAdapter, tools: LoopTools) {
    this.#name = name;
    this.#adapter = adapter;
    this.#tools = tools;
    this.#ended = this.#run();
  }

  /** Makes the loop begin its next turn soon. */
  poke(): void {
    this.#isPoked = true;
    this.#wake?.();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#wake?.();
    await this.#ended;
    await this.#adapter.close();
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      const pause_ms = await this.#turn();
      if (this.#isClosed) break;
      await this.#pause(pause_ms);
    }
  }

  /** Does one turn. Returns the pause until the next turn. */
  async #turn(): Promise<number> {
    const { core, note, now_s } = this.#tools;
    try {
      await this.#work();
      this.#failures = 0;
      return core.isBusy(this.#name) ? this.#tools.busy_ms : this.#tools.idle_ms;
    } catch (error) {
      const is_expected = error instanceof BackendError;
      this.#failures++;
      if (this.#failures === 1 || !is_expected) note(`cluster ${this.#name}: ${is_expected ? messageOf(error) : stackOf(error)}`);
      core.failed(this.#name, messageOf(error), now_s());
      this.#tools.changed();
      await this.#tools.settled();
      return pauseAfter(is_expected ? error.kind : "transient", this.#failures, Math.random());
    }
  }

  async #work(): Promise<void> {
    const { core, settled, changed, now_s } = this.#tools;
    if (this.#text === null || this.#failures > 0) {
      const { text, jobs_max } = await this.#adapter.probe();
      this.#text = text;
      core.setJobsMax(this.#name, jobs_max);
    }
    await this.#kill();
    await this.#releaseAll();
    for (const order of core.toSubmit(this.#name)) {
      if (this.#isClosed) return;
      await this.#submit(order);
    }
    await this.#look(this.#text);
    core.plan(this.#name, now_s());
    changed();
    await settled();
    if (core.toSubmit(this.#name).length > 0) this.#isPoked = true;
  }

  async #kill(): Promise<void> {
    const { waiting, all } = this.#tools.core.toKill(this.#name, this.#tools.now_s());
    if (waiting.length > 0) await this.#adapter.cancel(waiting, { queued_only: true });
    if (all.length > 0) await this.#adapter.cancel(all);
  }

  async #submit(order: GridOrder): Promise<void> {
    const { core, settled, ownerOf, note, now_s } = this.#tools;
    await settled();
    if (order.state !== "recorded" || order.jobs.size === 0) return;
    const isFirst = !order.is_begun;
    core.apply({ kind: "order-begun", serial: order.serial });
    try {
      const jobs = await this.#adapter.submit(core.batchFor(order, isFirst, ownerOf(order.remote_user)));
      core.apply({ kind: "acknowledged", serial: order.serial, ids: new Map(jobs.map(({ index, id }) => [index, id])) });
    } catch (error) {
      // The order is refused for good if its first submission certainly failed. A later attempt begins with a search for the tag, and the error may come from the search.
      // The kind `impossible` never comes from the search.
      if (!(error instanceof BackendError) || error.uncertain || (!isFirst && error.kind !== "impossible")) throw error;
      core.apply({ kind: "order-refused", serial: order.serial });
      if (error.kind !== "impossible") throw error;
      note(`campaign ${order.campaign} on ${this.#name}: ${error.message}`);
      core.refused(order, error.message, now_s());
      return;
    }
    await settled();
    await this.#release(order);
  }

  async #releaseAll(): Promise<void> {
    for (const order of this.#tools.core.toRelease(this.#name)) await this.#release(order);
  }

  async #release(order: GridOrder): Promise<void> {
    const refs = [...order.jobs.values()].flatMap((job): JobRef[] => (job.remote_id === null ? [] : [refOf(job, job.remote_id)]));
    if (refs.length > 0) await this.#adapter.release(refs);
    if (order.jobs.size > 0) this.#tools.core.apply({ kind: "released", serial: order.serial });
  }

  async #look(text: string): Promise<void> {
    const { core, now_s } = this.#tools;
    const known = jobsThere(core.state, this.#name);
    const [jobs, capacity] = await Promise.all([this.#adapter.list(), this.#adapter.capacity()]);
    const { vanished, strangers } = core.seen(this.#name, { jobs, capacity, text }, known, now_s());
    if (strangers.length > 0) await this.#adapter.cancel(strangers);
    if (vanished.length === 0) return;
    const refs = vanished.flatMap((job): JobRef[] => (job.remote_id === null ? [] : [refOf(job, job.remote_id)]));
    core.ended(vanished, await this.#adapter.outcomes(refs), now_s());
  }

  #pause(ms: number): Promise<void> {
    if (this.#isPoked) {
      this.#isPoked = false;
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#wake = null;
        this.#isPoked = false;
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#wake = done;
    });
  }
}

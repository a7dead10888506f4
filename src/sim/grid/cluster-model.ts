// A simulated cluster: its local users' jobs, scheduled by EASY backfilling (src/replay), and jobs of campaigns behind them. Jobs
// of campaigns wait in a queue of their own, and start when slots are free.
//
// C1. best-effort: the local schedule is exactly what it would be without campaigns. A job of a campaign ends without result
//     when a local job needs its slots; the newest jobs end first.
// C2. normal: a job of a campaign starts only when no local job waits. Then it keeps its slots, so local jobs may wait for it.

import { EASY } from "#replay/algorithm.ts";
import { createPool, type Pool, type PoolJob } from "#replay/pool.ts";
import type { TraceJob } from "#replay/trace.ts";
import { nth, present } from "#support/assert.ts";
import { heapPop, heapPush } from "#support/heap.ts";
import type { ClusterSpec } from "./grid-scenario.ts";

/** A job of a campaign on a cluster. */
export type GridJob = {
  readonly id: number;
  readonly campaign: number;
  readonly task: number;
  readonly cluster: string;
  readonly width: number;
  readonly run_s: number;
  readonly walltime_s: number;
  readonly submitted_s: number;
  started_s: number | null;
};

export type GridJobEnd = { readonly job: GridJob; readonly at_s: number; readonly how: "done" | "killed" };

type Ending = { readonly at_s: number; readonly local: PoolJob | null; readonly grid: GridJob | null };
const sooner = (a: Ending, b: Ending): boolean => a.at_s < b.at_s;

export class ClusterModel {
  readonly spec: ClusterSpec;
  /** slot seconds of local jobs and of jobs of campaigns, and the sum of waits of local jobs */
  readonly used = { local_s: 0, grid_s: 0, wasted_s: 0, local_wait_s: 0, local_started: 0, kills: 0 };
  readonly #jobs: readonly TraceJob[];
  readonly #pool: Pool;
  #next = 0;
  #localWaiting = 0;
  #localSlots = 0;
  #gridSlots = 0;
  readonly #endings: Ending[] = [];
  #waiting: GridJob[] = [];
  readonly #running = new Set<GridJob>();
  /** under `normal`: the running jobs of campaigns, as jobs in the pool of the local scheduler */
  readonly #held = new Map<GridJob, PoolJob>();

  /** jobs: the jobs of the local users, in the order of submission. */
  constructor(spec: ClusterSpec, jobs: readonly TraceJob[]) {
    this.spec = spec;
    this.#jobs = jobs;
    this.#pool = createPool(spec.resources, EASY, 0, []);
  }

  get free(): number {
    return this.spec.resources - this.#localSlots - this.#gridSlots;
  }

  get localSlots(): number {
    return this.#localSlots;
  }

  get gridSlots(): number {
    return this.#gridSlots;
  }

  submit(job: GridJob): void {
    this.#waiting.push(job);
  }

  /** Removes a job. Returns whether it was there. */
  remove(job: GridJob, now_s: number): boolean {
    const at = this.#waiting.indexOf(job);
    if (at >= 0) this.#waiting.splice(at, 1);
    else if (this.#running.has(job)) this.#stop(job, now_s);
    else return false;
    return true;
  }

  /** Lets time pass until now_s, that included. Returns the jobs of campaigns that ended meanwhile, in the order of their ends. */
  advance(now_s: number): GridJobEnd[] {
    const ends: GridJobEnd[] = [];
    for (;;) {
      const at_s = Math.min(
        this.#jobs[this.#next]?.submit_s ?? Number.POSITIVE_INFINITY,
        this.#endings[0]?.at_s ?? Number.POSITIVE_INFINITY,
      );
      if (at_s > now_s) break;
      this.#instant(at_s, ends);
    }
    // Jobs that were submitted since the last event start now.
    this.#startGrid(now_s, ends);
    return ends;
  }

  #instant(at_s: number, ends: GridJobEnd[]): void {
    while (this.#endings[0]?.at_s === at_s) this.#end(present(heapPop(this.#endings, sooner), "ending"), ends);
    for (; this.#jobs[this.#next]?.submit_s === at_s; this.#next++) {
      this.#pool.submit(this.#next, nth(this.#jobs, this.#next));
      this.#localWaiting++;
    }
    for (const started of this.#pool.pass(at_s)) this.#begun(started, at_s, ends);
    this.#startGrid(at_s, ends);
  }

  #end({ at_s, local, grid }: Ending, ends: GridJobEnd[]): void {
    if (local !== null) {
      this.#pool.end(local, at_s);
      this.#localSlots -= local.job.procs;
      this.used.local_s += local.job.procs * local.job.run_s;
    }
    if (grid === null || !this.#running.has(grid)) return;
    this.#leave(grid, at_s);
    this.used.grid_s += grid.width * grid.run_s;
    ends.push({ job: grid, at_s, how: "done" });
  }

  /** Called when a local job has started. Under best-effort, ends jobs of campaigns whose slots it needs (C1). */
  #begun(started: PoolJob, at_s: number, ends: GridJobEnd[]): void {
    this.#localWaiting--;
    this.#localSlots += started.job.procs;
    this.used.local_wait_s += at_s - started.job.submit_s;
    this.used.local_started++;
    heapPush(this.#endings, { at_s: at_s + started.job.run_s, local: started, grid: null }, sooner);
    if (this.free >= 0) return;
    for (const job of [...this.#running].reverse()) {
      if (this.free >= 0) break;
      this.#stop(job, at_s);
      this.used.kills++;
      ends.push({ job, at_s, how: "killed" });
    }
  }

  #stop(job: GridJob, now_s: number): void {
    this.#leave(job, now_s);
    this.used.wasted_s += job.width * (now_s - (job.started_s ?? now_s));
  }

  #leave(job: GridJob, now_s: number): void {
    this.#running.delete(job);
    this.#gridSlots -= job.width;
    const held = this.#held.get(job);
    if (held === undefined) return;
    this.#held.delete(job);
    this.#pool.end(held, now_s);
  }

  #startGrid(at_s: number, ends: GridJobEnd[]): void {
    if (this.#localWaiting > 0 && this.spec.grid_jobs === "normal") return;
    while (this.#waiting.length > 0 && nth(this.#waiting, 0).width <= this.free) {
      const job = present(this.#waiting.shift(), "waiting job");
      job.started_s = at_s;
      this.#running.add(job);
      this.#gridSlots += job.width;
      heapPush(this.#endings, { at_s: at_s + job.run_s, local: null, grid: job }, sooner);
      if (this.spec.grid_jobs === "normal") this.#holdInPool(job, at_s, ends);
    }
  }

  /** Also submits a job of a campaign to the pool of the local scheduler, which starts it at once, so that its slots are taken there (C2). */
  #holdInPool(job: GridJob, at_s: number, ends: GridJobEnd[]): void {
    const { width: procs, run_s, walltime_s } = job;
    this.#pool.submit(GRID_JOB, { id: GRID_JOB, submit_s: at_s, procs, est_s: Math.max(run_s, walltime_s), run_s, partition: -1 });
    for (const started of this.#pool.pass(at_s)) {
      if (started.at === GRID_JOB) this.#held.set(job, started);
      else this.#begun(started, at_s, ends);
    }
  }
}

/** The index (PoolJob.at) and the id of jobs of campaigns in the pool: they are in no trace. */
const GRID_JOB = -1;

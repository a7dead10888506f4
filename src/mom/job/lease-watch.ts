// The lease that the starter keeps (starter-link.ts S4): which runs must be killed, and when.

import type { Lease, RunKey } from "./starter-link.ts";

export class LeaseWatch {
  #lease: Lease | null = null;
  /** the runs that were killed because their lease was over, by job */
  readonly #cut_off = new Map<string, number>();

  /** Returns the present lease, for the mom. */
  get lease(): Lease | null {
    return this.#lease;
  }

  take(lease: Lease): void {
    this.#lease = lease;
  }

  /** Adds a run that is being started. */
  add(run: Lease["runs"][number]): void {
    if (this.#lease !== null) this.#lease = { ...this.#lease, runs: [...this.#lease.runs.filter(({ job }) => job !== run.job), run] };
  }

  /** Returns the time at which overdue() must be called next; null: no run has a lease that can end. */
  next_ms(): number | null {
    const times = this.#open().map(({ until_ms }) => until_ms);
    return times.length === 0 ? null : Math.min(...times);
  }

  /** Returns the runs that must be killed now, each of them once. lives: whether a run has a process */
  overdue(now_ms: number, lives: (run: RunKey) => boolean): readonly RunKey[] {
    if (this.#lease === null) return [];
    const due = this.#open().filter(({ until_ms }) => until_ms <= now_ms);
    const living = due.filter(lives).map(({ job, run_count }) => ({ job, run_count }));
    for (const { job, run_count } of living) this.#cut_off.set(job, run_count);
    this.#lease = { ...this.#lease, runs: this.#lease.runs.filter((run) => !due.includes(run)) };
    return living;
  }

  /** Whether the run was returned by overdue(). */
  isCutOff({ job, run_count }: RunKey): boolean {
    return this.#cut_off.get(job) === run_count;
  }

  forget({ job, run_count }: RunKey): void {
    if (this.#cut_off.get(job) === run_count) this.#cut_off.delete(job);
  }

  #open(): Lease["runs"] {
    return this.#lease?.runs.filter((run) => !this.isCutOff(run)) ?? [];
  }
}

// Decides which jobs a cycle does not try. There are three causes: a job of the same class is blocked, one job holds back all jobs
// behind it, or a module wants the job left alone.

import type { Why } from "#protocol/sched-link.ts";
import { isDue } from "../calendar/published-place.ts";
import type { JobClass, JobEntry, JobLine } from "../shapes/job-line.ts";
import type { PolicyModule } from "../shapes/module.ts";
import type { Run } from "./run.ts";

export class Holds {
  readonly #run: Run;
  /** true: equal jobs may get different answers, so each is tried */
  readonly #each: boolean;
  readonly #stays: readonly NonNullable<PolicyModule["stays"]>[];
  readonly #putsOff: readonly NonNullable<PolicyModule["putsOff"]>[];
  readonly #blocked = new Map<JobClass, Why>();
  /** the reason why no further job is tried; null: further jobs are tried */
  #held_back: Why | null = null;

  constructor(run: Run) {
    this.#run = run;
    this.#each = run.modules.some((module) => module.triesEach?.(run) === true);
    this.#stays = run.modules.flatMap((module) => module.stays?.bind(module) ?? []);
    this.#putsOff = run.modules.flatMap((module) => module.putsOff?.bind(module) ?? []);
  }

  /** Returns whether a job is neither tried nor given a reason in this cycle, because it was planned and nothing has changed. */
  isLeftAlone(entry: JobEntry): boolean {
    if (this.#stays.length === 0) return false;
    const candidate = this.#run.candidate(entry);
    return this.#stays.some((stays) => stays(this.#run, candidate));
  }

  /** Returns whether a job and the jobs behind it in its track are tried only after the others, in another order. */
  putsOff(entry: JobEntry): boolean {
    return this.#held_back === null && this.#putsOff.some((putsOff) => putsOff(this.#run, entry));
  }

  /** Returns the reason why a job is not tried; null: it is tried. */
  whyKnown(entry: JobEntry, line: JobLine): Why | null {
    // If another job of its class cannot start, this says nothing about the vnodes that were promised to this job.
    const tried = this.#each || isDue(entry.job, this.#run.now_s);
    return (tried ? undefined : this.#blocked.get(line.class)) ?? this.#held_back;
  }

  /** Notes that a job cannot run. again: the first job of its class could not run either, so only modules that want such jobs are called. */
  block(entry: JobEntry, jobClass: JobClass, why: Why, again: boolean): void {
    if (this.#held_back !== null) return;
    this.#blocked.set(jobClass, why);
    // A job in a reservation waits for its own vnodes: it holds back no other job, and no job is preempted for it.
    if (entry.job.resv !== undefined) return;
    const candidate = this.#run.candidate(entry);
    for (const module of this.#run.modules) {
      if (again && module.wants?.(this.#run, candidate) !== true) continue;
      const after = module.blocked?.(this.#run, candidate, why) ?? "go on";
      if (after !== "go on") this.#held_back ??= after;
    }
  }

  /** Returns whether a module wants the jobs behind a blocked job of the same class (as top jobs). */
  wants(entry: JobEntry): boolean {
    const candidate = this.#run.candidate(entry);
    return this.#run.modules.some((module) => module.wants?.(this.#run, candidate) === true);
  }

  /** Returns whether jobs behind the first of a class are visited; otherwise only jobs that need a comment are visited. */
  visitsNext(entry: JobEntry): boolean {
    return this.#held_back === null && this.wants(entry);
  }
}

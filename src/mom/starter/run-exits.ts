// Reports the ends of runs to the mom. Each end is on the disk before it is reported (job/starter-link.ts, S1). One sync
// serves all ends that came since the previous sync.

import { messageOf } from "#support/caught.ts";
import type { ExitedRun } from "../job/starter-link.ts";
import type { Children } from "./children.ts";
import type { Journal } from "./journal.ts";

export type RunExitsOptions = {
  readonly journal: Journal;
  readonly children: Children;
  readonly tell: (exits: readonly ExitedRun[]) => void;
  readonly complain: (text: string) => void;
};

/** Time after a failed write until the next attempt. */
const AGAIN_MS = 1000;

export class RunExits {
  readonly #options: RunExitsOptions;
  #waiting: ExitedRun[] = [];

  constructor(options: RunExitsOptions) {
    this.#options = options;
  }

  /** Exits that are still waiting to be written to the disk. To the mom, their runs are still running. */
  get waiting(): readonly ExitedRun[] {
    return this.#waiting;
  }

  add(exits: readonly ExitedRun[]): void {
    if (exits.length === 0) return;
    for (const exit of exits) this.#note(exit);
    const first = this.#waiting.length === 0;
    this.#waiting.push(...exits);
    if (first) queueMicrotask(() => this.#flush());
  }

  #note(exit: ExitedRun): void {
    const { runs } = this.#options.children;
    const run = runs.get(exit.job);
    if (run === undefined) return;
    const { job, run_count, pid, at_ms, ticks } = run;
    runs.set(job, { job, run_count, pid, at_ms, ticks, state: "ended", exit });
  }

  #flush(): void {
    const batch = this.#waiting;
    this.#waiting = [];
    this.#write(batch, batch);
  }

  /**
   * Writes the exits of a batch, syncs, then reports them. unwritten: the exits of the batch still to be written; after a failed write all of them are written
   * again, and a repeated exit counts once.
   */
  #write(batch: readonly ExitedRun[], unwritten: readonly ExitedRun[]): void {
    const { journal, tell, complain } = this.#options;
    const again = (error: unknown, left: readonly ExitedRun[]): void => {
      complain(`journal: ${messageOf(error)}`);
      setTimeout(() => this.#write(batch, left), AGAIN_MS);
    };
    try {
      if (unwritten.length > 0) journal.append(unwritten.map((exit) => ({ t: "exit", ...exit })));
    } catch (error) {
      again(error, unwritten);
      return;
    }
    journal.sync().then(
      () => tell(batch),
      (error: unknown) => again(error, []),
    );
  }
}

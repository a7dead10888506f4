// Keeps the jobs whose top process has ended until none of their processes is left (job/starter-link.ts, S3).

import type { JobGroups } from "../host/cgroup.ts";
import { type EndingRun, killLeftovers } from "../host/session-end.ts";
import type { ExitedRun } from "../job/starter-link.ts";
import type { Children } from "./children.ts";
import type { RunExits } from "./run-exits.ts";
import type { Terminals } from "./terminals.ts";

type Ending = EndingRun & { readonly exit: ExitedRun; readonly since_ms: number };

export type RunEndingsOptions = {
  readonly children: Children;
  readonly exits: RunExits;
  readonly terminals: Terminals;
  readonly groups: JobGroups | null;
  readonly now_ms: () => number;
  readonly complain: (text: string) => void;
  /** reaps children that have ended; called before each further search */
  readonly reapAll: () => void;
};

const SWEEP_AGAIN_MS = 20;
/** The longest time for which processes that cannot be killed (state D) delay the end of their job. */
const SWEEP_PATIENCE_MS = 10_000;

export class RunEndings {
  readonly #options: RunEndingsOptions;
  #ending: Ending[] = [];
  #sweeping = false;

  constructor(options: RunEndingsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#ending.length;
  }

  add(run: EndingRun, exit: ExitedRun): void {
    this.#ending.push({ ...run, exit, since_ms: exit.at_ms });
  }

  /** Kills the remaining processes of the jobs whose top process has ended. Jobs without any such process are reported. */
  sweep(): void {
    if (this.#ending.length === 0) return;
    const { children, exits, terminals, groups } = this.#options;
    const left = killLeftovers(this.#ending, children.byPid, groups, terminals.pids);
    for (const run of this.#ending) if (children.tasksOf(run.job).length > 0) left.add(run);
    const over = this.#ending.filter((run) => this.#isOver(run, left.has(run)));
    this.#ending = this.#ending.filter((run) => !over.includes(run));
    if (this.#ending.length > 0 && !this.#sweeping) {
      this.#sweeping = true;
      setTimeout(() => this.#sweepAgain(), SWEEP_AGAIN_MS);
    }
    exits.add(over.map((run) => this.#exitOf(run)));
  }

  /** Whether the end of the run can be reported. left: whether the last search found processes of the run. */
  #isOver(run: Ending, left: boolean): boolean {
    const { terminals, now_ms, complain } = this.#options;
    // The terminal of the run may still be forwarding the job's output.
    const passing_on = !left && terminals.over(run.job);
    if (now_ms() - run.since_ms < SWEEP_PATIENCE_MS) return !left && !passing_on;
    terminals.kill(run.job);
    if (left) complain(`${run.job}: processes are left that do not die`);
    return true;
  }

  /** Removes the job's control group, and returns the exit with what the group recorded. */
  #exitOf({ exit }: Ending): ExitedRun {
    const group = this.#options.groups?.close(exit.job) ?? null;
    return group === null ? exit : { ...exit, group };
  }

  #sweepAgain(): void {
    this.#sweeping = false;
    this.#options.reapAll();
    this.sweep();
  }
}

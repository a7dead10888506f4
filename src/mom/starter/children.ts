// The runs that a starter knows, and the processes of theirs that it is the parent of. A job is one top process, its
// tasks and the sessions that joined it later (pbs_attach).
//
// C1. Of a session that was adopted only the processes of the job's owner are ever signalled: other users may have
//     processes in it, and its number may be reused.

import { SIGKILL, signalSessions } from "../host/session-signals.ts";
import { type RunKey, taskOf } from "../job/starter-link.ts";
import type { JournalRun } from "./journal.ts";

/** A process that lives or was not reaped yet. script: name of the restart script it was started as. */
export type Child = RunKey & { readonly cookie: string; readonly uid: number; readonly script?: string };

export class Children {
  /** runs by name of job or task; ended runs stay until the mom forgets them */
  readonly runs: Map<string, JournalRun>;
  readonly byPid = new Map<number, Child>();
  /** for each job: the sessions and the uid of each session's owner. Control groups, if available, are more exact */
  readonly #adopted = new Map<string, Map<number, number>>();

  constructor(runs: Map<string, JournalRun>) {
    this.runs = runs;
  }

  /** The run with exactly this run_count, while its top process (or the task's own) is not reaped; otherwise null. */
  alive({ job, run_count }: RunKey): JournalRun | null {
    const run = this.runs.get(job);
    return run?.run_count === run_count && run.state === "running" && this.byPid.has(run.pid) ? run : null;
  }

  /** Pids of the processes of a job's tasks. */
  tasksOf(job: string): number[] {
    return [...this.byPid].filter(([, run]) => run.job.length > job.length && taskOf(run.job)?.job === job).map(([pid]) => pid);
  }

  adopt(job: string, session: number, owner: number): void {
    this.#adopted.set(job, new Map([...(this.#adopted.get(job) ?? []), [session, owner]]));
  }

  /** Sessions that became the job's, each with its owner. */
  adoptedOf(job: string): ReadonlyMap<number, number> {
    return new Map([...(this.#adopted.get(job) ?? [])].filter(([session]) => !this.byPid.has(session)));
  }

  /** Signals the job's tasks and adopted processes (C1). */
  signalOthers(job: string, signal: number): void {
    signalSessions(new Map(this.tasksOf(job).map((pid) => [pid, signal])));
    const sessions = this.adoptedOf(job);
    signalSessions(new Map([...sessions.keys()].map((session) => [session, signal])), sessions);
  }

  /** The job's top process has gone: kills all other processes of the job. */
  killOthers(job: string): void {
    this.signalOthers(job, SIGKILL);
    this.#adopted.delete(job);
  }
}

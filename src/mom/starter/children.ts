// The runs that a starter knows, and the processes of these runs whose parent is the starter. A job is one top process, its
// tasks and the sessions that joined it later (pbs_attach).
//
// C1. In an adopted session, only the processes of the job's owner are ever signalled: other users may have processes in
//     that session, and its number may be reused.

import { SIGKILL, signalSessions } from "../host/session-signals.ts";
import { type RunKey, taskOf } from "../job/starter-link.ts";
import type { JournalRun } from "./journal.ts";

/** A process that lives, or has ended but is not reaped yet. script: kernel name of the restart script, if the process was started as one. */
export type Child = RunKey & { readonly cookie: string; readonly uid: number; readonly script?: string };

export class Children {
  /** runs by name of job or task; ended runs stay until the mom forgets them */
  readonly runs: Map<string, JournalRun>;
  readonly byPid = new Map<number, Child>();
  /** for each job: its adopted sessions, with the uid of the job's owner. Control groups, where available, are more exact */
  readonly #adopted = new Map<string, Map<number, number>>();

  constructor(runs: Map<string, JournalRun>) {
    this.runs = runs;
  }

  /** Returns the run with exactly this run_count if its process (the top process, or the task's process) is not reaped yet; otherwise null. */
  alive({ job, run_count }: RunKey): JournalRun | null {
    const run = this.runs.get(job);
    return run?.run_count === run_count && run.state === "running" && this.byPid.has(run.pid) ? run : null;
  }

  /** Returns the pids of a job's tasks. */
  tasksOf(job: string): number[] {
    return [...this.byPid].filter(([, run]) => run.job.length > job.length && taskOf(run.job)?.job === job).map(([pid]) => pid);
  }

  adopt(job: string, session: number, owner: number): void {
    this.#adopted.set(job, new Map([...(this.#adopted.get(job) ?? []), [session, owner]]));
  }

  /** Returns the adopted sessions of a job, with the uid of the owner. */
  adoptedOf(job: string): ReadonlyMap<number, number> {
    return new Map([...(this.#adopted.get(job) ?? [])].filter(([session]) => !this.byPid.has(session)));
  }

  /** Signals the job's tasks and adopted processes (C1). */
  signalOthers(job: string, signal: number): void {
    signalSessions(new Map(this.tasksOf(job).map((pid) => [pid, signal])));
    const sessions = this.adoptedOf(job);
    signalSessions(new Map([...sessions.keys()].map((session) => [session, signal])), sessions);
  }

  /** Kills all other processes of a job. Called when its top process has ended. */
  killOthers(job: string): void {
    this.signalOthers(job, SIGKILL);
    this.#adopted.delete(job);
  }
}

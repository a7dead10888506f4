// The starter: parent of all jobs of a mom. It is small and long-lived: it starts runs, waits for their ends, records these, and reports to the mom that is
// connected. It decides nothing about jobs. job/starter-link.ts has its invariants S1-S4; sockets and start-up are in starter-main.ts. Its other files: children.ts
// (the runs and their processes), run-starts.ts, run-endings.ts (the remaining processes of ended jobs), run-exits.ts (writes and reports the ends).
//
// T0. The starter survives full disks and errors, because its end would be the end of every job. While the journal accepts no records, no run is started.
// T1. The process group of an ended top process is killed before the process is reaped, while its number cannot be reused.
// T2. An interactive run is started once its terminal exists (terminals.ts); its end is reported once its terminal has forwarded all output.

import { messageOf } from "#support/caught.ts";
import type { JobGroups } from "../host/cgroup.ts";
import type { Link } from "../host/frame-link.ts";
import { endedChild, type Reaped, reap } from "../host/posix.ts";
import { ownPeak_kb, processName, readProcess, readProcesses } from "../host/proc-table.ts";
import { ownerOf, signalQuietly } from "../host/session-end.ts";
import { SIGKILL, signalSessions } from "../host/session-signals.ts";
import { LeaseWatch } from "../job/lease-watch.ts";
import {
  type ExitedRun,
  type Lease,
  type MomToStarter,
  type RunKey,
  type StarterRun,
  type StarterToMom,
  taskOf,
} from "../job/starter-link.ts";
import { type Child, Children } from "./children.ts";
import { type Journal, type JournalRecord, type JournalRun, type JournalState, noteInJournal, rememberLast } from "./journal.ts";
import { clearGroups } from "./lost-runs.ts";
import { RunEndings } from "./run-endings.ts";
import { RunExits } from "./run-exits.ts";
import { RunStarts, type StartsOutcome } from "./run-starts.ts";
import { Terminals } from "./terminals.ts";

export type StarterOptions = {
  readonly journal: Journal;
  readonly state: JournalState;
  /** time in milliseconds, of a clock that is never set */
  readonly now_ms: () => number;
  /** null: this host has no usable control groups */
  readonly groups: JobGroups | null;
  /** reports an error; a mom need not be connected */
  readonly complain: (text: string) => void;
};

const COMPACT_BYTES = 8 * 1024 * 1024;
/** Longest time of a timer. The starter looks at its lease at least that often. */
const TIMER_MS_MAX = 60_000;

export class Starter {
  readonly #options: StarterOptions;
  readonly #terminals = new Terminals();
  readonly #children: Children;
  readonly #exits: RunExits;
  readonly #endings: RunEndings;
  readonly #starts: RunStarts;
  readonly #leases = new LeaseWatch();
  #link: Link<StarterToMom> | null = null;
  #lease_timer: NodeJS.Timeout | null = null;

  constructor(options: StarterOptions) {
    this.#options = options;
    const terminals = this.#terminals;
    const children = new Children(options.state.runs);
    this.#children = children;
    this.#exits = new RunExits({ ...options, children, tell: (runs) => this.#link?.send("starter-exited", { runs }) });
    this.#endings = new RunEndings({ ...options, children, terminals, exits: this.#exits, reapAll: () => this.reapAll() });
    this.#starts = new RunStarts({ ...options, children, terminals, tell: (outcome) => this.#tellStarts(outcome) });
  }

  /** Returns the number of processes that live: processes of runs, processes of jobs that are ending, and terminal relays. */
  get active(): number {
    return this.#children.byPid.size + this.#endings.size + this.#terminals.pids.size;
  }

  /** Takes the connection to the mom that gets the reports from now on; null: no mom is connected. */
  attach(link: Link<StarterToMom> | null): void {
    this.#terminals.cancelOpening();
    this.#link = link;
    const untold = new Set(this.#exits.waiting.map((exit) => exit.job));
    link?.send("starter-state", {
      pid: process.pid,
      runs: [...this.#children.runs.values()].map((run) => this.#shownRun(run, untold.has(run.job))),
      last: [...this.#options.state.last].map(([job, run_count]) => ({ job, run_count })),
      pongs: true,
      leases: true,
      ...(this.#leases.lease === null ? {} : { lease: this.#leases.lease }),
    });
  }

  // --- the lease (job/starter-link.ts S4)

  lease(lease: Lease): void {
    this.#leases.take(lease);
    this.#awaitLease();
  }

  /** Sets the timer for the run whose lease is over first. */
  #awaitLease(): void {
    const next_ms = this.#leases.next_ms();
    if (this.#lease_timer !== null) clearTimeout(this.#lease_timer);
    this.#lease_timer = null;
    if (next_ms === null) return;
    const wait_ms = Math.min(TIMER_MS_MAX, Math.max(1, next_ms - this.#options.now_ms()));
    this.#lease_timer = setTimeout(() => this.#endOverdue(), wait_ms);
  }

  /** Kills the runs whose lease is over. Timers can be a millisecond early. */
  #endOverdue(): void {
    const runs = this.#leases.overdue(this.#options.now_ms(), (run) => this.#children.alive(run) !== null);
    for (const { job } of runs) this.#options.complain(`${job} is killed: its host is cut off from the server, and its mom does not act`);
    this.signal({ runs: runs.map((run) => ({ ...run, signal: SIGKILL })) });
    this.#awaitLease();
  }

  /** Returns the run as the mom may see it. untold: the end of the run is not on the disk yet (S1). */
  #shownRun({ ticks: _, cookie: _cookie, ...run }: JournalRun, untold: boolean): StarterRun {
    if (run.state === "ended" && untold) {
      const { exit: _exit, ...started } = run;
      return { ...started, state: "running" };
    }
    const sessions = [...this.#children.adoptedOf(run.job)].map(([session, owner]) => ({ session, owner }));
    return run.state === "running" && sessions.length > 0 ? { ...run, adopted: sessions } : run;
  }

  start({ runs }: MomToStarter["starter-start"]): void {
    this.#starts.start(runs);
    for (const { job, run_count, until_ms } of runs)
      if (until_ms !== undefined && taskOf(job) === null) this.#leases.add({ job, run_count, until_ms });
    this.#awaitLease();
  }

  #tellStarts({ started, failed }: StartsOutcome): void {
    if (started.length > 0) this.#link?.send("starter-started", { runs: started });
    if (failed.length > 0) this.#link?.send("starter-failed", { runs: failed });
  }

  signal({ runs }: MomToStarter["starter-signal"]): void {
    const wanted = new Map<number, number>();
    for (const request of runs) {
      const run = this.#children.alive(request);
      if (run === null) continue;
      wanted.set(run.pid, request.signal);
      if (this.#options.groups === null && taskOf(run.job) === null) this.#children.signalOthers(run.job, request.signal);
    }
    signalSessions(wanted);
    for (const [pid, signal] of wanted) this.#signalGroup(this.#children.byPid.get(pid)?.job ?? "", signal);
  }

  /** Signals all processes in the job's control group, including those that have made sessions of their own. */
  #signalGroup(job: string, signal: number): void {
    const { groups } = this.#options;
    if (groups === null || job === "") return;
    if (signal === SIGKILL) {
      groups.kill(job);
      return;
    }
    const leader = this.#children.runs.get(job)?.pid ?? 0;
    for (const pid of groups.pids(job)) {
      const info = readProcess(pid);
      if (info !== null && info.session !== leader) signalQuietly(pid, signal);
    }
  }

  adopt({ runs }: MomToStarter["starter-adopt"]): void {
    for (const request of runs) {
      const run = this.#children.alive(request);
      const leader = run === null ? undefined : this.#children.byPid.get(run.pid);
      if (leader !== undefined) this.#adoptSession(leader, request.pid);
    }
  }

  /** Takes the session of a process into a job. First argument: the job's top process. pid: a process of that session. */
  #adoptSession({ job, run_count, uid }: Child, pid: number): void {
    const session = readProcess(pid)?.session ?? 0;
    // A process of a run already belongs to the run's job.
    if (session <= 0 || this.#children.byPid.has(session) || ownerOf(pid) !== uid) return;
    this.#children.adopt(job, session, uid);
    this.#link?.send("starter-adopted", { runs: [{ job, run_count, session, owner: uid }] });
    const { groups } = this.#options;
    if (groups === null) return;
    const members = readProcesses().filter((info) => info.session === session && ownerOf(info.pid) === uid);
    for (const info of members) groups.adopt(job, info.pid);
  }

  forget(data: MomToStarter["starter-forget"]): void {
    const { journal, state, complain } = this.#options;
    const { runs } = this.#children;
    const forgotten: JournalRecord[] = [];
    for (const { job, run_count } of data.runs) {
      const run = runs.get(job);
      if (run?.run_count === run_count && run.state === "running") continue;
      if (run?.run_count === run_count) runs.delete(job);
      if (taskOf(job) === null) rememberLast(state.last, { job, run_count });
      forgotten.push({ t: "forget", job, run_count });
    }
    noteInJournal(journal, forgotten, complain);
    if (journal.bytes <= COMPACT_BYTES) return;
    try {
      journal.compact(state);
    } catch (error) {
      complain(`journal: ${messageOf(error)}`);
    }
  }

  /** Reaps all children that have ended (SIGCHLD). */
  reapAll(): void {
    let ended = false;
    const tasks_over: ExitedRun[] = [];
    for (let pid = endedChild(); pid > 0; pid = endedChild()) {
      const child = this.#children.byPid.get(pid);
      if (child !== undefined) this.#endGroup(pid, child);
      const is_script = child?.script !== undefined && processName(pid) === child.script;
      const reaped = reap(pid);
      if (reaped === null) break;
      ended = true;
      const hung_up = this.#terminals.ended(pid);
      if (hung_up !== null) this.#hangUp(hung_up);
      if (child === undefined) continue;
      this.#children.byPid.delete(pid);
      const exit = this.#withLease(exitOf(child, reaped, is_script, this.#options.now_ms()));
      if (taskOf(child.job) !== null) tasks_over.push(exit);
      else this.#endJob(pid, child, exit);
    }
    this.#exits.add(tasks_over);
    if (ended) this.#endings.sweep();
  }

  /** Adds to an exit whether the starter has killed the run because its lease was over (S4). */
  #withLease(exit: ExitedRun): ExitedRun {
    const cut_off = this.#leases.isCutOff(exit) && !("code" in exit.status);
    this.#leases.forget(exit);
    return cut_off ? { ...exit, cut_off } : exit;
  }

  /** Kills the process group of a top process that has ended but is not reaped (T1). */
  #endGroup(pid: number, child: Child): void {
    // If the job's relay has also ended, it ended first, because a relay forwards output until its job is over: the job has lost its terminal.
    if (this.#terminals.hasDied(child.job)) this.#hangUp(child);
    // Processes that a task leaves, such as a server in the background, live as long as the job.
    if (taskOf(child.job) === null) signalQuietly(-pid, SIGKILL);
  }

  #endJob(pid: number, { job, cookie, uid }: Child, exit: ExitedRun): void {
    this.#endings.add({ job, pid, cookie, uid }, exit);
    this.#children.killOthers(job);
  }

  /** Notes that the run's terminal is gone. The mom decides what that means for the job. */
  #hangUp({ job, run_count }: RunKey): void {
    const run = this.#children.alive({ job, run_count });
    if (run?.state !== "running" || run.hung_up === true) return;
    this.#children.runs.set(job, { ...run, hung_up: true });
    this.#link?.send("starter-hung-up", { runs: [{ job, run_count }] });
  }

  /** Kills all jobs, because no mom can ask for them again (starter-main.ts M2). */
  killAll(): void {
    signalSessions(new Map([...this.#children.byPid.keys()].map((pid) => [pid, SIGKILL])));
    if (this.#options.groups !== null) clearGroups(this.#options.groups);
  }
}

/** Makes the exit of a run. is_script: the process ended while it was still the restart script, before it became the program that the script restores. */
function exitOf({ job, run_count }: Child, { status, cput_s, peak_kb }: Reaped, is_script: boolean, at_ms: number): ExitedRun {
  const restart_failed = is_script && "code" in status && status.code !== 0 ? { restart_failed: true as const } : {};
  return { job, run_count, status, cput_s, ...knownPeak(peak_kb), at_ms, ...restart_failed };
}

/**
 * Returns the peak memory of a child, if it is known. A child begins as a copy of the starter, and the kernel counts the size of that copy. So a peak that is
 * no larger than the starter's says nothing about the job.
 */
const knownPeak = (peak_kb: number): { readonly peak_kb?: number } => (peak_kb > ownPeak_kb() ? { peak_kb } : {});

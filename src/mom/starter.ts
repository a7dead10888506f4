// The starter: parent of all jobs of a mom. Small and long-lived: it starts, waits, writes down how runs ended and tells whoever is its mom now.
// It decides nothing about jobs. starter-link.ts has its invariants S1-S3; sockets and start-up are in starter-main.ts.
//
// T0. It outlives full disks and errors: its end would be the end of every job (a journal that takes nothing means that no run is started).
// T1. The process group of an ended top process is killed before the process is reaped, while its number cannot mean anything else.
// T2. An interactive run is started once its terminal is there (terminals.ts); its end is told once its terminal has passed everything on.
// T3. Of a session that was adopted only the processes of the job's owner are ever signalled: others may be in it, and its number may be used again.

import type { JobGroups } from "./cgroup.ts";
import type { Link } from "./frame-link.ts";
import { JOB_EXEC } from "./job-exec.ts";
import type { Journal, JournalState } from "./journal.ts";
import { rememberLast } from "./journal.ts";
import { launch } from "./launch.ts";
import { endedChild, reap } from "./posix.ts";
import { ownPeak_kb, type ProcessInfo, processesOf, processName, processVariable, readProcess, readProcesses } from "./proc-table.ts";
import { type EndingRun, killLeftovers, ownerOf, signalQuietly } from "./session-end.ts";
import {
  type ExitedRun,
  jobOfName,
  type MomToStarter,
  type RunKey,
  type StarterRun,
  type StarterToMom,
  type StartSpec,
  taskOf,
} from "./starter-link.ts";
import { makeTerminals, type OpenTerminal, terminalEnvironment } from "./terminals.ts";

type Data<T extends keyof MomToStarter> = MomToStarter[T];
type Run = StarterRun & { readonly ticks: number; readonly cookie?: string };
type Failed = StarterToMom["starter-failed"]["runs"][number];
type JournalRecord = Parameters<Journal["append"]>[0][number];
type Ending = EndingRun & { readonly exit: ExitedRun; readonly since_ms: number };

export type Starter = {
  start(data: Data<"starter-start">): void;
  signal(data: Data<"starter-signal">): void;
  adopt(data: Data<"starter-adopt">): void;
  forget(data: Data<"starter-forget">): void;
  /** children may have ended (SIGCHLD) */
  reapAll(): void;
  /** the mom to tell from now on; null: there is none */
  attach(link: Link<StarterToMom> | null): void;
  /** runs whose processes live */
  readonly active: number;
  /** no mom can ever ask for them again: all jobs are killed */
  killAll(): void;
};

/**
 * What is known of a child's memory. A child begins as a copy of the starter, whose size the kernel counts as the child's peak; a peak that is no larger
 * than the starter's says nothing of the job.
 */
const knownPeak = (peak_kb: number): { readonly peak_kb?: number } => (peak_kb > ownPeak_kb() ? { peak_kb } : {});

export type StarterOptions = {
  readonly journal: Journal;
  readonly state: JournalState;
  /** of a clock that is never set */
  readonly now_ms: () => number;
  /** null: this host has no control groups for us */
  readonly groups: JobGroups | null;
  /** something went wrong that no mom may be there to hear */
  readonly complain: (text: string) => void;
};

const COMPACT_BYTES = 8 * 1024 * 1024;
const SWEEP_AGAIN_MS = 20;
/** After so long a leftover that cannot be killed (state D) does not hold the job back any more. */
const SWEEP_PATIENCE_MS = 10_000;
const SYNC_AGAIN_MS = 1000;
const KILL_ROUNDS = 20;
const SIGKILL = 9;

export function makeStarter(options: StarterOptions): Starter {
  const { journal, state, now_ms, groups, complain } = options;
  const runs: Map<string, Run> = state.runs;
  /** script: name of the restart script it was started as */
  const byPid = new Map<number, RunKey & { readonly cookie: string; readonly uid: number; readonly script?: string }>();
  let link: Link<StarterToMom> | null = null;
  let ending: Ending[] = [];
  let sweeping = false;
  let waiting: ExitedRun[] = [];
  const terminals = makeTerminals();

  /** Exits wait here for the journal; one sync serves all that came meanwhile. */
  const tellExits = (exits: readonly ExitedRun[]): void => {
    if (exits.length === 0) return;
    for (const exit of exits) {
      const run = runs.get(exit.job);
      if (run !== undefined)
        runs.set(exit.job, {
          job: run.job,
          run_count: run.run_count,
          pid: run.pid,
          at_ms: run.at_ms,
          ticks: run.ticks,
          state: "ended",
          exit,
        });
    }
    const first = waiting.length === 0;
    waiting.push(...exits);
    if (first) queueMicrotask(writeExits);
  };
  const writeExits = (): void => {
    const batch = waiting;
    waiting = [];
    // What a full disk took of them is written again: an exit said twice is said once.
    const write = (exits: readonly ExitedRun[]): void => {
      try {
        if (exits.length > 0) journal.append(exits.map((exit) => ({ t: "exit" as const, ...exit })));
      } catch (error) {
        complain(`journal: ${(error as Error).message}`);
        setTimeout(write, SYNC_AGAIN_MS, exits);
        return;
      }
      journal.sync().then(
        () => link?.send("starter-exited", { runs: batch }),
        (error: Error) => {
          complain(`journal: ${error.message}`);
          setTimeout(write, SYNC_AGAIN_MS, []);
        },
      );
    };
    write(batch);
  };

  /** Looks for what is left of ended jobs; those with nothing left are told. */
  const sweepEnding = (): void => {
    if (ending.length === 0) return;
    const left = killLeftovers(ending, byPid, groups, terminals.pids);
    for (const run of ending) if (tasksOf(run.job).length > 0) left.add(run);
    const now = now_ms();
    const gone: ExitedRun[] = [];
    ending = ending.filter((run) => {
      const patient = now - run.since_ms < SWEEP_PATIENCE_MS;
      const passing_on = !left.has(run) && terminals.over(run.job);
      if (!patient) terminals.kill(run.job);
      const stays = (left.has(run) || passing_on) && patient;
      if (!stays) gone.push(withGroup(run.exit));
      if (!stays && left.has(run)) complain(`${run.job}: processes are left that do not die`);
      return stays;
    });
    if (ending.length > 0 && !sweeping) {
      sweeping = true;
      setTimeout(sweepAgain, SWEEP_AGAIN_MS);
    }
    tellExits(gone);
  };
  /** A job that has left its group tells what the group knew. */
  const withGroup = (exit: ExitedRun): ExitedRun => {
    const group = groups?.close(exit.job) ?? null;
    return group === null ? exit : { ...exit, group };
  };
  const sweepAgain = (): void => {
    sweeping = false;
    reapAll();
    sweepEnding();
  };

  /** Tasks of a job, by the pids of their processes. */
  const tasksOf = (job: string): number[] =>
    [...byPid].filter(([, run]) => run.job.length > job.length && taskOf(run.job)?.job === job).map(([pid]) => pid);
  /** Sessions that became a job's (pbs_attach), each with its owner (T3). Where there are control groups these know more. */
  const adopted = new Map<string, Map<number, number>>();
  const adoptedOf = (job: string): ReadonlyMap<number, number> =>
    new Map([...(adopted.get(job) ?? [])].filter(([session]) => !byPid.has(session)));
  /** Tasks and what was adopted. */
  const signalOthers = (job: string, signal: number): void => {
    signalSessions(new Map(tasksOf(job).map((pid) => [pid, signal])));
    const sessions = adoptedOf(job);
    signalSessions(new Map([...sessions.keys()].map((session) => [session, signal])), sessions);
  };
  const killTasks = (job: string): void => {
    signalOthers(job, SIGKILL);
    adopted.delete(job);
  };

  const reapAll = (): void => {
    let ended = false;
    const tasks_over: ExitedRun[] = [];
    for (let pid = endedChild(); pid > 0; pid = endedChild()) {
      const run = byPid.get(pid);
      const task = run === undefined ? null : taskOf(run.job);
      // Both are dead: the terminal went first, or the relay would still pass on what the job wrote.
      if (run !== undefined && terminals.hasDied(run.job)) hangUp(run);
      // What a task leaves behind, a server that went into the background, lives as long as the job.
      if (run !== undefined && task === null) signalQuietly(-pid, SIGKILL);
      const is_script = run?.script !== undefined && processName(pid) === run.script;
      const reaped = reap(pid);
      if (reaped === null) break;
      ended = true;
      const hung_up = terminals.ended(pid);
      if (hung_up !== null) hangUp(hung_up);
      if (run === undefined) continue;
      byPid.delete(pid);
      const at_ms = now_ms();
      const { status, cput_s, peak_kb } = reaped;
      const restart_failed = is_script && "code" in status && status.code !== 0 ? { restart_failed: true as const } : {};
      const exit: ExitedRun = { job: run.job, run_count: run.run_count, status, cput_s, ...knownPeak(peak_kb), at_ms, ...restart_failed };
      if (task !== null) {
        tasks_over.push(exit);
        continue;
      }
      ending.push({ job: run.job, pid, cookie: run.cookie, uid: run.uid, exit, since_ms: at_ms });
      killTasks(run.job);
    }
    tellExits(tasks_over);
    if (ended) sweepEnding();
  };

  /** Nobody can reach the run any more; what that means for it is the mom's to say. */
  const hangUp = (key: RunKey): void => {
    const run = runs.get(key.job);
    if (run?.run_count !== key.run_count || run.state !== "running" || !byPid.has(run.pid)) return;
    if (run.hung_up === true) return;
    runs.set(key.job, { ...run, hung_up: true });
    link?.send("starter-hung-up", { runs: [{ job: key.job, run_count: key.run_count }] });
  };

  /** Those that made sessions of their own, too. */
  const signalGroup = (job: string, signal: number): void => {
    if (groups === null || job === "") return;
    if (signal === SIGKILL) {
      groups.kill(job);
      return;
    }
    const leader = runs.get(job)?.pid ?? 0;
    for (const pid of groups.pids(job)) {
      const info = readProcess(pid);
      if (info !== null && info.session !== leader) signalQuietly(pid, signal);
    }
  };

  /** Records that need not be on the disk before we go on. */
  const note = (records: JournalRecord[]): void => {
    try {
      if (records.length > 0) journal.append(records);
    } catch (error) {
      complain(`journal: ${(error as Error).message}`);
    }
  };
  /** What became of starts: written before the mom is told. */
  const notes: JournalRecord[] = [];

  const startOne = (spec: StartSpec, started: StarterRun[], failed: Failed[]): void => {
    const known = runs.get(spec.job);
    if ((known !== undefined && known.run_count >= spec.run_count) || terminals.has(spec)) return;
    // Written before as well: should we die between launch and the second record, the run is known to be lost. Without it the run would be
    // started twice (recovery.ts V1).
    try {
      const cookie = cookieOf(spec.env);
      journal.append([{ t: "start", job: spec.job, run_count: spec.run_count, pid: 0, at_ms: now_ms(), ticks: 0, cookie }]);
    } catch (error) {
      const text = `journal: ${(error as Error).message}`;
      complain(text);
      failed.push({ job: spec.job, run_count: spec.run_count, exit_status: JOB_EXEC.RETRY, text, at_ms: now_ms() });
      return;
    }
    if (spec.terminal === null) return launchOne(spec, null, started, failed);
    // The terminal's relay is no process of the job whose group we may be in.
    groups?.leave();
    openAndLaunch({ ...spec, terminal: spec.terminal });
  };

  const launchOne = (spec: StartSpec, terminal: OpenTerminal | null, started: StarterRun[], failed: Failed[]): void => {
    const key = { job: spec.job, run_count: spec.run_count };
    const { cgroup } = spec;
    const job = jobOfName(spec.job);
    const top = runs.get(job);
    // Once the top process is reaped all of the job is being ended (S3).
    if (job !== spec.job && (top?.run_count !== spec.run_count || top.state !== "running" || !byPid.has(top.pid))) {
      failed.push({ ...key, exit_status: JOB_EXEC.RETRY, text: `job ${job} is over`, at_ms: now_ms() });
      return;
    }
    const start = (): ReturnType<typeof launch> => launch(spec, terminal?.pty);
    if (cgroup === null) groups?.leave();
    const outcome = groups === null || cgroup === null ? start() : groups.within(job, cgroup, start);
    if (groups !== null && cgroup !== null && "pid" in outcome) groups.bringIn(outcome.pid);
    const at_ms = now_ms();
    if (!("pid" in outcome)) {
      if (job === spec.job) groups?.close(spec.job);
      terminals.over(spec.job);
      notes.push({ t: "failed", ...key });
      failed.push({ ...key, ...outcome, at_ms });
      return;
    }
    const ticks = readProcess(outcome.pid)?.start_ticks ?? 0;
    const on = terminal === null ? {} : { terminal: terminal.pty };
    const run = { ...key, pid: outcome.pid, at_ms, ticks, ...on, state: "running" as const };
    const script = outcome.script === undefined ? {} : { script: kernelName(outcome.script) };
    const cookie = cookieOf(spec.env);
    byPid.set(run.pid, { ...key, cookie, uid: spec.owner?.uid ?? OWN_UID, ...script });
    runs.set(spec.job, { ...run, cookie });
    started.push(run);
    notes.push({ t: "start", ...key, pid: run.pid, at_ms, ticks: run.ticks, cookie });
  };

  const openAndLaunch = (spec: StartSpec & { readonly terminal: NonNullable<StartSpec["terminal"]> }): void => {
    const key = { job: spec.job, run_count: spec.run_count };
    terminals.open(spec, {
      opened: (terminal) => {
        const [started, failed]: [StarterRun[], Failed[]] = [[], []];
        launchOne({ ...spec, env: terminalEnvironment(spec.env, terminal) }, terminal, started, failed);
        tellStarts(started, failed);
      },
      failed: (why) => {
        notes.push({ t: "failed", ...key });
        const text = `cannot open interactive qsub socket: ${why}`;
        tellStarts([], [{ ...key, exit_status: JOB_EXEC.FAIL1, text, at_ms: now_ms() }]);
      },
    });
  };

  const tellStarts = (started: readonly StarterRun[], failed: readonly Failed[]): void => {
    groups?.leave();
    note(notes.splice(0));
    const told = started.map(({ job, run_count, pid, at_ms, terminal }) =>
      terminal === undefined ? { job, run_count, pid, at_ms } : { job, run_count, pid, at_ms, terminal },
    );
    if (told.length > 0) link?.send("starter-started", { runs: told });
    if (failed.length > 0) link?.send("starter-failed", { runs: failed });
  };

  return {
    start(data) {
      const started: StarterRun[] = [];
      const failed: Failed[] = [];
      try {
        for (const spec of data.runs) startOne(spec, started, failed);
      } finally {
        tellStarts(started, failed);
      }
    },
    signal(data) {
      const wanted = new Map<number, number>();
      for (const request of data.runs) {
        const run = runs.get(request.job);
        if (run?.run_count !== request.run_count || run.state !== "running" || !byPid.has(run.pid)) continue;
        wanted.set(run.pid, request.signal);
        if (groups === null && taskOf(run.job) === null) signalOthers(run.job, request.signal);
      }
      signalSessions(wanted);
      for (const [pid, signal] of wanted) signalGroup(byPid.get(pid)?.job ?? "", signal);
    },
    adopt(data) {
      for (const { job, run_count, pid } of data.runs) {
        const run = runs.get(job);
        const leader = run === undefined ? undefined : byPid.get(run.pid);
        if (run?.run_count !== run_count || leader === undefined) continue;
        const session = readProcess(pid)?.session ?? 0;
        // One that is a run's is in its job already.
        if (session <= 0 || byPid.has(session) || ownerOf(pid) !== leader.uid) continue;
        adopted.set(job, new Map([...(adopted.get(job) ?? []), [session, leader.uid]]));
        link?.send("starter-adopted", { runs: [{ job, run_count, session, owner: leader.uid }] });
        const members = readProcesses().filter((info) => info.session === session && ownerOf(info.pid) === leader.uid);
        if (groups !== null) for (const info of members) groups.adopt(job, info.pid);
      }
    },
    forget(data) {
      const forgotten: JournalRecord[] = [];
      for (const key of data.runs) {
        const run = runs.get(key.job);
        if (run?.run_count === key.run_count && run.state === "running") continue;
        if (run?.run_count === key.run_count) runs.delete(key.job);
        if (taskOf(key.job) === null) rememberLast(state.last, key);
        forgotten.push({ t: "forget", job: key.job, run_count: key.run_count });
      }
      note(forgotten);
      if (journal.bytes <= COMPACT_BYTES) return;
      try {
        journal.compact(state);
      } catch (error) {
        complain(`journal: ${(error as Error).message}`);
      }
    },
    reapAll,
    attach(next) {
      terminals.cancelOpening();
      link = next;
      const told = new Set(waiting.map((exit) => exit.job));
      const present = [...runs.values()].map(({ ticks: _, cookie: _cookie, ...run }): StarterRun => {
        if (run.state === "ended" && told.has(run.job)) return { ...run, state: "running" } as StarterRun;
        const sessions = [...adoptedOf(run.job)].map(([session, owner]) => ({ session, owner }));
        return run.state === "running" && sessions.length > 0 ? { ...run, adopted: sessions } : run;
      });
      next?.send("starter-state", {
        pid: process.pid,
        runs: present,
        last: [...state.last].map(([job, run_count]) => ({ job, run_count })),
        pongs: true,
      });
    },
    killAll() {
      signalSessions(new Map([...byPid.keys()].map((pid) => [pid, SIGKILL])));
      if (groups !== null) clearGroups(groups);
    },
    get active() {
      return byPid.size + ending.length + terminals.pids.size;
    },
  };
}

const OWN_UID = process.geteuid?.() ?? 0;

/** What the kernel calls a process that executes the file. */
const kernelName = (path: string): string => Buffer.from(path.slice(path.lastIndexOf("/") + 1)).toString("latin1", 0, KERNEL_NAME_BYTES);
const KERNEL_NAME_BYTES = 15;

const cookieOf = (env: readonly string[]): string =>
  env.find((entry) => entry.startsWith("PBS_JOBCOOKIE="))?.slice("PBS_JOBCOOKIE=".length) ?? "";

/**
 * Sends each session leader's signal to all processes of its session; SIGKILL is repeated while new ones appear.
 * owners: of sessions in which only the processes of one user are meant.
 */
function signalSessions(wanted: ReadonlyMap<number, number>, owners: ReadonlyMap<number, number> = new Map()): void {
  if (wanted.size === 0) return;
  const kills = [...wanted].filter(([, signal]) => signal === SIGKILL).map(([pid]) => pid);
  const membersOf = (leaders: Iterable<number>): [number, ProcessInfo[]][] =>
    [...processesOf(readProcesses(), new Set(leaders))].map(([leader, members]) => {
      const uid = owners.get(leader);
      return [leader, uid === undefined ? members : members.filter(({ pid }) => ownerOf(pid) === uid)];
    });
  for (const [leader, members] of membersOf(wanted.keys())) {
    for (const member of members) signalQuietly(member.pid, wanted.get(leader) as number);
  }
  for (let round = 0; round < KILL_ROUNDS && kills.length > 0; round++) {
    const left = membersOf(kills)
      .flatMap(([, members]) => members)
      .filter((info) => info.state !== "Z" && info.state !== "X");
    if (left.length === 0) return;
    for (const info of left) signalQuietly(info.pid, SIGKILL);
  }
}

/**
 * At the start of a new starter: runs that an earlier one left running are lost, for nobody can wait for them any more. What lives of them is killed.
 * boot: the present boot's id.
 */
export function settleLostRuns(state: JournalState, boot: string, groups: JobGroups | null): void {
  if (groups !== null) clearGroups(groups);
  const all = state.boot === boot ? readProcesses() : [];
  for (const run of state.runs.values()) {
    if (run.state !== "running") continue;
    if (all.length > 0) killSurvivors(run, all);
    state.runs.set(run.job, { job: run.job, run_count: run.run_count, pid: run.pid, at_ms: run.at_ms, ticks: run.ticks, state: "lost" });
  }
}

/** What an earlier starter's jobs left in their groups. */
function clearGroups(groups: JobGroups): void {
  for (let round = 0; round < CLEAR_ROUNDS; round++) {
    let left = 0;
    for (const job of groups.jobs()) left += groups.kill(job);
    if (left === 0) break;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
  }
  for (const job of groups.jobs()) groups.close(job);
}
const CLEAR_ROUNDS = 100;

/** Kills and waits (a second at most) until nothing of the run is left. */
function killSurvivors(run: Run, all: readonly ProcessInfo[]): void {
  let left = survivors(run, all);
  for (let round = 0; left.length > 0 && round < 100; round++) {
    for (const info of left) signalQuietly(info.pid, SIGKILL);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    left = survivors(run, readProcesses()).filter((info) => info.state !== "Z");
  }
}

/** A session number may mean something else by now: its leader must be the one started, or a member must say whose it is. */
function survivors(run: Run, all: readonly ProcessInfo[]): ProcessInfo[] {
  const job = jobOfName(run.job);
  // Another mom's jobs on this host may have equal ids: the secret tells them apart.
  const says = ({ pid }: ProcessInfo): boolean =>
    processVariable(pid, "PBS_JOBID") === job && run.cookie !== undefined && processVariable(pid, "PBS_JOBCOOKIE") === run.cookie;
  if (run.pid === 0) return all.filter(says);
  const leader = all.find((info) => info.pid === run.pid);
  const same = leader !== undefined && leader.start_ticks === run.ticks;
  const ours = processesOf(all, new Set([run.pid])).get(run.pid) ?? [];
  return same ? ours : ours.filter(says);
}

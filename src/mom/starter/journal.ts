// The starter's journal: the runs that were started, their ends, and which runs were forgotten. Each line is a JSON record, and records are only appended.
// Exits are synced to the disk in groups before they are reported.
//
// J1. append() reaches the page cache before it returns (and so survives the starter); sync() resolves when everything appended so far is on the disk.
// J2. If the host went down during a write, the last line is incomplete. It is ignored when the journal is read.

import { closeSync, constants, fdatasync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { messageOf } from "#support/caught.ts";
import { type ExitedRun, type RunKey, type StartedRun, type StarterRun, taskOf } from "../job/starter-link.ts";

export type JournalRecord =
  | { readonly t: "boot"; readonly boot: string }
  | (StartedRun & {
      readonly t: "start" /** start time of the process in ticks since boot: it tells the process from a later one with the same pid */;
      readonly ticks: number;
      /** PBS_JOBCOOKIE in the environment of its processes */
      readonly cookie?: string;
    })
  | (ExitedRun & { readonly t: "exit" })
  /** a run that could not be started: the `start` record before this one is void */
  | (RunKey & { readonly t: "failed" })
  | (RunKey & { readonly t: "forget" });

/** A run, with what is needed to find processes that it left. */
export type JournalRun = StarterRun & { readonly ticks: number; readonly cookie?: string };

/** What was read from a journal. boot: the boot in which it was written. runs: by name of job or task. last: run counts of forgotten jobs. */
export type JournalState = {
  readonly boot: string;
  readonly runs: Map<string, JournalRun>;
  readonly last: Map<string, number>;
};

export type Journal = {
  /** appends all records. If it throws, some of them may have been written */
  append(records: readonly JournalRecord[]): void;
  sync(): Promise<void>;
  /** replaces the file by a new one with only the records that are still needed */
  compact(state: JournalState): void;
  readonly bytes: number;
};

/** Appends records that need not be on the disk at once. An error is only reported. */
export function noteInJournal(journal: Journal, records: readonly JournalRecord[], complain: (text: string) => void): void {
  try {
    if (records.length > 0) journal.append(records);
  } catch (error) {
    complain(`journal: ${messageOf(error)}`);
  }
}

/** For how many forgotten jobs the run count is kept: a start that arrives late must still be recognised as out of date. */
const LAST_RUNS_MAX = 10_000;

/** Reads the contents of a journal from its text. Pure. */
export function readJournal(text: string): JournalState {
  const runs: JournalState["runs"] = new Map();
  const last: JournalState["last"] = new Map();
  let boot = "";
  for (const line of text.split("\n")) {
    const record = parseLine(line);
    if (record === null) continue;
    switch (record.t) {
      case "boot":
        boot = record.boot;
        break;
      case "start":
        // A record with pid 0 was written before the launch.
        runs.set(record.job, {
          job: record.job,
          run_count: record.run_count,
          pid: record.pid,
          at_ms: record.at_ms,
          ticks: record.ticks,
          ...(record.cookie === undefined ? {} : { cookie: record.cookie }),
          state: "running",
        });
        break;
      case "exit": {
        const run = runs.get(record.job);
        const { t: _, ...exit } = record;
        const known = run?.run_count === record.run_count ? run : { pid: 0, at_ms: record.at_ms, ticks: 0 };
        runs.set(record.job, {
          job: record.job,
          run_count: record.run_count,
          pid: known.pid,
          at_ms: known.at_ms,
          ticks: known.ticks,
          state: "ended",
          exit,
        });
        break;
      }
      case "failed":
        if (runs.get(record.job)?.run_count === record.run_count) runs.delete(record.job);
        break;
      case "forget":
        if (runs.get(record.job)?.run_count === record.run_count) runs.delete(record.job);
        if (taskOf(record.job) === null) rememberLast(last, record);
        break;
      default: {
        const unreachable: never = record;
        throw new Error(`journal record ${JSON.stringify(unreachable)}`);
      }
    }
  }
  return { boot, runs, last };
}

export function rememberLast(last: Map<string, number>, run: RunKey): void {
  const before = last.get(run.job) ?? 0;
  last.delete(run.job);
  last.set(run.job, Math.max(before, run.run_count));
  if (last.size > LAST_RUNS_MAX)
    for (const oldest of last.keys()) {
      last.delete(oldest);
      break;
    }
}

function parseLine(line: string): JournalRecord | null {
  if (!line.startsWith("{")) return null;
  try {
    return JSON.parse(line) as JournalRecord;
  } catch {
    return null;
  }
}

/** Opens the journal at path, and makes it if it does not exist. Throws on a file system error. */
export function openJournal(path: string): { readonly journal: Journal; readonly state: JournalState } {
  const state = readJournal(readText(path));
  let fd = openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  let bytes = 0;
  let torn = false;
  let running: Promise<void> | null = null;
  let waiting: Promise<void> | null = null;
  const syncNow = (): Promise<void> =>
    new Promise((resolve, fail) => {
      fdatasync(fd, (error) => (error === null ? resolve() : fail(error)));
    });
  const begin = (): Promise<void> => {
    running = syncNow().finally(() => {
      running = null;
    });
    return running;
  };
  const journal: Journal = {
    append(records) {
      // The last write may have left an incomplete line (a full disk). A line break ends that line, so that the next record is not lost with it.
      const lines = `${torn ? "\n" : ""}${textOf(records)}`;
      torn = true;
      bytes += writeWhole(fd, lines);
      torn = false;
    },
    /** Only one sync runs at a time. All calls during a sync share the next sync. */
    sync() {
      if (running === null) return begin();
      waiting ??= running
        .catch(() => undefined)
        .then(() => {
          waiting = null;
          return begin();
        });
      return waiting;
    },
    compact(present) {
      const temporary = `${path}.new`;
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_APPEND | constants.O_NOFOLLOW;
      const out = openSync(temporary, flags, 0o600);
      let written: number;
      try {
        written = writeWhole(out, linesOf(present));
        fsyncSync(out);
        renameSync(temporary, path);
      } catch (error) {
        closeSync(out);
        throw error;
      }
      closeSync(fd);
      fd = out;
      bytes = written;
      torn = false;
      syncDirectory(dirname(path));
    },
    get bytes() {
      return bytes;
    },
  };
  return { journal, state };
}

/** Writes all bytes and returns their number. Throws if the disk refuses a write. */
export function writeWhole(fd: number, text: string): number {
  const buffer = Buffer.from(text);
  for (let at = 0; at < buffer.length; ) at += writeSync(fd, buffer, at);
  return buffer.length;
}

/**
 * Returns the lines of a journal with this state. A lost run has no exit record: it is written as started, and the next starter finds again that it is lost.
 */
export function linesOf(state: JournalState): string {
  const records: JournalRecord[] = [{ t: "boot", boot: state.boot }];
  for (const [job, run_count] of state.last) records.push({ t: "forget", job, run_count });
  for (const run of state.runs.values()) {
    records.push({
      t: "start",
      job: run.job,
      run_count: run.run_count,
      pid: run.pid,
      at_ms: run.at_ms,
      ticks: run.ticks,
      ...cookieOf(run),
    });
    if (run.state === "ended") records.push({ t: "exit", ...run.exit });
  }
  return textOf(records);
}

/** Returns the cookie to record. It is needed only while the run may have processes. */
const cookieOf = ({ state, cookie }: { readonly state: string; readonly cookie?: string }): { cookie?: string } =>
  cookie === undefined || state === "ended" ? {} : { cookie };

const textOf = (records: readonly JournalRecord[]): string => records.map((record) => `${JSON.stringify(record)}\n`).join("");

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function syncDirectory(path: string): void {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

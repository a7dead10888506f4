// The starter's journal: runs that it started, their ends, and forgotten runs. One JSON record on each line, appended; exits are synced to the disk
// in groups before they are reported.
//
// J1. append() reaches the page cache before it returns (and so survives the starter); sync() resolves when everything appended so far is on the disk.
// J2. A torn last line (the host went down while writing) is left out.

import { closeSync, constants, fdatasync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { messageOf } from "#support/caught.ts";
import { type ExitedRun, type RunKey, type StartedRun, type StarterRun, taskOf } from "../job/starter-link.ts";

export type JournalRecord =
  | { readonly t: "boot"; readonly boot: string }
  | (StartedRun & {
      readonly t: "start" /** start time of the process in ticks since boot; it distinguishes a process from a later one with the same pid */;
      readonly ticks: number;
      /** PBS_JOBCOOKIE of its processes */
      readonly cookie?: string;
    })
  | (ExitedRun & { readonly t: "exit" })
  /** it could not be started, so there is no such run */
  | (RunKey & { readonly t: "failed" })
  | (RunKey & { readonly t: "forget" });

/** A run with the facts needed to find its leftover processes. */
export type JournalRun = StarterRun & { readonly ticks: number; readonly cookie?: string };

/** Runs read back. */
export type JournalState = {
  readonly boot: string;
  readonly runs: Map<string, JournalRun>;
  readonly last: Map<string, number>;
};

export type Journal = {
  /** appends all records; if it throws, a part of them may be written */
  append(records: readonly JournalRecord[]): void;
  sync(): Promise<void>;
  /** writes a fresh file with the records that still matter */
  compact(state: JournalState): void;
  readonly bytes: number;
};

/** Appends records that need not be on the disk at once. */
export function noteInJournal(journal: Journal, records: readonly JournalRecord[], complain: (text: string) => void): void {
  try {
    if (records.length > 0) journal.append(records);
  } catch (error) {
    complain(`journal: ${messageOf(error)}`);
  }
}

/** How many forgotten jobs' run counts are kept (a start that comes late must still be seen to be stale). */
const LAST_RUNS_MAX = 10_000;

/** Pure: the contents of a journal from its lines. */
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
        // pid 0: about to be launched.
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

/** Opens (and makes) the journal at path. Throws on a file system error. */
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
      // After a torn line (a full disk) a new line begins; otherwise both would be lost.
      const lines = `${torn ? "\n" : ""}${textOf(records)}`;
      torn = true;
      bytes += writeWhole(fd, lines);
      torn = false;
    },
    /** One sync runs at a time; callers that come meanwhile share the next one. */
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

/** Writes all bytes and returns their number. Throws if the disk refuses. */
export function writeWhole(fd: number, text: string): number {
  const buffer = Buffer.from(text);
  for (let at = 0; at < buffer.length; ) at += writeSync(fd, buffer, at);
  return buffer.length;
}

/** A lost run has no exit: it is written as started, and is found lost again at the next start. */
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

/** The cookie is needed only while the run may have processes. */
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

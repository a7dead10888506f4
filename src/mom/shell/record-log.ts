// The mom's records of its runs, PBS_HOME/mom_priv/jobs/records: everything that a killed mom needs to continue. One JSON record on each line, appended:
// no file is made and removed for each job, which is the largest cost of a short job on some file systems.
//
// G1. save() and drop() are in the page cache when flush() returns; that survives the mom. Facts that must survive the machine are in the starter's journal.
// G2. A torn last line is skipped. A file with a line of another version is put aside as .BD, and reported.
// G3. A full disk does not end the mom: unwritten records wait, `fault` gives the reason, and the mom accepts no new jobs meanwhile (mom.ts).

import { closeSync, constants, fdatasyncSync, openSync, readFileSync, renameSync, rmSync } from "node:fs";
import { messageOf } from "#support/caught.ts";
import type { RunKey } from "../job/starter-link.ts";
import type { SavedRun, SavedTasks } from "../run/state.ts";
import { writeWhole } from "../starter/journal.ts";

type Line = { readonly save: SavedRun } | { readonly drop: string } | { readonly tasks: SavedTasks; readonly of: RunKey };

export type RecordLog = {
  save(run: SavedRun): void;
  /** into the record of that run of the job, until it is saved anew: a short line for what changes often */
  saveTasks(job: string, run_count: number, tasks: SavedTasks): void;
  /** the record of that run of the job; a later one stays */
  drop(job: string, run_count: number): void;
  flush(): void;
  /** why the last flush wrote nothing; null: it wrote everything */
  readonly fault: string | null;
  close(): void;
};

/** The file is written anew when it has grown to this size and to several times the size of its live records. */
const COMPACT_CHARS = 4 * 1024 * 1024;

/** Pure: lines to the runs on record. Throws for a line of a version that is not ours. */
export function readRecords(text: string): Map<string, SavedRun> {
  const runs = new Map<string, SavedRun>();
  for (const raw of text.split("\n")) {
    if (!raw.startsWith("{")) continue;
    let line: Line;
    try {
      line = JSON.parse(raw) as Line;
    } catch {
      continue;
    }
    if ("drop" in line) runs.delete(line.drop);
    else if ("tasks" in line) {
      const run = runs.get(line.of.job);
      if (run?.job.run_count === line.of.run_count) runs.set(line.of.job, { ...run, tasks: line.tasks });
    } else if (line.save.version === 1) runs.set(line.save.job.id, line.save);
    else throw new Error(`a record of version ${line.save.version}`);
  }
  return runs;
}

/** Opens (and makes) the file. problem: called about a file that had to be put aside, and when the disk begins or stops to accept nothing. */
export function openRecords(
  path: string,
  problem: (text: string) => void,
): { readonly log: RecordLog; readonly found: readonly SavedRun[] } {
  /** tasks: the line after that of the run */
  const lines = new Map<string, { readonly run_count: number; readonly text: string; tasks: string }>();
  const found = readOld(path, problem);
  for (const [id, run] of found) lines.set(id, { run_count: run.job.run_count, text: lineOf({ save: run }), tasks: "" });
  let fd = -1;
  let chars = 0;
  let live = [...lines.values()].reduce((sum, line) => sum + line.text.length, 0);
  let waiting = "";
  let fault: string | null = null;
  const isFaulty = (text: string | null): void => {
    if (text !== fault) problem(text === null ? `${path}: written again` : `${path}: ${text}`);
    fault = text;
  };
  const rewrite = (): void => {
    const temporary = `${path}.new`;
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_APPEND | constants.O_NOFOLLOW;
    const out = openSync(temporary, flags, 0o600);
    const text = [...lines.values()].map((line) => line.text + line.tasks).join("");
    try {
      writeWhole(out, text);
      fdatasyncSync(out);
      renameSync(temporary, path);
    } catch (error) {
      closeSync(out);
      rmSync(temporary, { force: true });
      throw error;
    }
    if (fd >= 0) closeSync(fd);
    fd = out;
    chars = text.length;
    live = text.length;
  };
  try {
    rewrite();
  } catch (error) {
    // The old file says the same in more lines. Its last line may be torn.
    fd = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW, 0o600);
    waiting = "\n";
    isFaulty(messageOf(error));
  }
  const log: RecordLog = {
    save(run) {
      const text = lineOf({ save: run });
      live += text.length - (lines.get(run.job.id)?.text.length ?? 0);
      lines.set(run.job.id, { run_count: run.job.run_count, text, tasks: "" });
      waiting += text;
    },
    saveTasks(job, run_count, tasks) {
      const line = lines.get(job);
      if (line?.run_count !== run_count) return;
      line.tasks = lineOf({ tasks, of: { job, run_count } });
      waiting += line.tasks;
    },
    drop(job, run_count) {
      const line = lines.get(job);
      if (line?.run_count !== run_count) return;
      lines.delete(job);
      live -= line.text.length;
      waiting += lineOf({ drop: job });
    },
    flush() {
      if (waiting === "") return;
      try {
        writeWhole(fd, waiting);
        chars += waiting.length;
        waiting = "";
        if (chars > COMPACT_CHARS && chars > 4 * live) rewrite();
        isFaulty(null);
      } catch (error) {
        // A full disk: the records are kept and written with the next one. A torn line before them is skipped, so all of them are written again.
        if (!waiting.startsWith("\n")) waiting = `\n${waiting}`;
        isFaulty(messageOf(error));
      }
    },
    get fault() {
      return fault;
    },
    close() {
      log.flush();
      closeSync(fd);
    },
  };
  return { log, found: [...found.values()] };
}

const lineOf = (line: Line): string => `${JSON.stringify(line)}\n`;

function readOld(path: string, problem: (text: string) => void): Map<string, SavedRun> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return new Map();
  }
  try {
    return readRecords(text);
  } catch (error) {
    renameSync(path, `${path}.BD`);
    problem(`${path}: ${messageOf(error)}; put aside as .BD`);
    return new Map();
  }
}

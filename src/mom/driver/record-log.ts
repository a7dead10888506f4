// The mom's records of its runs, PBS_HOME/mom_priv/jobs/records: everything that a killed mom needs to continue. Each line is one JSON record. Records are
// appended to one file, because making and removing a file for each job would be the largest cost of a short job on some file systems.
//
// G1. What save() and drop() wrote is in the page cache when flush() returns, and so survives the mom. What must survive a crash of the machine is in the
//     starter's journal.
// G2. An incomplete last line is skipped. If a line is of another version, the file is put aside, and this is reported.
// G3. A full disk does not end the mom. Unwritten records are kept, `fault` gives the reason, and the mom accepts no new jobs until they are written
//     (mom-driver.ts).

import { messageOf } from "#support/caught.ts";
import type { RunKey } from "../job/starter-link.ts";
import type { SavedRun, SavedTasks } from "../run/state.ts";
import type { RecordFile } from "./ports.ts";

type Line = { readonly save: SavedRun } | { readonly drop: string } | { readonly tasks: SavedTasks; readonly of: RunKey };

/** The file is written anew when it has reached this size and is several times as large as the records that are still needed. */
const COMPACT_CHARS = 4 * 1024 * 1024;

/** Reads the runs from the lines of the file. Throws if a line is of another version than ours. */
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

export class RecordLog {
  /** the runs whose records were in the file when it was opened */
  readonly found: readonly SavedRun[];
  readonly #file: RecordFile;
  readonly #complain: (text: string) => void;
  /** the present lines about each run. text: its record. tasks: the line about its tasks that follows the record */
  readonly #lines = new Map<string, { readonly run_count: number; readonly text: string; tasks: string }>();
  #chars = 0;
  #live = 0;
  #waiting = "";
  #fault: string | null = null;

  /** Reads the file and writes it anew. complain: called about a file that was put aside, and when the disk begins to refuse writes or accepts them again. */
  constructor(file: RecordFile, complain: (text: string) => void) {
    this.#file = file;
    this.#complain = complain;
    const found = readOld(file, complain);
    this.found = [...found.values()];
    for (const [id, run] of found) this.#lines.set(id, { run_count: run.job.run_count, text: lineOf({ save: run }), tasks: "" });
    this.#live = [...this.#lines.values()].reduce((sum, line) => sum + line.text.length, 0);
    try {
      this.#rewrite();
    } catch (error) {
      // The old file stays. It has the same records in more lines, and its last line may be incomplete, so the next text begins with a line break.
      this.#waiting = "\n";
      this.#isFaulty(messageOf(error));
    }
  }

  /** why the last flush could not write; null: everything is written */
  get fault(): string | null {
    return this.#fault;
  }

  save(run: SavedRun): void {
    const text = lineOf({ save: run });
    this.#live += text.length - (this.#lines.get(run.job.id)?.text.length ?? 0);
    this.#lines.set(run.job.id, { run_count: run.job.run_count, text, tasks: "" });
    this.#waiting += text;
  }

  /** Writes what is known about a run's tasks as a short line, because it changes often. The line counts until the whole record is saved again. */
  saveTasks(job: string, run_count: number, tasks: SavedTasks): void {
    const line = this.#lines.get(job);
    if (line?.run_count !== run_count) return;
    line.tasks = lineOf({ tasks, of: { job, run_count } });
    this.#waiting += line.tasks;
  }

  /** Removes the record of this run of the job. The record of a later run stays. */
  drop(job: string, run_count: number): void {
    const line = this.#lines.get(job);
    if (line?.run_count !== run_count) return;
    this.#lines.delete(job);
    this.#live -= line.text.length;
    this.#waiting += lineOf({ drop: job });
  }

  flush(): void {
    if (this.#waiting === "") return;
    try {
      this.#file.append(this.#waiting);
      this.#chars += this.#waiting.length;
      this.#waiting = "";
      if (this.#chars > COMPACT_CHARS && this.#chars > 4 * this.#live) this.#rewrite();
      this.#isFaulty(null);
    } catch (error) {
      // If the disk is full, the records are kept and written at the next flush. The failed write may have left an incomplete line, which will be skipped. So
      // the next text begins with a line break and has all these records again.
      if (!this.#waiting.startsWith("\n")) this.#waiting = `\n${this.#waiting}`;
      this.#isFaulty(messageOf(error));
    }
  }

  close(): void {
    this.flush();
    this.#file.close();
  }

  #rewrite(): void {
    const text = [...this.#lines.values()].map((line) => line.text + line.tasks).join("");
    this.#file.replace(text);
    this.#chars = text.length;
    this.#live = text.length;
  }

  #isFaulty(text: string | null): void {
    if (text !== this.#fault) this.#complain(`${this.#file.name}: ${text ?? "written again"}`);
    this.#fault = text;
  }
}

const lineOf = (line: Line): string => `${JSON.stringify(line)}\n`;

function readOld(file: RecordFile, complain: (text: string) => void): Map<string, SavedRun> {
  try {
    return readRecords(file.read());
  } catch (error) {
    file.putAside();
    complain(`${file.name}: ${messageOf(error)}; put aside as .BD`);
    return new Map();
  }
}

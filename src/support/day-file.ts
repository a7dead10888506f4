// A file of lines that changes its name with the local day: daemon logs and accounting (docs/reference/files.md 3, 4). Lines
// are collected and written in batches, one system call for each batch, in the order of arrival.
//
// F1. Lines reach the file in the order of write(). A batch contains lines of one day only.
// F2. When flush() or close() has returned, all earlier lines are in the file, or are counted in `lost` if the disk refused
//     them.
// F3. If the disk refuses writes, the daemon continues: lines are dropped and counted. When writing works again, the count
//     is logged.
// F4. A full disk or a killed process may leave an incomplete line at the end of the file. The next text then begins on a
//     new line.

import { closeSync, constants, fsyncSync, lstatSync, mkdirSync, openSync, readSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { codeOf, messageOf } from "./caught.ts";

export type DayFileOptions = {
  /** directory of the daily files; ignored if `file` is given */
  readonly dir: string;
  /** path of a single file (-L, -A), used in place of daily files and never rotated */
  readonly file?: string;
  readonly mode?: number;
  /** onOpen: returns lines for the beginning of each file that is opened. onClose: returns lines for the end of a file whose day is over */
  readonly onOpen?: (now_ms: number) => string;
  readonly onClose?: (now_ms: number) => string;
  /**
   * After a write, lines are collected for this many milliseconds before the next write (default GATHER_MS). A line that
   * comes after a longer pause is written at the end of the present turn of the event loop. 0: every line is written at once
   */
  readonly delay_ms?: number;
  /** returns a line for the log that says how many lines were lost, and why */
  readonly onLost?: (now_ms: number, count: number, why: string) => string;
};

const BATCH_CHARS_MAX = 256 * 1024;
/**
 * Time for which lines are collected. A user who reads a log right after a command (some 10 ms) finds its effects, and a busy daemon makes at most 200 writes a
 * second.
 */
const GATHER_MS = 5;

export class DayFile {
  readonly #options: DayFileOptions;
  readonly #delay_ms: number;
  #dir: string;
  #fd = -1;
  #day = "";
  #waiting = "";
  /** whether the file ends with an incomplete line (F4) */
  #torn = false;
  #lost = 0;
  /** why the disk last refused a write */
  #why = "";
  #turn_end: NodeJS.Immediate | null = null;
  #pause: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(options: DayFileOptions) {
    this.#options = options;
    this.#delay_ms = options.delay_ms ?? GATHER_MS;
    this.#dir = options.dir;
  }

  /** Number of lines lost since the last successful write. */
  get lost(): number {
    return this.#lost;
  }

  /** The path of the file that is open, or will be opened next. */
  get path(): string {
    return this.pathOf(this.#day);
  }

  /** Adds lines. text: whole lines with their line ends. day: YYYYMMDD of now_ms. */
  write(text: string, day: string, now_ms: number): void {
    if (this.#closed) return;
    if (this.#fd < 0 || day !== this.#day || this.#lost > 0) this.#turn(day, now_ms);
    this.#waiting += text;
    if (this.#delay_ms === 0 || this.#waiting.length >= BATCH_CHARS_MAX) this.flush();
    else if (this.#pause === null) this.#turn_end ??= setImmediate(() => this.#flushAndPause());
  }

  flush(): void {
    if (this.#turn_end !== null) clearImmediate(this.#turn_end);
    if (this.#pause !== null) clearTimeout(this.#pause);
    this.#turn_end = this.#pause = null;
    const text = this.#waiting;
    this.#waiting = "";
    this.#put(text);
  }

  /** Closes the file and opens the file of that name again (SIGHUP, after an external rotation). */
  reopen(now_ms: number): void {
    if (this.#closed || this.#fd < 0) return;
    this.#end(now_ms);
    this.#open(this.#day, now_ms);
  }

  /** Continues in another directory (the server has changed sched_log). */
  redirect(dir: string, now_ms: number): void {
    if (this.#closed || dir === this.#dir) return;
    if (this.#fd >= 0) this.#end(now_ms);
    this.#dir = dir;
  }

  /** Writes the waiting lines, syncs and closes the file. Later writes are ignored. */
  close(now_ms: number): void {
    if (this.#closed) return;
    this.flush();
    if (this.#fd >= 0) {
      this.#put(this.#options.onClose?.(now_ms) ?? "");
      try {
        fsyncSync(this.#fd);
      } catch {
        // Some devices cannot sync. All lines were written without it.
      }
    }
    this.#shut();
    this.#closed = true;
  }

  /** The path of the file of a day. */
  pathOf(day: string): string {
    return this.#options.file ?? join(this.#dir, day);
  }

  /** Writes the waiting lines. Lines that come within the next delay_ms are collected. */
  #flushAndPause(): void {
    this.flush();
    this.#pause = setTimeout(() => {
      this.#pause = null;
      if (this.#waiting !== "") this.#flushAndPause();
    }, this.#delay_ms).unref();
  }

  /** Opens the file of the day if it is not open. If that fails, the next line tries again. */
  #turn(day: string, now_ms: number): void {
    if (this.#fd >= 0 && this.#options.file === undefined && day !== this.#day) this.#end(now_ms);
    if (this.#fd < 0) this.#open(day, now_ms);
    if (this.#lost > 0 && this.#fd >= 0 && this.#waiting === "") this.#tellLost(now_ms);
  }

  /** Logs how many lines were lost (F3). */
  #tellLost(now_ms: number): void {
    const { onLost } = this.#options;
    if (onLost === undefined) return;
    const count = this.#lost;
    this.#lost = 0;
    this.#put(onLost(now_ms, count, this.#why));
    if (this.#lost > 0) this.#lost = count;
  }

  #open(day: string, now_ms: number): void {
    const path = this.pathOf(day);
    try {
      this.#fd = openedFile(path, this.#options.mode ?? 0o644);
    } catch (error) {
      this.#why = messageOf(error);
    }
    this.#day = day;
    this.#torn = this.#fd >= 0 && endsTorn(path);
    if (this.#fd >= 0) this.#put(this.#options.onOpen?.(now_ms) ?? "");
  }

  #put(text: string): void {
    if (text === "") return;
    try {
      if (this.#fd < 0) throw new Error("not open");
      const bytes = Buffer.from(this.#torn ? `\n${text}` : text);
      for (let at = 0; at < bytes.length; this.#torn = at < bytes.length) at += writeSync(this.#fd, bytes, at);
    } catch (error) {
      this.#lost += countLines(text);
      this.#why = messageOf(error);
    }
  }

  /** Writes the last lines and closes the file. */
  #end(now_ms: number): void {
    this.flush();
    this.#put(this.#options.onClose?.(now_ms) ?? "");
    this.#shut();
  }

  #shut(): void {
    this.flush();
    if (this.#fd >= 0) closeSync(this.#fd);
    this.#fd = -1;
  }
}

/** Opens a file for appending, and creates its directory if it is missing. Throws the system's error. */
function openedFile(path: string, mode: number): number {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW, mode);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    // Only the directory itself is made, not its parents: these belong to the installation, and a recursive mkdir under /proc never returns in Node.js.
    mkdirSync(dirname(path), { mode: 0o755 });
    return openSync(path, "a", mode);
  }
}

/** Whether a regular file ends with an incomplete line. */
function endsTorn(path: string): boolean {
  let fd = -1;
  try {
    const stat = lstatSync(path);
    if (!stat.isFile() || stat.size === 0) return false;
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const last = Buffer.alloc(1);
    return readSync(fd, last, 0, 1, stat.size - 1) === 1 && last[0] !== 0x0a;
  } catch {
    return false;
  } finally {
    if (fd >= 0) closeSync(fd);
  }
}

function countLines(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count++;
  return count;
}

// A file of lines that changes its name with the local day: daemon logs and accounting (docs/reference/files.md 3, 4). Lines are gathered and written in one
// system call a batch, in the order they came.
//
// F1. Lines reach the file in the order of write(); a batch never mixes days.
// F2. What was written before flush() or close() returned is in the file (or counted in `lost` when the disk refuses).
// F3. A disk that refuses does not stop the daemon: lines are dropped, counted and named once writing works again.
// F4. A line torn by a full disk or a kill is not gone on with: the next one begins on a line of its own.

import { closeSync, constants, fsyncSync, lstatSync, mkdirSync, openSync, readSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";

export type DayFileOptions = {
  /** directory of the daily files; ignored when file is given */
  readonly dir: string;
  /** one absolute path instead of daily names (-L, -A): never rotated */
  readonly file?: string;
  readonly mode?: number;
  /** lines for the beginning of each file opened, and for the end of one that its day has left */
  readonly onOpen?: (now_ms: number) => string;
  readonly onClose?: (now_ms: number) => string;
  /** lines within so many milliseconds of the last write wait for company (default GATHER_MS), a line after a pause for the end of its turn; 0 writes at once */
  readonly delay_ms?: number;
  /** a line that says how many were lost */
  readonly onLost?: (now_ms: number, count: number, why: string) => string;
};

export type DayFile = {
  /** text: whole lines with their line ends. day: YYYYMMDD of now_ms */
  write(text: string, day: string, now_ms: number): void;
  flush(): void;
  /** closes and opens again by name (SIGHUP, after an outside rotation) */
  reopen(now_ms: number): void;
  /** another path instead of the present one (the server changed sched_log) */
  redirect(dir: string, now_ms: number): void;
  /** flushes, syncs and closes; later writes are refused silently */
  close(now_ms: number): void;
  /** lines not written since the last success */
  readonly lost: number;
  /** the path written to, or to be written to */
  readonly path: string;
};

const BATCH_CHARS_MAX = 256 * 1024;
/** Who looks into a log right after a command (some 10 ms) finds what the command did; a busy daemon makes no more than 200 writes a second. */
const GATHER_MS = 5;

export function dayFile(options: DayFileOptions): DayFile {
  let dir = options.dir;
  let fd = -1;
  let openDay = "";
  let waiting = "";
  let torn = false;
  let lost = 0;
  let why = "";
  let turnEnd: NodeJS.Immediate | null = null;
  let pause: NodeJS.Timeout | null = null;
  let closed = false;
  const delay_ms = options.delay_ms ?? GATHER_MS;

  const pathOf = (day: string): string => options.file ?? join(dir, day);

  const put = (text: string): void => {
    if (text === "") return;
    try {
      if (fd < 0) throw new Error("not open");
      const bytes = Buffer.from(torn ? `\n${text}` : text);
      for (let at = 0; at < bytes.length; torn = at < bytes.length) at += writeSync(fd, bytes, at);
    } catch (error) {
      lost += countLines(text);
      why = (error as Error).message;
    }
  };

  const flush = (): void => {
    if (turnEnd !== null) clearImmediate(turnEnd);
    if (pause !== null) clearTimeout(pause);
    turnEnd = pause = null;
    const text = waiting;
    waiting = "";
    put(text);
  };

  /** Writes what waits, and lets what comes next gather for a while. */
  const flushAndPause = (): void => {
    flush();
    pause = setTimeout(() => {
      pause = null;
      if (waiting !== "") flushAndPause();
    }, delay_ms).unref();
  };

  const open = (day: string, now_ms: number): void => {
    const path = pathOf(day);
    try {
      fd = openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW, options.mode ?? 0o644);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") {
        try {
          // One level only: what is above belongs to the installation (and Node loops for ever on a recursive one under /proc).
          mkdirSync(dirname(path), { mode: 0o755 });
          fd = openSync(path, "a", options.mode ?? 0o644);
        } catch (second) {
          why = (second as Error).message;
        }
      } else {
        why = (error as Error).message;
      }
    }
    openDay = day;
    torn = fd >= 0 && endsTorn(path);
    if (fd >= 0) put(options.onOpen?.(now_ms) ?? "");
  };

  const shut = (): void => {
    flush();
    if (fd >= 0) closeSync(fd);
    fd = -1;
  };

  /** The file of the day is open (or cannot be: the next line tries again). */
  const turn = (day: string, now_ms: number): void => {
    if (fd >= 0 && options.file === undefined && day !== openDay) {
      flush();
      put(options.onClose?.(now_ms) ?? "");
      shut();
    }
    if (fd < 0) open(day, now_ms);
    if (lost > 0 && fd >= 0 && options.onLost !== undefined && waiting === "") {
      const count = lost;
      lost = 0;
      put(options.onLost(now_ms, count, why));
      if (lost > 0) lost = count;
    }
  };

  return {
    write(text, day, now_ms) {
      if (closed) return;
      if (fd < 0 || day !== openDay || lost > 0) turn(day, now_ms);
      waiting += text;
      if (delay_ms === 0 || waiting.length >= BATCH_CHARS_MAX) flush();
      else if (pause === null) turnEnd ??= setImmediate(flushAndPause);
    },
    flush,
    reopen(now_ms) {
      if (closed || fd < 0) return;
      flush();
      put(options.onClose?.(now_ms) ?? "");
      shut();
      open(openDay, now_ms);
    },
    redirect(to, now_ms) {
      if (closed || to === dir) return;
      if (fd >= 0) {
        flush();
        put(options.onClose?.(now_ms) ?? "");
        shut();
      }
      dir = to;
    },
    close(now_ms) {
      if (closed) return;
      flush();
      if (fd >= 0) {
        put(options.onClose?.(now_ms) ?? "");
        try {
          fsyncSync(fd);
        } catch {
          // A log on a device that cannot sync is still a log.
        }
      }
      shut();
      closed = true;
    },
    get lost() {
      return lost;
    },
    get path() {
      return pathOf(openDay);
    },
  };
}

/** Whether a file (nothing else) ends within a line. */
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

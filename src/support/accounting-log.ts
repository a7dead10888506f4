// The accounting file (docs/reference/files.md 4): `MM/DD/YYYY HH:MM:SS;T;ID;MESSAGE`, one file for each local day, without
// header lines.

import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import type { Clock } from "./clock.ts";
import { realClock } from "./clock.ts";
import { DayFile } from "./day-file.ts";
import { localStamper } from "./local-time.ts";

export type AccountingLog = {
  /** Writes a record. type: its letter. id: job, reservation or `license`. at_s: time of the record; default: now */
  record(type: string, id: string, message: string, at_s?: number): void;
  /** The line of a record, without its line end. */
  line(type: string, id: string, message: string, at_s: number): string;
  /** The whole lines among the last bytes of the file for records of that time; none if the file cannot be read. */
  tail(at_s: number, bytes: number): readonly string[];
  reopen(): void;
  flush(): void;
  close(): void;
  readonly path: string;
  /** number of records lost since the last successful write */
  readonly lost: number;
};

/** Opens the accounting file. dir: PBS_HOME/server_priv/accounting. file: path of a single file to use instead of daily ones (pbs_server -A). */
export function openAccounting(options: {
  readonly dir: string;
  readonly file?: string;
  readonly clock?: Clock;
  readonly delay_ms?: number;
}): AccountingLog {
  const clock = options.clock ?? realClock;
  const stamper = localStamper();
  const file = new DayFile({
    dir: options.dir,
    ...(options.file === undefined ? {} : { file: options.file }),
    delay_ms: options.delay_ms ?? 20,
  });
  const line = (type: string, id: string, message: string, at_ms: number): string =>
    `${stamper.stamp(at_ms)};${type};${id};${message.replaceAll("\r", "\\r").replaceAll("\n", "\\n")}`;
  const onExit = (): void => file.close(clock.now_ms());
  process.once("exit", onExit);
  return {
    record(type, id, message, at_s) {
      const now_ms = at_s === undefined ? clock.now_ms() : at_s * 1000;
      file.write(`${line(type, id, message, now_ms)}\n`, stamper.day(now_ms), now_ms);
    },
    line: (type, id, message, at_s) => line(type, id, message, at_s * 1000),
    tail(at_s, bytes) {
      file.flush();
      return lastLines(file.pathOf(stamper.day(at_s * 1000)), bytes);
    },
    reopen: () => file.reopen(clock.now_ms()),
    flush: () => file.flush(),
    close() {
      process.removeListener("exit", onExit);
      file.close(clock.now_ms());
    },
    get path() {
      return file.path;
    },
    get lost() {
      return file.lost;
    },
  };
}

/** The whole lines among the last bytes of a file; none if the file cannot be read. An incomplete last line does not count. */
function lastLines(path: string, bytes: number): readonly string[] {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return [];
  }
  try {
    const { size } = fstatSync(fd);
    const buffer = Buffer.alloc(Math.min(size, bytes));
    readSync(fd, buffer, 0, buffer.length, size - buffer.length);
    return buffer.toString("utf8").split("\n").slice(0, -1);
  } finally {
    closeSync(fd);
  }
}

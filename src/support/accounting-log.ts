// The accounting file (docs/reference/files.md 4): `MM/DD/YYYY HH:MM:SS;T;ID;MESSAGE`, one file for each local day, without
// header lines.

import type { Clock } from "./clock.ts";
import { realClock } from "./clock.ts";
import { DayFile } from "./day-file.ts";
import { localStamper } from "./local-time.ts";

export type AccountingLog = {
  /** Writes a record. type: its letter. id: job, reservation or `license`. at_s: time of the record; default: now */
  record(type: string, id: string, message: string, at_s?: number): void;
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
  const onExit = (): void => file.close(clock.now_ms());
  process.once("exit", onExit);
  return {
    record(type, id, message, at_s) {
      const now_ms = at_s === undefined ? clock.now_ms() : at_s * 1000;
      file.write(
        `${stamper.stamp(now_ms)};${type};${id};${message.replaceAll("\r", "\\r").replaceAll("\n", "\\n")}\n`,
        stamper.day(now_ms),
        now_ms,
      );
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

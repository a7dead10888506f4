// The daemons' logs (docs/reference/files.md 3): `MM/DD/YYYY HH:MM:SS;EEEE;DAEMON;CLASS;OBJECT;TEXT`, one file for each local
// day, written by winston.
//
// L1. A record whose event is not in the mask is dropped before it is formatted. Errors and events with FORCE are always
//     written.
// L2. One record is one line: line ends in a text are written as \n.
// L3. When flush() or close() has returned, all records are in the file. When the process exits, the log is flushed.

import type { Logform } from "winston";
import { createLogger } from "winston";
import Transport from "winston-transport";
import type { Clock } from "./clock.ts";
import { realClock } from "./clock.ts";
import { DayFile } from "./day-file.ts";
import { localStamper } from "./local-time.ts";
import { isLogged, LOG_EVENT, type LogRecord } from "./log-event.ts";
import { PBS_BUILD, PBS_VERSION } from "./version.ts";

export type { LogClass } from "./log-event.ts";
export { LOG_EVENT } from "./log-event.ts";

export type LogOptions = {
  /** PBS_HOME/server_logs or a similar directory. It is made if it is missing; its parent must exist */
  readonly dir: string;
  /** the name of the daemon in each line: `Server@host`, `pbs_sched`, `pbs_mom`, `Comm@host` */
  readonly daemon: string;
  /** -L: path of a single file, used in place of daily files */
  readonly file?: string;
  /** mask of the events that are written; default 511 */
  readonly mask?: number;
  /** PBS_LOG_HIGHRES_TIMESTAMP */
  readonly highres?: boolean;
  readonly clock?: Clock;
  /** further texts for the header, after version and build: `hostname=...;pbs_leaf_name=...` (event 0100) */
  readonly header?: readonly string[];
  /** mode of new files; default 0644 */
  readonly mode?: number;
  /** as in DayFileOptions: how long lines are collected; 0: each record is written at once */
  readonly delay_ms?: number;
};

export type Log = {
  /** Writes a record. event: a LOG_EVENT value, with FORCE added if no mask may suppress it. at_ms: time of the event in epoch milliseconds; default: now */
  record(event: number, logClass: string, object: string, text: string, at_ms?: number): void;
  /** Writes several records of the same moment, in order, for the cost of one. */
  records(list: readonly LogRecord[]): void;
  mask: number;
  /** closes the file and opens it again (SIGHUP) */
  reopen(): void;
  /** continues in another directory */
  redirect(dir: string): void;
  flush(): void;
  close(): void;
  /** path of the present file */
  readonly path: string;
};

/** Opens a daemon's log. The file itself is opened at the first record. */
export function openLog(options: LogOptions): Log {
  const clock = options.clock ?? realClock;
  const stamper = localStamper(options.highres ?? false);
  const { daemon } = options;
  const line = (now_ms: number, event: number, logClass: string, object: string, text: string): string =>
    `${stamper.stamp(now_ms)};${hex4(event)};${daemon};${logClass};${object};${oneLine(text)}\n`;
  const file = new DayFile({
    dir: options.dir,
    ...(options.file === undefined ? {} : { file: options.file }),
    ...(options.delay_ms === undefined ? {} : { delay_ms: options.delay_ms }),
    ...(options.mode === undefined ? {} : { mode: options.mode }),
    onOpen: (now_ms) => headerLines(now_ms, line, daemon, options.header ?? []),
    onClose: (now_ms) => line(now_ms, LOG_EVENT.SYSTEM, "Svr", "Log", "Log closed"),
    onLost: (now_ms, count, why) => line(now_ms, LOG_EVENT.ERROR, "Svr", "Log", `${count} log records lost: ${why}`),
  });
  const transport = new PbsTransport(file, stamper.day);
  const logger = createLogger({ levels: { pbs: 0 }, level: "pbs", format: asIs, transports: [transport], exitOnError: false });
  const onExit = (): void => file.close(clock.now_ms());
  process.once("exit", onExit);
  let mask = options.mask ?? 511;

  return {
    record(event, logClass, object, text, at_ms) {
      if (!isLogged(event, mask)) return;
      const now_ms = at_ms ?? clock.now_ms();
      logger.write({ level: "pbs", message: line(now_ms, event, logClass, object, text), now_ms });
    },
    records(list) {
      const now_ms = clock.now_ms();
      let message = "";
      for (const { event, class: logClass, object, text } of list)
        if (isLogged(event, mask)) message += line(now_ms, event, logClass, object, text);
      if (message !== "") logger.write({ level: "pbs", message, now_ms });
    },
    get mask() {
      return mask;
    },
    set mask(value) {
      mask = value;
    },
    reopen: () => file.reopen(clock.now_ms()),
    redirect: (dir) => file.redirect(dir, clock.now_ms()),
    flush: () => file.flush(),
    close() {
      process.removeListener("exit", onExit);
      file.close(clock.now_ms());
      logger.close();
    },
    get path() {
      return file.path;
    },
  };
}

/** winston's format. It changes nothing, because a line is complete when winston receives it. */
const asIs = { transform: (info: Logform.TransformableInfo) => info };

type Info = { readonly message: string; readonly now_ms: number };

/** winston's transport. It passes the complete lines to a day file. */
class PbsTransport extends Transport {
  readonly #file: DayFile;
  readonly #day: (now_ms: number) => string;

  constructor(file: DayFile, day: (now_ms: number) => string) {
    super({ level: "pbs" });
    this.#file = file;
    this.#day = day;
  }

  override log(info: Info, next: () => void): void {
    this.#file.write(info.message, this.#day(info.now_ms), info.now_ms);
    next();
  }
}

type Line = (now_ms: number, event: number, logClass: string, object: string, text: string) => string;

/** Returns the first lines of a new file (docs/reference/files.md 3). */
function headerLines(now_ms: number, line: Line, daemon: string, header: readonly string[]): string {
  return [
    line(now_ms, LOG_EVENT.SYSTEM, "Svr", "Log", "Log opened"),
    line(now_ms, LOG_EVENT.SYSTEM, "Svr", daemon, `pbs_version=${PBS_VERSION}`),
    line(now_ms, LOG_EVENT.SYSTEM, "Svr", daemon, `pbs_build=${PBS_BUILD}`),
    ...header.map((text) => line(now_ms, LOG_EVENT.DEBUG2, "Svr", daemon, text)),
  ].join("");
}

const HEX: string[] = [];
/** Returns an event as four lower-case hexadecimal digits, without the bit FORCE. */
function hex4(event: number): string {
  const masked = event & 0x7fff;
  return (HEX[masked] ??= masked.toString(16).padStart(4, "0"));
}

/** Makes a text a single line. The text may come from a user, who must not be able to forge a record. */
function oneLine(text: string): string {
  return /[\r\n]/.test(text) ? text.replaceAll("\r", "\\r").replaceAll("\n", "\\n") : text;
}

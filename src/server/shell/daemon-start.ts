// How a daemon in the background reports to the process that has started it, and the life of the daemons beside the server: lock, log, end by a signal.

import { closeSync, mkdirSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { messageOf, stackOf } from "#support/caught.ts";
import { type Conf, readConf } from "#support/conf.ts";
import { closeForeignDescriptors } from "#support/descriptors.ts";
import { takeLock } from "#support/libc/lock-file.ts";
import { openLog } from "#support/log.ts";
import { LOG_EVENT, LOG_MASK } from "#support/log-event.ts";

/** The descriptor on which the background process reports that the server answers, or why it does not. */
export const READY_FD = 3;
export const READY_ENV = "PARTITA_READY_FD";

/** Environment variable that is set for a server which its predecessor has started (pair.ts A3): the predecessor may still have the lock. */
export const AGAIN_ENV = "PARTITA_SERVER_AGAIN";

/** A file in server_priv with attributes that the installation wants to be set at the first start, when the store is empty. Lines NAME=VALUE. */
export const FIRST_START = "first_start";

/** The beginning of a line that says why the server has not started yet. */
export const WAITING = "pbs_server: waiting";
/** The beginning of the notice of a server that stands by (store/postgres/writer.ts): its start is complete. */
export const STANDS_BY = "waiting: ";

/** Tells the process that waits for the start why the server has not started yet. text: a line that begins with WAITING. */
export function tellWaiting(text: string): void {
  try {
    writeSync(process.env[READY_ENV] === undefined ? 2 : READY_FD, `${text}\n`);
  } catch {
    // The waiting process has gone.
  }
}

/** Sends a message to the process that waits for the start. If the server runs in the foreground, a fault is written to stderr. */
export function tellStarter(text: string): void {
  if (process.env[READY_ENV] === undefined) {
    if (text !== "ready\n") writeSync(2, text);
    return;
  }
  try {
    writeSync(READY_FD, text);
    closeSync(READY_FD);
  } catch {
    // The waiting process has gone.
  }
  delete process.env[READY_ENV];
}

/** A daemon beside the server, such as pbs_grid and pbs_web. */
export type SideDaemon = {
  /** for example pbs_grid */
  readonly name: string;
  /** the daemon's files in PBS_HOME are WORD_priv, WORD_priv/WORD.lock and WORD_logs */
  readonly word: string;
  readonly lock_mode: number;
  /** returns why the daemon may not run; null: it may */
  readonly mayRun: (conf: Conf) => string | null;
  /** serves until `ended`; tells the starter when it is ready */
  readonly serve: (conf: Conf, note: (text: string, event?: number) => void, ended: Promise<void>) => Promise<void>;
};

/** Runs a daemon, and ends the process with its exit status. */
export function runSideDaemon(daemon: SideDaemon): void {
  const refused = (text: string): number => {
    tellStarter(`${daemon.name}: ${text}\n`);
    return 1;
  };
  live(daemon, refused).then(
    (status) => process.exit(status),
    (error: unknown) => process.exit(refused(stackOf(error))),
  );
}

async function live(daemon: SideDaemon, refused: (text: string) => number): Promise<number> {
  const { name, word, lock_mode, mayRun, serve } = daemon;
  closeForeignDescriptors(...(process.env[READY_ENV] === undefined ? [] : [READY_FD]));
  process.title = name;
  process.umask(0o022);
  const conf = readConf();
  const refusal = mayRun(conf);
  if (refusal !== null) return refused(refusal);
  const [directory, logs] = [join(conf.home, `${word}_priv`), join(conf.home, `${word}_logs`)];
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const lock = takeLock(join(directory, `${word}.lock`), lock_mode);
  if ("owner_pid" in lock) return refused(`another ${name} runs (pid ${lock.owner_pid ?? "unknown"})`);
  mkdirSync(logs, { recursive: true, mode: 0o755 });
  const log = openLog({ dir: logs, daemon: name, mask: LOG_MASK.server, highres: conf.log_highres });
  const note = (text: string, event: number = LOG_EVENT.SYSTEM): void => log.record(event, "Svr", name, text);
  note(`starting, pid ${process.pid}`);
  process.on("SIGHUP", () => log.reopen());
  const ended = Promise.withResolvers<void>();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => ended.resolve());
  try {
    await serve(conf, note, ended.promise);
    return 0;
  } catch (error) {
    note(`ended by an error: ${stackOf(error)}`, LOG_EVENT.ERROR);
    return refused(messageOf(error));
  } finally {
    note("ends");
    log.close();
    lock.held.release();
  }
}

/** Returns why this user may not run a daemon of PBS_HOME; null: he is its owner, or root where root is allowed. */
export function ownerFault({ home }: Conf, isRootAllowed: boolean): string | null {
  const uid = process.getuid?.() ?? 0;
  const owner = statSync(home, { throwIfNoEntry: false })?.uid;
  if (owner === undefined) return `PBS_HOME ${home} does not exist`;
  return owner === uid || (isRootAllowed && uid === 0) ? null : `PBS_HOME ${home} belongs to another user`;
}

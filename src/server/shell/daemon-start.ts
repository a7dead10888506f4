// How the server in the background reports to the process that has started it.

import { closeSync, writeSync } from "node:fs";

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

// The agreement between the process that starts the server and the server in the background.

import { closeSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Conf } from "#support/conf.ts";

/** The background process reports on this descriptor that it answers, or why it does not. */
export const READY_FD = 3;
export const READY_ENV = "PARTITA_READY_FD";

/** In server_priv: attributes of the server that the installation requests once, when the store is empty. Lines NAME=VALUE. */
export const FIRST_START = "first_start";

export const storeFile = (conf: Conf): string => join(conf.home, "server_priv/partita.db");

/** The message to the waiting process; in the foreground a fault goes to stderr. */
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
